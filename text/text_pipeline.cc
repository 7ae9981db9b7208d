#include "text/text_pipeline.h"

#include <utility>

namespace warmpath {

Result<TextPipeline> make_text_pipeline(Vocabulary vocabulary) {
  const std::string source = vocabulary.chat_template;
  const std::string bos(vocabulary.text_of(vocabulary.bos));
  const std::string eos(vocabulary.text_of(vocabulary.eos));
  auto tokenizer = Tokenizer::create(std::move(vocabulary));
  if (!tokenizer.ok()) return tokenizer.status();
  TextPipeline pipeline{*std::move(tokenizer), nullptr};
  if (!source.empty()) {
    auto compiled = ChatTemplate::compile(source, bos, eos);
    if (!compiled.ok()) return compiled.status();
    pipeline.chat_template = *std::move(compiled);
  }
  return pipeline;
}

}  // namespace warmpath

#include "text/text_rules.h"

#include <fmt/format.h>

#include <utility>

#include "model_file/gguf_file.h"
#include "text/tokenizer_family.h"

namespace warmpath {

Result<std::shared_ptr<const TextRules>> rules_of_family(std::string_view model, std::string_view pre,
                                                         bool add_space_prefix) {
  auto rules = std::make_shared<TextRules>();
  rules->identity = fmt::format("{} {} {}", model, pre, add_space_prefix);
  if (model == "llama") {
    rules->symbols = TextRules::Symbols::kSpaced;
    rules->byte_fallback = true;
    rules->spaces_in_tokens = true;
    if (add_space_prefix) {
      rules->space_prefix = TextRules::SpacePrefix::kAlways;
      rules->strip_start = 1;
    }
    return std::shared_ptr<const TextRules>(std::move(rules));
  }
  if (model != "gpt2") {
    return unimplemented(fmt::format(
        "tokenizer.ggml.model is '{}': byte-level BPE ('gpt2') and SentencePiece BPE ('llama') are supported",
        printable(model)));
  }
  const TokenizerFamily* family = find_tokenizer_family(pre);
  if (family == nullptr) {
    return unimplemented(fmt::format("tokenizer.ggml.pre is '{}', which is not one of the known families: {}",
                                     printable(pre), known_tokenizer_families()));
  }
  rules->whole_pieces_first = family->whole_pieces_first;
  std::vector<PreTokenizer::Step> steps;
  if (family->scanner != nullptr) {
    steps.push_back({.kind = PreTokenizer::Kind::kScanner, .scanner = family->scanner});
  }
  for (const std::string_view pattern : family->patterns) {
    auto regex = Regex::compile(pattern);
    if (!regex.ok()) return regex.status();
    steps.push_back({.kind = PreTokenizer::Kind::kRegex, .regex = *std::move(regex)});
  }
  rules->pre_tokenizer = PreTokenizer(std::move(steps));
  return std::shared_ptr<const TextRules>(std::move(rules));
}

}  // namespace warmpath

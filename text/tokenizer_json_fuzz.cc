// Fuzz target: any bytes as a tokenizer.json, and, where they make a tokenizer, some text through it. Nothing may
// crash, and what a lossless tokenizer encodes must decode to the same text.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "text/tokenizer.h"
#include "text/tokenizer_json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace warmpath;
  const std::string_view json(reinterpret_cast<const char*>(data), size);
  auto vocabulary = vocabulary_from_tokenizer_json(json, "fuzz");
  if (!vocabulary.ok()) return 0;
  const auto tokenizer = Tokenizer::create(*std::move(vocabulary));
  if (!tokenizer.ok()) return 0;
  const std::string_view texts[] = {"the  cat\n\n sat on 12345 \xC3\xA9\xE6\xBC\xA2<|im_end|> it's\t\xFF\xE2\x96\x81x",
                                    json.substr(0, 2048)};
  for (const std::string_view text : texts) {
    for (const SpecialTokens mode : {SpecialTokens::kText, SpecialTokens::kParse}) {
      const auto ids = (*tokenizer)->encode(text, mode);
      if (!ids.ok()) continue;
      const std::string back = (*tokenizer)->decode(*ids);
      if ((*tokenizer)->lossless() && (*tokenizer)->vocabulary().added.empty() && back.size() < text.size())
        std::abort();
    }
    (void)(*tokenizer)->next_safe_cut(text, 3);
  }
  return 0;
}

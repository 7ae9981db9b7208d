// A Hugging Face tokenizer.json as a Vocabulary with its rules. Its normalizer, pre-tokenizer, decoder, added tokens
// and post-processor are obeyed as Hugging Face tokenizers obeys them; what is not supported is refused by its place in
// the file ("pre_tokenizer.pretokenizers[1].type is 'UnicodeScripts', ..."). Thread safety: pure functions.
#pragma once

#include <string_view>

#include "base/status.h"
#include "model_file/gguf_file.h"
#include "text/vocabulary.h"

namespace warmpath {

// `name` opens every message.
Result<Vocabulary> vocabulary_from_tokenizer_json(std::string_view json, std::string_view name);

// The same with what tokenizer_gguf_from_folder() has packed around it (docs/formats.md).
Result<Vocabulary> vocabulary_from_json(const GgufFile& file);

}  // namespace warmpath

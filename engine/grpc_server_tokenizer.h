// What FetchTokenizer sends: a model file's tokenizer tables and chat template as a GGUF file without tensors. The same
// model always gives the same bytes, so their hash names the tokenizer. Thread safety: pure function.
#pragma once

#include <string>

#include "model_file/gguf_file.h"

namespace warmpath {

// general.architecture, general.name and every tokenizer.* key, in the file's order.
std::string tokenizer_gguf(const GgufFile& model);

}  // namespace warmpath

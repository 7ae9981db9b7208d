// A model with its text: open_model() opens weights and hyper-parameters; of a Hugging Face folder this adds the keys
// of the tokenizer and the chat template (text_pipeline.h), so that its file answers for all of the model, as a GGUF
// does. Thread safety: functions of the file system.
#pragma once

#include <string_view>

#include "base/status.h"
#include "model_file/model_store.h"

namespace warmpath {

// `spec` as open_model() takes it.
Result<OpenModel> open_model_with_text(std::string_view spec);

}  // namespace warmpath

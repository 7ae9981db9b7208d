#include "text/model_text.h"

#include <utility>

#include "model_file/safetensors_folder.h"
#include "text/text_pipeline.h"

namespace warmpath {

Result<OpenModel> open_model_with_text(std::string_view spec) {
  Result<OpenModel> model = open_model(spec);
  if (!model.ok() || !is_model_folder(model->path)) return model;
  auto bytes = tokenizer_gguf_from_folder(model->path);
  if (!bytes.ok()) return bytes.status();
  auto keys = GgufFile::parse(*std::move(bytes), model->path.string());
  if (!keys.ok()) return keys.status();
  WARMPATH_RETURN_IF_ERROR(model->file.absorb(*std::move(keys)));
  return model;
}

}  // namespace warmpath

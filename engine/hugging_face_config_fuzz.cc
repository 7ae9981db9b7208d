// Any bytes as a config.json: refused or translated into keys that a GGUF file may have and a model's configuration is
// read from.
#include <cstddef>
#include <cstdint>

#include "engine/model_config.h"
#include "model_file/hugging_face_config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  warmpath::GgufWriter writer;
  const auto config = warmpath::translate_config(std::as_bytes(std::span(data, size)), "config.json", writer);
  if (!config.ok()) return 0;
  writer.add_tensor("token_embd.weight", warmpath::TensorType::kF32, {1, 1}, std::vector<std::byte>(4));
  const auto file = warmpath::GgufFile::parse(writer.finish(), "config.json");
  if (!file.ok()) __builtin_trap();  // what is translated can be read
  const auto model = warmpath::read_model_config(*file);
  if (model.ok() && model->rotation.inv_freq.empty()) __builtin_trap();
  return 0;
}

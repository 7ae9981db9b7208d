// GgufWriter: builds a GGUF v3 file in memory, for tests and synthetic models. Little-endian, aligned to 32 bytes.
//
//   GgufWriter writer;
//   writer.add_string("general.architecture", "llama");
//   writer.add_tensor("token_embd.weight", TensorType::kF32, {64, 256}, bytes);
//   std::vector<std::byte> file = writer.finish();
//
// What is given is written as it is, also when a reader must refuse it. Thread safety: none; one writer per file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model_file/gguf_types.h"

namespace warmpath {

class GgufWriter {
 public:
  void add_uint32(std::string_view key, uint32_t value);
  void add_float32(std::string_view key, float value);
  void add_bool(std::string_view key, bool value);
  void add_string(std::string_view key, std::string_view value);
  void add_strings(std::string_view key, std::span<const std::string> values);
  void add_int32s(std::string_view key, std::span<const int32_t> values);
  void add_tensor(std::string_view name, TensorType type, std::vector<uint64_t> shape, std::vector<std::byte> data);

  std::vector<std::byte> finish() const;

 private:
  struct Tensor {
    std::string name;
    TensorType type;
    std::vector<uint64_t> shape;
    std::vector<std::byte> data;
  };

  void begin_entry(std::string_view key, GgufType type);

  std::vector<std::byte> metadata_;
  uint64_t entries_ = 0;
  std::vector<Tensor> tensors_;
};

}  // namespace warmpath

// Any bytes: the reader either refuses them or every accessor works on what it accepted.
#include <cstdint>
#include <cstdlib>

#include "model_file/gguf_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using warmpath::GgufFile;
  const auto file = GgufFile::parse(std::as_bytes(std::span(data, size)), "fuzz");
  if (!file.ok()) {
    if (file.status().message().empty()) std::abort();
    return 0;
  }
  uint64_t sum = 0;
  for (const auto& entry : file->entries()) {
    if (const auto value = file->get_int(entry.key); value.ok()) sum += static_cast<uint64_t>(*value);
    if (const auto value = file->get_uint(entry.key); value.ok()) sum += *value;
    if (const auto value = file->get_float(entry.key); value.ok()) sum += *value > 0 ? 1 : 0;
    if (const auto value = file->get_bool(entry.key); value.ok()) sum += *value ? 1 : 0;
    if (const auto value = file->get_string(entry.key); value.ok()) sum += value->size();
    if (const auto values = file->get_ints(entry.key); values.ok()) sum += values->size();
    if (const auto values = file->get_floats(entry.key); values.ok()) sum += values->size();
    if (const auto values = file->get_strings(entry.key); values.ok()) {
      size_t seen = 0;
      for (const std::string_view text : *values) {
        ++seen;
        for (const char c : text) sum += static_cast<unsigned char>(c);
      }
      if (seen != values->size()) std::abort();
    }
  }
  for (const auto& tensor : file->tensors()) {
    if (file->find_tensor(tensor.name) != &tensor) std::abort();
    for (const std::byte byte : tensor.data) sum += static_cast<uint8_t>(byte);
  }
  return sum == 0x5eed5eed5eed5eed ? 1 : 0;
}

// Any bytes as a .safetensors file: refused or described, never read beyond. Tensors' bytes are touched.
#include <cstddef>
#include <cstdint>

#include "model_file/safetensors_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto tensors = warmpath::parse_safetensors(bytes, "fuzz.safetensors");
  if (!tensors.ok()) return tensors.status().message().empty() ? __builtin_trap(), 0 : 0;
  uint64_t covered = 0;
  unsigned sum = 0;
  for (const warmpath::SafetensorsTensor& tensor : *tensors) {
    covered += tensor.data.size();
    for (const std::byte byte : tensor.data) sum += std::to_integer<unsigned>(byte);
  }
  if (covered > size) __builtin_trap();
  [[maybe_unused]] volatile unsigned kept = sum;
  return 0;
}

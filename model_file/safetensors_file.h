// SafetensorsFile: one .safetensors file, read without copying: a JSON header (at most 100 MB, as the format's own
// library reads) that names, types and places tensors, then their bytes.
//
// The bytes are untrusted. Checked when parsed: the header's size and JSON, names (once each), element types, shapes
// (overflow, more than 8 dimensions), that a tensor's offsets hold exactly its elements, and that tensors cover the
// data without gaps or overlaps. A refusal names the tensor and the byte offset. Format: huggingface/safetensors
// README. Thread safety: a value; views live as long as the bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace warmpath {

struct SafetensorsTensor {
  std::string name;
  std::string dtype;            // F32, BF16, ...: one that the format defines
  std::vector<uint64_t> shape;  // slowest dimension first; empty for a scalar
  std::span<const std::byte> data;
  uint64_t offset = 0;  // of `data` in the file
};

// The tensors in order of their data. `name` stands for the file in messages.
Result<std::vector<SafetensorsTensor>> parse_safetensors(std::span<const std::byte> bytes, std::string_view name);

}  // namespace warmpath

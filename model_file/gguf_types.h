// The two type systems of a GGUF file: metadata values, and tensor elements (ggml types). Numbers and block layouts are
// those of the GGUF v3 specification (ggml docs/gguf.md) and of ggml's type table.
// Thread safety: constants and pure functions.
#pragma once

#include <cstdint>
#include <string_view>

namespace warmpath {

enum class GgufType : uint32_t {
  kUint8 = 0,
  kInt8 = 1,
  kUint16 = 2,
  kInt16 = 3,
  kUint32 = 4,
  kInt32 = 5,
  kFloat32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kUint64 = 10,
  kInt64 = 11,
  kFloat64 = 12,
};
inline constexpr uint32_t kGgufTypeCount = 13;

// Such as "uint32"; "unknown" beyond the table.
std::string_view gguf_type_name(GgufType type);
// Bytes of one value; 0 for strings and arrays, whose size is in the file.
uint32_t gguf_type_bytes(GgufType type);

// ggml's element types that this project's kernels know. A file may hold others: they have a name and a size, and
// whoever needs the numbers refuses them by that name.
enum class TensorType : uint32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ5_0 = 6,
  kQ5_1 = 7,
  kQ8_0 = 8,
  kQ4_K = 12,
  kQ5_K = 13,
  kQ6_K = 14,
  kBF16 = 30,
};
// Whether `type` is one of those.
bool is_supported(TensorType type);
// "F32, F16, ...", for messages.
std::string_view supported_tensor_types();

// How ggml stores one element type: rows of blocks of `block_elements` values in `block_bytes` bytes.
struct TensorLayout {
  std::string_view name;
  uint32_t block_elements = 0;
  uint32_t block_bytes = 0;
};

// nullptr for a number that ggml does not define (or has withdrawn).
const TensorLayout* tensor_layout(TensorType type);
// Such as "Q4_1"; "unknown" when undefined.
std::string_view tensor_type_name(TensorType type);

}  // namespace warmpath

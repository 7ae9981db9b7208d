// KvLayout: where the keys and values of one 16-token block lie. A block is one contiguous piece that holds every
// layer, K and V, so that one spill is one copy.
//
//   block = [layer][K, V][kv_head] planes
//   K plane: [head_dim][16]  transposed: the 16 tokens of one dimension are neighbours, so a score needs no horizontal
//   sum V plane: [16][head_dim]  row-major: a token's value is one run
//
// Elements are
//   kInt16  the fast path: 16-bit integers, with one f32 scale a token in front of each plane ([16], 64 bytes). A key
//   of 64
//           numbers is scaled by its length to 32767, so that an integer dot product of two of them fits 32 bits; a
//           value by its largest number to 8000, so that 256 of them, weighted, do. More exact than f16, and twice as
//           fast. Neighbours that one instruction multiplies lie side by side: K [head_dim / 2][16][2], V
//           [8][head_dim][2].
//   kF16    what the GPU reads
//   kF32    the reference path
//
// Slots of tokens that were never stored may hold anything, NaN included: no operation lets them reach a result.
// Thread safety: a value.
#pragma once

#include <cstddef>
#include <cstdint>

namespace warmpath {

enum class KvType : uint8_t { kF16, kF32, kInt16 };

constexpr const char* kv_type_name(KvType type) {
  return type == KvType::kF16 ? "f16" : type == KvType::kF32 ? "f32" : "int16";
}

struct KvLayout {
  // The same grid as kBlockTokens of base/token.h; device code includes this header alone.
  static constexpr int32_t kTokens = 16;

  int32_t layers = 0;
  int32_t kv_heads = 0;
  int32_t head_dim = 0;  // a multiple of 16
  KvType type = KvType::kF16;

  constexpr int64_t element_bytes() const { return type == KvType::kF32 ? 4 : 2; }
  // Of the scales in front of a plane.
  constexpr int64_t scale_bytes() const { return type == KvType::kInt16 ? int64_t{kTokens} * 4 : 0; }
  constexpr int64_t plane_bytes() const { return scale_bytes() + int64_t{kTokens} * head_dim * element_bytes(); }
  constexpr int64_t layer_bytes() const { return 2 * kv_heads * plane_bytes(); }
  constexpr int64_t block_bytes() const { return layers * layer_bytes(); }
  constexpr int64_t token_bytes() const { return block_bytes() / kTokens; }

  // Byte offsets inside a block.
  constexpr int64_t k_offset(int32_t layer, int32_t kv_head) const {
    return layer * layer_bytes() + kv_head * plane_bytes();
  }
  constexpr int64_t v_offset(int32_t layer, int32_t kv_head) const {
    return layer * layer_bytes() + (kv_heads + kv_head) * plane_bytes();
  }

  constexpr bool operator==(const KvLayout&) const = default;
};

// A KV arena: block b begins at base + b * layout.block_bytes(). `base` is 64-byte aligned.
struct KvArena {
  uint8_t* base = nullptr;
  KvLayout layout;
};

}  // namespace warmpath

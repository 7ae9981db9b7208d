// KvLayout: where the keys and values of one 16-token block lie. A block is one contiguous piece that holds every
// layer, K and V, so that one spill is one copy.
//
//   block = [layer][K, V][kv_head] planes
//   K plane: [head_dim][16]  transposed: the 16 tokens of one dimension are neighbours, so a score needs no horizontal
//   sum V plane: [16][head_dim]  row-major: a token's value is one run
//
// Elements are f16 (the fast path) or f32 (the reference path). Slots of tokens that were never stored may hold
// anything, NaN included: no operation lets them reach a result. Thread safety: a value.
#pragma once

#include <cstddef>
#include <cstdint>

namespace warmpath {

enum class KvType : uint8_t { kF16, kF32 };

struct KvLayout {
  // The same grid as kBlockTokens of base/token.h; device code includes this header alone.
  static constexpr int32_t kTokens = 16;

  int32_t layers = 0;
  int32_t kv_heads = 0;
  int32_t head_dim = 0;  // a multiple of 16
  KvType type = KvType::kF16;

  constexpr int64_t element_bytes() const { return type == KvType::kF16 ? 2 : 4; }
  constexpr int64_t plane_bytes() const { return int64_t{kTokens} * head_dim * element_bytes(); }
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

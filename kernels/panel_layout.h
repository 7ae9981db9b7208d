// Where a packed weight matrix keeps its numbers: the panels of packed_matrix.h, as constants for whoever reads them.
//
// A panel is 16 rows ("lanes"); its columns come in groups. A group of quants of 4, 5 or 6 bits, all offsets multiples
// of 64 bytes, q its quants (unsigned):
//
//   header   f16 scale[16], f16 min[16]                                    groups of 32 columns:   w = scale q + min
//            then u8 s[8][16], u8 m[8][16]                                 groups of 256 columns:  w = (scale s) q +
//            min m or   s8 s[16][16], one each 16 columns (6 bits; no minimum)                           w = (scale
//            s)(q - 32)
//   blocks   [blocks] of: low   u4 [4][64]
//                         high  the bits above the fourth, [bits - 4][64]
//
// A block is 32 columns: eight steps of four. In a 64-byte vector byte 4 * lane + i belongs to column 4 * step + i. Of
// `low`, vector j holds step j in its low nibbles and step j + 4 in its high ones; of `high`, the bits of step j are at
// bit j (one bit: one vector) or at bit 2 (j % 4) of vector j / 4 (two bits).
//
// 8-bit panels: groups of two blocks (of the last, one may be padding): f16 scale[2][16], then s8 [2][8][64]. Float
// panels: [K][16].
//
// A decode reads a panel from its first byte to its last: with streams of their own for the upper bits, or for the
// scales, the processor's prefetchers lose it (measured: half to a third of the bytes a second).
// C only, with internal linkage: included by files with differing -m flags. Thread safety: constants.
#pragma once

#include <stdint.h>

namespace warmpath {

enum class PanelKind : uint8_t { kQ4, kQ5, kQ8, kQ4K, kQ5K, kQ6K, kF16, kBF16, kF32 };
inline constexpr int kPanelKinds = 9;

// Quants of 4 to 6 bits.
struct QuantPanel {
  int32_t bits;
  int32_t blocks;  // of a group: 1 or 8

  constexpr bool scaled_twice() const { return blocks == 8; }  // ggml's K types: quantized scales
  constexpr int32_t columns() const { return 32 * blocks; }
  constexpr int32_t block_bytes() const { return 64 * bits; }
  constexpr int32_t low_offset(int32_t block) const { return (scaled_twice() ? 320 : 64) + block_bytes() * block; }
  constexpr int32_t high_offset(int32_t block) const { return low_offset(block) + 256; }
  constexpr int32_t group_bytes() const { return low_offset(blocks); }
};

inline constexpr QuantPanel kPanelQ4 = {4, 1};
inline constexpr QuantPanel kPanelQ5 = {5, 1};
inline constexpr QuantPanel kPanelQ4K = {4, 8};
inline constexpr QuantPanel kPanelQ5K = {5, 8};
inline constexpr QuantPanel kPanelQ6K = {6, 8};

// Inside a header, in bytes.
inline constexpr int32_t kPanelMinOffset = 32;
inline constexpr int32_t kPanelSubScaleOffset = 64;
inline constexpr int32_t kPanelSubMinOffset = 192;

// Of 8-bit panels, from the panel's first byte.
inline constexpr int32_t kPanelQ8GroupBytes = 64 + 2 * 512;
constexpr int64_t panel_q8_bytes(int64_t blocks) { return (blocks + 1) / 2 * kPanelQ8GroupBytes; }
constexpr int64_t panel_q8_scales(int64_t block) { return block / 2 * kPanelQ8GroupBytes + block % 2 * 32; }
constexpr int64_t panel_q8_quants(int64_t block) { return block / 2 * kPanelQ8GroupBytes + 64 + block % 2 * 512; }

}  // namespace warmpath

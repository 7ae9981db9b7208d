// The AMX-INT8 table: the AVX-512 one, but quantized products of many rows run on tiles. Compiled with its own -m
// flags; the rules of kernels_avx2.cc hold.
//
// A tile is up to 16 rows of 64 bytes. tdpbssd adds to C[m][n] (32-bit) the products of A[m][4k + i] and B[k][4n + i],
// both signed bytes. Of a panel, 16 rows ("lanes") of weights, a step of four columns is one row of B as it lies
// (kernels/panel_layout.h), so 32 columns are a B of 8 rows; A is 32 bytes of up to 16 rows of x where they lie. C
// comes back as integers, exact, once per scale (32 columns, 16 of 6-bit weights), and enters the sums in floats in the
// very order of the other tables, so the bits are theirs.
//
// The work of 16 rows x 32 columns x 16 lanes, on Sapphire Rapids by Intel's public figures: tdpbssd 16 cycles, C
// stored in 16, and beside them the floats, 16 x 4 instructions on two ports: 32 cycles. The AVX-512 table needs 16 x
// 12 on the same ports, 96. Few rows leave tiles empty while each tile costs the same: below kLeastRows the AVX-512
// table computes them.
#include <immintrin.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/quants_avx512.h"
#include "kernels/cpu/vec16_avx512.h"
#include "kernels/ops.h"

namespace warmpath {
namespace {

constexpr int kFloatRows = 12;

}  // namespace
}  // namespace warmpath

#include "kernels/cpu/product_float.inl"

namespace warmpath {
namespace {

constexpr int32_t kTileRows = 16;
constexpr int32_t kLeastRows = 16;
constexpr int32_t kMostParts = 3;    // tiles of rows that share the unpacking of weights
constexpr int32_t kChunkBlocks = 8;  // blocks of 32 columns unpacked at a time: 4 KB of quants
constexpr int32_t kMostUnits = 16;   // a unit is the columns of one scale: 32, or 16 of 6-bit weights

// Tiles by number. Two of each kind, so that one unit's product runs while the floats of the unit before are added.
constexpr int kSums = 0;
constexpr int kRows = 2;
constexpr int kWeights = 4;

// In assembly because the intrinsics of g++ 12 do not say that they read memory.
template <int Tile>
inline void tile_zero() {
  asm volatile("tilezero %%tmm%c0" ::"i"(Tile));
}
template <int Tile>
inline void tile_load(const void* from, int64_t stride) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(stride), "i"(Tile) : "memory");
}
template <int Tile>
inline void tile_store(void* to, int64_t stride) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(stride), "i"(Tile) : "memory");
}
// Sums += Rows . Weights
template <int Sums, int Rows, int Weights>
inline void tile_dot() {
  asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(Sums), "i"(Rows), "i"(Weights));
}

// The shapes of a thread's tiles: set while this object lives, then given back.
class TileShapes {
 public:
  TileShapes(int32_t rows, int32_t unit_columns) {
    struct alignas(64) {
      uint8_t palette = 1;
      uint8_t start_row = 0;
      uint8_t reserved[14] = {};
      uint16_t row_bytes[16] = {};
      uint8_t rows[16] = {};
    } config;
    for (int parity = 0; parity < 2; ++parity) {
      config.row_bytes[kSums + parity] = 64;
      config.rows[kSums + parity] = static_cast<uint8_t>(rows);
      config.row_bytes[kRows + parity] = static_cast<uint16_t>(unit_columns);
      config.rows[kRows + parity] = static_cast<uint8_t>(rows);
      config.row_bytes[kWeights + parity] = 64;
      config.rows[kWeights + parity] = static_cast<uint8_t>(unit_columns / 4);
    }
    asm volatile("ldtilecfg %0" ::"m"(config));
  }
  ~TileShapes() { asm volatile("tilerelease" ::); }
  TileShapes(const TileShapes&) = delete;
  TileShapes& operator=(const TileShapes&) = delete;
};

// Some blocks of a panel, unpacked: quants as signed bytes [units][unit columns / 4][64], and what multiplies them.
struct Chunk {
  const uint8_t* quants[kMostUnits];
  alignas(64) uint8_t unpacked[kChunkBlocks * 512];
  alignas(64) float scale[kMostUnits][16];
  alignas(64) float min[kMostUnits][16];
};

// Panels of 4 to 6 bits.
template <QuantPanel P>
struct Quants {
  static constexpr int32_t kUnitColumns = P.bits == 6 ? 16 : 32;
  static constexpr bool kHasMin = P.bits != 6;

  template <int Step>
  static void unpack_step(const uint8_t* low, const uint8_t* high, uint8_t* to) {
    __m512i upper = _mm512_setzero_si512();
    if constexpr (P.bits == 5) upper = load_bytes(high);
    if constexpr (P.bits == 6) upper = load_bytes(high + Step / 4 * 64);
    __m512i quants = quants_of_step<P, Step>(load_bytes(low + Step % 4 * 64), upper);
    if constexpr (P.bits == 6) quants = _mm512_sub_epi8(quants, _mm512_set1_epi8(32));
    _mm512_store_si512(to + 64 * Step, quants);
  }

  static void unpack(const uint8_t* panel, int32_t first, int32_t count, Chunk& chunk) {
    for (int32_t i = 0; i < count; ++i) {
      const int32_t b = (first + i) % P.blocks;
      const uint8_t* group = panel + static_cast<int64_t>((first + i) / P.blocks) * P.group_bytes();
      const uint8_t* low = group + P.low_offset(b);
      const uint8_t* high = group + P.high_offset(b);
      uint8_t* to = chunk.unpacked + 512 * i;
      for (int32_t unit = 0; unit < 32 / kUnitColumns; ++unit) {
        chunk.quants[i * 32 / kUnitColumns + unit] = to + 16 * kUnitColumns * unit;
      }
      unpack_step<0>(low, high, to);
      unpack_step<1>(low, high, to);
      unpack_step<2>(low, high, to);
      unpack_step<3>(low, high, to);
      unpack_step<4>(low, high, to);
      unpack_step<5>(low, high, to);
      unpack_step<6>(low, high, to);
      unpack_step<7>(low, high, to);
      const V scale = v_load_half(reinterpret_cast<const uint16_t*>(group));
      const uint8_t* sub_scale = group + kPanelSubScaleOffset;
      if constexpr (P.bits == 6) {
        v_store(chunk.scale[2 * i], v_mul(scale, v_load_int8(sub_scale + 32 * b)));
        v_store(chunk.scale[2 * i + 1], v_mul(scale, v_load_int8(sub_scale + 32 * b + 16)));
      } else {
        const V min = v_load_half(reinterpret_cast<const uint16_t*>(group + kPanelMinOffset));
        v_store(chunk.scale[i], P.scaled_twice() ? v_mul(scale, v_load_uint8(sub_scale + 16 * b)) : scale);
        v_store(chunk.min[i], P.scaled_twice() ? v_mul(min, v_load_uint8(group + kPanelSubMinOffset + 16 * b)) : min);
      }
    }
  }
};

// 8-bit panels: the quants are used where they lie.
struct Quants8 {
  static constexpr int32_t kUnitColumns = 32;
  static constexpr bool kHasMin = false;

  static void unpack(const uint8_t* panel, int32_t first, int32_t count, Chunk& chunk) {
    for (int32_t i = 0; i < count; ++i) {
      chunk.quants[i] = panel + panel_q8_quants(first + i);
      v_store(chunk.scale[i], v_load_half(reinterpret_cast<const uint16_t*>(panel + panel_q8_scales(first + i))));
    }
  }
};

// sums[Rows][16] = unit `unit` of the chunk times Rows rows of x, on the tiles of one parity.
template <typename Q, int Parity>
inline void multiply_unit(const Chunk& chunk, int32_t unit, const int8_t* x, int64_t stride, int32_t* sums) {
  tile_zero<kSums + Parity>();
  tile_load<kRows + Parity>(x + Q::kUnitColumns * unit, stride);
  tile_load<kWeights + Parity>(chunk.quants[unit], 64);
  tile_dot<kSums + Parity, kRows + Parity, kWeights + Parity>();
  tile_store<kSums + Parity>(sums, 64);
}

// acc[Rows][16] += the chunk, which begins at block `first`, times rows [row, row + Rows) of x.
template <typename Q, int Rows>
void add_chunk(const PanelProduct& product, const Chunk& chunk, int32_t first, int32_t units, int32_t row,
               float* sums) {
  const int32_t blocks = product.columns / 32;
  const int8_t* x = product.x8.q + row * product.x8.stride + 32 * static_cast<int64_t>(first);
  const float* x_scale = product.x8.scale + static_cast<int64_t>(row) * blocks + first;
  const float* x_sum = product.x8.sum + static_cast<int64_t>(row) * blocks + first;
  alignas(64) int32_t dots[2][kTileRows * 16];
  V acc[Rows];
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) acc[r] = v_load(sums + 16 * r);
  multiply_unit<Q, 0>(chunk, 0, x, product.x8.stride, dots[0]);
  for (int32_t unit = 0; unit < units; ++unit) {
    if (unit + 1 < units) {
      if (unit % 2 == 0) {
        multiply_unit<Q, 1>(chunk, unit + 1, x, product.x8.stride, dots[1]);
      } else {
        multiply_unit<Q, 0>(chunk, unit + 1, x, product.x8.stride, dots[0]);
      }
    }
    const int32_t* dot = dots[unit % 2];
    const int32_t block = unit * Q::kUnitColumns / 32;
    const V w_scale = v_load(chunk.scale[unit]);
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) {
      const int64_t index = static_cast<int64_t>(r) * blocks + block;
      acc[r] =
          v_fma(_mm512_cvtepi32_ps(_mm512_load_si512(dot + 16 * r)), v_mul(w_scale, v_set1(x_scale[index])), acc[r]);
      if constexpr (Q::kHasMin) acc[r] = v_fma(v_load(chunk.min[unit]), v_set1(x_sum[index]), acc[r]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) v_store(sums + 16 * r, acc[r]);
}

// `parts` tiles of Rows rows cover the product's rows; the last may overlap the one before.
template <typename Q, int Rows>
void product_by_height(const PanelProduct& product, int32_t parts) {
  const TileShapes shapes(Rows, Q::kUnitColumns);
  const int32_t blocks = product.columns / 32;
  const auto first_row = [&](int32_t part) {
    return part * Rows < product.rows - Rows ? part * Rows : product.rows - Rows;
  };
  for (int32_t panel = 0; panel < product.panels; ++panel) {
    alignas(64) float sums[kMostParts][kTileRows * 16] = {};
    for (int32_t first = 0; first < blocks; first += kChunkBlocks) {
      Chunk chunk;
      const int32_t count = blocks - first < kChunkBlocks ? blocks - first : kChunkBlocks;
      Q::unpack(product.panel + panel * product.panel_bytes, first, count, chunk);
      for (int32_t part = 0; part < parts; ++part) {
        add_chunk<Q, Rows>(product, chunk, first, count * 32 / Q::kUnitColumns, first_row(part), sums[part]);
      }
    }
    int32_t done = 0;
    for (int32_t part = 0; part < parts; ++part) {
      for (; done < first_row(part) + Rows; ++done) {
        finish_panel(product, panel, done, v_load(sums[part] + 16 * (done - first_row(part))));
      }
    }
  }
}

// By the height of tiles: 17 rows are two tiles of 9.
template <typename Q>
constexpr void (*kByHeight[])(const PanelProduct& product, int32_t parts) = {
    product_by_height<Q, 9>,  product_by_height<Q, 10>, product_by_height<Q, 11>, product_by_height<Q, 12>,
    product_by_height<Q, 13>, product_by_height<Q, 14>, product_by_height<Q, 15>, product_by_height<Q, 16>};

template <typename Q, PanelKind Kind>
void product_of_tiles(const PanelProduct& product) {
  if (product.rows < kLeastRows) return avx512_kernels().product[static_cast<int>(Kind)](product);
  constexpr int32_t kMostRows = kMostParts * kTileRows;
  const int32_t passes = (product.rows + kMostRows - 1) / kMostRows;
  const int64_t blocks = product.columns / 32;
  for (int32_t pass = 0; pass < passes; ++pass) {
    const int64_t row = static_cast<int64_t>(product.rows) * pass / passes;
    PanelProduct some = product;
    some.rows = static_cast<int32_t>(static_cast<int64_t>(product.rows) * (pass + 1) / passes - row);
    some.x8 = {product.x8.q + row * product.x8.stride, product.x8.stride, product.x8.scale + row * blocks,
               product.x8.sum + row * blocks, product.x8.q_sum + 2 * row * blocks};
    some.y = product.y + row * product.y_stride;
    const int32_t parts = (some.rows + kTileRows - 1) / kTileRows;
    kByHeight<Q>[(some.rows + parts - 1) / parts - 9](some, parts);
  }
}

template <QuantPanel P, PanelKind Kind>
constexpr auto product_of_quants = product_of_tiles<Quants<P>, Kind>;

}  // namespace

const CpuKernels& amx_kernels() {
  static const CpuKernels kTable = [] {
    CpuKernels table = avx512_kernels();
    const auto put = [&table](PanelKind kind, auto product) { table.product[static_cast<int>(kind)] = product; };
    put(PanelKind::kQ4, product_of_quants<kPanelQ4, PanelKind::kQ4>);
    put(PanelKind::kQ5, product_of_quants<kPanelQ5, PanelKind::kQ5>);
    put(PanelKind::kQ8, product_of_tiles<Quants8, PanelKind::kQ8>);
    put(PanelKind::kQ4K, product_of_quants<kPanelQ4K, PanelKind::kQ4K>);
    put(PanelKind::kQ5K, product_of_quants<kPanelQ5K, PanelKind::kQ5K>);
    put(PanelKind::kQ6K, product_of_quants<kPanelQ6K, PanelKind::kQ6K>);
    return table;
  }();
  return kTable;
}

}  // namespace warmpath

// The operations over single rows: against their formulas in double precision, and bit for bit between paths.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/kernel_testing.h"

namespace warmpath {
namespace {

using testing::difference;
using testing::random_floats;
using testing::same_bits;

constexpr int32_t kRows = 7;

// Runs `op` on every path; all must agree bit for bit with the first (scalar), whose result is returned.
template <typename Op>
std::vector<float> on_every_path(const char* name, size_t size, Op op) {
  ThreadPool pool(2);
  std::vector<float> scalar;
  for (Isa isa : supported_isas()) {
    CpuOps ops(isa, pool);
    std::vector<float> y(size);
    op(ops, y.data());
    if (isa == Isa::kScalar) scalar = y;
    EXPECT_TRUE(same_bits(y, scalar)) << name << ": " << isa_name(isa) << " differs from its scalar twin";
  }
  return scalar;
}

TEST(RowOps, RmsNorm) {
  for (int32_t width : {1, 15, 576, 1000}) {
    const std::vector<float> x = random_floats(static_cast<size_t>(kRows * width), 1, 3.0f);
    const std::vector<float> w = random_floats(static_cast<size_t>(width), 2);
    std::vector<double> expected;
    for (int32_t row = 0; row < kRows; ++row) {
      const float* from = &x[static_cast<size_t>(row * width)];
      double squares = 0;
      for (int32_t i = 0; i < width; ++i) squares += static_cast<double>(from[i]) * from[i];
      for (int32_t i = 0; i < width; ++i)
        expected.push_back(from[i] / std::sqrt(squares / width + 1e-5) * w[static_cast<size_t>(i)]);
    }
    const std::vector<float> y = on_every_path("rms_norm", x.size(), [&](CpuOps& ops, float* out) {
      ops.rms_norm({x.data(), width, w.data(), 1e-5f, out, width, kRows, width});
    });
    const double error = difference(y, expected).relative;
    std::printf("rms_norm width %d max error %.2e\n", width, error);
    EXPECT_LT(error, 1e-6);
  }
}

TEST(RowOps, SwiGluFromEndToEndOfTheRange) {
  constexpr int32_t kWidth = 403;
  std::vector<float> gate;
  for (int32_t i = 0; i < kWidth; ++i) gate.push_back(-201.0f + static_cast<float>(i) + 0.37f);
  const std::vector<float> up = random_floats(kWidth, 3);
  std::vector<double> expected;
  for (size_t i = 0; i < gate.size(); ++i)
    expected.push_back(gate[i] / (1 + std::exp(-static_cast<double>(gate[i]))) * up[i]);
  const std::vector<float> y = on_every_path("swiglu", gate.size(), [&](CpuOps& ops, float* out) {
    ops.swiglu({gate.data(), up.data(), kWidth, out, kWidth, 1, kWidth});
  });
  for (size_t i = 0; i < y.size(); ++i) {
    // The exponent is rounded to f32 before the power is taken: an error of half a unit in the last place of it.
    EXPECT_NEAR(y[i], expected[i], 1e-34 + (5e-7 + 1.2e-7 * std::abs(gate[i])) * std::abs(expected[i])) << gate[i];
  }
}

TEST(RowOps, Add) {
  const std::vector<float> x = random_floats(kRows * 21, 4);
  const std::vector<float> y = on_every_path("add", x.size(), [&](CpuOps& ops, float* out) {
    std::copy(x.rbegin(), x.rend(), out);
    ops.add({x.data(), 21, out, 21, kRows, 21});
  });
  for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(y[i], x[x.size() - 1 - i] + x[i]);
}

TEST(RowOps, EmbeddingGathersAndScales) {
  const PackedMatrix table = testing::random_matrix(TensorType::kQ8_0, 50, 64, Precision::kQuantized, 5);
  const std::vector<int32_t> ids = {3, 49, 0, 3};
  for (float scale : {1.0f, 8.0f}) {
    const std::vector<float> y = on_every_path("embedding", ids.size() * 64, [&](CpuOps& ops, float* out) {
      ops.embedding({&table, ids.data(), out, 64, 4, scale});
    });
    std::vector<float> row(64);
    for (size_t i = 0; i < ids.size(); ++i) {
      table.read_row(ids[i], row.data());
      for (size_t d = 0; d < 64; ++d) EXPECT_EQ(y[i * 64 + d], row[d] * scale);
    }
  }
}

// Rotations of both styles, whole and partial, by large angles too.
TEST(RowOps, RopeTurnsPairs) {
  struct Case {
    RopeStyle style;
    int32_t dim;
    int32_t half;
  };
  for (const Case& c : {Case{RopeStyle::kAdjacent, 64, 32}, Case{RopeStyle::kHalves, 64, 32},
                        Case{RopeStyle::kAdjacent, 48, 10}, Case{RopeStyle::kHalves, 80, 20}}) {
    const std::vector<int32_t> positions = {0, 1, 77, 8191};
    const auto rows = static_cast<int32_t>(positions.size());
    std::vector<float> inv_freq;
    for (int32_t i = 0; i < c.half; ++i)
      inv_freq.push_back(static_cast<float>(std::pow(1e5, -static_cast<double>(i) / c.half)));
    const int32_t width = 4 * c.dim;  // two query heads, one kv head
    const std::vector<float> qkv = random_floats(static_cast<size_t>(rows * width), 6);
    const std::vector<float> turned = on_every_path("rope", qkv.size(), [&](CpuOps& ops, float* out) {
      std::vector<float> cos(static_cast<size_t>(rows * c.half));
      std::vector<float> sin(cos.size());
      ops.rope_angles({positions.data(), inv_freq.data(), c.half, rows, 1.0f, cos.data(), sin.data()});
      std::copy(qkv.begin(), qkv.end(), out);
      testing::PagedCache cache({1, 1, c.dim, KvType::kF32}, 600, 1);
      const std::vector<int32_t> table = cache.table(8192);
      std::vector<SequenceRows> sequences;  // one a row: the positions are far apart
      for (int32_t row = 0; row < rows; ++row)
        sequences.push_back({row, 1, positions[static_cast<size_t>(row)], table.data()});
      ops.rope_store({.qkv = out,
                      .qkv_stride = width,
                      .heads = 2,
                      .style = c.style,
                      .cos = cos.data(),
                      .sin = sin.data(),
                      .half = c.half,
                      .sequences = sequences.data(),
                      .sequence_count = rows,
                      .kv = cache.arena()});
      // The cache holds the rotated key and the value.
      for (int32_t row = 0; row < rows; ++row) {
        const int32_t p = positions[static_cast<size_t>(row)];
        const uint8_t* block =
            cache.arena().base + table[static_cast<size_t>(p / 16)] * cache.arena().layout.block_bytes();
        const auto* k = reinterpret_cast<const float*>(block + cache.arena().layout.k_offset(0, 0));
        const auto* v = reinterpret_cast<const float*>(block + cache.arena().layout.v_offset(0, 0));
        for (int32_t d = 0; d < c.dim; ++d) {
          EXPECT_EQ(k[d * 16 + p % 16], out[row * width + 2 * c.dim + d]);
          EXPECT_EQ(v[p % 16 * c.dim + d], out[row * width + 3 * c.dim + d]);
        }
      }
    });
    for (int32_t row = 0; row < rows; ++row) {
      for (int32_t head = 0; head < 4; ++head) {
        const float* before = &qkv[static_cast<size_t>(row * width + head * c.dim)];
        const float* after = &turned[static_cast<size_t>(row * width + head * c.dim)];
        std::vector<double> expected(before, before + c.dim);
        for (int32_t i = 0; head < 3 && i < c.half; ++i) {
          const auto a = static_cast<size_t>(c.style == RopeStyle::kAdjacent ? 2 * i : i);
          const auto b = static_cast<size_t>(c.style == RopeStyle::kAdjacent ? 2 * i + 1 : i + c.half);
          const double angle =
              static_cast<float>(positions[static_cast<size_t>(row)]) * inv_freq[static_cast<size_t>(i)];
          expected[a] = before[a] * std::cos(angle) - before[b] * std::sin(angle);
          expected[b] = before[a] * std::sin(angle) + before[b] * std::cos(angle);
        }
        for (int32_t d = 0; d < c.dim; ++d)
          EXPECT_NEAR(after[d], expected[static_cast<size_t>(d)], 1e-6) << row << " " << head << " " << d;
      }
    }
  }
}

TEST(RowOps, ActivationsAreRoundedToEightBits) {
  std::vector<float> x = random_floats(32 * 6, 7);
  std::fill(x.begin() + 32, x.begin() + 64, 0.0f);       // an empty block
  std::fill(x.begin() + 64, x.begin() + 96, 1e-38f);     // too small for its inverse
  std::fill(x.begin() + 96, x.begin() + 128, -3.0e38f);  // as large as floats get
  std::vector<int8_t> first;
  for (Isa isa : supported_isas()) {
    std::vector<int8_t> q(x.size());
    std::vector<float> scale(6);
    std::vector<float> sum(6);
    std::vector<int32_t> q_sum(12);
    kernels_of(isa).quantize_row(x.data(), static_cast<int32_t>(x.size()), q.data(), scale.data(), sum.data(),
                                 q_sum.data());
    if (isa == Isa::kScalar) first = q;
    EXPECT_EQ(q, first) << isa_name(isa);
    for (size_t block = 0; block < 6; ++block) {
      int32_t total = 0;
      for (size_t i = 32 * block; i < 32 * block + 32; ++i) {
        total += q[i];
        if (block == 2) continue;
        EXPECT_NEAR(x[i], scale[block] * static_cast<float>(q[i]), 0.501 * scale[block]);
      }
      EXPECT_EQ(q_sum[2 * block] + q_sum[2 * block + 1], total);
      EXPECT_EQ(q_sum[2 * block], std::accumulate(&q[32 * block], &q[32 * block + 16], 0));
      EXPECT_EQ(sum[block], scale[block] * static_cast<float>(total));
    }
    EXPECT_EQ(q[96], -127);
  }
}

}  // namespace
}  // namespace warmpath

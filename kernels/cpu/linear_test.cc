// linear(): against a double-precision product, across instruction sets bit for bit, and batch invariance.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/cpu/amx_emulator.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/kernel_testing.h"

namespace warmpath {
namespace {

using testing::difference;
using testing::Difference;
using testing::random_floats;
using testing::random_matrix;
using testing::same_bits;

[[maybe_unused]] const bool kAmxIsEmulated = testing::emulate_amx();  // supported_isas() has Isa::kAmx

struct Case {
  const char* name;
  TensorType type;
  Precision precision;
  double tolerance;  // of the largest output
};

// The 8-bit activations cost up to 1/254 of a block's largest value an element; random signs average it down.
constexpr Case kCases[] = {
    {"Q4_1 float", TensorType::kQ4_1, Precision::kFloat, 1e-5},
    {"Q4_1", TensorType::kQ4_1, Precision::kQuantized, 1.5e-2},
    {"Q4_0", TensorType::kQ4_0, Precision::kQuantized, 1.5e-2},
    {"Q8_0", TensorType::kQ8_0, Precision::kQuantized, 1.5e-2},
    {"Q5_0", TensorType::kQ5_0, Precision::kQuantized, 1.5e-2},
    {"Q5_1", TensorType::kQ5_1, Precision::kQuantized, 1.5e-2},
    {"Q4_K", TensorType::kQ4_K, Precision::kQuantized, 1.5e-2},
    {"Q5_K", TensorType::kQ5_K, Precision::kQuantized, 1.5e-2},
    {"Q6_K", TensorType::kQ6_K, Precision::kQuantized, 1.5e-2},
    {"F32", TensorType::kF32, Precision::kQuantized, 1e-5},
    {"F16", TensorType::kF16, Precision::kQuantized, 1e-5},
    {"BF16", TensorType::kBF16, Precision::kFloat, 1e-5},
};

struct Problem {
  PackedMatrix matrix;
  std::vector<float> x;     // [rows][input_width], padded stride
  std::vector<float> norm;  // [K]
  std::vector<float> bias;  // [N]
  int32_t rows;
  int64_t x_stride;
  RowTransform transform;
};

Problem make_problem(const Case& c, int32_t rows, int64_t n, int64_t k, RowTransform transform) {
  const int64_t stride = (transform == RowTransform::kSwiGlu ? 2 * k : k) + 5;
  return {random_matrix(c.type, n, k, c.precision, 1),
          random_floats(static_cast<size_t>(rows * stride), 2),
          random_floats(static_cast<size_t>(k), 3),
          random_floats(static_cast<size_t>(n), 4),
          rows,
          stride,
          transform};
}

std::vector<float> run(CpuOps& ops, const Problem& p, const std::vector<int32_t>& row_ids, bool accumulate,
                       bool two_digits = false) {
  const int64_t n = p.matrix.rows();
  const auto rows = static_cast<int32_t>(row_ids.size());
  std::vector<float> y(static_cast<size_t>(rows * n), 0.25f);
  LinearArgs args;
  args.weight = &p.matrix;
  args.x = p.x.data();
  args.x_stride = p.x_stride;
  args.y = y.data();
  args.y_stride = n;
  args.rows = rows;
  args.row_ids = row_ids.data();
  args.transform = p.transform;
  args.norm_weight = p.norm.data();
  args.norm_eps = 1e-5f;
  args.bias = p.bias.data();
  args.accumulate = accumulate;
  args.two_digits = two_digits;
  ops.linear(args);
  return y;
}

std::vector<int32_t> iota(int32_t count) {
  std::vector<int32_t> ids(static_cast<size_t>(count));
  for (int32_t i = 0; i < count; ++i) ids[static_cast<size_t>(i)] = i;
  return ids;
}

// The obvious product, in double precision, on dequantized weights.
std::vector<double> reference(const Problem& p, bool accumulate) {
  const int64_t n = p.matrix.rows();
  const int64_t k = p.matrix.columns();
  std::vector<double> y;
  std::vector<float> w(static_cast<size_t>(k));
  std::vector<std::vector<double>> inputs;
  for (int32_t row = 0; row < p.rows; ++row) {
    const float* x = p.x.data() + row * p.x_stride;
    std::vector<double> in(static_cast<size_t>(k));
    double squares = 0;
    for (int64_t i = 0; i < k; ++i) squares += static_cast<double>(x[i]) * x[i];
    for (int64_t i = 0; i < k; ++i) {
      double& value = in[static_cast<size_t>(i)];
      value = x[i];
      if (p.transform == RowTransform::kRmsNorm) {
        value *= p.norm[static_cast<size_t>(i)] / std::sqrt(squares / static_cast<double>(k) + 1e-5);
      } else if (p.transform == RowTransform::kSwiGlu) {
        value = value / (1 + std::exp(-value)) * x[k + i];
      }
    }
    inputs.push_back(std::move(in));
  }
  y.resize(static_cast<size_t>(p.rows * n));
  for (int64_t column = 0; column < n; ++column) {
    p.matrix.read_row(column, w.data());
    for (int32_t row = 0; row < p.rows; ++row) {
      double sum = p.bias[static_cast<size_t>(column)] + (accumulate ? 0.25 : 0.0);
      for (size_t i = 0; i < w.size(); ++i) sum += inputs[static_cast<size_t>(row)][i] * w[i];
      y[static_cast<size_t>(row * n + column)] = sum;
    }
  }
  return y;
}

TEST(Linear, AgreesWithTheObviousProductOnEveryPath) {
  ThreadPool pool(2);
  for (const Case& c : kCases) {
    for (RowTransform transform : {RowTransform::kNone, RowTransform::kRmsNorm, RowTransform::kSwiGlu}) {
      // 70 columns: the last panel is partial. 19 rows: every tile height's remainder.
      const Problem p = make_problem(c, 19, 70, 512, transform);
      const bool accumulate = transform == RowTransform::kSwiGlu;
      const std::vector<double> expected = reference(p, accumulate);
      std::vector<float> scalar;
      for (Isa isa : supported_isas()) {
        CpuOps ops(isa, pool);
        const std::vector<float> y = run(ops, p, iota(p.rows), accumulate);
        const Difference d = difference(y, expected);
        EXPECT_LT(d.relative, c.tolerance) << c.name << " on " << isa_name(isa);
        std::printf("linear %-10s transform %d %-6s max error %.2e of the largest output\n", c.name,
                    static_cast<int>(transform), std::string(isa_name(isa)).c_str(), d.relative);
        if (isa == Isa::kScalar) scalar = y;
        EXPECT_TRUE(same_bits(y, scalar)) << c.name << ": " << isa_name(isa) << " differs from its scalar twin";
      }
    }
  }
}

// The whole model's widths, on the vector paths.
TEST(Linear, VectorPathsAgreeBitForBitAtModelWidths) {
  ThreadPool pool(2);
  for (int64_t k : {576, 1536}) {
    const Problem p = make_problem(kCases[1], 13, 208, k, RowTransform::kRmsNorm);
    std::vector<float> scalar;
    for (Isa isa : supported_isas()) {
      CpuOps ops(isa, pool);
      const std::vector<float> y = run(ops, p, iota(p.rows), false);
      if (isa == Isa::kScalar) scalar = y;
      EXPECT_TRUE(same_bits(y, scalar)) << isa_name(isa);
    }
  }
}

TEST(Linear, ASecondDigitTakesAHundredthOfTheErrorAndKeepsEveryPromise) {
  ThreadPool pool(2);
  for (const Case& c : kCases) {
    for (RowTransform transform : {RowTransform::kNone, RowTransform::kRmsNorm}) {
      // 70 rows are more than a task of pairs, 300 columns more panels than are paired at a time.
      const Problem p = make_problem(c, 70, 300, 512, transform);
      const bool accumulate = transform == RowTransform::kNone;
      const std::vector<double> expected = reference(p, accumulate);
      std::vector<float> scalar;
      for (Isa isa : supported_isas()) {
        CpuOps ops(isa, pool);
        const std::vector<float> y = run(ops, p, iota(p.rows), accumulate, true);
        EXPECT_LT(difference(y, expected).relative, std::max(1e-5, c.tolerance / 100)) << c.name;
        if (isa == Isa::kScalar) scalar = y;
        EXPECT_TRUE(same_bits(y, scalar)) << c.name << ": " << isa_name(isa) << " differs from its scalar twin";
        for (const int32_t row : {0, 23, 69}) {
          const std::vector<float> alone = run(ops, p, {row}, accumulate, true);
          EXPECT_EQ(0, std::memcmp(alone.data(), &y[static_cast<size_t>(row) * 300], 300 * 4)) << c.name;
        }
      }
    }
  }
}

TEST(Linear, ARowDependsOnThatRowAlone) {
  for (const Case& c : kCases) {
    const Problem p = make_problem(c, 64, 80, 256, RowTransform::kRmsNorm);
    for (Isa isa : supported_isas()) {
      ThreadPool one(1);
      CpuOps alone(isa, one);
      const std::vector<float> all = run(alone, p, iota(64), false);
      for (int32_t threads : {1, 2, 3}) {
        ThreadPool pool(threads);
        CpuOps ops(isa, pool);
        for (int32_t m = 1; m <= 64; m += m < 14 ? 1 : 7) {
          // m rows from a moving start, in reverse: other neighbours, other places.
          std::vector<int32_t> ids;
          for (int32_t i = 0; i < m; ++i) ids.push_back((64 + 11 * m - i) % 64);
          const std::vector<float> y = run(ops, p, ids, false);
          for (int32_t i = 0; i < m; ++i) {
            ASSERT_EQ(0, std::memcmp(&y[static_cast<size_t>(i) * 80], &all[static_cast<size_t>(ids[i]) * 80], 80 * 4))
                << c.name << " on " << isa_name(isa) << ", M = " << m << ", row " << i << ", " << threads << " threads";
          }
        }
      }
    }
  }
}

// The extremes of both operands: the 16-bit sums of the AVX2 path are closest to overflow here. Every scale is 1 and
// every minimum 0, so a product is the plain sum of the quants times +-127.
TEST(Linear, IntegerSumsAreExactAtTheExtremes) {
  constexpr int64_t kK = 512;
  struct Extreme {
    TensorType type;
    float low, high;  // what all bits 0 and all bits 1 stand for
  };
  const Extreme extremes[] = {{TensorType::kQ4_1, 0, 15},   {TensorType::kQ5_1, 0, 31}, {TensorType::kQ4_0, -8, 7},
                              {TensorType::kQ5_0, -16, 15}, {TensorType::kQ4_K, 0, 15}, {TensorType::kQ5_K, 0, 31},
                              {TensorType::kQ6_K, -32, 31}};
  const auto check = [](const PackedMatrix& matrix, float value, const char* what) {
    ThreadPool pool(1);
    for (float sign : {1.0f, -1.0f}) {
      const std::vector<float> x(kK, sign * 127.0f);  // quantizes to +-127 with scale 1
      for (Isa isa : supported_isas()) {
        CpuOps ops(isa, pool);
        std::vector<float> y(5 * 16);
        LinearArgs args;
        args.weight = &matrix;
        args.x = x.data();
        args.x_stride = 0;
        args.y = y.data();
        args.y_stride = 16;
        args.rows = 5;
        ops.linear(args);
        EXPECT_THAT(y, ::testing::Each(sign * 127.0f * value * kK)) << what << " on " << isa_name(isa) << ", " << value;
      }
    }
  };
  for (const Extreme& extreme : extremes) {
    const TensorLayout& layout = *tensor_layout(extreme.type);
    for (int fill : {0x00, 0xff}) {
      std::vector<std::byte> bytes(16 * kK / layout.block_elements * layout.block_bytes, static_cast<std::byte>(fill));
      for (size_t at = 0; at < bytes.size(); at += layout.block_bytes) {
        std::byte* block = bytes.data() + at;
        const uint16_t one = float_to_half(1.0f);
        const bool six = extreme.type == TensorType::kQ6_K;
        std::memcpy(block + (six ? 208 : 0), &one, 2);
        if (six) std::memset(block + 192, 1, 16);
        if (extreme.type == TensorType::kQ4_1 || extreme.type == TensorType::kQ5_1) std::memset(block + 2, 0, 2);
        if (extreme.type == TensorType::kQ4_K || extreme.type == TensorType::kQ5_K) {
          const uint8_t scales_of_one[12] = {1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1};
          std::memset(block + 2, 0, 2);
          std::memcpy(block + 4, scales_of_one, 12);
        }
      }
      const PackedMatrix matrix =
          std::move(PackedMatrix::pack({extreme.type, bytes, 16}, kK, Precision::kQuantized).value());
      check(matrix, fill == 0 ? extreme.low : extreme.high, std::string(tensor_type_name(extreme.type)).c_str());
    }
  }
  for (int quant : {127, -128, -127}) {
    std::vector<std::byte> bytes(16 * kK / 32 * 34, static_cast<std::byte>(quant));
    const uint16_t one = float_to_half(1.0f);
    for (size_t at = 0; at < bytes.size(); at += 34) std::memcpy(bytes.data() + at, &one, 2);
    const PackedMatrix matrix =
        std::move(PackedMatrix::pack({TensorType::kQ8_0, bytes, 16}, kK, Precision::kQuantized).value());
    check(matrix, static_cast<float>(quant), "Q8_0");
  }
}

}  // namespace
}  // namespace warmpath

#include "kernels/packed_matrix.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/cpu/kernel_testing.h"
#include "kernels/quant_block.h"

namespace warmpath {
namespace {

using ::testing::HasSubstr;
using testing::random_weights;

constexpr TensorType kTypes[] = {TensorType::kF32,  TensorType::kF16,  TensorType::kBF16, TensorType::kQ4_0,
                                 TensorType::kQ4_1, TensorType::kQ5_0, TensorType::kQ5_1, TensorType::kQ8_0,
                                 TensorType::kQ4_K, TensorType::kQ5_K, TensorType::kQ6_K};

std::vector<float> dequantized(TensorType type, const std::vector<std::byte>& bytes, int64_t columns, int64_t row) {
  const TensorLayout& layout = *tensor_layout(type);
  std::vector<float> floats(static_cast<size_t>(columns));
  dequantize_row(type, bytes.data() + row * columns / layout.block_elements * layout.block_bytes, columns,
                 floats.data());
  return floats;
}

TEST(PackedMatrix, HoldsTheNumbersOfTheFile) {
  constexpr int64_t kRows = 37;  // the last panel is partial
  constexpr int64_t kColumns = 512;
  for (TensorType type : kTypes) {
    const std::vector<std::byte> bytes = random_weights(type, kRows, kColumns, 11);
    for (Precision precision : {Precision::kFloat, Precision::kQuantized}) {
      const Result<PackedMatrix> matrix = PackedMatrix::pack({type, bytes, kRows}, kColumns, precision);
      ASSERT_TRUE(matrix.ok()) << matrix.status().to_string();
      EXPECT_EQ(matrix->rows(), kRows);
      EXPECT_EQ(matrix->panels(), 3);
      std::vector<float> row(kColumns);
      for (int64_t r = 0; r < kRows; ++r) {
        matrix->read_row(r, row.data());
        ASSERT_THAT(row, ::testing::ElementsAreArray(dequantized(type, bytes, kColumns, r)))
            << tensor_type_name(type) << " row " << r;
      }
    }
  }
}

// A quantized model must fit the memory that its file promises.
TEST(PackedMatrix, TakesAboutTheSpaceOfTheFile) {
  for (TensorType type : kTypes) {
    const std::vector<std::byte> bytes = random_weights(type, 16, 4096, 11);
    const Result<PackedMatrix> matrix = PackedMatrix::pack({type, bytes, 16}, 4096, Precision::kQuantized);
    ASSERT_TRUE(matrix.ok());
    EXPECT_LE(static_cast<double>(matrix->bytes()), 1.12 * static_cast<double>(bytes.size())) << tensor_type_name(type);
  }
}

TEST(PackedMatrix, PartsLieBelowEachOther) {
  const std::vector<std::byte> a = random_weights(TensorType::kQ4_1, 5, 64, 1);
  const std::vector<std::byte> b = random_weights(TensorType::kQ4_1, 20, 64, 2);
  const MatrixPart parts[] = {{TensorType::kQ4_1, a, 5}, {TensorType::kQ4_1, b, 20}};
  const Result<PackedMatrix> both = PackedMatrix::pack(parts, 64, Precision::kQuantized);
  ASSERT_TRUE(both.ok());
  ASSERT_EQ(both->rows(), 25);
  std::vector<float> row(64);
  both->read_row(4, row.data());
  EXPECT_EQ(row, dequantized(TensorType::kQ4_1, a, 64, 4));
  both->read_row(5, row.data());
  EXPECT_EQ(row, dequantized(TensorType::kQ4_1, b, 64, 0));
}

TEST(PackedMatrix, WhatDoesNotFitIsRefusedByName) {
  const std::vector<std::byte> bytes = random_weights(TensorType::kQ4_1, 4, 64, 1);
  const auto message = [](const MatrixPart& part, int64_t columns) {
    const Result<PackedMatrix> matrix = PackedMatrix::pack(part, columns, Precision::kQuantized);
    return matrix.ok() ? std::string("accepted") : matrix.status().message();
  };
  EXPECT_THAT(message({TensorType::kQ4_1, bytes, 4}, 48), HasSubstr("48 columns are not whole blocks of Q4_1"));
  EXPECT_THAT(message({TensorType::kQ4_1, bytes, 5}, 64), HasSubstr("Q4_1 part of 5 x 64 has 160 bytes"));
  EXPECT_THAT(message({TensorType::kQ4_1, std::span(bytes).first(159), 4}, 64), HasSubstr("has 159 bytes"));
  EXPECT_THAT(message({static_cast<TensorType>(10), bytes, 4}, 64),
              HasSubstr("weights of type Q2_K are not supported; supported: F32, F16, BF16, Q4_0"));
  EXPECT_THAT(message({TensorType::kQ4_1, {}, 0}, 64), HasSubstr("0 x 64"));
  EXPECT_THAT(message({TensorType::kQ4_1, bytes, 4}, 0), HasSubstr("no elements"));

  const std::vector<std::byte> q8 = random_weights(TensorType::kQ8_0, 4, 64, 1);
  const MatrixPart mixed[] = {{TensorType::kQ4_1, bytes, 4}, {TensorType::kQ8_0, q8, 4}};
  EXPECT_THAT(PackedMatrix::pack(mixed, 64, Precision::kQuantized).status().message(), HasSubstr("pack it on its own"));
  EXPECT_TRUE(PackedMatrix::pack(mixed, 64, Precision::kFloat).ok());
}

}  // namespace
}  // namespace warmpath

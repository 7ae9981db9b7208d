#include "kernels/packed_matrix.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/cpu/kernel_testing.h"

namespace warmpath {
namespace {

using ::testing::HasSubstr;
using testing::random_weights;

// ggml's dequantization, from its type documentation, element by element.
float ggml_element(TensorType type, const std::vector<std::byte>& bytes, int64_t columns, int64_t row, int64_t column) {
  const auto half_at = [&](int64_t at) {
    return half_to_float(static_cast<uint16_t>(std::to_integer<int>(bytes[static_cast<size_t>(at)]) |
                                               std::to_integer<int>(bytes[static_cast<size_t>(at) + 1]) << 8));
  };
  const int64_t index = row * columns + column;
  const int64_t block = index / 32;
  const int64_t j = index % 32;
  const auto nibble = [&](int64_t at) {
    const int byte = std::to_integer<int>(bytes[static_cast<size_t>(at + j % 16)]);
    return static_cast<float>(j < 16 ? byte & 15 : byte >> 4);
  };
  switch (type) {
    case TensorType::kQ4_0:
      return (nibble(18 * block + 2) - 8) * half_at(18 * block);
    case TensorType::kQ4_1:
      return nibble(20 * block + 4) * half_at(20 * block) + half_at(20 * block + 2);
    case TensorType::kQ8_0:
      return static_cast<float>(
                 static_cast<int8_t>(std::to_integer<int>(bytes[static_cast<size_t>(34 * block + 2 + j)]))) *
             half_at(34 * block);
    case TensorType::kF16:
      return half_at(2 * index);
    default: {
      float value = 0;
      if (type == TensorType::kF32) std::memcpy(&value, &bytes[static_cast<size_t>(4 * index)], 4);
      if (type == TensorType::kBF16)
        std::memcpy(reinterpret_cast<char*>(&value) + 2, &bytes[static_cast<size_t>(2 * index)], 2);
      return value;
    }
  }
}

TEST(PackedMatrix, ReadsBackWhatTheFileHolds) {
  constexpr int64_t kRows = 37;  // the last panel is partial
  constexpr int64_t kColumns = 96;
  for (TensorType type : {TensorType::kF32, TensorType::kF16, TensorType::kBF16, TensorType::kQ4_0, TensorType::kQ4_1,
                          TensorType::kQ8_0}) {
    const std::vector<std::byte> bytes = random_weights(type, kRows, kColumns, 11);
    for (Precision precision : {Precision::kFloat, Precision::kQuantized}) {
      const Result<PackedMatrix> matrix = PackedMatrix::pack({type, bytes, kRows}, kColumns, precision);
      ASSERT_TRUE(matrix.ok()) << matrix.status().to_string();
      EXPECT_EQ(matrix->rows(), kRows);
      EXPECT_EQ(matrix->panels(), 3);
      std::vector<float> row(kColumns);
      for (int64_t r = 0; r < kRows; ++r) {
        matrix->read_row(r, row.data());
        for (int64_t c = 0; c < kColumns; ++c) {
          const float expected = ggml_element(type, bytes, kColumns, r, c);
          // Q4_0 as scale and minimum rounds once more than scale * (q - 8) does.
          ASSERT_NEAR(row[static_cast<size_t>(c)], expected, type == TensorType::kQ4_0 ? 1e-7 : 0.0)
              << tensor_type_name(type) << " " << r << "," << c;
        }
      }
    }
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
  EXPECT_EQ(row[33], ggml_element(TensorType::kQ4_1, a, 64, 4, 33));
  both->read_row(5, row.data());
  EXPECT_EQ(row[33], ggml_element(TensorType::kQ4_1, b, 64, 0, 33));
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
  EXPECT_THAT(message({static_cast<TensorType>(12), bytes, 4}, 64),
              HasSubstr("weights of type Q4_K are not supported"));
  EXPECT_THAT(message({TensorType::kQ4_1, {}, 0}, 64), HasSubstr("0 x 64"));
  EXPECT_THAT(message({TensorType::kQ4_1, bytes, 4}, 0), HasSubstr("no elements"));

  const std::vector<std::byte> q8 = random_weights(TensorType::kQ8_0, 4, 64, 1);
  const MatrixPart mixed[] = {{TensorType::kQ4_1, bytes, 4}, {TensorType::kQ8_0, q8, 4}};
  EXPECT_THAT(PackedMatrix::pack(mixed, 64, Precision::kQuantized).status().message(), HasSubstr("pack it on its own"));
  EXPECT_TRUE(PackedMatrix::pack(mixed, 64, Precision::kFloat).ok());
}

}  // namespace
}  // namespace warmpath

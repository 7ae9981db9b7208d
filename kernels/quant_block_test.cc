// Dequantization against the `gguf` Python package, bit for bit (tests/reference/make_dequantize.py).
#include "kernels/quant_block.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "kernels/packed_matrix.h"

namespace warmpath {
namespace {

constexpr int64_t kColumns = 256;

struct Sample {
  TensorType type = TensorType::kF32;
  std::vector<std::byte> bytes;
  std::vector<float> floats;
};

std::vector<Sample> read_samples() {
  std::ifstream in(WARMPATH_SOURCE_DIR "/tests/reference/dequantize.bin", std::ios::binary);
  const auto read = [&in](void* to, size_t size) {
    in.read(static_cast<char*>(to), static_cast<std::streamsize>(size));
    EXPECT_TRUE(in.good());
  };
  char magic[8];
  read(magic, sizeof magic);
  EXPECT_EQ(std::string(magic, 8), "WPDEQUAN");
  uint32_t count = 0;
  read(&count, sizeof count);
  std::vector<Sample> samples(count);
  for (Sample& sample : samples) {
    uint32_t header[3];
    read(header, sizeof header);
    sample.type = static_cast<TensorType>(header[0]);
    sample.floats.resize(header[1]);
    sample.bytes.resize(header[2]);
    read(sample.bytes.data(), sample.bytes.size());
    read(sample.floats.data(), sample.floats.size() * sizeof(float));
  }
  return samples;
}

TEST(QuantBlock, DequantizesToTheBitsOfTheGgufPackage) {
  const std::vector<Sample> samples = read_samples();
  ASSERT_EQ(samples.size(), 11u);
  for (const Sample& sample : samples) {
    ASSERT_TRUE(is_supported(sample.type));
    std::vector<float> floats(sample.floats.size());
    dequantize_row(sample.type, sample.bytes.data(), static_cast<int64_t>(floats.size()), floats.data());
    EXPECT_EQ(0, std::memcmp(floats.data(), sample.floats.data(), floats.size() * sizeof(float)))
        << tensor_type_name(sample.type);
  }
}

// Packed, the same numbers: to the bit on the float path; on the fast one a zero may lose its sign.
TEST(QuantBlock, PackedMatricesKeepThem) {
  for (const Sample& sample : read_samples()) {
    const auto rows = static_cast<int64_t>(sample.floats.size()) / kColumns;
    for (Precision precision : {Precision::kFloat, Precision::kQuantized}) {
      const Result<PackedMatrix> matrix = PackedMatrix::pack({sample.type, sample.bytes, rows}, kColumns, precision);
      ASSERT_TRUE(matrix.ok()) << matrix.status().to_string();
      for (int64_t row = 0; row < rows; ++row) {
        std::vector<float> floats(kColumns);
        matrix->read_row(row, floats.data());
        const float* expected = sample.floats.data() + row * kColumns;
        if (precision == Precision::kFloat) {
          EXPECT_EQ(0, std::memcmp(floats.data(), expected, kColumns * sizeof(float)))
              << tensor_type_name(sample.type) << " row " << row;
        } else {
          EXPECT_EQ(floats, std::vector<float>(expected, expected + kColumns))
              << tensor_type_name(sample.type) << " row " << row;
        }
      }
    }
  }
}

}  // namespace
}  // namespace warmpath

#include "model_file/gguf_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "model_file/gguf_writer.h"

namespace warmpath {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::byte> small_file() {
  GgufWriter writer;
  writer.add_string("general.architecture", "llama");
  writer.add_uint32("llama.block_count", 2);
  writer.add_float32("llama.eps", 0.5f);
  writer.add_bool("tokenizer.add_bos", true);
  const std::vector<std::string> tokens = {"a", "", "xyz"};
  writer.add_strings("tokenizer.tokens", tokens);
  const std::vector<int32_t> types = {1, -3, 6};
  writer.add_int32s("tokenizer.types", types);
  const std::vector<std::byte> matrix(2 * 20, std::byte{7});
  writer.add_tensor("w", TensorType::kQ4_1, {32, 2}, matrix);
  const std::vector<std::byte> norm(3 * 4, std::byte{1});
  writer.add_tensor("norm", TensorType::kF32, {3}, norm);
  return writer.finish();
}

Result<GgufFile> parse(const std::vector<std::byte>& bytes) { return GgufFile::parse(bytes, "test.gguf"); }

// The message with which `bytes` are refused.
std::string refusal(const std::vector<std::byte>& bytes) {
  const auto file = parse(bytes);
  return file.ok() ? "accepted" : file.status().message();
}

size_t position_of(const std::vector<std::byte>& bytes, std::string_view text) {
  const std::string_view all(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return all.find(text);
}

template <typename T>
void put(std::vector<std::byte>& bytes, size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof(value));
}

TEST(GgufFile, ReadsWhatWasWritten) {
  const auto bytes = small_file();
  const auto file = parse(bytes);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(*file->get_string("general.architecture"), "llama");
  EXPECT_EQ(*file->get_uint("llama.block_count"), 2u);
  EXPECT_EQ(*file->get_float("llama.eps"), 0.5);
  EXPECT_EQ(*file->get_float("llama.block_count"), 2.0);
  EXPECT_TRUE(*file->get_bool("tokenizer.add_bos"));
  EXPECT_THAT(file->get_strings("tokenizer.tokens")->to_views(), ElementsAre("a", "", "xyz"));
  EXPECT_THAT(*file->get_ints("tokenizer.types"), ElementsAre(1, -3, 6));
  EXPECT_EQ(*file->get_uint_or("missing", 9), 9u);

  const GgufTensor* matrix = file->find_tensor("w");
  ASSERT_NE(matrix, nullptr);
  EXPECT_EQ(matrix->rows(), 2u);
  EXPECT_EQ(matrix->columns(), 32u);
  EXPECT_EQ(matrix->data.size(), 40u);
  EXPECT_EQ(matrix->data[39], std::byte{7});
  EXPECT_EQ(file->find_tensor("norm")->data[0], std::byte{1});
  EXPECT_EQ(file->find_tensor("other"), nullptr);
}

TEST(GgufFile, AWrongKindNamesKeyPlaceAndBothTypes) {
  const auto bytes = small_file();
  const auto file = parse(bytes);
  ASSERT_TRUE(file.ok());
  EXPECT_THAT(file->get_uint("llama.eps").status().message(), HasSubstr("key 'llama.eps' at byte"));
  EXPECT_THAT(file->get_uint("llama.eps").status().message(), HasSubstr("expected an integer, found float32"));
  EXPECT_THAT(file->get_string("tokenizer.tokens").status().message(), HasSubstr("found an array of string"));
  EXPECT_EQ(file->get_bool("nope").status().code(), StatusCode::kNotFound);
  EXPECT_FALSE(file->get_uint_or("llama.eps", 1).ok()) << "a fallback must not hide a wrong kind";
}

TEST(GgufFile, OtherVersionsAreRefusedByName) {
  auto bytes = small_file();
  put<uint32_t>(bytes, 4, 2);
  EXPECT_THAT(refusal(bytes), HasSubstr("GGUF version 2 is obsolete"));
  put<uint32_t>(bytes, 4, 4);
  EXPECT_THAT(refusal(bytes), HasSubstr("GGUF version 4 is not known"));
  put<uint32_t>(bytes, 4, 0x03000000);
  EXPECT_THAT(refusal(bytes), HasSubstr("big-endian"));
  put<uint32_t>(bytes, 0, 0x04034b50);
  EXPECT_THAT(refusal(bytes), HasSubstr("not a GGUF file"));
}

TEST(GgufFile, HugeCountsAreRefusedWithoutAllocating) {
  auto bytes = small_file();
  put<uint64_t>(bytes, 8, uint64_t{1} << 60);
  EXPECT_THAT(refusal(bytes), HasSubstr("tensors cannot fit"));
  bytes = small_file();
  put<uint64_t>(bytes, 16, ~uint64_t{0});
  EXPECT_THAT(refusal(bytes), HasSubstr("metadata entries cannot fit"));
  bytes = small_file();
  const size_t tokens = position_of(bytes, "tokenizer.tokens") + std::strlen("tokenizer.tokens");
  put<uint64_t>(bytes, tokens + 8, ~uint64_t{0});
  EXPECT_THAT(refusal(bytes), HasSubstr("key 'tokenizer.tokens'"));
  bytes = small_file();
  put<uint64_t>(bytes, tokens + 16, uint64_t{1} << 40);
  EXPECT_THAT(refusal(bytes), HasSubstr("reaches past the end of the file"));
  put<uint32_t>(bytes, tokens, 99);
  EXPECT_THAT(refusal(bytes), HasSubstr("unknown value type 99"));
}

TEST(GgufFile, ATensorsPlaceIsChecked) {
  const auto good = small_file();
  // Directory entry of "w": name, dimensions (4 B), two sizes (8 B each), type (4 B), offset (8 B).
  const size_t entry = position_of(good, std::string_view("\x01\0\0\0\0\0\0\0w", 9)) + 9;
  auto bytes = good;
  put<uint32_t>(bytes, entry, 5);
  EXPECT_THAT(refusal(bytes), HasSubstr("tensor 'w' at byte " + std::to_string(entry) + ": 5 dimensions"));
  bytes = good;
  put<uint64_t>(bytes, entry + 4, uint64_t{1} << 62);
  EXPECT_THAT(refusal(bytes), AllOf(HasSubstr("tensor 'w'"), HasSubstr("past the end")));
  put<uint64_t>(bytes, entry + 12, 8);
  EXPECT_THAT(refusal(bytes), HasSubstr("the dimensions overflow"));
  put<uint64_t>(bytes, entry + 12, 0);
  EXPECT_THAT(refusal(bytes), HasSubstr("a dimension of 0"));
  bytes = good;
  put<uint64_t>(bytes, entry + 4, 33);
  EXPECT_THAT(refusal(bytes), HasSubstr("not whole Q4_1 blocks of 32"));
  bytes = good;
  put<uint32_t>(bytes, entry + 20, 4);
  EXPECT_THAT(refusal(bytes), HasSubstr("unknown tensor type 4"));
  bytes = good;
  put<uint64_t>(bytes, entry + 24, 8);
  EXPECT_THAT(refusal(bytes), HasSubstr("not a multiple of the alignment 32"));
  put<uint64_t>(bytes, entry + 24, ~uint64_t{31});
  EXPECT_THAT(refusal(bytes), HasSubstr("overflows"));
  bytes = good;
  const size_t norm = position_of(good, std::string_view("\x04\0\0\0\0\0\0\0norm", 12)) + 12;
  put<uint64_t>(bytes, norm + 16, 32);
  EXPECT_THAT(refusal(bytes), HasSubstr("its data overlaps tensor 'w'"));
}

TEST(GgufFile, NamesThatOccurTwiceAreRefused) {
  GgufWriter writer;
  writer.add_uint32("k", 1);
  writer.add_uint32("k", 2);
  EXPECT_THAT(refusal(writer.finish()), HasSubstr("key 'k' at byte"));
  GgufWriter tensors;
  const std::vector<std::byte> data(4);
  tensors.add_tensor("t", TensorType::kF32, {1}, data);
  tensors.add_tensor("t", TensorType::kF32, {1}, data);
  EXPECT_THAT(refusal(tensors.finish()), HasSubstr("the tensor occurs twice"));
}

TEST(GgufFile, AlignmentIsAPowerOfTwo) {
  for (const uint32_t alignment : {0u, 4u, 33u, 1u << 21}) {
    GgufWriter writer;
    writer.add_uint32("general.alignment", alignment);
    EXPECT_THAT(refusal(writer.finish()), HasSubstr("key 'general.alignment' at byte")) << alignment;
  }
}

TEST(GgufFile, EveryTruncationIsRefused) {
  const auto bytes = small_file();
  // The last tensor's padding is not needed.
  const size_t needed = parse(bytes)->find_tensor("norm")->offset + 12;
  for (size_t size = 0; size < needed; ++size) {
    const std::vector<std::byte> part(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_THAT(refusal(part), HasSubstr("test.gguf: ")) << size;
  }
}

TEST(GgufFile, RandomDamageNeverEscapes) {
  const auto good = small_file();
  std::mt19937 random(7);
  size_t refused = 0;
  for (int round = 0; round < 20000; ++round) {
    auto bytes = good;
    for (int change = 0; change < 1 + round % 4; ++change) {
      bytes[random() % bytes.size()] = static_cast<std::byte>(random() % 4 == 0 ? 0xff : random() % 256);
    }
    const auto file = parse(bytes);
    if (!file.ok()) {
      ++refused;
      continue;
    }
    for (const auto& tensor : file->tensors()) {
      ASSERT_LE(tensor.offset + tensor.data.size(), bytes.size());
    }
  }
  EXPECT_GT(refused, 1000u);
}

TEST(GgufFile, AMissingFileIsNamed) {
  EXPECT_THAT(GgufFile::open("/nonexistent/model.gguf").status().message(), HasSubstr("/nonexistent/model.gguf"));
  EXPECT_FALSE(GgufFile::open("/").ok());
}

}  // namespace
}  // namespace warmpath

#include "model_file/safetensors_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

namespace warmpath {
namespace {

using ::testing::HasSubstr;

std::vector<std::byte> file_of(std::string_view header, size_t data_bytes) {
  std::vector<std::byte> bytes(8 + header.size() + data_bytes);
  const uint64_t length = header.size();
  std::memcpy(bytes.data(), &length, sizeof length);
  std::memcpy(bytes.data() + 8, header.data(), header.size());
  return bytes;
}

std::string refusal(std::string_view header, size_t data_bytes) {
  const std::vector<std::byte> bytes = file_of(header, data_bytes);
  const auto tensors = parse_safetensors(bytes, "m.safetensors");
  return tensors.ok() ? "accepted" : tensors.status().message();
}

TEST(SafetensorsFile, ReadsTensorsInPlace) {
  const std::string header =
      R"({"__metadata__":{"format":"pt"},"b":{"dtype":"F32","shape":[2,3],"data_offsets":[8,32]},)"
      R"("a":{"dtype":"BF16","shape":[4],"data_offsets":[0,8]},"empty":{"dtype":"F16","shape":[0,7],"data_offsets":[8,8]}})";
  const std::vector<std::byte> bytes = file_of(header, 32);
  const auto tensors = parse_safetensors(bytes, "m.safetensors");
  ASSERT_TRUE(tensors.ok()) << tensors.status().message();
  ASSERT_EQ(tensors->size(), 3u);
  EXPECT_EQ((*tensors)[0].name, "a");
  EXPECT_EQ((*tensors)[1].name, "empty");
  EXPECT_EQ((*tensors)[2].name, "b");
  EXPECT_EQ((*tensors)[2].dtype, "F32");
  EXPECT_EQ((*tensors)[2].shape, (std::vector<uint64_t>{2, 3}));
  EXPECT_EQ((*tensors)[2].offset, 8 + header.size() + 8);
  EXPECT_EQ((*tensors)[2].data.data(), bytes.data() + 8 + header.size() + 8);
}

TEST(SafetensorsFile, RefusesWhatDoesNotAddUp) {
  const auto one = [](std::string_view body) { return R"({"w":)" + std::string(body) + "}"; };
  EXPECT_EQ(refusal(one(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})"), 8), "accepted");
  EXPECT_THAT(refusal(one(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})"), 12),
              HasSubstr("belong to no tensor"));
  EXPECT_THAT(refusal(one(R"({"dtype":"F32","shape":[2],"data_offsets":[0,12]})"), 12),
              HasSubstr("m.safetensors: tensor 'w' at byte 63: 12 bytes, but its shape and dtype F32 need 8"));
  EXPECT_THAT(refusal(one(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})"), 4), HasSubstr("of 4 bytes of data"));
  EXPECT_THAT(refusal(one(R"({"dtype":"F32","shape":[2],"data_offsets":[8,0]})"), 8), HasSubstr("data_offsets 8 to 0"));
  EXPECT_THAT(refusal(one(R"({"dtype":"F32","shape":[2],"data_offsets":[4,12]})"), 12), HasSubstr("leaves a gap"));
  EXPECT_THAT(refusal(one(R"({"dtype":"F32","shape":[4294967296,4294967296,4],"data_offsets":[0,8]})"), 8),
              HasSubstr("overflows"));
  EXPECT_THAT(refusal(one(R"({"dtype":"F31","shape":[2],"data_offsets":[0,8]})"), 8), HasSubstr("'F31' is unknown"));
  EXPECT_THAT(refusal(one(R"({"dtype":"F32","shape":[-2],"data_offsets":[0,8]})"), 8), HasSubstr("no number"));
  EXPECT_THAT(refusal(one(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8,9]})"), 8), HasSubstr("two numbers"));
  EXPECT_THAT(refusal(one("7"), 0), HasSubstr("has no dtype"));
  EXPECT_THAT(refusal(R"({"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},)"
                      R"("b":{"dtype":"U8","shape":[8],"data_offsets":[4,12]}})",
                      12),
              HasSubstr("tensor 'b' at byte"));
  EXPECT_THAT(refusal(R"({"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},)"
                      R"("a":{"dtype":"U8","shape":[8],"data_offsets":[8,16]}})",
                      16),
              HasSubstr("is there twice"));
  EXPECT_THAT(refusal("[1]", 0), HasSubstr("no JSON object"));
  EXPECT_THAT(refusal("{\"w\":", 0), HasSubstr("not valid JSON"));
  EXPECT_THAT(refusal("", 0), HasSubstr("no JSON object"));

  std::vector<std::byte> bytes(7);
  EXPECT_THAT(parse_safetensors(bytes, "f").status().message(), HasSubstr("too short"));
  bytes.assign(16, std::byte{0xff});
  EXPECT_THAT(parse_safetensors(bytes, "f").status().message(), HasSubstr("the limit is 100000000"));
  bytes.assign(16, std::byte{0});
  bytes[0] = std::byte{9};
  EXPECT_THAT(parse_safetensors(bytes, "f").status().message(), HasSubstr("a header of 9 bytes, but the file has 16"));
}

}  // namespace
}  // namespace warmpath

#include "cli/engine_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "cli/byte_size.h"

namespace warmpath {
namespace {

using testing::HasSubstr;

TEST(EngineOptions, Sizes) {
  EXPECT_EQ(*parse_bytes("512MiB"), 512LL << 20);
  EXPECT_EQ(*parse_bytes("1.5GiB"), 3LL << 29);
  EXPECT_EQ(*parse_bytes("1000000"), 1'000'000);
  EXPECT_EQ(*parse_bytes("7B"), 7);
  for (const char* text : {"", "MiB", "12MB", "-5", "0", "nan", "inf", "1e30", "5 MiB", "0x10"}) {
    EXPECT_FALSE(parse_bytes(text).ok()) << text;
  }
}

TEST(EngineOptions, KvBlocks) {
  constexpr int64_t kBlockBytes = 4096;
  EngineFlags flags;
  const Result<int64_t> chosen = choose_kv_blocks(flags, 1000, kBlockBytes, 0);  // 63 blocks a context
  ASSERT_TRUE(chosen.ok());
  EXPECT_GE(*chosen, 63);
  EXPECT_LE(*chosen, 4 * 63);
  // What does not fit beside the weights is not promised.
  EXPECT_EQ(*choose_kv_blocks(flags, 1000, kBlockBytes, int64_t{1} << 60), 1);
  flags.kv_bytes = "1MiB";
  EXPECT_EQ(*choose_kv_blocks(flags, 1000, kBlockBytes, 0), 256);
  flags.kv_bytes = "1000";
  EXPECT_THAT(choose_kv_blocks(flags, 1000, kBlockBytes, 0).status().message(), HasSubstr("4096 bytes"));
  flags.kv_bytes = "much";
  EXPECT_THAT(choose_kv_blocks(flags, 1000, kBlockBytes, 0).status().message(), HasSubstr("--kv-bytes: 'much'"));
  flags.kv_blocks = 5;
  EXPECT_EQ(*choose_kv_blocks(flags, 1000, kBlockBytes, 0), 5);
}

TEST(EngineOptions, ATokenFileIsMadePrivateAndReadAgain) {
  char pattern[] = "/tmp/warmpath_token_XXXXXX";
  const std::string folder = mkdtemp(pattern);
  const std::string path = folder + "/token";
  const Result<std::string> made = read_or_make_token(path);
  ASSERT_TRUE(made.ok()) << made.status().to_string();
  EXPECT_EQ(made->size(), 32u);
  struct stat info {};
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_EQ(*read_or_make_token(path), *made);
  EXPECT_NE(*read_or_make_token(folder + "/other"), *made);
  std::ofstream(folder + "/empty").flush();
  EXPECT_THAT(read_or_make_token(folder + "/empty").status().message(), HasSubstr("is empty"));
  EXPECT_FALSE(read_or_make_token(folder + "/none/token").ok());
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace warmpath

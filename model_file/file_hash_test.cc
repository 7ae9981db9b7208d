#include "model_file/file_hash.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace warmpath {
namespace {

namespace fs = std::filesystem;

class FileHash : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("warmpath-hash-" + std::to_string(getpid()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    if (const char* old = std::getenv("XDG_CACHE_HOME")) old_ = old;
    setenv("XDG_CACHE_HOME", (folder_ / "cache").c_str(), 1);
    write(std::string(kRememberedHashBytes + 5, 'a'));
  }
  void TearDown() override {
    old_.empty() ? unsetenv("XDG_CACHE_HOME") : setenv("XDG_CACHE_HOME", old_.c_str(), 1);
    fs::remove_all(folder_);
  }

  fs::path model() const { return folder_ / "model.gguf"; }
  void write(const std::string& text) const { std::ofstream(model(), std::ios::binary) << text; }
  std::vector<fs::path> entries() const {
    std::vector<fs::path> paths;
    if (!fs::exists(folder_ / "cache/warmpath/hashes")) return paths;
    for (const auto& entry : fs::directory_iterator(folder_ / "cache/warmpath/hashes")) paths.push_back(entry.path());
    return paths;
  }
  // The hash of the file as if it had changed so long ago. (The inode's time cannot be set, so the test gives the
  // mapping what the file system would.)
  Hash128 hash_after(std::chrono::nanoseconds age) const {
    auto file = MappedFile::open(model().string());
    FileIdentity identity = file->identity();
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    const int64_t changed = std::chrono::duration_cast<std::chrono::nanoseconds>(now - age).count();
    if (age < std::chrono::seconds(2)) identity.content_ns = identity.inode_ns = changed;
    identity.content_ns -= age.count();
    identity.inode_ns -= age.count();
    file->set_identity_for_test(identity);
    return file_hash(*file);
  }
  Hash128 settled_hash() const { return hash_after(std::chrono::seconds(10)); }

  fs::path folder_;
  std::string old_;
};

TEST_F(FileHash, IsRememberedOnlyOnceTheFileHasSettled) {
  const Hash128 fresh = hash_after(std::chrono::seconds(-60));
  EXPECT_TRUE(entries().empty());
  EXPECT_EQ(settled_hash(), fresh);
  ASSERT_EQ(entries().size(), 1u);
  // What is remembered is what is answered.
  std::ifstream in(entries()[0]);
  std::string state;
  std::getline(in, state);
  std::ofstream(entries()[0]) << state << "\n00000000000000000000000000000007\n";
  EXPECT_EQ(settled_hash(), (Hash128{0, 7}));
}

TEST_F(FileHash, AChangedFileIsHashedAgain) {
  const Hash128 before = settled_hash();
  std::string text(kRememberedHashBytes + 5, 'a');
  text[100] = 'b';
  usleep(20000);  // beyond the clock's granularity
  write(text);
  const Hash128 after = settled_hash();
  EXPECT_NE(before, after);
  EXPECT_EQ(after, hash128(text));
}

TEST_F(FileHash, ADamagedEntryIsNotBelieved) {
  const Hash128 right = settled_hash();
  ASSERT_EQ(entries().size(), 1u);
  std::ofstream(entries()[0]) << "1 2 3";
  EXPECT_EQ(settled_hash(), right);
}

TEST_F(FileHash, WithoutACacheFolderItIsHashed) {
  setenv("XDG_CACHE_HOME", "/dev/null", 1);
  EXPECT_EQ(settled_hash(), hash128(std::string(kRememberedHashBytes + 5, 'a')));
}

}  // namespace
}  // namespace warmpath

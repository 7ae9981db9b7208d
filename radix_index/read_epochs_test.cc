#include "radix_index/read_epochs.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>

namespace warmpath {
namespace {

using Reader = std::unique_ptr<ReadEpochs::Reader>;

Reader enter(const ReadEpochs& epochs) { return Reader(new ReadEpochs::Reader(epochs.enter())); }

struct ReadEpochsTest : ::testing::Test {
  void retire_one() { epochs.retire(memory.allocate(64), 64); }

  RunMemory memory{size_t{1} << 20};
  ReadEpochs epochs{memory};
};

TEST_F(ReadEpochsTest, MemoryIsFreedAtOnceWhenNobodyReads) {
  retire_one();
  EXPECT_EQ(epochs.retired_bytes(), 64u);
  epochs.reclaim();
  EXPECT_EQ(epochs.retired_bytes(), 0u);
}

TEST_F(ReadEpochsTest, AReaderFromBeforeKeepsIt) {
  Reader before = enter(epochs);
  retire_one();
  const uint64_t ticket = epochs.ticket();
  epochs.reclaim();
  EXPECT_EQ(epochs.retired_bytes(), 64u);
  // One that came later, on another thread, is waited for as well, but once only: it cannot tell what it may have seen.
  Reader after;
  std::thread([&] { after = enter(epochs); }).join();
  before.reset();
  epochs.reclaim();
  EXPECT_FALSE(epochs.passed(ticket));
  after.reset();
  epochs.reclaim();
  EXPECT_TRUE(epochs.passed(ticket));
  EXPECT_EQ(epochs.retired_bytes(), 0u);
}

TEST_F(ReadEpochsTest, ASteadyStreamOfReadersDoesNotKeepTheWriterFromFreeing) {
  // Always one reader inside, never the same for long.
  Reader one = enter(epochs);
  for (int round = 0; round < 1000; ++round) {
    retire_one();
    Reader other = enter(epochs);
    one.reset();
    epochs.reclaim();
    one = enter(epochs);
    other.reset();
    epochs.reclaim();
    ASSERT_LE(epochs.retired_bytes(), 4 * 64u);
  }
}

TEST_F(ReadEpochsTest, ATicketPassesWithoutAnythingRetired) {
  const uint64_t ticket = epochs.ticket();
  EXPECT_FALSE(epochs.passed(ticket));
  epochs.reclaim();
  EXPECT_TRUE(epochs.passed(ticket));
}

}  // namespace
}  // namespace warmpath

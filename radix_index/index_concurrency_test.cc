// Readers beside one writer, as the router runs them: lookups share a lock, writes have it to themselves. Meaningful
// under ThreadSanitizer: lookups write (a run's last use), and must do so without a race among themselves.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <shared_mutex>
#include <thread>
#include <vector>

#include "radix_index/radix_index.h"

namespace warmpath {
namespace {

constexpr MonotonicNs kSecond = 1'000'000'000;

std::vector<Hash128> session(int number, int count) {
  std::vector<Hash128> blocks;
  for (int n = 0; n < count; ++n) blocks.push_back(hash128(std::to_string(number) + "/" + std::to_string(n)));
  return blocks;
}

TEST(IndexConcurrency, LookupsSideBySideWithOneWriter) {
  RadixIndex index;
  std::shared_mutex mutex;
  const ReplicaId replica = *index.add_replica();
  index.apply(replica, {1, 0, KvEventBatch::Kind::kSnapshotBegin, {}}, kSecond);
  index.apply(replica, {1, 0, KvEventBatch::Kind::kSnapshotEnd, {}}, kSecond);
  constexpr int kSessions = 16;
  std::vector<std::vector<Hash128>> chains;
  for (int n = 0; n < kSessions; ++n) chains.push_back(session(n, 300));

  std::atomic<bool> stop{false};
  std::atomic<bool> half_seen{false};
  std::atomic<uint64_t> lookups{0};
  std::vector<std::thread> readers;
  for (int reader = 0; reader < 3; ++reader) {
    readers.emplace_back([&, reader] {
      IndexMatches matches;
      for (MonotonicNs now = kSecond; !stop; now += kSecond / 10) {
        // Readers that never pause would starve the writer: glibc's lock prefers readers.
        std::this_thread::sleep_for(std::chrono::microseconds(20));
        const std::shared_lock lock(mutex);
        index.query(chains[static_cast<size_t>(now / 7 + reader) % kSessions], now, matches);
        const IndexMatch* match = matches.find(replica);
        // A session is stored and removed whole, under the lock: all of it is there, or nothing.
        if (match != nullptr && match->leading_blocks() != 300) half_seen = true;
        lookups.fetch_add(1, std::memory_order_relaxed);
      }
    });
  }
  uint64_t sequence = 0;
  const auto send = [&](KvEvent event) {
    const std::unique_lock lock(mutex);
    return index.apply(replica, {1, ++sequence, KvEventBatch::Kind::kLive, {std::move(event)}}, kSecond).reason;
  };
  for (int round = 0; round < 400; ++round) {
    const auto& chain = chains[static_cast<size_t>(round) % kSessions];
    EXPECT_EQ(send(BlocksStored{Tier::kDevice, hash128("root"), chain}), "");
    if (round % 3 == 0) {
      const std::unique_lock lock(mutex);
      index.place(replica, chain, kSecond, 0.5);
      index.maintain(10 * kSecond, 100);
    }
    EXPECT_EQ(send(BlocksRemoved{Tier::kDevice, chain}), "");
  }
  stop = true;
  for (std::thread& reader : readers) reader.join();
  std::printf("%llu lookups beside %llu writes\n", static_cast<unsigned long long>(lookups.load()),
              static_cast<unsigned long long>(sequence));
  EXPECT_FALSE(half_seen) << "a lookup saw half a session";
  EXPECT_GT(lookups, 0u);
  EXPECT_EQ(index.check_integrity(), Status());
}

}  // namespace
}  // namespace warmpath

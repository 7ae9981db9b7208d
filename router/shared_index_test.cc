#include "router/shared_index.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>

namespace warmpath {
namespace {

constexpr MonotonicNs kSecond = 1'000'000'000;

std::vector<Hash128> chain_of_blocks(int session, int count) {
  std::vector<Hash128> chain;
  for (int n = 0; n < count; ++n) chain.push_back(hash128(std::to_string(session) + "/" + std::to_string(n)));
  return chain;
}

uint32_t placed(const SharedIndex& index, ReplicaId replica, const std::vector<Hash128>& chain) {
  IndexMatches matches;
  index.query(chain, kSecond, matches);
  const IndexMatch* match = matches.find(replica);
  return match == nullptr ? 0 : match->placed_blocks;
}

TEST(SharedIndex, APlacementNeverWaitsAndIsDoneByWhoeverIsWriting) {
  SharedIndex index(size_t{64} << 20);
  const ReplicaId replica = index.write([](RadixIndex& inner) { return *inner.add_replica(); });
  const auto chain = chain_of_blocks(1, 10);
  index.write([&](RadixIndex&) {
    // Another thread finds the turn taken; were it to wait for it, this would never end.
    std::thread([&] { index.place(replica, chain, kSecond, 60, 4); }).join();
    EXPECT_EQ(placed(index, replica, chain), 0u);
  });
  IndexMatches matches;
  index.query(std::span(chain).subspan(4), kSecond, matches);
  ASSERT_NE(matches.find(replica), nullptr) << "placed once the turn was over";
  EXPECT_EQ(matches.find(replica)->placed_blocks, 6u) << "from the fifth block on";
  index.place(replica, chain, kSecond, 60, 0);
  EXPECT_EQ(placed(index, replica, chain), 10u);
}

TEST(SharedIndex, APlacementForAReplicaThatHasLeftIsPassedOver) {
  SharedIndex index(size_t{64} << 20);
  const ReplicaId replica = index.write([](RadixIndex& inner) { return *inner.add_replica(); });
  const auto chain = chain_of_blocks(1, 10);
  index.write([&](RadixIndex& inner) {
    std::thread([&] { index.place(replica, chain, kSecond, 60, 0); }).join();
    inner.remove_replica(replica);
  });
  index.place(replica, chain, kSecond, 60, 0);
  EXPECT_EQ(index.read([](const RadixIndex& inner) { return inner.stats().distinct_blocks; }), 0u);
}

TEST(SharedIndex, NoPlacementIsLostBetweenManyWriters) {
  SharedIndex index(size_t{64} << 20);
  const ReplicaId replica = index.write([](RadixIndex& inner) { return *inner.add_replica(); });
  constexpr int kThreads = 4;
  constexpr int kSessions = 300;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (int n = 0; n < kSessions; ++n) {
        index.place(replica, chain_of_blocks(thread * kSessions + n, 5), kSecond, 60, 0);
        if (n % 16 == 0) index.write([](RadixIndex& inner) { inner.maintain(kSecond, 64); });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int n = 0; n < kThreads * kSessions; ++n) {
    ASSERT_EQ(placed(index, replica, chain_of_blocks(n, 5)), 5u) << n;
  }
  EXPECT_EQ(index.read([](const RadixIndex& inner) { return inner.check_integrity(); }), Status());
}

}  // namespace
}  // namespace warmpath

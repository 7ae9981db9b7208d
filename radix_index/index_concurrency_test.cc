// Lookups beside a writer, with no lock between them: whatever the writer does to the runs that a lookup walks through,
// the lookup's answer about what stays the same must always be the same. Run it under ThreadSanitizer too.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "radix_index/radix_index.h"

namespace warmpath {
namespace {

constexpr MonotonicNs kSecond = 1'000'000'000;

std::vector<Hash128> session(const std::string& name, int count) {
  std::vector<Hash128> blocks;
  for (int n = 0; n < count; ++n) blocks.push_back(hash128(name + "/" + std::to_string(n)));
  return blocks;
}

std::vector<Hash128> part(const std::vector<Hash128>& chain, int first, int count) {
  return {chain.begin() + first, chain.begin() + first + count};
}

std::vector<Hash128> joined(std::vector<Hash128> front, const std::vector<Hash128>& tail) {
  front.insert(front.end(), tail.begin(), tail.end());
  return front;
}

class Writer {
 public:
  explicit Writer(RadixIndex& index) : index_(index), replica_(*index.add_replica()) { start(); }
  void start() {
    send(KvEventBatch::Kind::kSnapshotBegin, {});
    send(KvEventBatch::Kind::kSnapshotEnd, {});
  }
  void restart() {
    ++epoch_;
    sequence_ = 0;
    start();
  }
  void stored(Hash128 parent, std::vector<Hash128> blocks) {
    live(BlocksStored{Tier::kDevice, parent, std::move(blocks)});
  }
  void removed(std::vector<Hash128> blocks) { live(BlocksRemoved{Tier::kDevice, std::move(blocks)}); }
  ReplicaId replica() const { return replica_; }

 private:
  void live(KvEvent event) {
    ++sequence_;
    send(KvEventBatch::Kind::kLive, {std::move(event)});
  }
  void send(KvEventBatch::Kind kind, std::vector<KvEvent> events) {
    EXPECT_EQ(index_.apply(replica_, {epoch_, sequence_, kind, std::move(events)}, kSecond).action, FeedAction::kNone);
  }

  RadixIndex& index_;
  const ReplicaId replica_;
  uint64_t epoch_ = 1;
  uint64_t sequence_ = 0;
};

TEST(IndexConcurrency, WhatStaysIsFoundWholeWhateverHappensAroundIt) {
  RadixIndex index;
  Writer keeper(index);
  Writer changer(index);
  const Hash128 root = hash128("root");
  // Two runs and a bit, of which the changer holds more, less, and longer ones.
  const auto grown = session("grown", 300);
  // Once in one run, once in two: another parent is claimed for its middle, and disproved.
  const auto parted = session("parted", 150);
  // The keeper lacks block 100, which comes and goes: the run closes and falls apart.
  const auto holed = session("holed", 200);
  keeper.stored(root, grown);
  keeper.stored(root, parted);
  keeper.stored(root, part(holed, 0, 100));
  keeper.stored(holed[100], part(holed, 101, 99));
  std::vector<std::vector<Hash128>> tails;
  for (int n = 0; n < 8; ++n) tails.push_back(session("tail" + std::to_string(n), 30 + 20 * n));

  struct Expected {
    std::vector<Hash128> chain;
    uint32_t blocks;
  };
  const std::vector<Expected> expected = {
      {joined(grown, tails[3]), 300}, {parted, 150}, {holed, 100}, {joined(part(grown, 0, 200), tails[0]), 200}};

  std::atomic<bool> stop{false};
  std::atomic<uint64_t> lookups{0};
  std::atomic<uint64_t> wrong{0};
  std::atomic<uint64_t> beyond{0};
  std::vector<std::thread> readers;
  for (int reader = 0; reader < 3; ++reader) {
    readers.emplace_back([&, reader] {
      IndexMatches matches;
      for (uint64_t n = static_cast<uint64_t>(reader); !stop.load(std::memory_order_relaxed); ++n) {
        const Expected& asked = expected[n % expected.size()];
        index.query(asked.chain, kSecond, matches);
        const IndexMatch* match = matches.find(keeper.replica());
        if (match == nullptr || match->leading_blocks() != asked.blocks) wrong.fetch_add(1);
        const IndexMatch* other = matches.find(changer.replica());
        if (other != nullptr && other->leading_blocks() > asked.chain.size()) beyond.fetch_add(1);
        lookups.fetch_add(1, std::memory_order_relaxed);
      }
    });
  }
  const auto wait_for_lookups = [&] {
    for (const uint64_t from = lookups.load(); lookups.load() < from + 3;) std::this_thread::yield();
  };
  for (int round = 0; round < 600; ++round) {
    const auto& tail = tails[static_cast<size_t>(round) % tails.size()];
    const auto& fork = tails[static_cast<size_t>(round * 5 + 1) % tails.size()];
    changer.stored(root, joined(grown, tail));
    changer.stored(grown[199], fork);
    changer.stored(hash128("nonsense"), {parted[75]});
    changer.stored(holed[98], {holed[99], holed[100], holed[101]});
    changer.stored(parted[73], {parted[74], parted[75], parted[76]});
    if (round % 5 == 0) {
      index.place(changer.replica(), joined(grown, fork), kSecond, 5);
      index.place(keeper.replica(), joined(part(grown, 0, 10), fork), kSecond, 0, 10);
    }
    changer.removed(tail);
    changer.removed({holed[100]});
    changer.removed(fork);
    if (round % 7 == 0) changer.removed(part(grown, 0, 150));
    if (round % 50 == 0) changer.restart();
    if (round % 3 == 0) index.maintain(10 * kSecond, 3);
    if (round % 16 == 0) wait_for_lookups();
  }
  stop = true;
  for (std::thread& reader : readers) reader.join();
  std::printf("%llu lookups beside the writer\n", static_cast<unsigned long long>(lookups.load()));
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(beyond, 0u);
  EXPECT_EQ(index.check_integrity(), Status());
}

TEST(IndexConcurrency, ReplicasComeAndGoBesideLookups) {
  RadixIndex index({.max_bytes = size_t{8} << 20, .max_replicas = 64});
  Writer keeper(index);
  const auto kept = session("kept", 40);
  keeper.stored(hash128("root"), kept);
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> wrong{0};
  std::vector<std::thread> readers;
  for (int reader = 0; reader < 2; ++reader) {
    readers.emplace_back([&] {
      IndexMatches matches;
      while (!stop.load(std::memory_order_relaxed)) {
        index.query(kept, kSecond, matches);
        const IndexMatch* match = matches.find(keeper.replica());
        if (match == nullptr || match->held_blocks() != 40) wrong.fetch_add(1);
        // Nobody else ever holds the kept session's second half.
        for (const IndexMatch& other : matches.matches) {
          if (other.replica != keeper.replica() && other.leading_blocks() > 20) wrong.fetch_add(1);
        }
      }
    });
  }
  for (int life = 0; life < 2000; ++life) {
    Writer passing(index);
    passing.stored(hash128("root"), part(kept, 0, 20));
    passing.stored(hash128("root"), session("own" + std::to_string(life % 100), 200));
    index.remove_replica(passing.replica());
    // The kept run is the first; a pass now and then makes slot numbers come back.
    index.maintain(kSecond, 1000);
  }
  stop = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(index.check_integrity(), Status());
}

}  // namespace
}  // namespace warmpath

#include "radix_index/radix_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <set>

#include "radix_index/block_table.h"

namespace warmpath {
namespace {

constexpr MonotonicNs kSecond = 1'000'000'000;

Hash128 block(int n) { return hash128("block " + std::to_string(n)); }

std::vector<Hash128> blocks(int first, int count) {
  std::vector<Hash128> made;
  for (int n = first; n < first + count; ++n) made.push_back(block(n));
  return made;
}

// One replica's stream, with the bookkeeping a test does not want to repeat.
class Stream {
 public:
  Stream(RadixIndex& index, ReplicaId replica, uint64_t epoch = 1) : index_(index), replica_(replica), epoch_(epoch) {}

  FeedOutcome snapshot(std::vector<KvEvent> events = {}, MonotonicNs now = kSecond) {
    send(KvEventBatch::Kind::kSnapshotBegin, {}, now);
    if (!events.empty()) send(KvEventBatch::Kind::kSnapshotPart, std::move(events), now);
    return send(KvEventBatch::Kind::kSnapshotEnd, {}, now);
  }
  FeedOutcome live(std::vector<KvEvent> events, MonotonicNs now = kSecond) {
    ++sequence_;
    return send(KvEventBatch::Kind::kLive, std::move(events), now);
  }
  FeedOutcome stored(Hash128 parent, std::vector<Hash128> ids, Tier tier = Tier::kDevice) {
    return live({BlocksStored{tier, parent, std::move(ids)}});
  }
  FeedOutcome removed(std::vector<Hash128> ids, Tier tier = Tier::kDevice) {
    return live({BlocksRemoved{tier, std::move(ids)}});
  }
  FeedOutcome send(KvEventBatch::Kind kind, std::vector<KvEvent> events, MonotonicNs now = kSecond) {
    return index_.apply(replica_, {epoch_, sequence_, kind, std::move(events)}, now);
  }
  void skip() { ++sequence_; }

 private:
  RadixIndex& index_;
  ReplicaId replica_;
  uint64_t epoch_;
  uint64_t sequence_ = 0;
};

IndexMatch lookup(const RadixIndex& index, ReplicaId replica, const std::vector<Hash128>& chain,
                  MonotonicNs now = kSecond) {
  static thread_local IndexMatches matches;
  index.query(chain, now, matches);
  const IndexMatch* match = matches.find(replica);
  return match == nullptr ? IndexMatch{replica, {}, 0} : *match;
}

struct Fixture : ::testing::Test {
  RadixIndex index;
  ReplicaId replica = *index.add_replica();
  Stream stream{index, replica};
  void TearDown() override { EXPECT_EQ(index.check_integrity(), Status()); }
};
using RadixIndexTest = Fixture;

TEST_F(RadixIndexTest, LeadingBlocksCountByNearestTierUpToTheFirstHole) {
  stream.snapshot();
  stream.stored(block(-1), blocks(0, 10));
  stream.stored(block(-1), blocks(0, 20), Tier::kHost);
  stream.stored(block(19), blocks(20, 5), Tier::kDisk);
  stream.stored(block(24), blocks(25, 5));
  const IndexMatch match = lookup(index, replica, blocks(0, 40));
  EXPECT_EQ(match.blocks[0], 15u);
  EXPECT_EQ(match.blocks[1], 10u);
  EXPECT_EQ(match.blocks[2], 5u);
  stream.removed({block(12)}, Tier::kHost);
  EXPECT_EQ(lookup(index, replica, blocks(0, 40)).leading_blocks(), 12u);
  stream.stored(block(11), {block(12)});
  EXPECT_EQ(lookup(index, replica, blocks(0, 40)).leading_blocks(), 30u);
}

TEST_F(RadixIndexTest, AChildBeforeItsParentCountsOnceTheParentIsThere) {
  stream.snapshot();
  stream.stored(block(4), blocks(5, 5));
  EXPECT_EQ(lookup(index, replica, blocks(5, 5)).leading_blocks(), 5u) << "asked for as a chain of its own";
  EXPECT_EQ(lookup(index, replica, blocks(0, 10)).leading_blocks(), 0u);
  stream.stored(block(-1), blocks(0, 5));
  EXPECT_EQ(lookup(index, replica, blocks(0, 10)).leading_blocks(), 10u);
}

TEST_F(RadixIndexTest, CopiesAreRemovedOneAtATime) {
  stream.snapshot();
  stream.stored(block(-1), blocks(0, 3));
  stream.stored(block(0), {block(1)});
  stream.removed({block(1)});
  EXPECT_EQ(lookup(index, replica, blocks(0, 3)).leading_blocks(), 3u);
  stream.removed({block(1)});
  EXPECT_EQ(lookup(index, replica, blocks(0, 3)).leading_blocks(), 1u);
  EXPECT_EQ(index.replica_view(replica).resident_blocks[0], 2u);
}

TEST_F(RadixIndexTest, AGapDegradesAndASnapshotHeals) {
  EXPECT_EQ(index.replica_view(replica).trust, Trust::kPredicted);
  EXPECT_TRUE(stream.snapshot({BlocksStored{Tier::kDevice, block(-1), blocks(0, 4)}}).trust_changed);
  EXPECT_EQ(index.replica_view(replica).trust, Trust::kExact);
  stream.skip();
  const FeedOutcome outcome = stream.stored(block(3), {block(4)});
  EXPECT_EQ(outcome.action, FeedAction::kResubscribe);
  EXPECT_EQ(outcome.reason, "events 1 to 1 are missing");
  EXPECT_EQ(index.replica_view(replica).trust, Trust::kDegraded);
  EXPECT_EQ(lookup(index, replica, blocks(0, 5)).leading_blocks(), 4u) << "the last known content still guides";
  stream.snapshot({BlocksStored{Tier::kDevice, block(-1), blocks(0, 2)}});
  EXPECT_EQ(index.replica_view(replica).trust, Trust::kExact);
  EXPECT_EQ(lookup(index, replica, blocks(0, 5)).leading_blocks(), 2u);
}

TEST_F(RadixIndexTest, DuplicatesAreDroppedAndSilenceIsNotAGap) {
  stream.snapshot();
  stream.stored(block(-1), blocks(0, 2));
  EXPECT_EQ(stream.send(KvEventBatch::Kind::kLive, {BlocksRemoved{Tier::kDevice, blocks(0, 2)}}).action,
            FeedAction::kNone);
  EXPECT_EQ(lookup(index, replica, blocks(0, 2)).leading_blocks(), 2u);
  uint64_t checksum = residency_term(block(0), Tier::kDevice) ^ residency_term(block(1), Tier::kDevice);
  EXPECT_EQ(stream.send(KvEventBatch::Kind::kLive, {Heartbeat{2, checksum}}).action, FeedAction::kNone);
  EXPECT_EQ(stream.live({Heartbeat{2, checksum}}).action, FeedAction::kNone);
}

TEST_F(RadixIndexTest, AnAuditThatFailsDegrades) {
  stream.snapshot();
  stream.stored(block(-1), blocks(0, 2));
  EXPECT_EQ(stream.live({Heartbeat{3, 0}}).reason, "the engine holds 3 blocks, the index believes 2");
  EXPECT_EQ(index.replica_view(replica).trust, Trust::kDegraded);
  EXPECT_EQ(index.replica_view(replica).audits_failed, 1u);
  stream.snapshot({BlocksStored{Tier::kDevice, block(-1), blocks(0, 2)}});
  EXPECT_EQ(stream.live({Heartbeat{2, 1}}).reason, "the engine holds other blocks than the index believes");
}

TEST_F(RadixIndexTest, ARestartClearsThatReplicaOnly) {
  const ReplicaId other = *index.add_replica();
  Stream other_stream(index, other);
  stream.snapshot({BlocksStored{Tier::kDevice, block(-1), blocks(0, 4)}});
  other_stream.snapshot({BlocksStored{Tier::kDevice, block(-1), blocks(0, 4)}});
  index.place(replica, blocks(0, 6), kSecond, 60);
  Stream reborn(index, replica, 2);
  EXPECT_EQ(reborn.send(KvEventBatch::Kind::kSnapshotBegin, {}).reason, "the engine restarted");
  EXPECT_EQ(lookup(index, replica, blocks(0, 6)).leading_blocks(), 0u);
  EXPECT_EQ(lookup(index, other, blocks(0, 6)).leading_blocks(), 4u);
  EXPECT_EQ(reborn.send(KvEventBatch::Kind::kSnapshotEnd, {}).trust_changed, true);
}

TEST_F(RadixIndexTest, WhileASnapshotLoadsLookupsSeeWhatWasKnownBefore) {
  stream.snapshot({BlocksStored{Tier::kDevice, block(-1), blocks(0, 4)}});
  stream.send(KvEventBatch::Kind::kSnapshotBegin, {});
  stream.send(KvEventBatch::Kind::kSnapshotPart, {BlocksStored{Tier::kDevice, block(-1), blocks(0, 8)}});
  EXPECT_EQ(lookup(index, replica, blocks(0, 8)).leading_blocks(), 4u);
  stream.send(KvEventBatch::Kind::kSnapshotEnd, {});
  EXPECT_EQ(lookup(index, replica, blocks(0, 8)).leading_blocks(), 8u);
}

TEST_F(RadixIndexTest, PlacementsExpireOrAreConfirmedOrDisproved) {
  stream.snapshot();
  index.place(replica, blocks(0, 6), kSecond, 10);
  IndexMatch match = lookup(index, replica, blocks(0, 8), 2 * kSecond);
  EXPECT_EQ(match.placed_blocks, 6u);
  EXPECT_EQ(match.held_blocks(), 0u);
  stream.stored(block(-1), blocks(0, 4));
  match = lookup(index, replica, blocks(0, 8), 2 * kSecond);
  EXPECT_EQ(match.held_blocks(), 4u);
  EXPECT_EQ(match.placed_blocks, 2u);
  EXPECT_EQ(lookup(index, replica, blocks(0, 8), 11 * kSecond).leading_blocks(), 4u) << "expired at 11 s";
  stream.removed(blocks(2, 2));
  EXPECT_EQ(lookup(index, replica, blocks(0, 8), 2 * kSecond).leading_blocks(), 2u);
  index.maintain(11 * kSecond, 1000);
  EXPECT_EQ(index.stats().distinct_blocks, 2u) << "swept";
}

TEST_F(RadixIndexTest, ForksShareTheirFront) {
  stream.snapshot();
  stream.stored(block(-1), blocks(0, 100));
  std::vector<Hash128> fork = blocks(0, 40);
  for (int n = 1000; n < 1060; ++n) fork.push_back(block(n));
  stream.stored(block(39), blocks(1000, 60));
  EXPECT_EQ(lookup(index, replica, fork).leading_blocks(), 100u);
  EXPECT_EQ(lookup(index, replica, blocks(0, 100)).leading_blocks(), 100u);
  EXPECT_EQ(index.stats().distinct_blocks, 160u);
  EXPECT_EQ(index.stats().runs, 2u);
}

TEST_F(RadixIndexTest, PiecesGrowTogetherAgain) {
  stream.snapshot();
  stream.stored(block(-1), blocks(0, 100));
  for (int n = 10; n < 90; n += 10) stream.removed({block(n)});
  EXPECT_EQ(index.stats().runs, 9u);
  stream.stored(block(-1), blocks(0, 100));
  EXPECT_EQ(index.stats().runs, 1u);
  EXPECT_EQ(lookup(index, replica, blocks(0, 100)).leading_blocks(), 100u);
}

TEST(RadixIndex, TheCapHoldsAndTheLeastRecentlyMatchedGoFirst) {
  RadixIndex index({.max_bytes = 2 << 20, .max_replicas = 4});
  const ReplicaId replica = *index.add_replica();
  Stream stream(index, replica);
  stream.snapshot();
  const auto session = [](int n) { return blocks(n * 1000, 200); };
  int kept_warm = 0;
  for (int n = 0; n < 2000; ++n) {
    const MonotonicNs now = n * kSecond;
    stream.live({BlocksStored{Tier::kDevice, block(n * 1000 - 1), session(n)}}, now);
    kept_warm += lookup(index, replica, session(0), now).leading_blocks() == 200;
    ASSERT_LE(index.stats().bytes, size_t{2} << 20);
  }
  EXPECT_EQ(kept_warm, 2000) << "a session that is matched all the time stays";
  EXPECT_EQ(index.check_integrity(), Status());
  EXPECT_GT(index.stats().evicted_blocks, 100'000u);
  EXPECT_EQ(index.replica_view(replica).blocks_dropped, index.stats().evicted_blocks);
  EXPECT_EQ(stream.live({Heartbeat{400'000, 1}}).action, FeedAction::kNone) << "an audit cannot hold against a cap";
}

TEST(RadixIndex, ChurnDoesNotGrow) {
  RadixIndex index;
  const ReplicaId replica = *index.add_replica();
  Stream stream(index, replica);
  stream.snapshot();
  // 200 sessions of 50 to 149 blocks live at any time; each round replaces one.
  const auto session = [](int n) { return blocks(n * 1000, 50 + n * 37 % 100); };
  size_t settled = 0;
  for (int n = 0; n < 4000; ++n) {
    stream.stored(block(n * 1000 - 1), session(n));
    if (n >= 200) {
      std::vector<Hash128> old = session(n - 200);
      if (n % 2 == 0) std::reverse(old.begin(), old.end());
      stream.removed(old);
    }
    if (n == 1000) settled = index.stats().bytes;
  }
  EXPECT_LT(static_cast<double>(index.stats().bytes), 1.1 * static_cast<double>(settled));
  for (int n = 3800; n < 4000; ++n) stream.removed(session(n));
  EXPECT_EQ(index.stats().distinct_blocks, 0u);
  EXPECT_EQ(index.stats().runs, 0u);
  EXPECT_EQ(index.check_integrity(), Status());
}

TEST(RadixIndex, RemovedReplicasLeaveNothingBehind) {
  RadixIndex index;
  std::set<ReplicaId> ids;
  for (int life = 0; life < 300; ++life) {
    const ReplicaId replica = *index.add_replica();
    ids.insert(replica);
    Stream(index, replica).snapshot({BlocksStored{Tier::kHost, block(-1), blocks(0, 50)}});
    index.place(replica, blocks(0, 80), kSecond, 1e6);
    index.remove_replica(replica);
    index.maintain(kSecond, 2);
    IndexMatches matches;
    index.query(blocks(0, 80), kSecond, matches);
    ASSERT_TRUE(matches.matches.empty());
  }
  EXPECT_EQ(ids.size(), 1u) << "ids are used again";
  for (int n = 0; n < 10; ++n) index.maintain(kSecond, 1000);
  EXPECT_EQ(index.stats().distinct_blocks, 0u);
  EXPECT_EQ(index.check_integrity(), Status());
}

TEST(RadixIndex, MatchesAreFoundByReplica) {
  RadixIndex index;
  std::vector<ReplicaId> replicas;
  for (int n = 0; n < 8; ++n) {
    replicas.push_back(*index.add_replica());
    // Odd ones hold the second half only: spans of the run, but nothing leading.
    const int first = n % 2 == 0 ? 0 : 10;
    Stream(index, replicas.back()).snapshot({BlocksStored{Tier::kDevice, block(first - 1), blocks(first, 20 - first)}});
  }
  IndexMatches matches;
  for (int round = 0; round < 2; ++round) {
    index.query(blocks(0, 20), kSecond, matches);
    EXPECT_EQ(matches.matches.size(), 4u);
    for (int n = 0; n < 8; ++n) EXPECT_EQ(matches.find(replicas[n]) != nullptr, n % 2 == 0) << n;
    index.query(blocks(500, 3), kSecond, matches);
    EXPECT_EQ(matches.find(replicas[0]), nullptr);
  }
}

TEST(RadixIndex, FourThousandReplicasShareAHeadRestartAndLeave) {
  constexpr int kReplicas = 4096;
  RadixIndex index;
  std::vector<ReplicaId> replicas;
  const auto head = blocks(0, 40);
  for (int n = 0; n < kReplicas; ++n) replicas.push_back(*index.add_replica());
  for (uint64_t life = 1; life <= 3; ++life) {
    for (int n = 0; n < kReplicas; ++n) {
      Stream stream(index, replicas[n], life);
      stream.snapshot({BlocksStored{Tier::kDevice, block(-1), {head.begin(), head.begin() + 20 + n % 20}}});
      stream.stored(head[19], {block(100'000 + n)});
    }
    IndexMatches matches;
    index.query(head, kSecond, matches);
    ASSERT_EQ(matches.matches.size(), size_t{kReplicas});
    for (int n = 0; n < kReplicas; n += 97) {
      ASSERT_NE(matches.find(replicas[n]), nullptr);
      EXPECT_EQ(matches.find(replicas[n])->held_blocks(), 20u + static_cast<uint32_t>(n % 20));
    }
  }
  EXPECT_EQ(index.check_integrity(), Status());
  for (const ReplicaId replica : replicas) index.remove_replica(replica);
  for (int pass = 0; pass < 2; ++pass) index.maintain(kSecond, 100'000);
  EXPECT_EQ(index.stats().distinct_blocks, 0u);
  EXPECT_EQ(index.stats().spans, 0u);
  EXPECT_EQ(index.check_integrity(), Status());
}

TEST(RadixIndex, TheCapSparesWhatSessionsInUseHangOn) {
  RadixIndex index({.max_bytes = 2 << 20, .max_replicas = 4});
  const ReplicaId replica = *index.add_replica();
  Stream stream(index, replica);
  stream.snapshot();
  // 300 sessions with a full run each; the last 20 go on, one block a second among them. Nobody asks for anything.
  constexpr int kSessions = 300;
  constexpr int kLive = 20;
  const auto first = [](int n) { return n * 10'000; };
  for (int n = 0; n < kSessions; ++n) {
    stream.live({BlocksStored{Tier::kDevice, block(first(n) - 1), blocks(first(n), 256)}}, n * kSecond);
  }
  std::vector<int> lengths(kSessions, 256);
  for (int turn = 0; turn < 4000; ++turn) {
    const int n = kSessions - 1 - turn % kLive;
    const int last = first(n) + lengths[n]++;
    stream.live({BlocksStored{Tier::kDevice, block(last - 1), {block(last)}}}, (kSessions + turn) * kSecond);
    ASSERT_LE(index.stats().bytes, size_t{2} << 20);
  }
  EXPECT_GT(index.stats().evicted_blocks, 4000u);
  for (int n = kSessions - kLive; n < kSessions; ++n) {
    EXPECT_EQ(lookup(index, replica, blocks(first(n), lengths[n])).leading_blocks(), static_cast<uint32_t>(lengths[n]));
  }
  EXPECT_EQ(index.check_integrity(), Status());
}

TEST(RadixIndex, ABlockWithTwoClaimedParentsIsFoundBehindBoth) {
  RadixIndex index;
  const ReplicaId honest = *index.add_replica();
  const ReplicaId confused = *index.add_replica();
  Stream stream(index, honest);
  Stream nonsense(index, confused);
  stream.snapshot();
  nonsense.snapshot();
  nonsense.stored(block(-1), {block(7), block(3), block(7), block(4)});
  EXPECT_EQ(index.check_integrity(), Status());
  stream.stored(block(-1), blocks(0, 8));
  EXPECT_EQ(lookup(index, honest, blocks(0, 8)).leading_blocks(), 8u);
  EXPECT_EQ(index.check_integrity(), Status());
  stream.removed(blocks(0, 8));
  nonsense.removed({block(7), block(7), block(3), block(4)});
  EXPECT_EQ(index.stats().distinct_blocks, 0u);
  EXPECT_EQ(index.check_integrity(), Status());
}

TEST(RadixIndex, RefusesMoreReplicasThanItServes) {
  RadixIndex index({.max_bytes = 1 << 20, .max_replicas = 2});
  EXPECT_TRUE(index.add_replica().ok());
  EXPECT_TRUE(index.add_replica().ok());
  EXPECT_EQ(index.add_replica().status().code(), StatusCode::kResourceExhausted);
}

// The slow obvious index: per replica a map of what it holds.
class ObviousIndex {
 public:
  struct Holdings {
    std::map<std::pair<Hash128, Tier>, int> copies;
    std::map<Hash128, MonotonicNs> placed;
  };

  void store(Holdings& to, const std::vector<Hash128>& ids, Tier tier, Holdings& confirms) {
    for (const Hash128& id : ids) {
      ++to.copies[{id, tier}];
      confirms.placed.erase(id);
    }
  }
  void remove(Holdings& from, const std::vector<Hash128>& ids, Tier tier) {
    for (const Hash128& id : ids) {
      const auto held = from.copies.find({id, tier});
      if (held == from.copies.end()) continue;
      if (--held->second > 0) continue;
      from.copies.erase(held);
      from.placed.erase(id);
    }
  }
  static IndexMatch match(const Holdings& holdings, ReplicaId replica, const std::vector<Hash128>& chain,
                          MonotonicNs now) {
    IndexMatch match{replica, {}, 0};
    for (const Hash128& id : chain) {
      int tier = 0;
      while (tier < kTiers && !holdings.copies.contains({id, static_cast<Tier>(tier)})) ++tier;
      if (tier < kTiers) {
        ++match.blocks[tier];
        continue;
      }
      const auto placed = holdings.placed.find(id);
      if (placed == holdings.placed.end() || placed->second <= now) break;
      ++match.placed_blocks;
    }
    return match;
  }
  static Heartbeat heartbeat(const Holdings& holdings) {
    Heartbeat heartbeat;
    for (const auto& [key, count] : holdings.copies) {
      heartbeat.resident_blocks += count;
      if (count % 2 == 1) heartbeat.checksum ^= residency_term(key.first, key.second);
    }
    return heartbeat;
  }
};

// Random operations on a forest of chains; every lookup must equal the obvious index's.
void compare_with_obvious(uint64_t seed, int operations, int distinct_blocks, int check_every) {
  std::mt19937_64 random(seed);
  const auto pick = [&](int bound) { return static_cast<int>(random() % static_cast<uint64_t>(bound)); };
  // parents[n] < n: a random forest with long straight pieces and some forks.
  std::vector<int> parents(distinct_blocks);
  for (int n = 0; n < distinct_blocks; ++n) parents[n] = n == 0 || pick(60) == 0 ? -1 : pick(12) == 0 ? pick(n) : n - 1;
  const auto chain_to = [&](int leaf) {
    std::vector<Hash128> chain;
    for (int n = leaf; n >= 0; n = parents[n]) chain.push_back(block(n));
    std::reverse(chain.begin(), chain.end());
    return chain;
  };

  RadixIndex index;
  constexpr int kReplicas = 5;
  struct Twin {
    ReplicaId id;
    ObviousIndex::Holdings holdings;
    uint64_t epoch = 1;
    uint64_t sequence = 0;
  };
  std::vector<Twin> twins;
  MonotonicNs now = kSecond;
  uint64_t next_epoch = 1;
  ObviousIndex obvious;
  const auto send = [&](Twin& twin, KvEventBatch::Kind kind, std::vector<KvEvent> events) {
    return index.apply(twin.id, {twin.epoch, twin.sequence, kind, std::move(events)}, now);
  };
  const auto join = [&] {
    Twin twin{*index.add_replica(), {}, next_epoch++, 0};
    send(twin, KvEventBatch::Kind::kSnapshotBegin, {});
    send(twin, KvEventBatch::Kind::kSnapshotEnd, {});
    return twin;
  };
  for (int n = 0; n < kReplicas; ++n) twins.push_back(join());

  uint64_t lookups = 0;
  for (int operation = 0; operation < operations; ++operation) {
    now += pick(300) * 1'000'000;
    Twin& twin = twins[pick(kReplicas)];
    const Tier tier = static_cast<Tier>(pick(10) < 7 ? 0 : 1 + pick(2));
    const auto chain = chain_to(pick(distinct_blocks));
    const int what = pick(100);
    if (what < 40) {
      const size_t first = pick(2) == 0 ? 0 : random() % chain.size();
      const size_t count = 1 + random() % (chain.size() - first);
      const std::vector<Hash128> ids(chain.begin() + first, chain.begin() + first + count);
      ++twin.sequence;
      const Hash128 parent = first == 0 ? hash128("root") : chain[first - 1];
      send(twin, KvEventBatch::Kind::kLive, {BlocksStored{tier, parent, ids}});
      obvious.store(twin.holdings, ids, tier, twin.holdings);
    } else if (what < 75) {
      std::vector<Hash128> ids;
      const int style = pick(3);
      const size_t from = random() % chain.size();
      for (size_t n = from; n < chain.size(); ++n) {
        if (style < 2 || pick(4) == 0) ids.push_back(chain[n]);
      }
      if (style == 1) std::reverse(ids.begin(), ids.end());
      if (style == 2) std::shuffle(ids.begin(), ids.end(), random);
      ++twin.sequence;
      send(twin, KvEventBatch::Kind::kLive, {BlocksRemoved{tier, ids}});
      obvious.remove(twin.holdings, ids, tier);
    } else if (what < 88) {
      const double ttl_s = 1 + pick(20);
      index.place(twin.id, chain, now, ttl_s);
      for (const Hash128& id : chain) twin.holdings.placed[id] = now + static_cast<MonotonicNs>(ttl_s * 1e9);
    } else if (what < 94) {
      index.maintain(now, static_cast<size_t>(pick(50)));
    } else if (what < 95) {
      ++twin.sequence;
      send(twin, KvEventBatch::Kind::kLive, {BlocksCleared{}});
      twin.holdings = {};
    } else if (what < 97) {
      // A new stream, sometimes of a new life: what the snapshot holds replaces everything.
      const bool restarted = pick(2) == 0;
      if (restarted) twin.epoch = next_epoch++;
      twin.sequence = random() % 100;
      ObviousIndex::Holdings fresh;
      if (restarted) twin.holdings.placed.clear();
      send(twin, KvEventBatch::Kind::kSnapshotBegin, {});
      for (int part = pick(4); part > 0; --part) {
        const auto held = chain_to(pick(distinct_blocks));
        send(twin, KvEventBatch::Kind::kSnapshotPart, {BlocksStored{tier, hash128("root"), held}});
        obvious.store(fresh, held, tier, twin.holdings);
      }
      send(twin, KvEventBatch::Kind::kSnapshotEnd, {});
      fresh.placed = twin.holdings.placed;
      twin.holdings = std::move(fresh);
    } else if (what < 98) {
      index.remove_replica(twin.id);
      twin = join();
    } else {
      ++twin.sequence;
      const FeedOutcome outcome = send(twin, KvEventBatch::Kind::kLive, {ObviousIndex::heartbeat(twin.holdings)});
      ASSERT_EQ(outcome.reason, "") << "seed " << seed << " operation " << operation;
    }
    if (operation % check_every == 0) {
      ASSERT_EQ(index.check_integrity(), Status()) << "seed " << seed << " operation " << operation;
    }
    const auto asked = chain_to(pick(distinct_blocks));
    static IndexMatches matches;
    index.query(asked, now, matches);
    for (const Twin& checked : twins) {
      const IndexMatch expected = ObviousIndex::match(checked.holdings, checked.id, asked, now);
      const IndexMatch* found = matches.find(checked.id);
      const IndexMatch answer = found == nullptr ? IndexMatch{checked.id, {}, 0} : *found;
      ASSERT_EQ(answer.blocks, expected.blocks) << "seed " << seed << " operation " << operation;
      ASSERT_EQ(answer.placed_blocks, expected.placed_blocks) << "seed " << seed << " operation " << operation;
      ++lookups;
    }
  }
  std::printf("%llu answers equal the obvious index's\n", static_cast<unsigned long long>(lookups));
}

TEST(RadixIndexProperty, EveryAnswerEqualsTheObviousIndexWithIntegrityAfterEveryOperation) {
  for (uint64_t seed = 1; seed <= 6; ++seed) compare_with_obvious(seed, 700, 200 + 130 * static_cast<int>(seed), 1);
}

// WARMPATH_INDEX_OPERATIONS=1000000 runs a million of them (a few minutes).
TEST(RadixIndexProperty, LongChainsSpanManyRuns) {
  const char* wanted = std::getenv("WARMPATH_INDEX_OPERATIONS");
  const int operations = wanted == nullptr ? 3000 : std::atoi(wanted);
  compare_with_obvious(77, operations, 4000, operations > 100'000 ? 4096 : 128);
}

}  // namespace
}  // namespace warmpath

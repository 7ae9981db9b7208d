#include "radix_index/index_snapshot.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <random>

#include "radix_index/radix_index.h"

namespace warmpath {
namespace {

constexpr MonotonicNs kSecond = 1'000'000'000;

std::vector<Hash128> chain_of(const std::string& name, int count) {
  std::vector<Hash128> chain;
  for (int n = 0; n < count; ++n) chain.push_back(hash128(name + "/" + std::to_string(n)));
  return chain;
}

struct Source {
  RadixIndex index;
  std::vector<SnapshotReplica> replicas;
  std::vector<uint64_t> sequences;

  void add(const std::string& name, uint64_t epoch) {
    replicas.push_back({name, *index.add_replica()});
    sequences.push_back(0);
    index.apply(replicas.back().id, {epoch, 0, KvEventBatch::Kind::kSnapshotBegin, {}}, kSecond);
    index.apply(replicas.back().id, {epoch, 0, KvEventBatch::Kind::kSnapshotEnd, {}}, kSecond);
  }
  void live(size_t replica, KvEvent event) {
    const uint64_t epoch = index.replica_view(replicas[replica].id).boot_epoch;
    const KvEventBatch batch{epoch, ++sequences[replica], KvEventBatch::Kind::kLive, {std::move(event)}};
    EXPECT_EQ(index.apply(replicas[replica].id, batch, kSecond).reason, "");
  }
  std::string saved() {
    SnapshotProgress progress;
    progress.replicas = replicas;
    progress.saved_at_ns = 42;
    std::string bytes;
    while (index.save_piece(progress, kSecond, bytes)) {
    }
    return bytes;
  }
};

IndexMatch lookup(const RadixIndex& index, ReplicaId replica, const std::vector<Hash128>& chain, MonotonicNs now) {
  IndexMatches matches;
  index.query(chain, now, matches);
  const IndexMatch* match = matches.find(replica);
  return match == nullptr ? IndexMatch{replica, {}, 0} : *match;
}

struct IndexSnapshotTest : ::testing::Test {
  Source source;
  const Hash128 root = hash128("root");
  const std::vector<Hash128> shared = chain_of("shared", 300);
  const std::vector<Hash128> own = chain_of("own", 20);

  void SetUp() override {
    source.add("a", 11);
    source.add("b", 22);
    source.live(0, BlocksStored{Tier::kDevice, root, shared});
    source.live(1, BlocksStored{Tier::kHost, root, {shared.begin(), shared.begin() + 100}});
    source.live(1, BlocksStored{Tier::kDevice, root, own});
    source.live(1, BlocksStored{Tier::kDevice, own[2], {own[3], own[4]}});  // second copies
    source.index.place(source.replicas[0].id, own, kSecond, 60);
  }
};

TEST_F(IndexSnapshotTest, ARestoredIndexAnswersAsTheOldOneDid) {
  const std::string bytes = source.saved();
  const auto parsed = IndexSnapshot::parse(bytes);
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(parsed->blocks(), 320u);
  EXPECT_EQ(parsed->saved_at_ns(), 42);
  RadixIndex index;
  const ReplicaId b = *index.add_replica();
  const ReplicaId a = *index.add_replica();
  const std::vector<SnapshotReplica> replicas = {{"a", a}, {"b", b}, {"never seen", b}};
  EXPECT_EQ(index.restore(*parsed, replicas, 10, 5 * kSecond), 420u);
  EXPECT_EQ(index.check_integrity(), Status());
  EXPECT_EQ(lookup(index, a, shared, 5 * kSecond).blocks[0], 300u);
  EXPECT_EQ(lookup(index, b, shared, 5 * kSecond).blocks[1], 100u);
  EXPECT_EQ(lookup(index, b, own, 5 * kSecond).blocks[0], 20u);
  EXPECT_EQ(lookup(index, a, own, 5 * kSecond).placed_blocks, 20u);
  EXPECT_EQ(lookup(index, a, own, 56 * kSecond).placed_blocks, 0u) << "50 of its 60 seconds were left";
  EXPECT_EQ(index.replica_view(b).resident_blocks[0], 22u) << "copies are counted";
  EXPECT_EQ(index.replica_view(b).checksum, source.index.replica_view(source.replicas[1].id).checksum);
  EXPECT_EQ(index.replica_view(a).trust, Trust::kDegraded) << "last known content, until its stream says more";
}

TEST_F(IndexSnapshotTest, TheSameLifeIsWarmAtOnceAndAnotherOneClearsThatReplicaOnly) {
  const std::string bytes = source.saved();
  RadixIndex index;
  const ReplicaId a = *index.add_replica();
  const ReplicaId b = *index.add_replica();
  const std::vector<SnapshotReplica> replicas = {{"a", a}, {"b", b}};
  index.restore(*IndexSnapshot::parse(bytes), replicas, 0, kSecond);
  EXPECT_TRUE(index.confirm_epoch(a, 11));
  EXPECT_FALSE(index.confirm_epoch(b, 23));
  EXPECT_EQ(lookup(index, a, shared, kSecond).blocks[0], 300u);
  EXPECT_EQ(lookup(index, b, shared, kSecond).leading_blocks(), 0u);
  EXPECT_EQ(index.replica_view(b).trust, Trust::kPredicted);
  EXPECT_EQ(index.check_integrity(), Status());
  // A stream of the same life replaces the content without a gap in between.
  index.apply(a, {11, 7, KvEventBatch::Kind::kSnapshotBegin, {}}, kSecond);
  EXPECT_EQ(lookup(index, a, shared, kSecond).blocks[0], 300u);
  index.apply(a, {11, 7, KvEventBatch::Kind::kSnapshotPart, {BlocksStored{Tier::kDevice, root, own}}}, kSecond);
  index.apply(a, {11, 7, KvEventBatch::Kind::kSnapshotEnd, {}}, kSecond);
  EXPECT_EQ(lookup(index, a, shared, kSecond).leading_blocks(), 0u);
  EXPECT_EQ(index.replica_view(a).trust, Trust::kExact);
}

TEST_F(IndexSnapshotTest, AReplicaThatRestartsWhileItIsWrittenIsLeftOut) {
  SnapshotProgress progress;
  progress.replicas = source.replicas;
  std::string bytes;
  source.index.save_piece(progress, kSecond, bytes);
  source.index.apply(source.replicas[0].id, {12, 0, KvEventBatch::Kind::kSnapshotBegin, {}}, kSecond);
  while (source.index.save_piece(progress, kSecond, bytes)) {
  }
  RadixIndex index;
  const std::vector<SnapshotReplica> replicas = {{"a", *index.add_replica()}, {"b", *index.add_replica()}};
  index.restore(*IndexSnapshot::parse(bytes), replicas, 0, kSecond);
  EXPECT_EQ(lookup(index, replicas[0].id, shared, kSecond).leading_blocks(), 0u);
  EXPECT_EQ(lookup(index, replicas[1].id, shared, kSecond).blocks[1], 100u);
}

TEST_F(IndexSnapshotTest, WhoHasSpokenForItselfIsNotOverruled) {
  const std::string bytes = source.saved();
  RadixIndex index;
  const ReplicaId a = *index.add_replica();
  index.apply(a, {11, 3, KvEventBatch::Kind::kSnapshotBegin, {}}, kSecond);
  index.apply(a, {11, 3, KvEventBatch::Kind::kSnapshotEnd, {}}, kSecond);
  const std::vector<SnapshotReplica> replicas = {{"a", a}};
  EXPECT_EQ(index.restore(*IndexSnapshot::parse(bytes), replicas, 0, kSecond), 0u);
  EXPECT_EQ(index.stats().distinct_blocks, 0u);
}

TEST_F(IndexSnapshotTest, EveryDamagedByteAndEveryCutIsRefusedWithAReason) {
  const std::string bytes = source.saved();
  ASSERT_LT(bytes.size(), 20'000u);
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x41);
    const auto parsed = IndexSnapshot::parse(damaged);
    ASSERT_FALSE(parsed.ok()) << "byte " << at;
    ASSERT_FALSE(parsed.status().message().empty());
    ASSERT_FALSE(IndexSnapshot::parse(std::string_view(bytes).substr(0, at)).ok()) << "cut to " << at;
  }
  EXPECT_EQ(IndexSnapshot::parse(bytes + "x").status().message(), "the snapshot is damaged: something follows its end");
  std::string newer = bytes;
  newer[8] = 9;
  EXPECT_EQ(IndexSnapshot::parse(newer).status().message(),
            "the snapshot is of version 9; this program reads version 1");
  EXPECT_EQ(IndexSnapshot::parse("GIF89a").status().message(), "this is not a snapshot of an index");
}

// A way to make the fuzz target's corpus anew: WARMPATH_WRITE_SNAPSHOT names the file.
TEST_F(IndexSnapshotTest, ALargeOneComesInPiecesWhileTheIndexChanges) {
  std::mt19937_64 random(3);
  for (int n = 0; n < 600; ++n)
    source.live(1, BlocksStored{Tier::kDevice, root, chain_of("s" + std::to_string(n), 250)});
  SnapshotProgress progress;
  progress.replicas = source.replicas;
  std::string bytes;
  int changes = 0;
  while (source.index.save_piece(progress, kSecond, bytes)) {
    for (int n = 0; n < 20; ++n, ++changes) {
      auto session = chain_of("s" + std::to_string(random() % 600), 250);
      source.live(1, BlocksRemoved{Tier::kDevice, {session.begin() + 100, session.begin() + 120}});
      if (n % 2 == 0) source.live(1, BlocksStored{Tier::kDevice, root, session});
    }
  }
  EXPECT_GE(progress.pieces, 4u);
  const auto parsed = IndexSnapshot::parse(bytes);
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  RadixIndex index;
  const std::vector<SnapshotReplica> replicas = {{"a", *index.add_replica()}, {"b", *index.add_replica()}};
  index.restore(*parsed, replicas, 0, kSecond);
  EXPECT_EQ(index.check_integrity(), Status());
  EXPECT_EQ(lookup(index, replicas[0].id, shared, kSecond).blocks[0], 300u);
  EXPECT_GT(index.replica_view(replicas[1].id).resident_blocks[0], 140'000u);
  if (const char* path = std::getenv("WARMPATH_WRITE_SNAPSHOT")) {
    Source small;
    small.add("a", 1);
    small.add("b", 2);
    small.live(0, BlocksStored{Tier::kDevice, root, chain_of("x", 3)});
    small.live(1, BlocksStored{Tier::kHost, root, chain_of("x", 5)});
    small.live(1, BlocksStored{Tier::kHost, root, chain_of("x", 1)});
    small.index.place(small.replicas[0].id, chain_of("x", 4), kSecond, 60, 3);
    std::ofstream(path, std::ios::binary) << '\1' << small.saved();
  }
}

}  // namespace
}  // namespace warmpath

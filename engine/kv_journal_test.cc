#include "engine/kv_journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "engine/kv_mirror.h"
#include "engine/test_engine.h"

namespace warmpath {
namespace {

using testing::ElementsAre;

constexpr Hash128 kRoot{1, 1};
constexpr Hash128 kA{10, 10}, kB{20, 20}, kC{30, 30};

TEST(KvJournalTest, ABatchMergesRunsAndKeepsTheOrder) {
  KvJournal journal(9);
  EXPECT_FALSE(journal.flush().has_value());
  journal.on_stored(kRoot, kA);
  journal.on_stored(kA, kB);
  journal.on_stored(kRoot, kC);
  journal.on_removed(kB);
  journal.on_removed(kA);
  const KvEventBatch batch = *journal.flush();
  EXPECT_EQ(batch.boot_epoch, 9u);
  EXPECT_EQ(batch.sequence, 1u);
  ASSERT_EQ(batch.events.size(), 3u);
  EXPECT_THAT(std::get<BlocksStored>(batch.events[0]).blocks, ElementsAre(kA, kB));
  EXPECT_EQ(std::get<BlocksStored>(batch.events[1]).parent, kRoot);
  EXPECT_THAT(std::get<BlocksRemoved>(batch.events[2]).blocks, ElementsAre(kB, kA));
  EXPECT_EQ(journal.resident_blocks(), 1);
  EXPECT_EQ(journal.checksum(), residency_term(kC, Tier::kDevice));
  journal.heartbeat();
  EXPECT_EQ(journal.flush()->sequence, 2u);
}

TEST(KvJournalTest, EventsNameOnlyBlocksWhoseTokensAreComputed) {
  EngineOptions options = test_options();
  options.step_tokens = 40;
  options.max_running = 4;
  TestEngine engine({}, options);
  const GenerateRequest request = test_request("a", test_prompt(100), 20);
  const std::vector<Hash128> chain = chain_of(chain_root(options.fingerprint, "", ""), request.prompt);
  engine.start(request);
  engine.step();
  KvEventBatch batch = *engine.core->journal().flush();
  ASSERT_EQ(batch.events.size(), 1u);
  EXPECT_EQ(std::get<BlocksStored>(batch.events[0]).parent, chain_root(options.fingerprint, "", ""));
  EXPECT_THAT(std::get<BlocksStored>(batch.events[0]).blocks, ElementsAre(chain[0], chain[1]));  // 40 tokens
  engine.step();
  batch = *engine.core->journal().flush();
  EXPECT_THAT(std::get<BlocksStored>(batch.events[0]).blocks, ElementsAre(chain[2], chain[3], chain[4]));
}

// Whoever joins whenever knows, from its snapshot and the batches after it, exactly what is resident.
TEST(KvJournalTest, ASnapshotAndTheBatchesAfterItTellWhatIsResident) {
  TestBackend::Options backend;
  backend.kv_blocks = 30;
  TestEngine engine(backend);
  std::vector<KvMirror> mirrors;
  std::vector<KvEventBatch> begun;
  for (int round = 0; round < 40; ++round) {
    for (int index = 0; index < 3; ++index) {
      GenerateRequest request =
          test_request(std::to_string(round) + "." + std::to_string(index), test_prompt(70, round % 7), 30, 1.0f);
      request.sampling.seed = static_cast<uint64_t>(round * 10 + index);
      engine.start(request);
    }
    while (engine.step()) {
      if (const auto batch = engine.core->journal().flush()) {
        for (KvMirror& mirror : mirrors) mirror.apply(*batch);
      }
    }
    if (round % 5 == 0) {
      mirrors.emplace_back();
      for (const KvEventBatch& part : engine.core->journal().snapshot(engine.core->pool())) mirrors.back().apply(part);
    }
    engine.core->journal().heartbeat();
    const KvEventBatch heartbeat = *engine.core->journal().flush();
    for (KvMirror& mirror : mirrors) mirror.apply(heartbeat);
    std::map<Hash128, int> resident;
    engine.core->pool().for_each_resident([&](Hash128, Hash128 identity) { ++resident[identity]; });
    for (const KvMirror& mirror : mirrors) {
      EXPECT_EQ(mirror.copies(), resident);
      EXPECT_EQ(mirror.error(), "");
    }
  }
  EXPECT_GT(engine.core->stats().evicted_blocks, 50);
}

}  // namespace
}  // namespace warmpath

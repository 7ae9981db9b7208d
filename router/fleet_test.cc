// The fleet: who may be asked, what is believed of whom, and what a restart changes.
#include <gmock/gmock.h>
#include <unistd.h>

#include <fstream>

#include "base/block_chain.h"
#include "router/gateway_fixture.h"

namespace warmpath {
namespace {

class FleetTest : public GatewayFixture {
 protected:
  std::shared_ptr<Replica> replica(const std::string& name) {
    for (const auto& candidate : core_->fleet().find("m")->replicas()) {
      if (candidate->name() == name) return candidate;
    }
    return nullptr;
  }
  uint64_t resident(const std::string& name) {
    const ReplicaId id = replica(name)->index_id();
    return core_->fleet().index().read(
        [&](const RadixIndex& index) { return index.replica_view(id).resident_blocks[0]; });
  }
};

TEST_F(FleetTest, EventsReachTheIndexAndSteer) {
  config_.models[0].policy.name = "predicted_seconds";
  config_.index.placement_s = 0;
  start();
  reply_always("x");
  ask("POST", kChatPath, chat(std::string(300, 'k')));
  const auto call = a_->calls() > 0 ? a_->call(0) : b_->call(0);
  const Hash128 root = chain_root({1, 2}, "", "");
  b_->send_events({BlocksStored{Tier::kDevice, root, chain_of(root, call->request().prompt)}});
  ASSERT_TRUE(eventually([&] { return resident("b") > 0; }));
  const SeenAnswer answer = ask("POST", kChatPath, chat(std::string(300, 'k')));
  EXPECT_EQ(answer.header("x-warmpath-replica"), "b");
  EXPECT_GE(std::stoi(answer.header("x-warmpath-predicted-cached-tokens")), 300);
  EXPECT_THAT(ask_admin("/receipts?limit=1").body, ::testing::HasSubstr("\"base_cached_tokens\":0,"));
  // Once the other one holds four blocks of it too, those are the base.
  const std::vector<Hash128> chain = chain_of(root, call->request().prompt);
  a_->send_events({BlocksStored{Tier::kDevice, root, {chain.begin(), chain.begin() + 4}}});
  ASSERT_TRUE(eventually([&] { return resident("a") == 4; }));
  ask("POST", kChatPath, chat(std::string(300, 'k')));
  EXPECT_THAT(ask_admin("/receipts?limit=1").body, ::testing::HasSubstr("\"base_cached_tokens\":64,"));
  EXPECT_EQ(core_->fleet().index().read([](const RadixIndex& index) { return index.check_integrity(); }), Status());
}

TEST_F(FleetTest, ARestartForgetsThatReplicasBlocksOnly) {
  start();
  const Hash128 root = chain_root({1, 2}, "", "");
  const std::vector<TokenId> tokens(64, 7);
  for (const auto& upstream : {a_, b_})
    upstream->send_events({BlocksStored{Tier::kDevice, root, chain_of(root, tokens)}});
  ASSERT_TRUE(eventually([&] { return resident("a") == 4 && resident("b") == 4; }));
  a_->set_down(true);
  ASSERT_TRUE(eventually([&] { return replica("a")->state() == ReplicaState::kDown; }));
  a_->change_description([](ReplicaDescription& description) { ++description.boot_epoch; });
  a_->set_down(false);
  ASSERT_TRUE(eventually([&] { return usable() == 2; }));
  EXPECT_EQ(resident("a"), 0u);
  EXPECT_EQ(resident("b"), 4u);
}

TEST_F(FleetTest, AGatewayThatStartsAgainIsWarmBeforeAnyStreamHasSpoken) {
  const std::string file = ::testing::TempDir() + "warmpath_index_" + std::to_string(::getpid());
  config_.index.snapshot_file = file;
  start();
  const Hash128 root = chain_root({1, 2}, "", "");
  const std::vector<TokenId> tokens(64, 7);
  for (const auto& upstream : {a_, b_})
    upstream->send_events({BlocksStored{Tier::kDevice, root, chain_of(root, tokens)}});
  ASSERT_TRUE(eventually([&] { return resident("a") == 4 && resident("b") == 4; }));
  const std::string bytes = [&] {
    const SeenAnswer answer = ask_admin("/index/snapshot");
    EXPECT_EQ(answer.status, 200);
    return answer.body;
  }();
  EXPECT_TRUE(IndexSnapshot::parse(bytes).ok());
  core_ = nullptr;  // writes the file

  // While it was down, b became another process.
  b_->change_description([](ReplicaDescription& description) { ++description.boot_epoch; });
  a_->hold_events(true);
  b_->hold_events(true);
  start_without_streams();
  EXPECT_EQ(resident("a"), 4u) << "no stream has told it";
  EXPECT_EQ(replica("a")->trust(), Trust::kDegraded);
  EXPECT_EQ(resident("b"), 0u);
  core_ = nullptr;

  // A damaged file is refused, and the gateway starts all the same.
  std::string damaged = bytes;
  damaged[damaged.size() / 2] ^= 1;
  std::ofstream(file, std::ios::binary | std::ios::trunc) << damaged;
  start_without_streams();
  EXPECT_EQ(resident("a"), 0u);
  EXPECT_EQ(core_->fleet().snapshot_file().failures(), 1u);
  core_ = nullptr;
  ::unlink(file.c_str());
}

TEST_F(FleetTest, AGapIsNoticedAndHealedByANewStream) {
  start();
  const Hash128 root = chain_root({1, 2}, "", "");
  const std::vector<TokenId> tokens(64, 7);
  a_->send_events({BlocksStored{Tier::kDevice, root, chain_of(root, tokens)}});
  ASSERT_TRUE(eventually([&] { return resident("a") == 4; }));
  a_->lose_events();
  a_->send_events({BlocksStored{Tier::kDevice, root, chain_of(root, tokens)}});
  // The new stream's snapshot says that it holds nothing.
  ASSERT_TRUE(eventually([&] { return resident("a") == 0 && replica("a")->trust() == Trust::kExact; }));
  EXPECT_THAT(ask_admin("/metrics").body,
              ::testing::HasSubstr("warmpath_replica_event_gaps{model=\"m\",replica=\"a\"} 1"));
  EXPECT_EQ(replica("b")->trust(), Trust::kExact);
}

TEST_F(FleetTest, ALostStreamDegradesUntilTheNextSnapshot) {
  start();
  a_->set_down(true);
  ASSERT_TRUE(eventually([&] { return replica("a")->trust() == Trust::kDegraded; }));
  EXPECT_EQ(replica("b")->trust(), Trust::kExact);
  a_->set_down(false);
  ASSERT_TRUE(eventually([&] { return replica("a")->trust() == Trust::kExact && replica("a")->usable(); }));
}

TEST_F(FleetTest, OtherWeightsAreNotMixedIn) {
  b_->change_description([](ReplicaDescription& description) { description.fingerprint = {9, 9}; });
  config_.models[0].endpoints = {{"a", ""}};
  start();
  config_.models[0].endpoints = {{"a", ""}, {"b", ""}};
  ASSERT_TRUE(core_->reload(config_).ok());
  ASSERT_TRUE(eventually([&] { return replica("b")->state() == ReplicaState::kIncompatible; }));
  EXPECT_THAT(replica("b")->trouble(), ::testing::HasSubstr("other weights"));
  reply_always("x");
  for (int turn = 0; turn < 4; ++turn) {
    EXPECT_EQ(ask("POST", kChatPath, chat("hi")).header("x-warmpath-replica"), "a");
  }
  // Once nobody else serves the model, its new weights are taken over.
  a_->set_down(true);
  ASSERT_TRUE(eventually([&] { return replica("b")->usable(); }));
  EXPECT_EQ(ask("POST", kChatPath, chat("hi")).header("x-warmpath-replica"), "b");
}

TEST_F(FleetTest, AnotherProtocolIsRefusedByName) {
  b_->change_description([](ReplicaDescription& description) { description.protocol_major = 1; });
  config_.models[0].endpoints = {{"a", ""}};
  start();
  config_.models[0].endpoints.push_back({"b", ""});
  ASSERT_TRUE(core_->reload(config_).ok());
  ASSERT_TRUE(eventually([&] { return replica("b")->state() == ReplicaState::kIncompatible; }));
  EXPECT_THAT(replica("b")->trouble(), ::testing::HasSubstr("protocol 1."));
}

TEST_F(FleetTest, ADrainingReplicaGetsNothingNew) {
  start();
  reply_always("x");
  ReplicaStats stats;
  stats.draining = true;
  a_->set_stats(stats);
  ASSERT_TRUE(eventually([&] { return !replica("a")->usable(); }));
  const size_t before = a_->calls();
  for (int turn = 0; turn < 4; ++turn) EXPECT_EQ(ask("POST", kChatPath, chat("hi")).status, 200);
  EXPECT_EQ(a_->calls(), before);
}

TEST_F(FleetTest, LoadOfOthersIsAddedToOurOwn) {
  start();
  ReplicaStats stats;
  stats.running = 3;
  stats.queued = 2;
  stats.queued_tokens = 500;
  a_->set_stats(stats);
  const auto load = [&] {
    Candidate candidate;
    replica("a")->fill(candidate);
    return candidate;
  };
  ASSERT_TRUE(eventually([&] { return load().running == 3; }));
  EXPECT_EQ(load().queued, 2);
  EXPECT_EQ(load().queued_uncached_tokens, 500);
  EXPECT_EQ(load().max_running, 8);
  EXPECT_EQ(load().capacity_tokens, 16'000);
  LoadShare share{.sequences = 1, .uncached_tokens = 40};
  replica("a")->book_sent(share);
  EXPECT_EQ(load().queued_uncached_tokens, 540);
  replica("a")->book_started(share);
  replica("a")->book_finished(share);
  ASSERT_TRUE(eventually([&] { return load().queued_uncached_tokens == 500 && load().running == 3; }));
}

TEST(ReplicaBooks, RunOnTheClockTheyWereGiven) {
  ManualClock clock;
  Replica replica("a", "m", std::make_shared<TestUpstream>("a"), 0, clock);
  LoadShare share{.sequences = 1, .uncached_tokens = 40, .prefill_s = 2};
  replica.book_sent(share);
  clock.advance_s(1.5);
  Candidate candidate;
  replica.fill(candidate);
  EXPECT_DOUBLE_EQ(candidate.queued_prefill_s, 0.5);
  replica.book_started(share);
  replica.fill(candidate);
  EXPECT_DOUBLE_EQ(candidate.queued_prefill_s, 0);
  EXPECT_EQ(candidate.running, 1);
}

}  // namespace
}  // namespace warmpath

// Why cached tokens were lost: each reason provoked through a whole gateway, and the arithmetic by hand.
#include <gmock/gmock.h>

#include "base/block_chain.h"
#include "router/gateway_fixture.h"

namespace warmpath {
namespace {

using ::testing::HasSubstr;

class LossTest : public GatewayFixture {
 protected:
  void SetUp() override {
    GatewayFixture::SetUp();
    config_.models[0].policy.name = "predicted_seconds";
    config_.index.placement_s = 0;
  }
  // A token is a byte, so a longer text's prompt begins with a shorter one's.
  std::shared_ptr<TestExchange> complete(const std::string& prompt) {
    return send("POST", "/v1/completions", R"({"model":"m","prompt":")" + prompt + "\"}", {{"x-session-id", "s"}});
  }
  std::string receipt() { return ask_admin("/receipts?limit=1").body; }
  uint64_t resident(const std::string& name) {
    for (const auto& replica : core_->fleet().find("m")->replicas()) {
      if (replica->name() != name) continue;
      return core_->fleet().index().read(
          [&](const RadixIndex& index) { return index.replica_view(replica->index_id()).resident_blocks[0]; });
    }
    return 0;
  }
  std::vector<Hash128> chain(const std::string& prompt) {
    std::vector<TokenId> tokens;
    for (const char byte : prompt) tokens.push_back(byte_token(byte));
    return chain_of(kRoot, tokens);
  }
  void hold(TestUpstream& upstream, const std::string& name, const std::string& prompt) {
    upstream.send_events({BlocksStored{Tier::kDevice, kRoot, chain(prompt)}});
    ASSERT_TRUE(eventually([&] { return resident(name) == chain(prompt).size(); }));
  }
  void let_go(TestUpstream& upstream, const std::string& name, const std::string& prompt) {
    upstream.send_events({BlocksRemoved{Tier::kDevice, chain(prompt)}});
    ASSERT_TRUE(eventually([&] { return resident(name) == 0; }));
  }

  const Hash128 kRoot = chain_root({1, 2}, "", "");
  const std::string kPrompt = std::string(40, 'a') + std::string(280, 'k');  // 20 blocks
};

TEST_F(LossTest, ColdIsWhatNobodyEverHad) {
  start();
  reply_always("x");
  complete(kPrompt)->answer();
  EXPECT_THAT(receipt(), HasSubstr(R"("lost":"cold","lost_tokens":{"cold":320})"));
  EXPECT_THAT(ask_admin("/metrics").body,
              HasSubstr("warmpath_lost_cached_tokens_total{model=\"m\",reason=\"cold\"} 320"));
}

TEST_F(LossTest, WrongReplicaIsWhatAnotherHeld) {
  config_.models[0].policy.name = "round_robin";
  start();
  reply_always("x");
  hold(*b_, "b", kPrompt);
  complete(kPrompt + "more")->answer();  // a's turn
  EXPECT_THAT(receipt(), HasSubstr(R"("lost":"wrong_replica","lost_tokens":{"wrong_replica":320})"));
}

TEST_F(LossTest, EvictedBetweenTheDecisionAndThePrefill) {
  start();
  hold(*b_, "b", kPrompt);
  const auto exchange = complete(kPrompt + "more");
  const auto call = b_->call(0);
  ASSERT_TRUE(call);
  let_go(*b_, "b", kPrompt);
  call->reply("x", 0);
  exchange->answer();
  EXPECT_THAT(receipt(), HasSubstr(R"("lost":"evicted","lost_tokens":{"evicted":320})"));
}

TEST_F(LossTest, EvictedSinceTheConversationsLastTurn) {
  start();
  reply_always("x");
  complete(kPrompt)->answer();
  complete(kPrompt + std::string(32, 'm'))->answer();
  EXPECT_THAT(receipt(), HasSubstr(R"("earlier_tokens":320,"lost":"evicted","lost_tokens":{"evicted":320})"));
}

TEST_F(LossTest, StaleIndexWhenAPlacementDoesNotComeTrue) {
  config_.index.placement_s = 30;
  start();
  reply_always("x");
  complete(kPrompt)->answer();
  complete(kPrompt)->answer();
  EXPECT_THAT(receipt(), HasSubstr(R"("lost":"stale_index","lost_tokens":{"stale_index":304})"));
}

TEST_F(LossTest, StaleIndexWhenTheStreamWasBroken) {
  start();
  hold(*b_, "b", kPrompt);
  b_->hold_events(true);
  b_->set_down(true);
  ASSERT_TRUE(eventually([&] { return usable() == 1; }));
  b_->set_down(false);
  ASSERT_TRUE(eventually([&] {
    const auto replicas = core_->fleet().find("m")->replicas();
    return std::all_of(replicas.begin(), replicas.end(), [](const auto& replica) { return replica->usable(); });
  }));
  reply_always("x");
  complete(kPrompt + "more")->answer();
  EXPECT_THAT(receipt(), HasSubstr(R"("lost":"stale_index","lost_tokens":{"stale_index":320})"));
}

TEST_F(LossTest, TokenMismatchWhenTheReplicaHoldsTheIdentitiesAndFindsNothing) {
  start();
  hold(*b_, "b", kPrompt);
  reply_always("x", 32);
  complete(kPrompt + "more")->answer();
  EXPECT_THAT(receipt(), HasSubstr(R"("lost":"token_mismatch","lost_tokens":{"token_mismatch":288})"));
}

TEST_F(LossTest, TokenMismatchWhenTheHistoryIsWrittenOtherwise) {
  start();
  reply_always("x");
  complete(kPrompt)->answer();
  hold(*b_, "b", kPrompt.substr(0, 32));
  reply_always("x", 32);
  std::string other = kPrompt + std::string(32, 'm');
  other[60] = 'z';
  complete(other)->answer();
  EXPECT_THAT(receipt(), HasSubstr(R"("lost":"token_mismatch","lost_tokens":{"token_mismatch":288})"));
}

TEST_F(LossTest, NothingIsLostByRoundingToBlocks) {
  start();
  hold(*b_, "b", kPrompt);
  reply_always("x", 304);
  complete(kPrompt)->answer();  // the last token is always computed, and with it its block
  EXPECT_THAT(receipt(), HasSubstr(R"("lost":"none","lost_tokens":{})"));
}

TEST(AttributeLoss, EachStepOnTheWayHasItsOwnReason) {
  Receipt receipt;
  receipt.prompt_tokens = 1000;
  receipt.earlier_tokens = 960;
  receipt.best_tokens = 800;
  receipt.predicted_tokens = 640;
  receipt.delivered_tokens = 160;
  attribute_loss({.trust = Trust::kExact, .may_have_gone = true}, receipt);
  EXPECT_EQ(receipt.lost_tokens, (LostTokens{0, 0, 160 + 480, 160, 0, 0}));
  EXPECT_EQ(receipt.loss, LossReason::kEvicted);
  attribute_loss({.trust = Trust::kExact, .placed_tokens = 480}, receipt);
  EXPECT_EQ(receipt.lost_tokens, (LostTokens{0, 0, 160, 160, 480, 0}));
  attribute_loss({.trust = Trust::kExact, .placed_tokens = 400}, receipt);
  EXPECT_EQ(receipt.lost_tokens, (LostTokens{0, 0, 160, 160, 0, 480})) << "of what it held for sure some was missing";
  receipt.rewritten = true;
  attribute_loss({.trust = Trust::kDegraded}, receipt);
  EXPECT_EQ(receipt.lost_tokens, (LostTokens{0, 0, 0, 160, 480, 160}));
  EXPECT_EQ(receipt.loss, LossReason::kStaleIndex);
  receipt.delivered_tokens = 960;
  attribute_loss({.trust = Trust::kExact}, receipt);
  EXPECT_EQ(receipt.loss, LossReason::kNone);
}

TEST(RecentRemovals, KnowsWhatWentSinceAMark) {
  RecentRemovals removals;
  const auto remove = [&](int from, int to) {
    BlocksRemoved removed;
    for (int n = from; n < to; ++n) removed.blocks.push_back(hash128(std::to_string(n)));
    removals.note({1, 1, KvEventBatch::Kind::kLive, {removed}});
  };
  remove(0, 10);
  const RecentRemovals::Mark mark = removals.mark();
  remove(10, 20);
  EXPECT_FALSE(removals.may_have_gone(hash128("5"), mark)) << "before";
  EXPECT_TRUE(removals.may_have_gone(hash128("15"), mark));
  EXPECT_FALSE(removals.may_have_gone(hash128("25"), mark));
  remove(1000, 1000 + static_cast<int>(RecentRemovals::kKept));
  EXPECT_TRUE(removals.may_have_gone(hash128("25"), mark)) << "more went than is remembered";
  const RecentRemovals::Mark later = removals.mark();
  EXPECT_FALSE(removals.may_have_gone(hash128("25"), later));
  removals.note({1, 2, KvEventBatch::Kind::kLive, {BlocksCleared{}}});
  EXPECT_TRUE(removals.may_have_gone(hash128("25"), later));
}

TEST(ConversationHistory, IsBounded) {
  ConversationHistory history;
  RequestView view;
  const std::vector<Hash128> chain{hash128("block")};
  for (size_t n = 0; n < ConversationHistory::kMaxConversations + 10; ++n) {
    view.session_key = hash128(std::to_string(n));
    EXPECT_EQ(history.follow(view, chain).tokens, 0);
  }
  EXPECT_EQ(history.size(), ConversationHistory::kMaxConversations);
  EXPECT_EQ(history.follow(view, chain).tokens, 16);
  view.session_key = {};
  EXPECT_EQ(history.follow(view, chain).tokens, 0) << "nobody knows whose it is";
}

}  // namespace
}  // namespace warmpath

// The peers' formulas by hand, and the failure each is known for.
#include <gtest/gtest.h>

#include <array>
#include <map>

#include "policies/policy_fixture.h"

namespace warmpath {
namespace {

TEST(PowerOfTwo, NeverPicksTheBusiestOfThreeAndIsFairOtherwise) {
  auto tested = policy("power_of_two");
  Rng rng(1);
  auto fleet = plain_fleet(3);
  fleet[2].running = 9;
  fleet[1].running = 1;
  std::array<int, 3> counts{};
  for (int n = 0; n < 3000; ++n) ++counts[tested->decide(prompt(10, 1), fleet, rng, kSecond).candidate];
  // Pairs {0,1} and {0,2} go to 0; {1,2} to 1.
  EXPECT_NEAR(counts[0], 2000, 120);
  EXPECT_NEAR(counts[1], 1000, 120);
  EXPECT_EQ(counts[2], 0);
}

TEST(ConsistentHashBounded, OneHeadOneReplicaUntilTheBound) {
  auto tested = policy("consistent_hash_bounded");
  Rng rng(1);
  auto fleet = plain_fleet(4);
  RequestView request = prompt(1000, 1);
  request.head_key = hash128("head");
  const size_t home = tested->decide(request, fleet, rng, kSecond).candidate;
  for (int n = 0; n < 20; ++n) {
    request.content_key = hash128("session " + std::to_string(n));
    EXPECT_EQ(tested->decide(request, fleet, rng, kSecond).candidate, home);
  }
  // 8 requests run: the mean with the new one is 2.25, the bound 2.81. Home may take a second request, but no third.
  for (Candidate& candidate : fleet) candidate.running = 2;
  fleet[home].running = 1;
  fleet[(home + 1) % 4].running = 3;
  EXPECT_EQ(tested->decide(request, fleet, rng, kSecond).reason, "hash");
  fleet[home].running = 2;
  fleet[(home + 1) % 4].running = 1;
  fleet[(home + 2) % 4].running = 3;
  const Decision pushed = tested->decide(request, fleet, rng, kSecond);
  EXPECT_EQ(pushed.reason, "bound");
  EXPECT_EQ(pushed.candidate, (home + 1) % 4) << "the only one below the bound";
}

TEST(ConsistentHashBounded, SpreadsHeadsAndMovesFewWhenAReplicaGoes) {
  auto tested = policy("consistent_hash_bounded");
  Rng rng(1);
  const auto fleet = plain_fleet(5);
  const std::vector<Candidate> fewer(fleet.begin(), fleet.begin() + 4);
  std::array<int, 5> counts{};
  int moved = 0;
  for (int n = 0; n < 1000; ++n) {
    RequestView request = prompt(1000, n);
    request.head_key = hash128("head " + std::to_string(n));
    const size_t before = tested->decide(request, fleet, rng, kSecond).candidate;
    const size_t after = tested->decide(request, fewer, rng, kSecond).candidate;
    ++counts[before];
    moved += before != 4 && before != after;
  }
  for (const int count : counts) EXPECT_NEAR(count, 200, 70);
  EXPECT_EQ(moved, 0) << "only what the fifth had moves";
}

TEST(ThresholdTree, FollowsTheBestMatchPastTheThreshold) {
  auto tested = policy("threshold_tree");
  Rng rng(1);
  auto fleet = plain_fleet(3);
  fleet[0].device_tokens = 300;
  fleet[0].running = 5;
  EXPECT_EQ(tested->decide(prompt(1000, 1), fleet, rng, kSecond).reason, "load") << "0.3 is not more than 0.3";
  fleet[0].device_tokens = 301;
  EXPECT_EQ(tested->decide(prompt(1000, 1), fleet, rng, kSecond).candidate, 0u);
  fleet[2].device_tokens = 301;
  EXPECT_EQ(tested->decide(prompt(1000, 1), fleet, rng, kSecond).candidate, 2u) << "of equal matches the less loaded";
}

TEST(ThresholdTree, OneHotReplicaTurnsAffinityOffForEverybody) {
  auto tested = policy("threshold_tree");
  Rng rng(1);
  auto fleet = plain_fleet(3);
  fleet[0].running = 70;
  fleet[1].running = 6;
  fleet[1].device_tokens = 990;
  fleet[2].running = 5;
  const Decision decision = tested->decide(prompt(1000, 1), fleet, rng, kSecond);
  EXPECT_EQ(decision.candidate, 2u) << "though replica 1 is cool and has everything";
  EXPECT_EQ(decision.reason, "imbalanced");
  EXPECT_EQ(policy("predicted_seconds")->decide(prompt(1000, 1), fleet, rng, kSecond).candidate, 1u);
}

TEST(ThresholdTree, ASharedSystemPromptTiesEverySessionToOneReplica) {
  auto tested = policy("threshold_tree");
  Rng rng(1);
  auto fleet = plain_fleet(4);
  fleet[1].device_tokens = 800;
  for (int session = 0; session < 20; ++session) {
    EXPECT_EQ(tested->decide(prompt(1000, session, 800), fleet, rng, kSecond).candidate, 1u);
  }
}

TEST(LinearBlocks, IsDynamosFormula) {
  auto tested = policy("linear_blocks");
  Rng rng(1);
  auto fleet = plain_fleet(3);
  // Prompt of 100 blocks. 0: 50 queued, credit 40 -> 110, 10 active -> 120.
  fleet[0].queued_uncached_tokens = 800;
  fleet[0].device_tokens = 640;
  fleet[0].active_tokens = 160;
  // 1: credit 0.75 * 40 + 0.25 * 20 = 35 -> 65, 60 active -> 125.
  fleet[1].host_tokens = 640;
  fleet[1].disk_tokens = 320;
  fleet[1].active_tokens = 960;
  // 2: nothing cached, 30 active -> 130.
  fleet[2].active_tokens = 480;
  const Decision decision = tested->decide(prompt(1600, 1), fleet, rng, kSecond);
  EXPECT_EQ(decision.costs[0].total, 120);
  EXPECT_EQ(decision.costs[1].total, 125);
  EXPECT_EQ(decision.costs[2].total, 130);
  EXPECT_EQ(decision.candidate, 0u);
}

TEST(LoadProduct, IsUncachedTimesRunning) {
  auto tested = policy("load_product");
  Rng rng(1);
  auto fleet = plain_fleet(3);
  fleet[0].device_tokens = 900;
  fleet[0].running = 9;  // 100 * 10
  fleet[1].running = 1;
  fleet[1].device_tokens = 400;
  fleet[1].queued_uncached_tokens = 100;  // 700 * 2
  fleet[2].queued_uncached_tokens = 100;  // 1100 * 1
  const Decision decision = tested->decide(prompt(1000, 1), fleet, rng, kSecond);
  EXPECT_EQ(decision.costs[0].total, 1000);
  EXPECT_EQ(decision.costs[1].total, 1400);
  EXPECT_EQ(decision.costs[2].total, 1100);
  EXPECT_EQ(decision.candidate, 0u);
}

TEST(WeightedScores, IsTwoOneOne) {
  auto tested = policy("weighted_scores");
  Rng rng(1);
  auto fleet = plain_fleet(3);
  for (Candidate& candidate : fleet) candidate.capacity_tokens = 1000;
  fleet[0].device_tokens = 500;   // 2 * 0.5
  fleet[0].active_tokens = 900;   // 0.1
  fleet[0].queued = 4;            // 0
  fleet[1].active_tokens = 100;   // 0.9
  fleet[1].queued = 1;            // 0.75
  fleet[2].device_tokens = 1000;  // 2
  fleet[2].active_tokens = 1000;  // 0
  fleet[2].queued = 0;            // 1
  const Decision decision = tested->decide(prompt(1000, 1), fleet, rng, kSecond);
  EXPECT_NEAR(decision.costs[0].total, -1.1, 1e-9);
  EXPECT_NEAR(decision.costs[1].total, -1.65, 1e-9);
  EXPECT_NEAR(decision.costs[2].total, -3.0, 1e-9);
  EXPECT_EQ(decision.candidate, 2u);
}

TEST(HeadKey, IsTheBlockThatEndsAtToken256) {
  std::vector<Hash128> chain;
  for (int n = 0; n < 40; ++n) chain.push_back(hash128(std::to_string(n)));
  EXPECT_EQ(head_key_of(chain), chain[15]);
  EXPECT_EQ(head_key_of(std::span(chain).first(3)), chain[2]);
  EXPECT_EQ(head_key_of({}), Hash128{});
}

}  // namespace
}  // namespace warmpath

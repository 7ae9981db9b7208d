// Hand-computed decision tables, and the failures that peers are known for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <map>

#include "config/config.h"
#include "policies/policy_fixture.h"
#include "policies/prefill_book.h"
#include "policies/session_map.h"
#include "policies/shared_bases.h"

namespace warmpath {
namespace {

TEST(EveryPolicy, NeverPicksAReplicaThatIsDownOrDraining) {
  for (const std::string& name : policy_names()) {
    auto tested = policy(name);
    Rng rng(1);
    auto fleet = plain_fleet(4);
    fleet[0].healthy = false;
    fleet[1].draining = true;
    fleet[1].device_tokens = 900;
    fleet[3].running = 5;
    for (int n = 0; n < 50; ++n) {
      const Decision decision = tested->decide(prompt(1000, n), fleet, rng, kSecond);
      ASSERT_EQ(decision.verdict, Verdict::kRoute) << name;
      ASSERT_GE(decision.candidate, 2u) << name;
      ASSERT_EQ(decision.costs.size(), 4u);
      ASSERT_FALSE(decision.costs[0].eligible || decision.costs[1].eligible);
    }
    fleet[2].healthy = fleet[3].healthy = false;
    EXPECT_EQ(tested->decide(prompt(1000, 1), fleet, rng, kSecond).verdict, Verdict::kNobody) << name;
    EXPECT_EQ(tested->decide(prompt(1000, 1), {}, rng, kSecond).verdict, Verdict::kNobody) << name;
  }
}

TEST(RoundRobin, TakesTurnsAndSkipsTheDead) {
  auto tested = policy("round_robin");
  Rng rng(1);
  auto fleet = plain_fleet(3);
  std::vector<size_t> picks;
  for (int n = 0; n < 4; ++n) picks.push_back(tested->decide(prompt(10, 1), fleet, rng, kSecond).candidate);
  EXPECT_THAT(picks, ::testing::ElementsAre(0, 1, 2, 0));
}

TEST(Random, IsFair) {
  auto tested = policy("random");
  Rng rng(1);
  const auto fleet = plain_fleet(4);
  std::array<int, 4> counts{};
  for (int n = 0; n < 4000; ++n) ++counts[tested->decide(prompt(10, 1), fleet, rng, kSecond).candidate];
  for (const int count : counts) EXPECT_NEAR(count, 1000, 120);
}

TEST(LeastRequests, CountsRunningAndQueuedAndBreaksTiesByChance) {
  auto tested = policy("least_requests");
  Rng rng(1);
  auto fleet = plain_fleet(4);
  fleet[0].running = 1;
  fleet[0].queued = 1;
  fleet[1].running = 1;
  fleet[2].queued = 1;
  fleet[3].running = 3;
  std::array<int, 4> counts{};
  for (int n = 0; n < 1000; ++n) ++counts[tested->decide(prompt(10, 1), fleet, rng, kSecond).candidate];
  EXPECT_EQ(counts[0] + counts[3], 0);
  EXPECT_NEAR(counts[1], 500, 80);
}

TEST(SessionSticky, KeepsASessionWhereItBeganUntilThatReplicaIsGone) {
  auto tested = policy("session_sticky");
  Rng rng(1);
  auto fleet = plain_fleet(3);
  const size_t home = tested->decide(prompt(10, 1), fleet, rng, kSecond).candidate;
  fleet[home].running = 9;
  Decision decision = tested->decide(prompt(10, 1), fleet, rng, kSecond);
  EXPECT_EQ(decision.candidate, home) << "its known failure: it waits behind a hot replica";
  EXPECT_EQ(decision.reason, "sticky");
  fleet[home].healthy = false;
  decision = tested->decide(prompt(10, 1), fleet, rng, kSecond);
  EXPECT_EQ(decision.reason, "moved");
  const size_t second_home = decision.candidate;
  EXPECT_NE(second_home, home);
  fleet[home].healthy = true;
  fleet[home].running = 0;
  EXPECT_EQ(tested->decide(prompt(10, 1), fleet, rng, kSecond).candidate, second_home);
  tested->forget(static_cast<ReplicaId>(second_home));
  EXPECT_EQ(tested->decide(prompt(10, 1), fleet, rng, kSecond).reason, "new");
}

TEST(SessionSticky, SpreadsSessionsOverAnIdleFleet) {
  auto tested = policy("session_sticky");
  Rng rng(1);
  const auto fleet = plain_fleet(3);
  std::array<int, 3> counts{};
  for (int n = 0; n < 30; ++n) ++counts[tested->decide(prompt(10, n), fleet, rng, kSecond).candidate];
  EXPECT_EQ(counts, (std::array<int, 3>{10, 10, 10}));
}

TEST(SessionSticky, TheHeaderGoesBeforeTheContent) {
  auto tested = policy("session_sticky");
  Rng rng(1);
  const auto fleet = plain_fleet(8);
  RequestView request = prompt(10, 1);
  request.session_key = hash128("header");
  const size_t home = tested->decide(request, fleet, rng, kSecond).candidate;
  request.content_key = hash128("compacted history");
  EXPECT_EQ(tested->decide(request, fleet, rng, kSecond).candidate, home);
}

TEST(SessionMap, IsBoundedAndForgetsTheIdle) {
  SessionMap sessions(100, 10);
  for (int n = 0; n < 1000; ++n) sessions.assign(hash128(std::to_string(n)), static_cast<ReplicaId>(n % 3), kSecond);
  EXPECT_EQ(sessions.size(), 100u);
  EXPECT_EQ(sessions.bound_to(0) + sessions.bound_to(1) + sessions.bound_to(2), 100u);
  EXPECT_TRUE(sessions.find(hash128("999"), 2 * kSecond).has_value());
  EXPECT_FALSE(sessions.find(hash128("0"), 2 * kSecond).has_value());
  EXPECT_FALSE(sessions.find(hash128("999"), 12 * kSecond).has_value());
  sessions.assign(hash128("new"), 1, 12 * kSecond);
  EXPECT_EQ(sessions.size(), 1u) << "the idle ones go as soon as something is written";
}

TEST(PredictedSeconds, CostsAreWhatTheFormulaSays) {
  auto tested = policy("predicted_seconds");
  Rng rng(1);
  auto fleet = plain_fleet(3);
  fleet[0].queued_uncached_tokens = 3000;
  fleet[0].device_tokens = 9000;
  fleet[1].device_tokens = 2000;
  fleet[1].host_tokens = 4000;
  fleet[1].disk_tokens = 2000;
  fleet[1].rates.decode_sequence_s = 0.002;
  fleet[1].running = 3;
  fleet[2].running = fleet[2].max_running = 4;
  fleet[2].device_tokens = 9500;
  const Decision decision = tested->decide(prompt(10'000, 1), fleet, rng, kSecond);
  // 0: queue 3.0, prefill 1.0, price 2.0, decode 100 steps of 10 ms at the weight of 0.05.
  EXPECT_NEAR(decision.costs[0].queue_s, 3.0, 1e-9);
  EXPECT_NEAR(decision.costs[0].prefill_s, 1.0, 1e-9);
  EXPECT_NEAR(decision.costs[0].price_s, 2.0, 1e-9);
  EXPECT_NEAR(decision.costs[0].decode_s, 0.05, 1e-9);
  EXPECT_NEAR(decision.costs[0].total, 6.05, 1e-9);
  // 1: prefill 2.0, fetch 4000 * 0.1 ms + 2000 * 0.5 ms, decode 0.05 * 100 * (10 + 4 * 2 + 3 * 2 ms).
  EXPECT_NEAR(decision.costs[1].fetch_s, 1.4, 1e-9);
  EXPECT_NEAR(decision.costs[1].decode_s, 0.12, 1e-9);
  EXPECT_NEAR(decision.costs[1].total, 2.0 + 1.4 + 4.0 + 0.12, 1e-9);
  // 2: prefill 0.5; all four slots are taken: one comes free after 100 steps / 4.
  EXPECT_NEAR(decision.costs[2].queue_s, 0.25, 1e-9);
  EXPECT_NEAR(decision.costs[2].total, 0.25 + 0.5 + 1.0 + 0.05, 1e-9);
  EXPECT_EQ(decision.candidate, 2u);
  EXPECT_EQ(decision.reason, "cost");
}

TEST(PredictedSeconds, ContextMakesTokensDearer) {
  Rates rates = plain_rates();
  rates.prefill_context_s = 1e-7;
  // 1,000 tokens after 9,000: 1000 * (1 ms + 9,500 * 0.1 us).
  EXPECT_NEAR(rates.prefill_s(1000, 9000), 1.95, 1e-9);
  EXPECT_NEAR(rates.prefill_s(1000, 0), 1.05, 1e-9);
}

TEST(PredictedSeconds, WaitsForACacheOnlyWhileThatIsCheaper) {
  auto tested = policy("predicted_seconds");
  Rng rng(1);
  auto fleet = plain_fleet(2);
  fleet[0].device_tokens = 9000;
  // Elsewhere it costs 3 * 9 s more.
  fleet[0].queued_uncached_tokens = 25'000;
  EXPECT_EQ(tested->decide(prompt(10'000, 1), fleet, rng, kSecond).candidate, 0u);
  fleet[0].queued_uncached_tokens = 29'000;
  EXPECT_EQ(tested->decide(prompt(10'000, 1), fleet, rng, kSecond).candidate, 1u);
}

TEST(PredictedSeconds, TiesAtIdleSpread) {
  // sglang #32983: with all loads at zero every miss went to the same replica.
  auto tested = policy("predicted_seconds");
  Rng rng(1);
  const auto fleet = plain_fleet(4);
  std::array<int, 4> counts{};
  for (int n = 0; n < 400; ++n) ++counts[tested->decide(prompt(2000, n), fleet, rng, kSecond).candidate];
  for (const int count : counts) EXPECT_EQ(count, 100);
}

TEST(PredictedSeconds, TheSharedBaseDoesNotPileEverythingOnOneReplica) {
  // sglang #34513, production-stack #957, dynamo #737: the one replica that had the system prompt got all sessions.
  auto tested = policy("predicted_seconds");
  Rng rng(1);
  auto fleet = plain_fleet(4);
  std::array<int, 4> counts{};
  for (int session = 0; session < 40; ++session) {
    const size_t picked = tested->decide(prompt(9000, session, 8000), fleet, rng, kSecond).candidate;
    fleet[picked].device_tokens = 8000;  // it has the base from now on
    ++counts[picked];
  }
  for (const int count : counts) {
    EXPECT_GE(count, 8);
    EXPECT_LE(count, 13);
  }
}

TEST(PredictedSeconds, AnUnsharedLongPrefixIsNotABase) {
  // One session with a document in its system prompt: its next turn goes back, whatever the base is called.
  auto tested = policy("predicted_seconds");
  Rng rng(1);
  auto fleet = plain_fleet(4);
  fleet[2].device_tokens = 80'000;
  for (int turn = 0; turn < 20; ++turn) {
    EXPECT_EQ(tested->decide(prompt(81'000, 1, 80'000), fleet, rng, kSecond).candidate, 2u);
  }
}

TEST(PredictedSeconds, ARunningSessionGoesBackToItsCacheHoweverSharedItsBaseIs) {
  auto tested = policy("predicted_seconds");
  Rng rng(1);
  auto fleet = plain_fleet(2);
  for (int session = 0; session < 50; ++session) tested->decide(prompt(9000, session, 8000), fleet, rng, kSecond);
  fleet[0].device_tokens = 8000;
  fleet[1].device_tokens = 8900;
  fleet[1].running = 1;
  EXPECT_EQ(tested->decide(prompt(9500, 7, 8000), fleet, rng, kSecond).candidate, 1u);
  // The other lost the base: for this session that is 3 * 9.5 s, not a thing it can cheaply get.
  fleet[0].device_tokens = 0;
  fleet[1].queued_uncached_tokens = 5000;
  EXPECT_EQ(tested->decide(prompt(9500, 7, 8000), fleet, rng, kSecond).candidate, 1u);
}

TEST(PredictedSeconds, AReplicaFourTimesSlowerGetsLess) {
  auto tested = policy("predicted_seconds");
  Rng rng(1);
  auto fleet = plain_fleet(2);
  fleet[1].rates.prefill_token_s *= 4;
  fleet[1].rates.decode_step_s *= 4;
  EXPECT_EQ(tested->decide(prompt(1000, 1), fleet, rng, kSecond).candidate, 0u);
  // Costs: fast = queue + 3 + 0.05; slow = 12 + 0.2. It is worth it once the fast one has 9.2 s queued.
  fleet[0].queued_uncached_tokens = 8'000;
  EXPECT_EQ(tested->decide(prompt(1000, 1), fleet, rng, kSecond).candidate, 0u);
  fleet[0].queued_uncached_tokens = 10'000;
  EXPECT_EQ(tested->decide(prompt(1000, 1), fleet, rng, kSecond).candidate, 1u);
  // Its own cache still wins: 200 tokens there are 0.8 s, 1,000 here are 1 s, and the price counts both threefold.
  fleet[0].queued_uncached_tokens = 0;
  fleet[1].device_tokens = 9900;
  EXPECT_EQ(tested->decide(prompt(10'000, 1), fleet, rng, kSecond).candidate, 1u);
}

TEST(PredictedSeconds, AReplicaThatJoinsEmptyGetsNewSessionsAndNoOldOnes) {
  auto tested = policy("predicted_seconds");
  Rng rng(1);
  auto fleet = plain_fleet(2);
  for (int session = 0; session < 20; ++session) {
    const size_t picked = tested->decide(prompt(9000, session, 8000), fleet, rng, kSecond).candidate;
    fleet[picked].device_tokens = 8000;
  }
  fleet.push_back(plain_candidate(2));
  int joined = 0;
  for (int session = 20; session < 30; ++session) {
    joined += tested->decide(prompt(9000, session, 8000), fleet, rng, kSecond).candidate == 2;
  }
  EXPECT_GE(joined, 8) << "it catches up";
  fleet[1].device_tokens = 8900;
  EXPECT_EQ(tested->decide(prompt(9000, 5, 8000), fleet, rng, kSecond).candidate, 1u);
}

TEST(PredictedSeconds, WithoutEventsPlacementsStillBringSessionsBack) {
  auto tested = policy("predicted_seconds");
  Rng rng(1);
  auto fleet = plain_fleet(3);
  for (Candidate& candidate : fleet) candidate.trust = Trust::kPredicted;
  fleet[1].placed_tokens = 5000;
  EXPECT_EQ(tested->decide(prompt(6000, 1), fleet, rng, kSecond).candidate, 1u);
}

TEST(PredictedSeconds, PriceIsWhatOthersPay) {
  PolicyConfig config;
  config.predicted_seconds.price = 0;
  Rng rng(1);
  auto fleet = plain_fleet(2);
  fleet[0].device_tokens = 900;
  fleet[0].queued_uncached_tokens = 1000;
  // Without the price 0.1 + 1 s queue loses to 1.0 s of prefill; with L = 2 it is 1.3 against 3.
  EXPECT_EQ(make_policy(config)->decide(prompt(1000, 1), fleet, rng, kSecond).candidate, 1u);
  EXPECT_EQ(policy("predicted_seconds")->decide(prompt(1000, 1), fleet, rng, kSecond).candidate, 0u);
}

TEST(PredictedSeconds, LongPromptsLeaveTheShortQueueToOthersWhileAllAreBusy) {
  Rng rng(1);
  auto fleet = plain_fleet(2);
  fleet[0].queued_prefill_s = 3;
  fleet[1].queued_prefill_s = 6;
  const auto tested = policy("predicted_seconds");
  // The first is the mean itself, 1 s: it counts half of each queue. 1.5 + 3 * 1 + 0.05.
  Decision decision = tested->decide(prompt(1000, 1), fleet, rng, kSecond);
  EXPECT_NEAR(decision.costs[0].patience_credit_s, 1.5, 1e-9);
  EXPECT_NEAR(decision.costs[0].total, 1.5 + 3 + 0.05, 1e-9);
  EXPECT_NEAR(decision.costs[1].total, 3 + 3 + 0.05, 1e-9);
  // A long one, 8 s where 1 s of it is cached, makes the mean 4.5 s.
  fleet[1].device_tokens = 1000;
  decision = tested->decide(prompt(9000, 2), fleet, rng, kSecond);
  const double patience = 3.0 / 4.5 * 8.0 / 12.5;
  EXPECT_NEAR(decision.costs[0].patience_credit_s, 3 * patience, 1e-9);
  EXPECT_NEAR(decision.costs[1].patience_credit_s, 6 * patience, 1e-9);
  // One that idles is nobody's to spare.
  fleet[0].queued_prefill_s = 0;
  decision = tested->decide(prompt(9000, 3), fleet, rng, kSecond);
  EXPECT_EQ(decision.costs[1].patience_credit_s, 0);
  PolicyConfig config;
  config.predicted_seconds.patience = 0;
  fleet[0].queued_prefill_s = 3;
  EXPECT_EQ(make_policy(config)->decide(prompt(1000, 1), fleet, rng, kSecond).costs[0].patience_credit_s, 0);
}

TEST(PredictedSeconds, ReplicatesAHotDocumentWhenAskedTo) {
  // One replica holds what every session begins with, past the base. The first sessions follow it; with `replicate`,
  // those after pay less and less elsewhere, and nothing once there are more of them than replicas.
  PolicyConfig config;
  config.predicted_seconds.replicate = 1;
  const auto tested = make_policy(config);
  const auto plain = policy("predicted_seconds");
  Rng rng(1);
  auto fleet = plain_fleet(4);
  fleet[0].device_tokens = 9000;
  fleet[0].queued_prefill_s = 1;
  const auto first_turn = [](int session) {
    RequestView request = prompt(10'000, 0);
    request.session_key = hash128("s" + std::to_string(session));
    return request;
  };
  Decision decision = tested->decide(first_turn(0), fleet, rng, kSecond);
  EXPECT_EQ(decision.candidate, 0u);
  EXPECT_NEAR(decision.costs[1].base_credit_s, 0, 0.02) << "one session's";
  decision = tested->decide(first_turn(1), fleet, rng, kSecond);
  EXPECT_NEAR(decision.costs[1].base_credit_s, 0.25 * 3 * 9, 0.1);
  for (int session = 2; session < 6; ++session) decision = tested->decide(first_turn(session), fleet, rng, kSecond);
  EXPECT_NEAR(decision.costs[1].base_credit_s, 3 * 9, 1e-9);
  EXPECT_NE(decision.candidate, 0u);
  // A session that has been here goes back to what is its own by now.
  EXPECT_EQ(tested->decide(first_turn(3), fleet, rng, kSecond).candidate, 0u);
  EXPECT_EQ(plain->decide(first_turn(9), fleet, rng, kSecond).costs[1].base_credit_s, 0);
}

TEST(SharedBases, CountsDistinctSessions) {
  SharedBases bases;
  const Hash128 base = hash128("base");
  EXPECT_NEAR(bases.note(base, hash128("s")).sessions, 1, 0.01);
  EXPECT_NEAR(bases.note(base, hash128("s")).sessions, 1, 0.01) << "another turn is not another session";
  double counted = 0;
  for (int n = 0; n < 1000; ++n) counted = bases.note(base, hash128(std::to_string(n))).sessions;
  EXPECT_NEAR(counted, 1001, 60);
  for (size_t n = 0; n < SharedBases::kMaxBases; ++n) bases.note(hash128("b" + std::to_string(n)), hash128("s"));
  EXPECT_NEAR(bases.note(base, hash128("s")).sessions, 1, 0.01) << "bounded: it was forgotten";
}

TEST(Candidate, TheLastPromptTokenIsAlwaysComputed) {
  Candidate candidate;
  IndexMatch match{0, {2, 1, 0}, 1};
  set_cached_tokens(candidate, &match, 64);
  EXPECT_EQ(candidate.device_tokens, 32);
  EXPECT_EQ(candidate.host_tokens, 16);
  EXPECT_EQ(candidate.placed_tokens, 15);
  set_cached_tokens(candidate, nullptr, 64);
  EXPECT_EQ(candidate.cached_tokens(), 0);
}

TEST(Candidate, KeysNameTheBaseAndTheSession) {
  std::vector<Hash128> chain;
  for (int n = 0; n < 5; ++n) chain.push_back(hash128(std::to_string(n)));
  EXPECT_EQ(base_key_of(chain, 40), chain[1]);
  EXPECT_EQ(content_key_of(chain, 40), chain[3]) << "block 2 straddles the end of the base";
  EXPECT_EQ(base_key_of(chain, 10), Hash128{});
  EXPECT_EQ(content_key_of(chain, 0), chain[0]);
  EXPECT_EQ(content_key_of(chain, 9999), chain[4]);
  EXPECT_EQ(content_key_of({}, 0), Hash128{});
}

struct PolicyHolder {
  PolicyConfig policy;
};

TEST(PolicyConfig, NamesAndOptionsAreChecked) {
  StructSchema<PolicyHolder> schema;
  schema.section("policy", &PolicyHolder::policy, policy_schema());
  const auto parse = [&](std::string_view text) { return parse_config(schema, text, "f.yaml"); };
  EXPECT_EQ(parse("policy: session_sticky\n").config->policy.name, "session_sticky");
  EXPECT_EQ(parse("policy: {name: predicted_seconds, price: 3}\n").config->policy.predicted_seconds.price, 3);
  EXPECT_EQ(parse("policy: predicted\n").error_text(),
            "f.yaml:1:9: policy.name: \"predicted\" is not known; did you mean \"predicted_seconds\"?");
  EXPECT_EQ(parse("policy: {name: round_robin, price: 3}\n").error_text(),
            "f.yaml:1:29: policy.price: belongs to name: predicted_seconds, not to round_robin");
  EXPECT_EQ(policy_names().front(), PolicyConfig{}.name);
  for (const std::string& name : policy_names()) EXPECT_EQ(policy(name)->name(), name);
}

TEST(PrefillBook, TakesOffWhatTheHeadHasHad) {
  PrefillBook book;
  EXPECT_EQ(book.remaining_s(kSecond), 0);
  const auto first = book.sent(2, 10 * kSecond);
  const auto second = book.sent(3, 10 * kSecond);
  EXPECT_DOUBLE_EQ(book.remaining_s(11 * kSecond), 4);
  EXPECT_DOUBLE_EQ(book.remaining_s(20 * kSecond), 3) << "late, about to end; the second has not begun";
  book.ended(first, 20 * kSecond);
  EXPECT_DOUBLE_EQ(book.remaining_s(21 * kSecond), 2);
  book.ended(first, 21 * kSecond);  // twice is once
  EXPECT_DOUBLE_EQ(book.remaining_s(21 * kSecond), 2);
  book.ended(second, 22 * kSecond);
  EXPECT_EQ(book.remaining_s(23 * kSecond), 0);
}

TEST(PredictedSeconds, QueuesAreSecondsWhereTheyWerePredicted) {
  auto tested = policy("predicted_seconds");
  Rng rng(1);
  auto fleet = plain_fleet(2);
  fleet[0].queued_uncached_tokens = 1000;  // by tokens 1 s; known to take 5
  fleet[0].queued_prefill_s = 5;
  fleet[1].queued_uncached_tokens = 3000;  // 2 s of its own, and 1,000 tokens of another gateway
  fleet[1].queued_prefill_s = 2;
  fleet[1].unpredicted_tokens = 1000;
  const Decision decision = tested->decide(prompt(100, 1), fleet, rng, kSecond);
  EXPECT_NEAR(decision.costs[0].queue_s, 5, 1e-9);
  EXPECT_NEAR(decision.costs[1].queue_s, 3, 1e-9);
  EXPECT_EQ(decision.candidate, 1u);
}

}  // namespace
}  // namespace warmpath

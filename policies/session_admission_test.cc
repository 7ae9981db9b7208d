#include "policies/session_admission.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace warmpath {
namespace {

constexpr MonotonicNs kSecond = 1'000'000'000;
using Verdict = SessionAdmission::Verdict;

// One replica with room for 100,000 tokens, and sessions of some tokens each behind no base.
struct SessionAdmissionTest : ::testing::Test {
  AdmissionTurn turn(int session, int64_t tokens, std::string_view tenant = "a") {
    AdmissionTurn made;
    made.session = hash128("session " + std::to_string(session));
    made.tenant = tenant;
    made.prompt_tokens = tokens;
    return made;
  }
  SessionAdmission::Entry arrive(const AdmissionTurn& asks) {
    const auto entry = admission.arrive(asks, capacities, now);
    if (entry.verdict == Verdict::kGo) admission.routed(asks.session, 0);
    return entry;
  }
  // A whole turn that goes at once.
  void run(int session, int64_t tokens, std::string_view tenant = "a") {
    ASSERT_EQ(arrive(turn(session, tokens, tenant)).verdict, Verdict::kGo) << session;
    admission.ended(turn(session, tokens, tenant), 0, tokens, now);
  }
  void TearDown() override { EXPECT_EQ(admission.check_integrity(), Status()); }

  SessionAdmission admission;
  std::vector<AdmissionCapacity> capacities = {{0, 100'000}};
  MonotonicNs now = kSecond;
};

TEST_F(SessionAdmissionTest, NewSessionsGoWhileTheyFitAndWaitInOrder) {
  run(1, 60'000);
  run(2, 40'000);  // exactly full
  const auto third = arrive(turn(3, 10'000));
  EXPECT_EQ(third.verdict, Verdict::kWait);
  // Smaller than the room that is left, but nobody overtakes.
  const auto fourth = arrive(turn(4, 1000));
  EXPECT_EQ(fourth.verdict, Verdict::kWait);
  EXPECT_TRUE(admission.admit(capacities, now).empty());
  run(1, 60'000);  // the live ones go on
  // Five minutes after its only turn the second session counts no more.
  now += 100 * kSecond;
  run(1, 60'000);
  now += 200 * kSecond;
  EXPECT_EQ(admission.admit(capacities, now), (std::vector{third.ticket, fourth.ticket}));
}

TEST_F(SessionAdmissionTest, ANewSessionWaitsTwoMinutesAtMost) {
  run(1, 100'000);
  const auto second = arrive(turn(2, 50'000));
  now += 119 * kSecond;
  run(1, 100'000);
  EXPECT_TRUE(admission.admit(capacities, now).empty());
  now += kSecond;
  EXPECT_EQ(admission.admit(capacities, now), std::vector{second.ticket});
  admission.routed(turn(2, 0).session, 0);
  admission.ended(turn(2, 50'000), 0, 50'000, now);
  // 150,000 tokens where 100,000 fit: it pauses, the older one does not.
  EXPECT_EQ(arrive(turn(1, 100'000)).verdict, Verdict::kGo);
  EXPECT_EQ(arrive(turn(2, 50'000)).verdict, Verdict::kWait);
  EXPECT_EQ(admission.pauses(), 1u);
  // No longer new, it waits as long as it must.
  now += 200 * kSecond;
  EXPECT_TRUE(admission.admit(capacities, now).empty());
}

TEST_F(SessionAdmissionTest, WhoIsInTheMiddleOfItsWorkGoesBeforeWhoBegins) {
  run(1, 60'000);
  run(2, 40'000);
  run(1, 90'000);  // grown: 130,000
  const auto begins = arrive(turn(3, 1000));
  const auto pauses = arrive(turn(2, 40'000));
  EXPECT_EQ(begins.verdict, Verdict::kWait);
  EXPECT_EQ(pauses.verdict, Verdict::kWait);
  now += 301 * kSecond;  // the first is silent
  EXPECT_EQ(admission.admit(capacities, now).front(), begins.ticket) << "overdue";
  EXPECT_EQ(admission.admit(capacities, now).size(), 0u) << "both went in one call";
}

TEST_F(SessionAdmissionTest, ACacheThatIsStillThereNeedsNoRoom) {
  run(1, 100'000);
  AdmissionTurn back = turn(2, 50'000);
  back.base_tokens = 10'000;
  back.cached_tokens = 30'000;  // 20,000 of its own 40,000: not more than half
  EXPECT_EQ(arrive(back).verdict, Verdict::kWait);
  back.session = turn(3, 0).session;
  back.cached_tokens = 30'016;
  EXPECT_EQ(arrive(back).verdict, Verdict::kGo);
}

TEST_F(SessionAdmissionTest, TheTenantWithTheSmallestFootprintIsFirst) {
  run(1, 70'000, "a");
  run(2, 30'000, "b");
  const auto a = arrive(turn(3, 20'000, "a"));
  const auto b = arrive(turn(4, 20'000, "b"));
  now += 100 * kSecond;
  run(1, 70'000, "a");
  run(2, 10'000, "b");  // a compacted history
  EXPECT_EQ(admission.admit(capacities, now), std::vector{b.ticket});
  admission.leave(a.ticket);
  EXPECT_EQ(admission.waiting(), 0u);
}

TEST_F(SessionAdmissionTest, ANewSessionRunsWhereThereIsRoom) {
  capacities = {{0, 100'000}, {1, 100'000}};
  run(1, 90'000);
  ASSERT_EQ(admission.arrive(turn(2, 20'000), capacities, now).verdict, Verdict::kGo);
  EXPECT_FALSE(admission.has_room(turn(2, 0).session, 0));
  EXPECT_TRUE(admission.has_room(turn(2, 0).session, 1));
  admission.routed(turn(2, 0).session, 1);
  EXPECT_TRUE(admission.has_room(turn(2, 0).session, 0)) << "later turns go where the policy likes";
}

TEST_F(SessionAdmissionTest, SmallSessionsCountAsWhatTheyWillBecome) {
  run(1, 80'000);
  now += 301 * kSecond;
  EXPECT_TRUE(admission.admit(capacities, now).empty());
  EXPECT_EQ(admission.live_sessions(), 0u);
  run(2, 100);
  EXPECT_EQ(admission.live_tokens(), 4000) << "a twentieth of the first one's: the mean so far";
}

TEST_F(SessionAdmissionTest, FullIsFullAndUnknownCapacityHoldsNobody) {
  SessionAdmissionOptions options;
  options.max_waiting = 1;
  SessionAdmission small(options);
  EXPECT_EQ(small.arrive(turn(1, 100'000), capacities, now).verdict, Verdict::kGo);
  small.routed(turn(1, 0).session, 0);
  EXPECT_EQ(small.arrive(turn(2, 1000), capacities, now).verdict, Verdict::kWait);
  EXPECT_EQ(small.arrive(turn(3, 1000), capacities, now).verdict, Verdict::kFull);
  EXPECT_GE(small.retry_after_s(), 1);
  for (int n = 0; n < 100; ++n) EXPECT_EQ(admission.arrive(turn(n, 100'000), {}, now).verdict, Verdict::kGo);
}

TEST(OverCommit, FallsByATenthWhileCachesAreLostAndRisesWhileSomebodyWaits) {
  OverCommit allowance;
  MonotonicNs now = 0;
  const auto settle = [&](double found, bool waiting) {
    for (int n = 0; n < 8; ++n) allowance.came_back(1000, found);
    allowance.adjust(waiting, now += 10 * kSecond);
  };
  settle(800, true);
  EXPECT_DOUBLE_EQ(allowance.factor(), 0.9);
  EXPECT_DOUBLE_EQ(allowance.lost_share(), 0.2);
  settle(1000, true);  // 8,000 found of 8,000, and half of the 6,400 of 8,000 before: 0.067 lost, neither many nor few
  EXPECT_DOUBLE_EQ(allowance.factor(), 0.9);
  settle(1000, false);
  EXPECT_DOUBLE_EQ(allowance.factor(), 0.9) << "nobody waits";
  settle(1000, true);
  EXPECT_DOUBLE_EQ(allowance.factor(), 0.9 * 1.05);
  for (int n = 0; n < 8; ++n) allowance.came_back(1000, 0);
  allowance.adjust(true, now + 9 * kSecond);
  EXPECT_DOUBLE_EQ(allowance.factor(), 0.9 * 1.05) << "what was changed must show first";
}

TEST(SessionAdmission, HoldsTogetherWhateverComes) {
  SessionAdmission admission;
  std::mt19937_64 random(7);
  std::vector<std::pair<AdmissionTurn, bool>> turns(60);  // running?
  std::map<SessionAdmission::Ticket, size_t> waiting;
  std::vector<AdmissionCapacity> capacities = {{0, 50'000}, {1, 50'000}, {2, 0}};
  const std::string tenants[] = {"a", "b", "c"};
  std::vector<Hash128> names;
  for (size_t n = 0; n < turns.size(); ++n) names.push_back(hash128(std::to_string(n)));
  MonotonicNs now = 0;
  for (int step = 0; step < 20'000; ++step) {
    now += static_cast<MonotonicNs>(random() % (10 * kSecond));
    const size_t n = random() % turns.size();
    const bool waits = std::any_of(waiting.begin(), waiting.end(), [n](const auto& one) { return one.second == n; });
    auto& [turn, running] = turns[n];
    if (running) {
      admission.ended(turn, 0, random() % 10 == 0 ? -1 : turn.prompt_tokens + 100, now);
      running = false;
    } else if (!waits) {
      turn.session = names[n];
      turn.tenant = tenants[n % 3];
      turn.prompt_tokens = static_cast<int64_t>(random() % 30'000);
      const auto entry = admission.arrive(turn, capacities, now);
      running = entry.verdict == Verdict::kGo;
      if (entry.verdict == Verdict::kWait) waiting[entry.ticket] = n;
    } else if (random() % 4 == 0) {
      std::erase_if(waiting, [&](const auto& one) {
        if (one.second == n) admission.leave(one.first);
        return one.second == n;
      });
    }
    for (const auto ticket : admission.admit(capacities, now)) {
      turns[waiting.at(ticket)].second = true;
      admission.routed(names[waiting.at(ticket)], static_cast<ReplicaId>(random() % 2));
      waiting.erase(ticket);
    }
    ASSERT_EQ(admission.waiting(), waiting.size());
    if (step % 16 != 0) continue;
    ASSERT_EQ(admission.check_integrity(), Status()) << step;
  }
}

}  // namespace
}  // namespace warmpath

#include "policies/rate_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "policies/rng.h"

namespace warmpath {
namespace {

constexpr MonotonicNs kSecond = 1'000'000'000;

// A replica's true speed, with multiplicative noise of `noise` either way.
struct TrueSpeed {
  Rates rates;
  double noise = 0.2;
};

void run_requests(FleetRates& fleet, ReplicaId replica, const TrueSpeed& speed, int requests, Rng& rng,
                  MonotonicNs& now, double longest_prompt = 20'000) {
  for (int n = 0; n < requests; ++n) {
    const auto noisy = [&](double seconds) { return seconds * (1 + speed.noise * (2 * rng.uniform() - 1)); };
    const double context = rng.uniform() * longest_prompt;
    const double tokens = 20 + rng.uniform() * (longest_prompt - context);
    const double batch = 1 + rng.uniform() * 31;
    fleet.observe_prefill(replica, tokens, context, noisy(speed.rates.prefill_s(tokens, context)), now);
    fleet.observe_decode(replica, 100, batch, noisy(100 * speed.rates.decode_step(batch)), now);
    now += kSecond / 10;
  }
}

Rates times(Rates rates, double factor) {
  rates.prefill_start_s *= factor;
  rates.prefill_token_s *= factor;
  rates.prefill_context_s *= factor;
  rates.decode_step_s *= factor;
  rates.decode_sequence_s *= factor;
  return rates;
}

TEST(FleetRates, AFleetNobodyMeasuredHasThePrior) { EXPECT_EQ(FleetRates().rates_of(3, kSecond), Rates{}); }

TEST(FleetRates, LearnsScaleAndShapeThroughNoise) {
  // Ten times the prior's speed per token, attention three times dearer against it, a flatter decode step.
  Rates truth = times(Rates{}, 0.1);
  truth.prefill_context_s *= 3;
  truth.decode_sequence_s /= 3;
  FleetRates fleet;
  Rng rng(1);
  MonotonicNs now = kSecond;
  for (int round = 0; round < 10; ++round) {
    for (ReplicaId replica = 0; replica < 4; ++replica) run_requests(fleet, replica, {truth}, 10, rng, now);
  }
  double worst = 0;
  for (const double context : {0.0, 5'000.0, 18'000.0}) {
    for (const double tokens : {200.0, 2'000.0, 8'000.0}) {
      const double learnt = fleet.rates_of(2, now).prefill_s(tokens, context);
      worst = std::max(worst, std::abs(std::log(learnt / truth.prefill_s(tokens, context))));
    }
  }
  for (const double batch : {1.0, 8.0, 30.0}) {
    const double learnt = fleet.rates_of(2, now).decode_step(batch);
    worst = std::max(worst, std::abs(std::log(learnt / truth.decode_step(batch))));
  }
  std::printf("worst error of a learnt time: %.1f %%\n", 100 * (std::exp(worst) - 1));
  EXPECT_LT(worst, std::log(1.2));
}

TEST(FleetRates, EqualReplicasStayEqualUnderNoiseAndASlowOneStandsOut) {
  FleetRates fleet;
  Rng rng(2);
  MonotonicNs now = kSecond;
  for (int round = 0; round < 20; ++round) {
    for (ReplicaId replica = 0; replica < 3; ++replica) run_requests(fleet, replica, {Rates{}, 0.3}, 2, rng, now);
    run_requests(fleet, 3, {times(Rates{}, 4), 0.3}, 2, rng, now);
  }
  const Rates usual = fleet.rates_of(0, now);
  EXPECT_EQ(usual, fleet.rates_of(1, now)) << "noise is no reason to herd";
  EXPECT_EQ(usual, fleet.rates_of(2, now));
  EXPECT_NEAR(fleet.rates_of(3, now).prefill_token_s / usual.prefill_token_s, 4, 1);
  EXPECT_NEAR(fleet.rates_of(3, now).decode_step_s / usual.decode_step_s, 4, 1);
}

TEST(FleetRates, AColdReplicaHasTheFleetsMedianAndOneSampleMovesIt) {
  FleetRates fleet;
  Rng rng(3);
  MonotonicNs now = kSecond;
  for (ReplicaId replica = 0; replica < 3; ++replica) {
    run_requests(fleet, replica, {times(Rates{}, 0.2), 0.1}, 30, rng, now);
  }
  EXPECT_EQ(fleet.rates_of(9, now), fleet.rates_of(0, now));
  fleet.observe_prefill(9, 4'000, 0, 8 * times(Rates{}, 0.2).prefill_s(4'000, 0), now);
  const double ratio = fleet.rates_of(9, now).prefill_token_s / fleet.rates_of(0, now).prefill_token_s;
  EXPECT_GT(ratio, 3);
  EXPECT_LE(ratio, 8.5);
}

TEST(FleetRates, AnOutlierMovesLittleAndAnOldMeasurementFades) {
  FleetRates fleet;
  Rng rng(4);
  MonotonicNs now = kSecond;
  for (ReplicaId replica = 0; replica < 3; ++replica) run_requests(fleet, replica, {Rates{}, 0.1}, 20, rng, now);
  const Rates before = fleet.rates_of(0, now);
  fleet.observe_prefill(0, 1'000, 0, 500, now);  // a laptop lid was closed
  EXPECT_NEAR(fleet.rates_of(0, now).prefill_token_s / before.prefill_token_s, 1, 0.05);

  run_requests(fleet, 7, {times(Rates{}, 6), 0.1}, 10, rng, now);
  const auto slower = [&](MonotonicNs at) {
    return fleet.rates_of(7, at).prefill_token_s / fleet.rates_of(0, at).prefill_token_s;
  };
  EXPECT_GT(slower(now), 4.5);
  EXPECT_LT(slower(now + 3'600 * kSecond), 1.5) << "after an hour without a word it is asked again";
}

TEST(FleetRates, NonsenseIsIgnored) {
  FleetRates fleet;
  fleet.observe_prefill(0, 100, 0, -1, kSecond);
  fleet.observe_prefill(0, 100, 0, std::nan(""), kSecond);
  fleet.observe_prefill(0, -5, 0, 1, kSecond);
  fleet.observe_decode(0, 0, 1, 1, kSecond);
  fleet.observe_decode(0, 10, 0, 1, kSecond);
  fleet.observe(0, RequestTimings{}, 0, kSecond);
  EXPECT_EQ(fleet.rates_of(0, kSecond), Rates{});
}

}  // namespace
}  // namespace warmpath

// PredictedCosts: the costs of a request over a whole fleet, in seconds: what seconds_cost() says of each replica, less
// two credits that depend on the rest of the fleet and on the requests before. Of predicted_seconds, and of the
// pipeline's scorers.
//
// Base credit. A new session is not held to a replica because that one has its base: the more sessions share the base,
// the less a replica that lacks it is charged, and nothing once there are more sessions than replicas. It will be
// needed there anyway, and computing it once serves all who follow. (SGLang, production-stack and Dynamo each piled a
// whole fleet's traffic onto the first replica that had the system prompt.)
//
// With `replicate`, a session's first prompt is treated alike as far as others hold it past the base, by the number of
// sessions that begin so: a hot document gets more holders before the first is overrun. Needs named sessions.
//
// Patience. While every replica has a queue, prompts longer than usual leave the shorter queues to the others. Work x
// put behind a queue u makes those who come later wait, but less the longer u is already, because they go to the other
// replicas meanwhile: when arrivals always take the shortest queue and bring x_mean each, as a fluid, the sum of their
// waits changes by - u * x / x_mean. So of a queue's seconds a prompt counts 1 - x / x_mean; damped, so that it never
// goes to the longest queue for its own sake, and only as far as nobody idles (an idle replica is lost work):
//
//   patience credit(r) = patience * queue(r) * min(1, shortest queue / x_mean) * x / (x + x_mean)
//
// x: its own prefill where that is cheapest; x_mean: the mean of that over the last requests (about kRemembered).
// Simulated (docs/simulate_scoreboard.md): mean TTFT 6.5 s instead of 8.9 s at four busy replicas with small caches,
// and nothing lost elsewhere. Thread safety: any thread.
#pragma once

#include <mutex>
#include <span>

#include "policies/policy.h"
#include "policies/seconds_cost.h"
#include "policies/shared_bases.h"

namespace warmpath {

class PredictedCosts {
 public:
  explicit PredictedCosts(const PredictedSecondsOptions& options) : options_(options) {}

  // Fills the costs of all candidates; `eligible` is read, not changed. True if nobody eligible holds anything of the
  // prompt past its base: as far as caches go, the session is new.
  bool fill(const RequestView& request, std::span<const Candidate> candidates, Decision& decision);

 private:
  static constexpr double kRemembered = 1000;

  // The mean prefill with this one counted.
  double note_prefill(double seconds);

  const PredictedSecondsOptions options_;
  SharedBases bases_;
  SharedBases documents_;  // prefixes past the base, by the block they begin with
  std::mutex mutex_;       // guards the two below
  double mean_prefill_s_ = 0;
  double seen_ = 0;
};

}  // namespace warmpath

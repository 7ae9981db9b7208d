// predicted_seconds, the default: what would this request cost on each replica, in seconds, to itself and to the
// others?
//
//   cost = queue + prefill + fetch + price * prefill + decode - base credit - patience credit
//
//   queue    the predicted seconds of the prompts ahead of it (prefill_book.h; from their tokens where nobody predicted
//            them); and if all slots are taken, the wait for one
//   prefill  its own uncached tokens at their place in the context (rates.h)
//   fetch    its tokens that lie on host or disk
//   price    prefilling delays those who decode or wait meanwhile: L seconds for each second (default L = 2)
//   decode   its own answer beside the running sequences, plus what it slows those down, times decode_weight. Simulated
//            on traces, full weight gives up caches for nothing: mean TTFT 1.82 s against 1.46 s, and no TPOT gained
//   credits  for a base that many share, and for queues that a long prompt leaves to others: predicted_costs.h
//
// Costs within a few per cent of the lowest are a tie: then the fewest requests, the fewest sessions recently begun
// there, the least KV resident, and chance. The decode time, which hardly depends on the choice, does not widen the
// tie.
//
// Thread safety: as Policy says.
#pragma once

#include <mutex>
#include <unordered_map>

#include "policies/predicted_costs.h"

namespace warmpath {

class PredictedSecondsPolicy final : public Policy {
 public:
  explicit PredictedSecondsPolicy(const PredictedSecondsOptions& options) : options_(options), costs_(options) {}
  std::string_view name() const override { return "predicted_seconds"; }
  Decision decide(const RequestView& request, std::span<const Candidate> candidates, Rng& rng,
                  MonotonicNs now) override;
  void forget(ReplicaId replica) override;

 private:
  // Sessions begun on a replica, an old one counting less: half after kBegunHalfLifeS.
  struct Begun {
    double count = 0;
    MonotonicNs at_ns = 0;
  };
  static constexpr double kBegunHalfLifeS = 600;

  static double begun_at(const Begun& begun, MonotonicNs now);

  const PredictedSecondsOptions options_;
  PredictedCosts costs_;
  std::mutex mutex_;  // guards begun_
  std::unordered_map<ReplicaId, Begun> begun_;
};

}  // namespace warmpath

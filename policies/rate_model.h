// FleetRates: learns how fast each replica of one model works from what the engines report, and answers with Rates.
//
// Per replica, the times of prefills are fitted by decayed least squares in relative error, starting from the fleet's
// median scaled to what the replica's own samples say; so one sample sets the scale and many set the shape. Samples
// that are off by more than a factor 4 count little until they repeat. Confidence decays with time: a replica that was
// slow an hour ago is given the fleet's median again, so nobody is starved for ever by an old measurement; a replica
// without samples has the median too, and a fleet without samples the prior in rates.h. Thread safety: every method may
// be called from any thread (one mutex, held for microseconds).
#pragma once

#include <cstdint>
#include <memory>

#include "base/clock.h"
#include "policies/rates.h"
#include "proto/generate.h"
#include "radix_index/index_query.h"

namespace warmpath {

struct RateOptions {
  double half_life_s = 300;   // of a sample's weight
  double half_samples = 0.5;  // samples after which the replica's own scale weighs as much as the fleet's
};

class FleetRates {
 public:
  explicit FleetRates(RateOptions options = {});
  ~FleetRates();

  // `tokens` computed after `context_before` cached ones took `seconds` (first scheduled step to last prompt token).
  void observe_prefill(ReplicaId replica, double tokens, double context_before, double seconds, MonotonicNs now);
  // `steps` decode steps with `batch` sequences on average took `seconds`.
  void observe_decode(ReplicaId replica, double steps, double batch, double seconds, MonotonicNs now);
  // Both, from an in-tree engine's report. `cached_tokens` were found in the cache.
  void observe(ReplicaId replica, const RequestTimings& timings, int64_t cached_tokens, MonotonicNs now);

  // REQUIRES nothing: an unknown replica gets the fleet's median.
  Rates rates_of(ReplicaId replica, MonotonicNs now) const;
  void forget(ReplicaId replica);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace warmpath

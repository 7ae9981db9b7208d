// FleetRates: learns how fast each replica of one model works from what the engines report, and answers with Rates.
//
// Two things are learnt apart. The *shape* (how much dearer a token gets with its context, how a step grows with its
// batch) is the model's: it is fitted over the whole fleet's recent samples, each divided by its replica's pace. The
// *pace* is the replica's: the median over its last samples of measured / shape. So one sample sets a replica's pace,
// an outlier moves it little, and the shape of a replica that has only seen short prompts is known from its peers.
//
//   rates of r = shape * pace(r),   pace(r) = fleet^(1-w) * own^w,   w = samples / (samples + half_samples)
//
// where samples fade with half_life_s: a replica that was slow an hour ago is given the fleet's median pace again and
// gets asked again (nobody is starved for ever by an old measurement), and one without samples has the median too.
// Paces within `even` of the fleet's median count as the median, so that noise is no reason to herd. A fleet nobody has
// measured has the prior of rates.h. Fetch rates follow the prefill's pace until engines report fetches.
//
// Thread safety: every method may be called from any thread (one mutex, held for microseconds).
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
  double half_samples = 0.5;  // samples after which a replica's own pace weighs as much as the fleet's
  double even = 1.15;         // paces within this factor of the fleet's median are taken for equal
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

  // An unknown replica gets the fleet's median.
  Rates rates_of(ReplicaId replica, MonotonicNs now) const;
  void forget(ReplicaId replica);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace warmpath

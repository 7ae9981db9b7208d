// PaceModel: the shape and the paces of one kind of work (prefill, or decode steps). See rate_model.h for the idea.
//
// A sample has three features f (for prefill: 1, tokens, tokens * mean context; for a step: 1, batch, 0) and the
// seconds it took. Shape: seconds ~ sum over k of prior[k] * factor[k] * f[k]; the factors are fitted by least squares
// in relative error, pulled towards 1 by a ridge of kRidge, over the last kShapeSamples of the fleet.
// Thread safety: none; the owner locks.
#pragma once

#include <array>
#include <deque>
#include <unordered_map>

#include "base/clock.h"
#include "radix_index/index_query.h"

namespace warmpath {

class PaceModel {
 public:
  using Features = std::array<double, 3>;

  PaceModel(Features prior, double half_life_s, double half_samples, double even)
      : prior_(prior), half_life_s_(half_life_s), half_samples_(half_samples), even_(even) {}

  // Ignores what is not a finite, positive measurement.
  void observe(ReplicaId replica, const Features& features, double seconds, MonotonicNs now);
  void forget(ReplicaId replica) { paces_.erase(replica); }

  // Seconds per unit of each feature, for this replica.
  Features coefficients(ReplicaId replica, MonotonicNs now) const;
  // The replica's pace beside the shape's 1.
  double pace_of(ReplicaId replica, MonotonicNs now) const;

 private:
  static constexpr size_t kShapeSamples = 256;
  static constexpr size_t kPaceSamples = 32;
  static constexpr size_t kRefitEvery = 8;
  static constexpr double kRidge = 0.1;  // one good sample weighs 1

  struct Sample {
    ReplicaId replica;
    Features features;
    double seconds;
    MonotonicNs at_ns;
  };
  struct Pace {
    std::deque<Sample> samples;
    double own = 1;     // median of measured / shape
    double weight = 0;  // samples, faded to `at_ns`
    MonotonicNs at_ns = 0;
  };

  double shape_seconds(const Features& features) const;
  double faded(double weight, MonotonicNs since, MonotonicNs now) const;
  void measure(Pace& pace) const;
  void fit_shape();
  void find_fleet_pace();

  const Features prior_;
  const double half_life_s_;
  const double half_samples_;
  const double even_;
  Features factors_{1, 1, 1};
  std::deque<Sample> recent_;
  size_t since_fit_ = 0;
  std::unordered_map<ReplicaId, Pace> paces_;
  double fleet_pace_ = 1;
};

}  // namespace warmpath

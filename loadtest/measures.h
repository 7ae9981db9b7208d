// Measures: the figures of a run, simulated or replayed, from one record per turn. Definitions:
//
//   TTFT       first token - arrival (for a replay: the intended time of sending)
//   TPOT       (end - first token) / (output tokens - 1), of answers of more than one token
//   goodput    share of all turns that kept both limits; a failed turn did not
//   session    end of its last turn - arrival of its first
//   hit ratio  prompt tokens found cached / prompt tokens, of the turns that were answered
//
// Percentiles interpolate linearly. Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace warmpath {

struct Slo {
  double ttft_s = 2;
  double tpot_s = 0.05;
};

struct TurnRecord {
  uint32_t session = 0;
  bool first_of_session = false;
  bool answered = false;
  int32_t replica = -1;
  double arrival_s = 0;
  double first_token_s = 0;  // times on the arrivals' clock
  double end_s = 0;
  int64_t input_tokens = 0;
  int64_t output_tokens = 0;
  int64_t cached_tokens = 0;
};

struct Outcome {
  int64_t turns = 0;
  int64_t failed = 0;
  double hit_ratio = 0;
  double ideal_hit_ratio = 0;
  double follow_up_hit_ratio = 0;  // of turns that are not their session's first
  double ttft_mean_s = 0;
  double ttft_p50_s = 0;
  double ttft_p90_s = 0;
  double ttft_p99_s = 0;
  double first_turn_p99_s = 0;
  double tpot_mean_s = 0;
  double tpot_p99_s = 0;
  double e2e_mean_s = 0;
  double goodput = 0;
  double session_mean_s = 0;
  double imbalance = 0;  // busiest replica's share of the work / the mean share
  double seconds = 0;    // from the first arrival to the last end
  double output_tokens_per_s = 0;
};

// The value below which `percent` of the sorted values lie, interpolated; 0 when there are none.
double percentile_of_sorted(std::span<const double> sorted, double percent);

// Everything but `ideal_hit_ratio` and `imbalance`.
Outcome measure(std::span<const TurnRecord> records, const Slo& slo);

// A figure over several runs: the mean and half the width of its 95 % interval (Student's t; 0 for one run).
struct Interval {
  double mean = 0;
  double half_width = 0;
};
Interval interval_of(std::span<const double> values);

// The figures by name, for tables and JSON.
struct Figure {
  const char* name;
  double Outcome::*value;
};
std::span<const Figure> figures();

}  // namespace warmpath

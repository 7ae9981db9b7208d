// How bench_index measures: times, resident memory, percentiles. Thread safety: none, unless said.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "radix_index/radix_index.h"

namespace warmpath {

// This thread's own time on the CPU: throughput on one core, whoever else uses the machine.
double cpu_seconds();
// By the wall clock, for single lookups.
int64_t clock_ns();
double resident_bytes();
double percentile(std::vector<double> values, double share);

// Adds up the CPU time between start() and stop().
class CpuTimer {
 public:
  void start() { begun_ = cpu_seconds(); }
  void stop() { total_ += cpu_seconds() - begun_; }
  double seconds() const { return total_; }

 private:
  double begun_ = 0;
  double total_ = 0;
};

struct LookupTimes {
  double p50_ns = 0;
  double p99_ns = 0;
};

// Hot: each chain has just been looked up twice.
LookupTimes time_hot(const RadixIndex& index, std::span<const std::vector<Hash128>> chains, int rounds);
// Cold: what the index knows about the chain is in no cache: more than the last level holds has been touched since.
// The code and what every lookup needs are warm, as in a busy gateway: `other` has just been looked up. The prompt's
// own identities are warm too, for they have just been computed.
LookupTimes time_cold(const RadixIndex& index, std::span<const std::vector<Hash128>> chains,
                      const std::vector<Hash128>& other);
// The better of several attempts, each figure for itself.
template <typename Measure>
LookupTimes best_of(int attempts, Measure measure) {
  LookupTimes best = measure();
  for (int attempt = 1; attempt < attempts; ++attempt) {
    const LookupTimes times = measure();
    best.p50_ns = times.p50_ns < best.p50_ns ? times.p50_ns : best.p50_ns;
    best.p99_ns = times.p99_ns < best.p99_ns ? times.p99_ns : best.p99_ns;
  }
  return best;
}

}  // namespace warmpath

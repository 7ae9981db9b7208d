// When a trace's turns begin: the same for the simulator and for the replay, so that both may be compared. Of threads,
// only those that start a session have a time; the others follow turns. Equal options are equal times.
// Thread safety: pure function.
#pragma once

#include <cstdint>
#include <vector>

#include "loadtest/trace/trace.h"

namespace warmpath {

struct ArrivalOptions {
  double rate_scale = 1;      // timed traces: how many times as fast as recorded
  double jitter_s = 0;        // timed traces: added before scaling, uniform
  double session_rate = 0.1;  // sessions begun a second, at random (Poisson)
  uint64_t seed = 1;
};

struct Arrival {
  double at_s = 0;
  uint32_t turn = 0;
};

// In order of time.
std::vector<Arrival> plan_arrivals(const Trace& trace, const ArrivalOptions& options);

}  // namespace warmpath

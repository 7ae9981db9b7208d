#include "loadtest/trace/arrivals.h"

#include <algorithm>
#include <cmath>

#include "policies/rng.h"

namespace warmpath {

std::vector<Arrival> plan_arrivals(const Trace& trace, const ArrivalOptions& options) {
  Rng mix(options.seed * 0x100000001b3ull + 0x61);
  Rng rng(mix.next());
  std::vector<Arrival> arrivals;
  if (trace.timed) {
    for (size_t n = 0; n < trace.turns.size(); ++n) {
      const double at_s = (trace.turns[n].at_s + options.jitter_s * rng.uniform()) / options.rate_scale;
      arrivals.push_back({at_s, static_cast<uint32_t>(n)});
    }
    std::stable_sort(arrivals.begin(), arrivals.end(),
                     [](const Arrival& left, const Arrival& right) { return left.at_s < right.at_s; });
    return arrivals;
  }
  double at_s = 0;
  for (const TraceThread& thread : trace.threads) {
    if (thread.after >= 0) continue;
    at_s -= std::log(1 - rng.uniform()) / options.session_rate;
    arrivals.push_back({at_s, static_cast<uint32_t>(thread.first)});
  }
  return arrivals;
}

}  // namespace warmpath

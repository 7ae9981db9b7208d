#include "radix_index/bench_measure.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <numeric>

namespace warmpath {

namespace {

constexpr size_t kMoreThanTheLastLevel = size_t{64} << 20;

volatile uint64_t kept = 0;  // so that reading for its own sake is not optimised away

}  // namespace

double cpu_seconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

int64_t clock_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

double resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  double total = 0, resident = 0;
  statm >> total >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE));
}

double percentile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  const auto at = static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + at, values.end());
  return values[static_cast<size_t>(at)];
}

LookupTimes time_hot(const RadixIndex& index, std::span<const std::vector<Hash128>> chains, int rounds) {
  std::vector<double> times;
  IndexMatches matches;
  for (int round = 0; round < rounds; ++round) {
    for (const auto& chain : chains) {
      index.query(chain, 2 * 1'000'000'000ll, matches);
      index.query(chain, 2 * 1'000'000'000ll, matches);
      const int64_t start = clock_ns();
      index.query(chain, 2 * 1'000'000'000ll, matches);
      times.push_back(static_cast<double>(clock_ns() - start));
    }
  }
  return {percentile(times, 0.5), percentile(times, 0.99)};
}

LookupTimes time_cold(const RadixIndex& index, std::span<const std::vector<Hash128>> chains,
                      const std::vector<Hash128>& other) {
  static std::vector<char> sweep(kMoreThanTheLastLevel);
  std::vector<double> times;
  IndexMatches matches;
  for (const auto& chain : chains) {
    for (size_t at = 0; at < sweep.size(); at += 64) ++sweep[at];
    index.query(other, 2 * 1'000'000'000ll, matches);
    kept = std::accumulate(chain.begin(), chain.end(), uint64_t{0},
                           [](uint64_t sum, const Hash128& block) { return sum + block.lo; });
    const int64_t start = clock_ns();
    index.query(chain, 2 * 1'000'000'000ll, matches);
    times.push_back(static_cast<double>(clock_ns() - start));
  }
  return {percentile(times, 0.5), percentile(times, 0.99)};
}

}  // namespace warmpath

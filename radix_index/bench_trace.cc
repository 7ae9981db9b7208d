#include "radix_index/bench_trace.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <list>
#include <unordered_map>

#include "radix_index/bench_fleet.h"
#include "radix_index/bench_measure.h"

namespace warmpath {

namespace {

constexpr int kHolders = 64;
constexpr size_t kUnits = 512;   // hash blocks that a holder keeps: 16,384 blocks of 16 tokens
constexpr int kUnitBlocks = 32;  // of 16 tokens in a hash block of 512

// The LRU cache of one holder. A unit is named by its last block's chain, which fixes everything before it.
class Cache {
 public:
  bool holds(uint64_t unit) const { return where_.contains(unit); }
  // Returns a unit that had to go, or 0.
  uint64_t touch(uint64_t unit) {
    if (const auto found = where_.find(unit); found != where_.end()) {
      order_.splice(order_.begin(), order_, found->second);
      return 0;
    }
    order_.push_front(unit);
    where_[unit] = order_.begin();
    if (order_.size() <= kUnits) return 0;
    const uint64_t gone = order_.back();
    where_.erase(gone);
    order_.pop_back();
    return gone;
  }
  size_t size() const { return order_.size(); }

 private:
  std::list<uint64_t> order_;
  std::unordered_map<uint64_t, std::list<uint64_t>::iterator> where_;
};

}  // namespace

Result<std::vector<TraceRequest>> read_mooncake_trace(const std::string& path) {
  std::ifstream in(path);
  if (!in) return not_found("cannot read " + path);
  std::vector<TraceRequest> trace;
  for (std::string line; std::getline(in, line);) {
    size_t at = line.find("\"hash_ids\"");
    if (at != std::string::npos) at = line.find('[', at);
    if (at == std::string::npos) return invalid_argument(path + ": a line without hash_ids");
    TraceRequest& request = trace.emplace_back();
    const char* next = line.c_str() + at + 1;
    for (char* end = nullptr; *next != ']' && *next != '\0'; next = *end == ',' ? end + 1 : end) {
      request.push_back(static_cast<uint32_t>(std::strtoul(next, &end, 10)));
      if (end == next) return invalid_argument(path + ": hash_ids are not numbers");
    }
  }
  return trace;
}

TraceReplay replay_trace(const std::vector<TraceRequest>& trace, int copies) {
  RadixIndex index;
  BenchFleet fleet(index, kHolders);
  std::vector<Cache> caches(kHolders);
  CpuTimer timer;
  std::vector<double> lookups;
  IndexMatches matches;
  uint64_t asked = 0, hit = 0;
  MonotonicNs now = kSecond;
  int next_holder = 0;
  std::vector<Hash128> chain;
  std::vector<uint64_t> units;
  for (const TraceRequest& request : trace) {
    for (int copy = 0; copy < copies; ++copy) {
      now += kSecond / 10;
      chain.clear();
      units.clear();
      uint64_t unit = static_cast<uint64_t>(copy) + 1;
      for (const uint32_t id : request) {
        unit = mix(unit * 0x9e3779b97f4a7c15ull + id) | 1;
        units.push_back(unit);
        for (int n = 0; n < kUnitBlocks; ++n) chain.push_back(chain_block(unit, n));
      }
      asked += chain.size();
      const int64_t begun = clock_ns();
      timer.start();
      index.query(chain, now, matches);
      timer.stop();
      lookups.push_back(static_cast<double>(clock_ns() - begun));
      const IndexMatch* best = nullptr;
      for (const IndexMatch& match : matches.matches) {
        if (best == nullptr || match.leading_blocks() > best->leading_blocks()) best = &match;
      }
      int holder = static_cast<int>(best == nullptr ? 0 : best->replica);
      // The first hash block is everybody's: going where only that is would send all to one.
      if (best == nullptr || best->leading_blocks() <= kUnitBlocks) holder = next_holder++ % kHolders;
      Cache& cache = caches[static_cast<size_t>(holder)];
      size_t held = 0;
      while (held < units.size() && cache.holds(units[held])) ++held;
      hit += held * kUnitBlocks;
      std::vector<Hash128> gone;
      for (size_t n = 0; n < held; ++n) cache.touch(units[n]);  // none of these may have to go
      for (size_t n = units.size(); n-- > 0;) {
        const uint64_t victim = cache.touch(units[n]);
        for (int block = kUnitBlocks; victim != 0 && block-- > 0;) gone.push_back(chain_block(victim, block));
      }
      const auto first = static_cast<std::ptrdiff_t>(held * kUnitBlocks);
      const KvEventBatch stored = fleet.stored(holder, held == 0 ? Hash128{} : chain[static_cast<size_t>(first - 1)],
                                               {chain.begin() + first, chain.end()});
      const KvEventBatch removed = fleet.removed(holder, std::move(gone));
      timer.start();
      index.place(fleet.id(holder), chain, now, 30, held * kUnitBlocks);
      fleet.apply(holder, stored, now);
      fleet.apply(holder, removed, now);
      timer.stop();
    }
  }
  TraceReplay result;
  result.blocks_per_s = static_cast<double>(asked + fleet.blocks()) / timer.seconds();
  result.hit_share = static_cast<double>(hit) / static_cast<double>(asked);
  double held_blocks = 0;
  for (const Cache& cache : caches) held_blocks += static_cast<double>(cache.size()) * kUnitBlocks;
  result.bytes_per_holder_block = static_cast<double>(index.stats().bytes) / held_blocks;
  result.lookup_p50_ns = percentile(lookups, 0.5);
  result.lookup_p99_ns = percentile(std::move(lookups), 0.99);
  return result;
}

}  // namespace warmpath

// bench_index: what the index costs in memory and time. Fields: see the table of measures in the design.
//
//   (a) 12.8 M holder-blocks over 256 holders, three quarters of the blocks distinct: session chains of 128 blocks, of
//   which
//       the first 32 are one of 391 heads that every holder has. Beside them, chains held by 1 and by 64 holders to ask
//       for.
//   (b) the same with 2 % of each 64-holder chain's interior blocks missing per holder ("holes").
//   (c) a mixed stream: sessions are stored, extended and removed in turns, with a lookup after every eighth write.
//   (d) churn: every session is replaced four times over; from the second to the fourth, bytes must not grow.
//
// Identities are made up on the fly, so that resident memory grows by the index alone. One core; --quick is an eighth
// of (a).
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "radix_index/radix_index.h"

namespace warmpath {
namespace {

constexpr MonotonicNs kSecond = 1'000'000'000;
constexpr int kHolders = 256;
constexpr int kHeads = 391;
constexpr int kHeadBlocks = 32;
constexpr int kChainBlocks = 128;

uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

// Block `position` of the chain named `chain`.
Hash128 identity(uint64_t chain, int position) {
  const uint64_t seed = chain * 0x10001 + static_cast<uint64_t>(position) + 1;
  return {mix(seed * 0x9e3779b97f4a7c15ull), mix(seed * 0xd1342543de82ef95ull + 7)};
}

// Chains are numbered: heads, sessions, and those held by 1 or by 64 holders.
constexpr uint64_t kHeadChain = 1'000'000'000;
constexpr uint64_t kLoneChain = 2'000'000'000;
constexpr uint64_t kSharedChain = 3'000'000'000;
constexpr uint64_t kHoledChain = 4'000'000'000;

std::vector<Hash128> stretch(uint64_t chain, int first, int count) {
  std::vector<Hash128> blocks;
  blocks.reserve(static_cast<size_t>(count));
  for (int n = first; n < first + count; ++n) blocks.push_back(identity(chain, n));
  return blocks;
}

// This process's own time on the CPU: throughput on one core, whoever else uses the machine.
double seconds_now() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
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

class Fleet {
 public:
  explicit Fleet(RadixIndex& index) : index_(index) {
    for (int n = 0; n < kHolders; ++n) {
      ids_.push_back(*index.add_replica());
      sequences_.push_back(0);
      index.apply(ids_.back(), {1, 0, KvEventBatch::Kind::kSnapshotBegin, {}}, kSecond);
      index.apply(ids_.back(), {1, 0, KvEventBatch::Kind::kSnapshotEnd, {}}, kSecond);
    }
  }
  void stored(int holder, Hash128 parent, std::vector<Hash128> blocks) {
    written_ += blocks.size();
    send(holder, BlocksStored{Tier::kDevice, parent, std::move(blocks)});
  }
  void removed(int holder, std::vector<Hash128> blocks) {
    written_ += blocks.size();
    send(holder, BlocksRemoved{Tier::kDevice, std::move(blocks)});
  }
  uint64_t written() const { return written_; }

 private:
  void send(int holder, KvEvent event) {
    batch_.sequence = ++sequences_[static_cast<size_t>(holder)];
    batch_.boot_epoch = 1;
    batch_.events.clear();
    batch_.events.push_back(std::move(event));
    index_.apply(ids_[static_cast<size_t>(holder)], batch_, kSecond);
  }

  RadixIndex& index_;
  std::vector<ReplicaId> ids_;
  std::vector<uint64_t> sequences_;
  KvEventBatch batch_;
  uint64_t written_ = 0;
};

// Session `number` of `holder`: a shared head, then 96 blocks of its own.
uint64_t session_chain(int holder, int number) {
  return static_cast<uint64_t>(holder) * 1'000'000 + static_cast<uint64_t>(number) + 1;
}

void store_session(Fleet& fleet, int holder, int number) {
  const uint64_t head = kHeadChain + static_cast<uint64_t>(number % kHeads);
  fleet.stored(holder, identity(head, kHeadBlocks - 1), stretch(session_chain(holder, number), kHeadBlocks, 96));
}

volatile uint64_t warm = 0;

std::vector<double> time_queries(const RadixIndex& index, const std::vector<std::vector<Hash128>>& chains, int rounds,
                                 bool cold) {
  // Cold: something larger than the last-level cache is touched before each lookup.
  static std::vector<char> sweep(cold ? size_t{48} << 20 : 0);
  if (cold && sweep.empty()) sweep.resize(size_t{48} << 20);
  std::vector<double> times;
  IndexMatches matches;
  for (int round = 0; round < rounds; ++round) {
    for (const auto& chain : chains) {
      if (cold) {
        for (size_t at = 0; at < sweep.size(); at += 64) ++sweep[at];
        // The prompt's identities have just been computed, so those are warm.
        warm = std::accumulate(chain.begin(), chain.end(), uint64_t{0},
                               [](uint64_t sum, const Hash128& block) { return sum + block.lo; });
      } else {
        index.query(chain, 2 * kSecond, matches);
        index.query(chain, 2 * kSecond, matches);
      }
      const auto start = std::chrono::steady_clock::now();
      index.query(chain, 2 * kSecond, matches);
      const auto end = std::chrono::steady_clock::now();
      times.push_back(std::chrono::duration<double, std::nano>(end - start).count());
    }
  }
  return times;
}

int run(bool quick, bool json) {
  const int sessions_per_holder = quick ? kHeads / 8 : kHeads;
  const int heads = std::min(kHeads, sessions_per_holder);
  const double before = resident_bytes();
  RadixIndex index({.max_bytes = size_t{16} << 30, .max_replicas = 4096});
  Fleet fleet(index);

  // (a)
  double start = seconds_now();
  for (int holder = 0; holder < kHolders; ++holder) {
    for (int head = 0; head < heads; ++head) {
      fleet.stored(holder, {}, stretch(kHeadChain + static_cast<uint64_t>(head), 0, kHeadBlocks));
    }
    for (int number = 0; number < sessions_per_holder; ++number) store_session(fleet, holder, number);
  }
  const auto holder_blocks = static_cast<double>(fleet.written());
  const double build_s = seconds_now() - start;
  const double bytes = resident_bytes() - before;
  const IndexStats stats = index.stats();
  std::printf(
      "built: %.2f M holder-blocks, %.2f M distinct, %.1f B per holder-block resident (%.1f accounted), %.2f M/s\n",
      holder_blocks / 1e6, static_cast<double>(stats.distinct_blocks) / 1e6, bytes / holder_blocks,
      static_cast<double>(stats.bytes) / holder_blocks, holder_blocks / build_s / 1e6);

  // Chains to ask for.
  std::vector<std::vector<Hash128>> lone, shared, holed;
  const int chains = quick ? 40 : 200;
  for (int n = 0; n < chains; ++n) {
    const auto number = static_cast<uint64_t>(n);
    lone.push_back(stretch(kLoneChain + number, 0, kChainBlocks));
    fleet.stored(n % kHolders, {}, lone.back());
    shared.push_back(stretch(kSharedChain + number, 0, kChainBlocks));
    holed.push_back(stretch(kHoledChain + number, 0, kChainBlocks));
    for (int k = 0; k < 64; ++k) {
      const int holder = (n * 7 + k) % kHolders;
      fleet.stored(holder, {}, shared.back());
      fleet.stored(holder, {}, holed.back());
      std::vector<Hash128> holes;
      for (int position = 1; position < kChainBlocks - 1; ++position) {
        if (mix(number * 1000 + static_cast<uint64_t>(k * 131 + position)) % 50 == 0) {
          holes.push_back(identity(kHoledChain + number, position));
        }
      }
      fleet.removed(holder, holes);
    }
  }
  const auto best_of = [&](const std::vector<std::vector<Hash128>>& asked, bool cold, double share) {
    double best = 1e18;
    for (int attempt = 0; attempt < (quick && cold ? 2 : quick ? 3 : 5); ++attempt) {
      best = std::min(best, percentile(time_queries(index, asked, cold ? 1 : 10, cold), share));
    }
    return best;
  };
  // Half the lookups pay for reading the clock; its cost is the floor of every figure.
  const double query1_hot = best_of(lone, false, 0.5);
  const double query64_hot = best_of(shared, false, 0.5);
  const double query1_cold = best_of(lone, true, 0.5);
  const double worst = std::max({best_of(lone, false, 0.99), best_of(shared, false, 0.99), best_of(lone, true, 0.99),
                                 best_of(shared, true, 0.99)});
  const double holes = best_of(holed, false, 0.99);
  std::printf(
      "lookups of 128 blocks: 1 holder %.0f ns hot, %.0f ns cold; 64 holders %.0f ns hot; worst p99 %.0f ns; with "
      "holes p99 %.0f ns\n",
      query1_hot, query1_cold, query64_hot, worst, holes);

  // (c) and (d): each round replaces one session of every holder.
  const uint64_t written_before = fleet.written();
  const int rounds = quick ? sessions_per_holder : kHeads;
  double settled = 0;
  double mixed_s = 0;
  IndexMatches matches;
  for (int turn = 0; turn < 4; ++turn) {
    start = seconds_now();
    for (int round = 0; round < rounds; ++round) {
      const int oldest = turn * rounds + round;
      for (int holder = 0; holder < kHolders; ++holder) {
        fleet.removed(holder, stretch(session_chain(holder, oldest), kHeadBlocks, 96));
        store_session(fleet, holder, oldest + sessions_per_holder);
        if (holder % 4 == 0) index.query(lone[static_cast<size_t>(holder) % lone.size()], 2 * kSecond, matches);
      }
    }
    mixed_s += seconds_now() - start;
    if (turn == 1) settled = static_cast<double>(index.stats().bytes);
  }
  const double mixed = static_cast<double>(fleet.written() - written_before) / mixed_s;
  const double growth = static_cast<double>(index.stats().bytes) / settled - 1;
  std::printf("mixed stream: %.2f M blocks/s (making up the identities included); churn growth %.2f %%\n", mixed / 1e6,
              100 * growth);
  if (const Status status = index.check_integrity(); !status.ok()) {
    std::printf("the index is broken: %s\n", status.message().c_str());
    return 1;
  }
  if (json) {
    std::printf(
        "{\"holders\": %d, \"holder_blocks\": %.0f, \"distinct_blocks\": %llu, \"bytes_per_holder_block\": %.2f, "
        "\"accounted_bytes_per_holder_block\": %.2f, \"build_blocks_per_s\": %.0f, \"query1_hot_p50_ns\": %.0f, "
        "\"query1_cold_p50_ns\": %.0f, \"query64_hot_p50_ns\": %.0f, \"worst_p99_ns\": %.0f, \"holes_p99_ns\": %.0f, "
        "\"mixed_blocks_per_s\": %.0f, \"churn_growth\": %.4f}\n",
        kHolders, holder_blocks, static_cast<unsigned long long>(stats.distinct_blocks), bytes / holder_blocks,
        static_cast<double>(stats.bytes) / holder_blocks, holder_blocks / build_s, query1_hot, query1_cold, query64_hot,
        worst, holes, mixed, growth);
  }
  return 0;
}

}  // namespace
}  // namespace warmpath

int main(int argc, char** argv) {
  bool quick = false;
  bool json = false;
  for (int arg = 1; arg < argc; ++arg) {
    quick = quick || std::strcmp(argv[arg], "--quick") == 0;
    json = json || std::strcmp(argv[arg], "--json") == 0;
  }
  return warmpath::run(quick, json);
}

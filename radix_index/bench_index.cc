// bench_index: bytes and nanoseconds of the index at fleet scale, on one core.
//
// Workloads: (a) 12.8 M holder-blocks over 256 holders, 9.6 M of them distinct: 391 sessions per holder of 96 blocks
// each behind shared heads of 32; lookups of 128 blocks that 1 or 64 holders have, and of a session (its head at all
// 256). (b) chains of which each of 64 holders lacks 2 % of the blocks. (c) Mooncake's conversation trace once, and 20
// times interleaved (bench_trace.h), if it is there (--trace). (d) 30 minutes' worth of churn: 822,748
// sessions, as many as the requests of SMG's 30-minute soak, each replacing the oldest one of its holder; one lookup
// for every four. And lookups while another thread writes as fast as it can.
//
// Bytes are the growth of resident memory. Rates count the CPU time of the index's calls alone. Each figure is the best
// of five (of two with --quick), except for growth.
// For instructions per operation: docs/measurements.md.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "radix_index/bench_fleet.h"
#include "radix_index/bench_measure.h"
#include "radix_index/bench_trace.h"
#include "radix_index/radix_index.h"

namespace warmpath {
namespace {

constexpr int kHolders = 256;
constexpr int kHeads = 391;
constexpr int kHeadBlocks = 32;
constexpr int kOwnBlocks = 96;
constexpr int kChainBlocks = kHeadBlocks + kOwnBlocks;
constexpr int kSoakSessions = 822'748;

// Chains are numbered: heads, sessions, and those held by 1 or by 64 holders.
constexpr uint64_t kHeadChain = 1'000'000'000;
constexpr uint64_t kLoneChain = 2'000'000'000;
constexpr uint64_t kSharedChain = 3'000'000'000;
constexpr uint64_t kHoledChain = 4'000'000'000;

using Chains = std::vector<std::vector<Hash128>>;

struct Options {
  bool quick = false;
  bool json = false;
  bool churn_only = false;  // build and churn, for callgrind
  std::string trace;
  std::string dynamo_python;
};

class IndexBench {
 public:
  explicit IndexBench(const Options& options)
      : options_(options),
        attempts_(options.quick ? 2 : 5),
        sessions_(options.quick ? kHeads / 8 : kHeads),
        before_(resident_bytes()),
        index_({.max_bytes = size_t{16} << 30, .max_replicas = 4096}),
        fleet_(index_, kHolders) {}

  int run();

 private:
  static uint64_t session_chain(int holder, int number) {
    return static_cast<uint64_t>(holder) * 1'000'000 + static_cast<uint64_t>(number) + 1;
  }
  static uint64_t head_of(int number) { return kHeadChain + static_cast<uint64_t>(number % kHeads); }
  KvEventBatch session_stored(int holder, int number) {
    const std::vector<Hash128> own = stretch(session_chain(holder, number), kHeadBlocks, kOwnBlocks);
    return fleet_.stored(holder, chain_block(head_of(number), kHeadBlocks - 1), own);
  }
  std::vector<Hash128> session_prompt(int holder, int number) {
    std::vector<Hash128> prompt = stretch(head_of(number), 0, kHeadBlocks);
    const std::vector<Hash128> own = stretch(session_chain(holder, number), kHeadBlocks, kOwnBlocks);
    prompt.insert(prompt.end(), own.begin(), own.end());
    return prompt;
  }
  void report(const char* name, double value, int decimals = 0) {
    char text[96];
    std::snprintf(text, sizeof text, "%s\"%s\": %.*f", json_.empty() ? "" : ", ", name, decimals, value);
    json_ += text;
  }

  void build();
  void make_chains();
  void measure_lookups();
  void measure_lookups_beside_a_writer();
  void churn();
  void replay();
  void ask_dynamo();

  const Options options_;
  const int attempts_;
  const int sessions_;
  const double before_;
  RadixIndex index_;
  BenchFleet fleet_;
  Chains lone_, shared_, holed_, sessions_asked_;
  std::string json_;
};

void IndexBench::build() {
  CpuTimer timer;
  const auto apply = [&](int holder, const KvEventBatch& batch) {
    timer.start();
    fleet_.apply(holder, batch);
    timer.stop();
  };
  for (int holder = 0; holder < kHolders; ++holder) {
    for (int head = 0; head < std::min(kHeads, sessions_); ++head) {
      apply(holder, fleet_.stored(holder, {}, stretch(head_of(head), 0, kHeadBlocks)));
    }
    for (int number = 0; number < sessions_; ++number) apply(holder, session_stored(holder, number));
  }
  const auto holder_blocks = static_cast<double>(fleet_.blocks());
  const double bytes = resident_bytes() - before_;
  const IndexStats stats = index_.stats();
  const double rate = holder_blocks / timer.seconds();
  std::printf(
      "built: %.2f M holder-blocks, %.2f M distinct, %.1f B per holder-block resident (%.1f accounted), %.2f M/s\n",
      holder_blocks / 1e6, static_cast<double>(stats.distinct_blocks) / 1e6, bytes / holder_blocks,
      static_cast<double>(stats.bytes) / holder_blocks, rate / 1e6);
  report("holders", kHolders);
  report("holder_blocks", holder_blocks);
  report("distinct_blocks", static_cast<double>(stats.distinct_blocks));
  report("bytes_per_holder_block", bytes / holder_blocks, 2);
  report("accounted_bytes_per_holder_block", static_cast<double>(stats.bytes) / holder_blocks, 2);
  report("build_blocks_per_s", rate);
}

void IndexBench::make_chains() {
  const int chains = options_.quick ? 40 : 200;
  for (int n = 0; n < chains; ++n) {
    const auto number = static_cast<uint64_t>(n);
    lone_.push_back(stretch(kLoneChain + number, 0, kChainBlocks));
    fleet_.apply(n % kHolders, fleet_.stored(n % kHolders, {}, lone_.back()));
    shared_.push_back(stretch(kSharedChain + number, 0, kChainBlocks));
    holed_.push_back(stretch(kHoledChain + number, 0, kChainBlocks));
    sessions_asked_.push_back(session_prompt(n % kHolders, n % sessions_));
    for (int k = 0; k < 64; ++k) {
      const int holder = (n * 7 + k) % kHolders;
      fleet_.apply(holder, fleet_.stored(holder, {}, shared_.back()));
      fleet_.apply(holder, fleet_.stored(holder, {}, holed_.back()));
      std::vector<Hash128> holes;
      for (int position = 1; position < kChainBlocks - 1; ++position) {
        if (mix(number * 1000 + static_cast<uint64_t>(k * 131 + position)) % 50 == 0) {
          holes.push_back(chain_block(kHoledChain + number, position));
        }
      }
      fleet_.apply(holder, fleet_.removed(holder, holes));
    }
  }
}

void IndexBench::measure_lookups() {
  const int rounds = options_.quick ? 5 : 10;
  const auto hot = [&](const Chains& chains) {
    return best_of(attempts_, [&] { return time_hot(index_, chains, rounds); });
  };
  const auto cold = [&](const Chains& chains, const std::vector<Hash128>& other) {
    return best_of(attempts_, [&] { return time_cold(index_, chains, other); });
  };
  struct Row {
    const char* name;
    const char* field;
    LookupTimes hot;
    LookupTimes cold;
  };
  // Each is warmed up by a chain of another kind, which has none of its data.
  const std::array<Row, 4> rows = {
      {{"1 holder", "query1", hot(lone_), cold(lone_, shared_[0])},
       {"64 holders", "query64", hot(shared_), cold(shared_, holed_[0])},
       {"a session, its head at all 256", "session", hot(sessions_asked_), cold(sessions_asked_, shared_[0])},
       {"64 holders, 2 % holes", "holes", hot(holed_), cold(holed_, shared_[0])}}};
  double worst = 0;
  for (const Row& row : rows) {
    std::printf("lookup of 128 blocks, %-31s hot p50 %5.0f p99 %5.0f ns, cold p50 %5.0f p99 %5.0f ns\n", row.name,
                row.hot.p50_ns, row.hot.p99_ns, row.cold.p50_ns, row.cold.p99_ns);
    const std::string field = row.field;
    report((field + "_hot_p50_ns").c_str(), row.hot.p50_ns);
    report((field + "_hot_p99_ns").c_str(), row.hot.p99_ns);
    report((field + "_cold_p50_ns").c_str(), row.cold.p50_ns);
    report((field + "_cold_p99_ns").c_str(), row.cold.p99_ns);
    if (field != "holes") worst = std::max({worst, row.hot.p99_ns, row.cold.p99_ns});
  }
  report("worst_p99_ns", worst);
  report("holes_p99_ns", std::max(rows[3].hot.p99_ns, rows[3].cold.p99_ns));

  // A short prompt that nobody has: what a lookup costs when there is nothing to find.
  Chains unknown;
  for (uint64_t n = 0; n < 200; ++n) unknown.push_back(stretch(5'000'000'000 + n, 0, 13));
  const LookupTimes times = hot(unknown);
  std::printf("lookup of 13 unknown blocks: p50 %.0f ns\n", times.p50_ns);
  report("unknown13_hot_p50_ns", times.p50_ns);
}

void IndexBench::measure_lookups_beside_a_writer() {
  std::atomic<bool> stop{false};
  uint64_t written = 0;
  double writer_s = 0;
  std::thread writer([&] {
    // Sessions that come and go, appended to and cut, of heads that the lookups walk through.
    CpuTimer timer;
    for (int n = 0; !stop.load(std::memory_order_relaxed); ++n) {
      const int holder = n % kHolders;
      const int number = 500'000 + n % 4096;
      const KvEventBatch stored = session_stored(holder, number);
      const KvEventBatch removed =
          fleet_.removed(holder, stretch(session_chain(holder, number), kHeadBlocks, kOwnBlocks));
      timer.start();
      fleet_.apply(holder, stored);
      fleet_.apply(holder, removed);
      timer.stop();
      written += 2 * kOwnBlocks;
    }
    writer_s = timer.seconds();
  });
  const int rounds = options_.quick ? 5 : 50;
  const LookupTimes lone = best_of(attempts_, [&] { return time_hot(index_, lone_, rounds); });
  const LookupTimes session = best_of(attempts_, [&] { return time_hot(index_, sessions_asked_, rounds); });
  stop = true;
  writer.join();
  const double rate = static_cast<double>(written) / writer_s;
  std::printf(
      "beside a writer at full rate (%.1f M blocks/s): 1 holder p50 %.0f p99 %.0f ns, a session p50 %.0f p99 %.0f ns\n",
      rate / 1e6, lone.p50_ns, lone.p99_ns, session.p50_ns, session.p99_ns);
  report("beside_writer_query1_p50_ns", lone.p50_ns);
  report("beside_writer_query1_p99_ns", lone.p99_ns);
  report("beside_writer_session_p50_ns", session.p50_ns);
  report("beside_writer_session_p99_ns", session.p99_ns);
  report("writer_beside_lookups_blocks_per_s", rate);
}

void IndexBench::churn() {
  // Each round replaces the oldest session of every holder; a stretch of rounds replaces them all.
  const int rounds = options_.quick || options_.churn_only ? 4 * sessions_ : kSoakSessions / kHolders;
  double best = 0;
  double settled_resident = 0;
  double settled_bytes = 0;
  IndexMatches matches;
  CpuTimer timer;
  uint64_t from = fleet_.blocks();
  double from_s = 0;
  for (int round = 0; round < rounds; ++round) {
    std::vector<KvEventBatch> removed, stored;
    for (int holder = 0; holder < kHolders; ++holder) {
      removed.push_back(fleet_.removed(holder, stretch(session_chain(holder, round), kHeadBlocks, kOwnBlocks)));
      stored.push_back(session_stored(holder, round + sessions_));
    }
    timer.start();
    for (int holder = 0; holder < kHolders; ++holder) {
      fleet_.apply(holder, removed[static_cast<size_t>(holder)]);
      fleet_.apply(holder, stored[static_cast<size_t>(holder)]);
      if (holder % 4 == 0 && !lone_.empty()) {
        index_.query(lone_[static_cast<size_t>(holder) % lone_.size()], 2 * kSecond, matches);
      }
    }
    index_.maintain(2 * kSecond, 64);
    timer.stop();
    if ((round + 1) % (rounds / (attempts_ + 3)) == 0) {
      best = std::max(best, static_cast<double>(fleet_.blocks() - from) / (timer.seconds() - from_s));
      from = fleet_.blocks();
      from_s = timer.seconds();
    }
    // Every session of the beginning has been replaced once.
    if (round == std::max(sessions_, rounds / 4)) {
      settled_resident = resident_bytes() - before_;
      settled_bytes = static_cast<double>(index_.stats().bytes);
    }
  }
  const double growth = (resident_bytes() - before_) / settled_resident - 1;
  const double accounted = static_cast<double>(index_.stats().bytes) / settled_bytes - 1;
  std::printf("mixed stream: %.2f M blocks/s; growth over %d replaced sessions: %.2f %% resident, %.2f %% accounted\n",
              best / 1e6, rounds * kHolders, 100 * growth, 100 * accounted);
  report("mixed_blocks_per_s", best);
  report("churn_sessions", rounds * kHolders);
  report("churn_growth", growth, 4);
  report("churn_growth_accounted", accounted, 4);
}

void IndexBench::replay() {
  const auto trace = read_mooncake_trace(options_.trace);
  if (!trace.ok()) {
    std::printf("no Mooncake trace: %s\n", trace.status().message().c_str());
    return;
  }
  for (const int copies : {1, 20}) {
    if (options_.quick && copies > 1) continue;
    const TraceReplay replay = replay_trace(*trace, copies);
    std::printf(
        "Mooncake conversation x%d: %.2f M blocks/s, %.1f %% hits, lookups p50 %.0f p99 %.0f ns, %.1f B per "
        "holder-block\n",
        copies, replay.blocks_per_s / 1e6, 100 * replay.hit_share, replay.lookup_p50_ns, replay.lookup_p99_ns,
        replay.bytes_per_holder_block);
    const std::string name = "mooncake_x" + std::to_string(copies);
    report((name + "_blocks_per_s").c_str(), replay.blocks_per_s);
    report((name + "_hit_share").c_str(), replay.hit_share, 4);
    report((name + "_lookup_p50_ns").c_str(), replay.lookup_p50_ns);
    report((name + "_lookup_p99_ns").c_str(), replay.lookup_p99_ns);
    report((name + "_bytes_per_holder_block").c_str(), replay.bytes_per_holder_block, 2);
  }
}

// Dynamo's RadixTree on shape (a), in a process of its own; its script prints "name value" lines.
void IndexBench::ask_dynamo() {
  if (options_.dynamo_python.empty()) return;
  const std::string command = "'" + options_.dynamo_python + "' '" + WARMPATH_SOURCE_DIR +
                              "/radix_index/dynamo_index_peer.py' " + std::to_string(kHolders) + " " +
                              std::to_string(sessions_);
  FILE* peer = ::popen(command.c_str(), "r");
  if (peer == nullptr) return;
  char line[160];
  while (std::fgets(line, sizeof line, peer) != nullptr) {
    char name[100];
    double value = 0;
    if (std::sscanf(line, "%99s %lf", name, &value) != 2) continue;
    std::printf("Dynamo's RadixTree: %s %.2f\n", name, value);
    report((std::string("dynamo_") + name).c_str(), value, 2);
  }
  if (::pclose(peer) != 0) std::printf("Dynamo's RadixTree could not be measured; its error is above\n");
}

int IndexBench::run() {
  build();
  if (!options_.churn_only) {
    make_chains();
    measure_lookups();
    measure_lookups_beside_a_writer();
  }
  churn();
  if (const Status status = index_.check_integrity(); !status.ok()) {
    std::printf("the index is broken: %s\n", status.message().c_str());
    return 1;
  }
  if (!options_.churn_only) {
    replay();
    ask_dynamo();
  }
  if (options_.json) std::printf("{%s}\n", json_.c_str());
  return 0;
}

int bench(int argc, char** argv) {
  Options options;
  options.trace = std::string(WARMPATH_SOURCE_DIR) + "/../shared/traces/mooncake_conversation.jsonl";
  for (int arg = 1; arg < argc; ++arg) {
    const std::string word = argv[arg];
    if (word == "--quick") {
      options.quick = true;
    } else if (word == "--json") {
      options.json = true;
    } else if (word == "--churn-only") {
      options.churn_only = true;
    } else if (word == "--trace" && arg + 1 < argc) {
      options.trace = argv[++arg];
    } else if (word == "--dynamo-python" && arg + 1 < argc) {
      options.dynamo_python = argv[++arg];
    } else {
      std::printf("usage: %s [--quick] [--json] [--churn-only] [--trace FILE] [--dynamo-python PYTHON]\n", argv[0]);
      return 2;
    }
  }
  return IndexBench(options).run();
}

}  // namespace
}  // namespace warmpath

int main(int argc, char** argv) { return warmpath::bench(argc, argv); }

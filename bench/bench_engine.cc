// bench_engine: tokens a second of the CPU back end, at all threads and at one (`_1t`), and of llama.cpp beside it.
//
//   bench_engine [--json] [--quick] [--model NAME|PATH|synthetic:SHAPE] [--rounds N] [--step-tokens N]
//                [--only TEXT] [--cpu-seconds] [--llama-python PYTHON]
//
//   prefill_N_tps   N new tokens of an empty sequence / seconds, in steps of at most --step-tokens (512)
//   decode_N_tps    single-token steps a second of one sequence of N tokens
//   batch16_tps     tokens a second of 16 sequences of 128 tokens decoded together
//
// Both engines run the same cells of the same model file through their step interface: no sampling, no text. Rounds are
// interleaved, cell by cell; a figure is the median of its rounds, llama.cpp's that of its better setting (flash
// attention on or off, chosen per cell in the first round). llama.cpp needs a Python with llama-cpp-python:
// --llama-python or WARMPATH_LLAMA_PYTHON; without it its fields are left out. --quick runs one round of the cells that
// fit in 20 s and leaves the others out; --only keeps the cells whose field holds TEXT (`_1t`: one thread).
// --cpu-seconds counts the seconds that threads computed instead of those that passed: for one thread beside busy
// neighbours.
#include <fmt/format.h>
#include <time.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "bench/llama_cpp_peer.h"
#include "engine/cpu_backend.h"
#include "model_file/model_store.h"

namespace warmpath {
namespace {

constexpr int32_t kBatch = 16;
constexpr int32_t kLongest = 6000 + 32;
constexpr int32_t kBatchLength = 256;  // room of each sequence of the batch

struct Cell {
  std::string_view field;
  std::string_view kind;
  int32_t tokens;
  int32_t steps;
  bool quick;     // part of --quick at all threads
  bool quick_1t;  // and at one
};
constexpr Cell kCells[] = {
    {"prefill_512_tps", "prefill", 512, 0, true, true},     {"decode_128_tps", "decode", 128, 32, true, true},
    {"batch16_tps", "batch", 128, 16, true, true},          {"prefill_2048_tps", "prefill", 2048, 0, true, false},
    {"prefill_6000_tps", "prefill", 6000, 0, false, false}, {"decode_4096_tps", "decode", 4096, 16, false, false}};

std::string field_of(const Cell& cell, bool single) { return fmt::format("{}{}", cell.field, single ? "_1t" : ""); }

double tokens_of(const Cell& cell) {
  if (cell.kind == "prefill") return cell.tokens;
  return cell.kind == "batch" ? cell.steps * kBatch : cell.steps;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

// Our engine at one number of threads. Sequence 0 is the long one; the batch has blocks of its own.
class Ours {
 public:
  Ours(const GgufFile& file, int32_t threads, int32_t step_tokens, bool cpu_seconds)
      : step_tokens_(step_tokens), clock_(cpu_seconds ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC) {
    CpuBackendOptions options;
    options.threads = threads;
    options.max_step_tokens = std::max(step_tokens, kBatch);
    options.kv_blocks = blocks_for(kLongest) + kBatch * blocks_for(kBatchLength);
    auto backend = CpuBackend::create(file, options);
    if (!backend.ok()) throw std::runtime_error(backend.status().to_string());
    backend_ = std::move(*backend);
    extend(0, 0, 64);  // threads are up, scratch and weights are in memory
  }

  double seconds(const Cell& cell) {
    if (cell.kind == "prefill") {
      const double taken = extend(0, 0, cell.tokens);
      long_length_ = cell.tokens;
      return taken;
    }
    if (cell.kind == "batch") {
      for (int32_t sequence = 1; sequence <= kBatch && !batch_ready_; ++sequence) extend(sequence, 0, cell.tokens);
      batch_ready_ = true;
      return decode(1, kBatch, cell.tokens, cell.steps);
    }
    // What is there already is kept; decoding overwrote nothing before `tokens` with other values.
    if (long_length_ < cell.tokens) extend(0, long_length_, cell.tokens);
    long_length_ = std::max(long_length_, cell.tokens);
    return decode(0, 1, cell.tokens, cell.steps);
  }

  const CpuBackend& backend() const { return *backend_; }

 private:
  static int32_t blocks_for(int32_t tokens) { return (tokens + kBlockTokens - 1) / kBlockTokens; }

  TokenId token(int32_t sequence, int32_t position) const {
    return static_cast<TokenId>((int64_t{position} * 7919 + int64_t{sequence} * 104729 + 13) % backend_->vocabulary());
  }

  SequenceStep step(int32_t sequence, int32_t begin, int32_t end, int32_t rows) const {
    SequenceStep result;
    for (int32_t position = begin; position < end; ++position) result.tokens.push_back(token(sequence, position));
    result.position = begin;
    result.logit_rows = rows;
    const int32_t first = sequence == 0 ? 0 : blocks_for(kLongest) + (sequence - 1) * blocks_for(kBatchLength);
    for (int32_t block = 0; block < blocks_for(end); ++block) result.block_table.push_back(first + block);
    return result;
  }

  double now() const {
    timespec time{};
    clock_gettime(clock_, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  }

  double run(StepPlan plan) {
    const double start = now();
    const auto handle = backend_->submit(std::move(plan));
    const auto result = handle->wait();
    if (!result.ok()) throw std::runtime_error(result.status().to_string());
    return now() - start;
  }

  double extend(int32_t sequence, int32_t begin, int32_t end) {
    double sum = 0;
    for (int32_t at = begin; at < end; at += step_tokens_) {
      const int32_t stop = std::min(at + step_tokens_, end);
      sum += run({{step(sequence, at, stop, stop == end ? 1 : 0)}});
    }
    return sum;
  }

  double decode(int32_t first, int32_t count, int32_t position, int32_t steps) {
    double sum = 0;
    for (int32_t index = 0; index < steps; ++index) {
      StepPlan plan;
      for (int32_t sequence = first; sequence < first + count; ++sequence) {
        plan.sequences.push_back(step(sequence, position + index, position + index + 1, 1));
      }
      sum += run(std::move(plan));
    }
    return sum;
  }

  std::unique_ptr<CpuBackend> backend_;
  const int32_t step_tokens_;
  const clockid_t clock_;
  int32_t long_length_ = 0;
  bool batch_ready_ = false;
};

double resident_mb() {
  std::ifstream in("/proc/self/statm");
  double total = 0;
  double resident = 0;
  in >> total >> resident;
  return resident * 4096 / 1e6;
}

struct Options {
  bool json = false;
  bool quick = false;
  bool cpu_seconds = false;
  int rounds = 3;
  int step_tokens = 512;
  std::string model = std::string(default_model().name);
  std::string only;
  std::string llama_python;

  bool wants(const Cell& cell, bool single) const {
    if (quick && !(single ? cell.quick_1t : cell.quick)) return false;
    return field_of(cell, single).find(only) != std::string::npos;
  }
};

// llama.cpp's figures of one cell at one number of threads.
struct PeerCell {
  std::vector<double> rates[2];  // flash attention off, on
  std::optional<bool> better;
};

int run(const Options& options) {
  const auto model = open_model(options.model);
  if (!model.ok()) {
    std::fprintf(stderr, "%s\n", model.status().message().c_str());
    return 1;
  }
  const auto load_start = std::chrono::steady_clock::now();
  const int32_t all = default_compute_threads();
  const bool only_single = std::ranges::none_of(kCells, [&](const Cell& cell) { return options.wants(cell, false); });
  Ours all_threads(model->file, only_single ? 1 : all, options.step_tokens, options.cpu_seconds);
  const double load_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - load_start).count();
  const double loaded_mb = resident_mb();
  std::optional<Ours> one_thread;
  if (all > 1 && !only_single && std::ranges::any_of(kCells, [&](const Cell& c) { return options.wants(c, true); })) {
    one_thread.emplace(model->file, 1, options.step_tokens, options.cpu_seconds);
  }
  Ours* const ours[] = {&all_threads, one_thread ? &*one_thread : &all_threads};
  std::printf("%s on %s, loaded in %.2f s\n", model->name.c_str(), all_threads.backend().device().c_str(), load_s);

  std::unique_ptr<LlamaCppPeer> peer;
  if (!options.llama_python.empty() && !model->synthetic) {
    auto started =
        LlamaCppPeer::start(options.llama_python, WARMPATH_SOURCE_DIR "/bench/llama_cpp_bench.py", model->path);
    if (!started.ok()) {
      std::fprintf(stderr, "%s\n", started.status().message().c_str());
      return 1;
    }
    peer = std::move(*started);
  }

  std::map<std::string, std::vector<double>> rates;
  std::map<std::string, PeerCell> peer_cells;
  const int rounds = options.quick ? 1 : options.rounds;
  for (int round = 0; round < rounds; ++round) {
    for (const bool single : {false, true}) {
      for (const Cell& cell : kCells) {
        if (!options.wants(cell, single)) continue;
        const std::string field = field_of(cell, single);
        rates[field].push_back(tokens_of(cell) / ours[single ? 1 : 0]->seconds(cell));
        std::printf("round %d  %-22s %9.1f", round + 1, field.c_str(), rates[field].back());
        PeerCell& other = peer_cells[field];
        for (const bool flash : {false, true}) {
          if (peer == nullptr || (other.better && *other.better != flash)) continue;
          const auto seconds = peer->measure(cell.kind, cell.tokens, cell.steps, single ? 1 : all, flash);
          if (!seconds.ok()) {
            std::fprintf(stderr, "%s\n", seconds.status().message().c_str());
            return 1;
          }
          other.rates[flash].push_back(tokens_of(cell) / (options.cpu_seconds ? seconds->cpu : seconds->wall));
          std::printf("   llama.cpp %s %9.1f", flash ? "flash" : "plain", other.rates[flash].back());
        }
        if (peer != nullptr && !other.better) other.better = other.rates[1].back() > other.rates[0].back();
        std::printf("\n");
        std::fflush(stdout);
      }
    }
  }

  std::string json =
      fmt::format(R"({{"isa":"{}","threads":{},"load_s":{:.3f},"weights_mb":{:.1f},"rss_loaded_mb":{:.1f})",
                  all_threads.backend().isa(), all, load_s,
                  static_cast<double>(all_threads.backend().weight_bytes()) / 1e6, loaded_mb);
  for (const auto& [field, values] : rates) {
    json += fmt::format(R"(,"{}":{:.1f})", field, median(values));
    const PeerCell& other = peer_cells[field];
    if (other.better) json += fmt::format(R"(,"llama_cpp_{}":{:.1f})", field, median(other.rates[*other.better]));
  }
  json += "}";
  if (options.json) std::printf("%s\n", json.c_str());
  return 0;
}

}  // namespace
}  // namespace warmpath

int main(int argc, char** argv) {
  warmpath::Options options;
  if (const char* python = std::getenv("WARMPATH_LLAMA_PYTHON"); python != nullptr) options.llama_python = python;
  CLI::App app("Tokens a second of the CPU back end, and of llama.cpp beside it");
  app.add_flag("--json", options.json, "print one JSON object on the last line");
  app.add_flag("--quick", options.quick, "one round, within 20 s");
  app.add_option("--model", options.model, "a name, a GGUF file, or synthetic:SHAPE");
  app.add_option("--rounds", options.rounds, "interleaved rounds")->check(CLI::PositiveNumber);
  app.add_option("--step-tokens", options.step_tokens, "most tokens of one prefill step")->check(CLI::PositiveNumber);
  app.add_flag("--cpu-seconds", options.cpu_seconds, "tokens a CPU second, not a second of the clock");
  app.add_option("--only", options.only, "only cells whose field holds this");
  app.add_option("--llama-python", options.llama_python, "a Python that has llama-cpp-python");
  CLI11_PARSE(app, argc, argv);
  try {
    return warmpath::run(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_engine: %s\n", error.what());
    return 1;
  }
}

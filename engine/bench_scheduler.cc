// What the engine costs beside the model: a step of 16 decodes (scheduling, plan, bookkeeping, messages) on a backend
// that answers at once, admission of a long cached prompt, and the sampler on a vocabulary of 49,152.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "base/clock.h"
#include "engine/engine_core.h"
#include "text/vocabulary.h"

namespace warmpath {
namespace {

constexpr int32_t kVocabulary = 49152;

class InstantBackend final : public Backend {
 public:
  class Handle final : public StepHandle {
   public:
    explicit Handle(std::span<const float> logits) : logits_(logits) {}
    Result<StepResult> wait() override { return StepResult{logits_, 0}; }

   private:
    std::span<const float> logits_;
  };

  std::unique_ptr<StepHandle> submit(StepPlan plan) override {
    size_t rows = 0;
    for (const SequenceStep& step : plan.sequences) rows += static_cast<size_t>(step.logit_rows);
    logits_.resize(rows * 320, 0.0f);
    return std::make_unique<Handle>(logits_);
  }
  int32_t vocabulary() const override { return 320; }
  int32_t context_tokens() const override { return 1 << 20; }
  int64_t kv_blocks() const override { return 1 << 16; }
  int64_t kv_bytes_per_token() const override { return 1; }
  int32_t max_step_tokens() const override { return 8192; }
  int32_t max_step_sequences() const override { return 64; }
  std::string device() const override { return "instant"; }

 private:
  std::vector<float> logits_;
};

class CountingSink final : public RequestSink {
 public:
  void on_update(GenerateUpdate update) override { tokens += update.tokens.size(); }
  void on_done(Status) override {}
  size_t tokens = 0;
};

double microseconds(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
}

// The median of `rounds` calls.
double median(int rounds, const std::function<void()>& work) {
  std::vector<double> times;
  for (int round = 0; round < rounds; ++round) times.push_back(microseconds(work));
  std::nth_element(times.begin(), times.begin() + rounds / 2, times.end());
  return times[static_cast<size_t>(rounds / 2)];
}

std::shared_ptr<Generation> accept(EngineCore& core, int number, int prompt_tokens, int max_tokens) {
  GenerateRequest request;
  request.request_id = std::to_string(number);
  for (int index = 0; index < prompt_tokens; ++index) request.prompt.push_back((index + number) % 300);
  request.sampling.temperature = 0;
  request.sampling.max_tokens = max_tokens;
  auto accepted = core.accept(std::move(request), std::make_shared<CountingSink>(), static_cast<uint64_t>(number));
  return accepted.ok() ? *accepted : nullptr;
}

EngineOptions bench_options() {
  EngineOptions options;
  options.step_tokens = 8192;
  return options;
}

// A step of 16 decodes, each with a context of `context` tokens.
double decode_step_us(int context, int steps) {
  InstantBackend backend;
  const Vocabulary vocabulary = synthetic_vocabulary();
  EngineCore core(backend, vocabulary, bench_options(), SystemClock::instance(), 1);
  for (int number = 1; number <= 16; ++number) core.start(accept(core, number, context, steps + 100));
  while (core.stats().queued_tokens > 0) core.step();
  return median(steps, [&] {
    core.step();
    core.journal().flush();
  });
}

// The step that admits a prompt of `tokens` that the cache holds.
double admit_cached_us(int tokens) {
  InstantBackend backend;
  const Vocabulary vocabulary = synthetic_vocabulary();
  EngineCore core(backend, vocabulary, bench_options(), SystemClock::instance(), 1);
  std::vector<double> times;
  for (int number = 0; number < 20; ++number) {
    GenerateRequest request;
    request.request_id = std::to_string(number);
    request.prompt.assign(static_cast<size_t>(tokens), 5);
    request.sampling.max_tokens = 1;
    auto accepted = core.accept(std::move(request), std::make_shared<CountingSink>(), static_cast<uint64_t>(number));
    const double time = microseconds([&] {
      core.start(*accepted);
      core.step();
    });
    if (number > 0) times.push_back(time);
    while (core.step()) continue;
  }
  std::nth_element(times.begin(), times.begin() + 9, times.end());
  return times[9];
}

double sample_us(const SamplingParams& params, int rounds) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 3);
  std::vector<float> logits(kVocabulary);
  for (float& logit : logits) logit = normal(random);
  Sampler sampler(kVocabulary);
  const TokenCounts counts(params, {});
  int64_t position = 0;
  return median(rounds, [&] {
    if (!sampler.sample(logits, params, counts, {}, {1, 0, ++position}).ok()) std::abort();
  });
}

}  // namespace
}  // namespace warmpath

int main(int argc, char** argv) {
  using namespace warmpath;
  bool json = false, quick = false;
  for (int index = 1; index < argc; ++index) {
    json |= std::strcmp(argv[index], "--json") == 0;
    quick |= std::strcmp(argv[index], "--quick") == 0;
  }
  const int rounds = quick ? 200 : 2000;
  std::string fields;
  const auto report = [&](const char* name, double value) {
    fmt::print("{:32} {:9.1f}\n", name, value);
    fields += fmt::format("{}\"{}\": {:.2f}", fields.empty() ? "" : ", ", name, value);
  };
  report("batch16_step_us", decode_step_us(100, rounds));
  report("batch16_step_context_8192_us", decode_step_us(8192, rounds));
  report("admit_cached_100k_us", admit_cached_us(100'000));
  SamplingParams params;
  params.temperature = 0;
  report("greedy_us", sample_us(params, rounds));
  params.top_logprobs = 5;
  report("greedy_logprobs_us", sample_us(params, rounds));
  params = SamplingParams();
  report("temperature_us", sample_us(params, rounds));
  params.top_p = 0.95f;
  report("top_p_us", sample_us(params, rounds));
  params.top_k = 40;
  report("top_k_top_p_us", sample_us(params, rounds));
  if (json) fmt::print("{{{}}}\n", fields);
  return 0;
}

// The engine's promises on real forward passes: a crowd, a cache hit and a preemption never change a bit of an answer.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "engine/cpu_backend.h"
#include "engine/random_schedule.h"
#include "engine/test_engine.h"
#include "model_file/model_store.h"

namespace warmpath {
namespace {

constexpr const char* kToy = "synthetic:llama-2x64,context=512";

std::string default_model_path() {
  if (const char* path = std::getenv("WARMPATH_MODEL"); path != nullptr && *path != '\0') return path;
  const auto store = model_store_path();
  return store.ok() ? (*store / default_model().file).string() : "";
}

// Passes steps on and keeps every row of logits.
class RecordingBackend final : public Backend {
 public:
  explicit RecordingBackend(Backend& backend) : backend_(backend) {}

  class Handle final : public StepHandle {
   public:
    Handle(RecordingBackend& owner, std::unique_ptr<StepHandle> handle) : owner_(owner), handle_(std::move(handle)) {}
    Result<StepResult> wait() override {
      Result<StepResult> result = handle_->wait();
      const auto size = static_cast<size_t>(owner_.vocabulary());
      for (size_t row = 0; result.ok() && row < result->logits.size() / size; ++row) {
        const auto logits = result->logits.subspan(row * size, size);
        owner_.rows.emplace_back(logits.begin(), logits.end());
      }
      return result;
    }

   private:
    RecordingBackend& owner_;
    const std::unique_ptr<StepHandle> handle_;
  };

  std::unique_ptr<StepHandle> submit(StepPlan plan) override {
    computed_tokens += plan.tokens();
    return std::make_unique<Handle>(*this, backend_.submit(std::move(plan)));
  }
  int32_t vocabulary() const override { return backend_.vocabulary(); }
  int32_t context_tokens() const override { return backend_.context_tokens(); }
  int64_t kv_blocks() const override { return backend_.kv_blocks(); }
  int64_t kv_bytes_per_token() const override { return backend_.kv_bytes_per_token(); }
  int32_t max_step_tokens() const override { return backend_.max_step_tokens(); }
  int32_t max_step_sequences() const override { return backend_.max_step_sequences(); }
  std::string device() const override { return backend_.device(); }

  std::vector<std::vector<float>> rows;
  int64_t computed_tokens = 0;

 private:
  Backend& backend_;
};

struct ModelScheduleTest : testing::Test {
  void load(const std::string& name, int64_t kv_blocks, Precision precision = Precision::kQuantized) {
    const auto model = open_model(name);
    if (!model.ok()) GTEST_SKIP() << name << " is not here (" << model.status().message() << ")";
    CpuBackendOptions options;
    options.kv_blocks = kv_blocks;
    options.precision = precision;
    auto created = CpuBackend::create(model->file, options);
    ASSERT_TRUE(created.ok()) << created.status().message();
    backend = std::move(*created);
  }
  std::unique_ptr<EngineCore> core(Backend& on, int32_t max_running, int32_t step_tokens) {
    EngineOptions options;
    options.end_tokens = {2};
    options.max_running = max_running;
    options.step_tokens = step_tokens;
    return std::make_unique<EngineCore>(on, vocabulary, options, clock, 1);
  }

  struct Totals {
    int64_t compared = 0, preemptions = 0, cached = 0, copied = 0;
  };
  Totals compare(uint32_t schedules, const RandomSchedule::Options& crowd) {
    Totals totals;
    for (uint32_t seed = 0; seed < schedules && !HasFailure(); ++seed) {
      SCOPED_TRACE("seed " + std::to_string(seed));
      RandomSchedule schedule(seed, crowd);
      const auto crowded =
          core(*backend, 2 + static_cast<int32_t>(seed % 7), 16 + static_cast<int32_t>(seed * 13 % 90));
      schedule.run(*crowded);
      totals.preemptions += crowded->stats().preemptions;
      totals.cached += crowded->stats().cached_tokens;
      totals.copied += crowded->stats().tail_tokens;
      totals.compared += schedule.compare_with_alone([&] { return core(*backend, 1, 512); });
    }
    std::printf("%lld tokens compared on %s; %lld preemptions, %lld cached and %lld copied prompt tokens\n",
                static_cast<long long>(totals.compared), backend->device().c_str(),
                static_cast<long long>(totals.preemptions), static_cast<long long>(totals.cached),
                static_cast<long long>(totals.copied));
    return totals;
  }

  // The rows of logits of `request` after whatever was in the cache before, of which `cached` tokens were used.
  std::vector<std::vector<float>> rows_of(RecordingBackend& on, EngineCore& engine, const GenerateRequest& request,
                                          int32_t& cached) {
    on.rows.clear();
    const auto sink = std::make_shared<RecordingSink>();
    auto accepted = engine.accept(request, sink, ++number);
    EXPECT_TRUE(accepted.ok()) << accepted.status().to_string();
    engine.start(std::move(*accepted));
    while (engine.step()) continue;
    EXPECT_TRUE(sink->done->ok()) << sink->done->to_string();
    cached = sink->start->cached_tokens() + sink->start->tail_tokens;
    tokens = sink->tokens[0];
    return on.rows;
  }

  void expect_hits_equal_misses(int32_t prompt_tokens) {
    RecordingBackend recorder(*backend);
    const auto warm = core(recorder, 4, 100), cold = core(recorder, 4, 512);
    GenerateRequest request = test_request("a", test_prompt(prompt_tokens), 40);
    request.sampling.ignore_eos = true;
    int32_t cached = 0;
    const auto miss = rows_of(recorder, *warm, request, cached);
    EXPECT_EQ(cached, 0);
    const auto hit = rows_of(recorder, *warm, request, cached);
    EXPECT_EQ(cached, prompt_tokens - 1) << "only the last token is computed again";
    EXPECT_EQ(hit.size(), 40u);
    EXPECT_TRUE(hit == miss) << "bit for bit";
    // The next turn, whose history was decoded, against a prefill of the same tokens in other steps.
    request.prompt.insert(request.prompt.end(), tokens.begin(), tokens.end());
    request.prompt.insert(request.prompt.end(), 21, 7);
    request.sampling.max_tokens = 10;
    const auto next_hit = rows_of(recorder, *warm, request, cached);
    EXPECT_EQ(cached, prompt_tokens + 39) << "decoded tokens are found too, to the last one that has KV";
    // The cold core has an empty cache and overwrites the arena's blocks.
    const auto next_miss = rows_of(recorder, *cold, request, cached);
    EXPECT_EQ(cached, 0);
    EXPECT_TRUE(next_hit == next_miss) << "bit for bit";
  }

  std::unique_ptr<CpuBackend> backend;
  const Vocabulary vocabulary = synthetic_vocabulary();
  ManualClock clock;
  std::vector<TokenId> tokens;
  uint64_t number = 0;
};

TEST_F(ModelScheduleTest, FiveHundredRandomSchedulesOnAToyModel) {
  load(kToy, 12);
  if (backend == nullptr) return;
  RandomSchedule::Options crowd;
  crowd.requests = 6;
  crowd.longest_prompt = 100;
  crowd.most_tokens = 30;
  crowd.span_steps = 15;
  const Totals totals = compare(500, crowd);
  EXPECT_GT(totals.compared, 30'000);
  EXPECT_GT(totals.preemptions, 100);
  EXPECT_GT(totals.cached, 5'000);
  EXPECT_GT(totals.copied, 1'000);
}

TEST_F(ModelScheduleTest, TwentyRandomSchedulesOnTheDefaultModel) {
  load(default_model_path(), 8);
  if (backend == nullptr) return;
  RandomSchedule::Options crowd;
  crowd.requests = 5;
  crowd.vocabulary = 40'000;
  crowd.longest_prompt = 80;
  crowd.most_tokens = 16;
  crowd.most_choices = 2;
  crowd.span_steps = 10;
  const Totals totals = compare(20, crowd);
  EXPECT_GT(totals.compared, 500);
  EXPECT_GT(totals.preemptions, 0);
  EXPECT_GT(totals.cached, 100);
}

TEST_F(ModelScheduleTest, ACacheHitEqualsAMissBitForBit) {
  load(kToy, 64);
  if (backend == nullptr) return;
  expect_hits_equal_misses(200);
}

TEST_F(ModelScheduleTest, ACacheHitEqualsAMissBitForBitInFloat) {
  load(kToy, 64, Precision::kFloat);
  if (backend == nullptr) return;
  expect_hits_equal_misses(201);
}

TEST_F(ModelScheduleTest, ACacheHitEqualsAMissBitForBitOnTheDefaultModel) {
  load(default_model_path(), 64);
  if (backend == nullptr) return;
  expect_hits_equal_misses(333);
}

}  // namespace
}  // namespace warmpath

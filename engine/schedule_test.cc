// The engine's main promise: what a request is answered does not depend on its neighbours, on the cache, on how its
// prompt was cut into steps, or on being preempted.
#include <gtest/gtest.h>

#include "engine/random_schedule.h"
#include "engine/test_engine.h"

namespace warmpath {
namespace {

#ifdef __SANITIZE_THREAD__
constexpr uint32_t kSchedules = 50;  // tens of times slower, and what it looks for isn't in the numbers
#else
constexpr uint32_t kSchedules = 500;
#endif

TEST(ScheduleTest, FiveHundredRandomSchedulesAnswerLikeOneRequestAtATime) {
  int64_t compared = 0, preemptions = 0, cached = 0, copied = 0, evicted = 0;
  for (uint32_t seed = 0; seed < kSchedules && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    // Every few schedules another squeeze: KV from barely one request to plenty, steps from a few tokens to many.
    TestBackend::Options backend;
    backend.kv_blocks = 14 + static_cast<int64_t>(seed * 7 % 40);
    backend.context_tokens = 220;  // 14 blocks
    EngineOptions options = test_options();
    options.max_running = 1 + static_cast<int32_t>(seed % 17);
    options.step_tokens = options.max_running + static_cast<int32_t>(seed * 13 % 100);
    options.prefix_cache = seed % 10 != 0;
    TestEngine engine(backend, options);
    RandomSchedule::Options crowd;
    crowd.requests = 10;
    crowd.most_tokens = 100;
    RandomSchedule schedule(seed, crowd);
    schedule.run(*engine.core);
    const ReplicaStats stats = engine.core->stats();
    preemptions += stats.preemptions;
    cached += stats.cached_tokens;
    copied += stats.tail_tokens;
    evicted += stats.evicted_blocks;
    TestBackend alone_backend(TestBackend::Options{});
    compared += schedule.compare_with_alone([&] {
      EngineOptions alone = test_options();
      alone.max_running = 1;
      return std::make_unique<EngineCore>(alone_backend, engine.vocabulary, alone, engine.clock, 1);
    });
  }
  std::printf(
      "%lld tokens compared; %lld preemptions, %lld cached and %lld copied prompt tokens, %lld evicted "
      "blocks\n",
      static_cast<long long>(compared), static_cast<long long>(preemptions), static_cast<long long>(cached),
      static_cast<long long>(copied), static_cast<long long>(evicted));
  EXPECT_GT(compared, kSchedules * 300);
  EXPECT_GT(preemptions, kSchedules / 2);
  EXPECT_GT(cached, kSchedules * 30);
  EXPECT_GT(copied, kSchedules * 10);
  EXPECT_GT(evicted, kSchedules * 10);
}

// The reference of the test above is the engine itself, alone. This one grows a history token by token, with no engine.
TEST(ScheduleTest, OneRequestAloneAnswersLikeThePlainModel) {
  for (int index = 0; index < 50; ++index) {
    TestEngine engine;
    GenerateRequest request = test_request("a", test_prompt(1 + index * 5, index), 40, index % 3 == 0 ? 0.0f : 0.9f);
    request.sampling.repetition_penalty = index % 2 == 0 ? 1.0f : 1.2f;
    request.sampling.top_k = index % 5;
    const auto sink = engine.start(request);
    engine.run();
    EXPECT_EQ(sink->tokens[0], engine.reference(request));
  }
}

}  // namespace
}  // namespace warmpath

#include "engine/engine_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <ctime>
#include <mutex>
#include <thread>

#include "engine/kv_mirror.h"
#include "engine/test_engine.h"

namespace warmpath {
namespace {

using testing::HasSubstr;

struct EngineLoopTest : testing::Test {
  explicit EngineLoopTest() : backend(TestBackend::Options{}), vocabulary(synthetic_vocabulary()) {}
  std::unique_ptr<Engine> engine(EngineOptions options = test_options()) {
    return Engine::create(backend, vocabulary, std::move(options), SystemClock::instance());
  }
  TestBackend backend;
  const Vocabulary vocabulary;
};

double process_cpu_seconds() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

TEST_F(EngineLoopTest, ManyCallersEachGetTheirOwnAnswer) {
  const TestEngine reference;
  const std::unique_ptr<Engine> loop = engine();
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&, caller] {
      for (int turn = 0; turn < 10; ++turn) {
        const GenerateRequest request = test_request(std::to_string(caller) + "." + std::to_string(turn),
                                                     test_prompt(40 + turn, caller % 2), 12, 0.8f);
        const auto sink = std::make_shared<RecordingSink>();
        const Status status = loop->submit(request, sink);
        ASSERT_TRUE(status.ok()) << status.to_string();
        EXPECT_TRUE(sink->wait().ok());
        EXPECT_EQ(sink->tokens[0], reference.reference(request));
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(loop->stats().requests, 40);
}

TEST_F(EngineLoopTest, CancelIsHeardWithinOneStep) {
  const std::unique_ptr<Engine> loop = engine();
  backend.hold();
  const auto sink = std::make_shared<RecordingSink>();
  ASSERT_TRUE(loop->submit(test_request("a", test_prompt(40), 1000), sink).ok());
  backend.wait_until_held();
  loop->cancel("a");
  loop->cancel("unknown");
  backend.release();
  EXPECT_EQ(sink->wait().code(), StatusCode::kCancelled);
  EXPECT_LE(sink->tokens[0].size(), 1u);
}

TEST_F(EngineLoopTest, ASinkMayCancelItsOwnRequest) {
  const std::unique_ptr<Engine> loop = engine();
  const auto sink = std::make_shared<RecordingSink>();
  sink->on_each_update = [&] { loop->cancel("a"); };
  GenerateRequest request = test_request("a", test_prompt(40), 1000);
  request.sampling.min_tokens = 1000;
  ASSERT_TRUE(loop->submit(request, sink).ok());
  EXPECT_EQ(sink->wait().code(), StatusCode::kCancelled);
  EXPECT_EQ(sink->tokens[0].size(), 1u);
}

TEST_F(EngineLoopTest, RefusesWhatItCannotTake) {
  EngineOptions options = test_options();
  options.max_queued = 2;
  options.max_running = 1;
  const std::unique_ptr<Engine> loop = engine(options);
  backend.hold();
  std::vector<std::shared_ptr<RecordingSink>> sinks;
  const auto submit = [&](const std::string& id) {
    sinks.push_back(std::make_shared<RecordingSink>());
    return loop->submit(test_request(id, test_prompt(20), 3), sinks.back());
  };
  ASSERT_TRUE(submit("running").ok());
  backend.wait_until_held();
  EXPECT_EQ(loop->stats().running, 1);
  EXPECT_EQ(loop->stats().queued, 0);
  ASSERT_TRUE(submit("first").ok());
  ASSERT_TRUE(submit("second").ok());
  Status status = submit("running");
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("in use"));
  status = submit("too many");
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message(), HasSubstr("holds 2"));
  loop->drain();
  EXPECT_TRUE(loop->stats().draining);
  EXPECT_EQ(submit("late").code(), StatusCode::kUnavailable);
  backend.release();
  EXPECT_TRUE(sinks[0]->wait().ok()) << "what runs finishes";
}

TEST_F(EngineLoopTest, DestructionEndsEveryRequestOnce) {
  std::vector<std::shared_ptr<RecordingSink>> sinks;
  {
    EngineOptions options = test_options();
    options.max_running = 2;
    const std::unique_ptr<Engine> loop = engine(options);
    for (int index = 0; index < 8; ++index) {
      sinks.push_back(std::make_shared<RecordingSink>());
      GenerateRequest request = test_request(std::to_string(index), test_prompt(50, index), 4000);
      request.sampling.min_tokens = 4000;
      ASSERT_TRUE(loop->submit(request, sinks.back()).ok());
    }
  }
  for (const auto& sink : sinks) {
    ASSERT_TRUE(sink->done.has_value());
    EXPECT_EQ(sink->done->code(), StatusCode::kCancelled);
  }
}

TEST_F(EngineLoopTest, SubscribersSeeASnapshotAndThenEveryBatch) {
  const std::unique_ptr<Engine> loop = engine();
  struct Listener {
    std::mutex mutex;
    KvMirror mirror;
    int calls = 0;
  };
  const auto listener = [](Listener& to) {
    return [&to](const KvEventBatch& batch) {
      const std::lock_guard lock(to.mutex);
      to.mirror.apply(batch);
      ++to.calls;
    };
  };
  Listener early, late;
  const int64_t early_id = loop->subscribe(listener(early));
  for (int index = 0; index < 20; ++index) {
    const auto sink = std::make_shared<RecordingSink>();
    if (index == 10) loop->subscribe(listener(late));
    ASSERT_TRUE(loop->submit(test_request("a" + std::to_string(index), test_prompt(300, index), 20), sink).ok());
    EXPECT_TRUE(sink->wait().ok());
  }
  loop->pin({}, 1);  // returns after everything above was published
  int calls;
  {
    const std::scoped_lock lock(early.mutex, late.mutex);
    EXPECT_EQ(early.mirror.error(), "");
    EXPECT_EQ(late.mirror.error(), "");
    EXPECT_EQ(early.mirror.copies(), late.mirror.copies());
    EXPECT_GT(early.mirror.copies().size(), 200u);
    calls = early.calls;
  }
  loop->unsubscribe(early_id);
  const auto sink = std::make_shared<RecordingSink>();
  ASSERT_TRUE(loop->submit(test_request("last", test_prompt(300, 77), 20), sink).ok());
  EXPECT_TRUE(sink->wait().ok());
  EXPECT_EQ(early.calls, calls);
}

TEST_F(EngineLoopTest, AnIdleEngineSleepsButForHeartbeats) {
  const std::unique_ptr<Engine> loop = engine();
  std::mutex mutex;
  std::condition_variable changed;
  KvMirror mirror;
  const double before = process_cpu_seconds();
  loop->subscribe([&](const KvEventBatch& batch) {
    const std::lock_guard lock(mutex);
    mirror.apply(batch);
    changed.notify_all();
  });
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return mirror.heartbeats() == 2; });  // about two seconds
  EXPECT_LT(process_cpu_seconds() - before, 0.3) << "a loop that polls uses all of them";
  EXPECT_EQ(mirror.error(), "");
}

TEST_F(EngineLoopTest, AHeartbeatOfAFullCacheAnnouncesWhatGoesNext) {
  ManualClock clock;
  const std::unique_ptr<Engine> loop = Engine::create(backend, vocabulary, test_options(), clock);
  KvMirror mirror;
  loop->subscribe([&](const KvEventBatch& batch) { mirror.apply(batch); });
  const auto run = [&](int salt) {
    const auto sink = std::make_shared<RecordingSink>();
    ASSERT_TRUE(loop->submit(test_request(std::to_string(salt), test_prompt(112, salt), 1), sink).ok());
    EXPECT_TRUE(sink->wait().ok());
    loop->pin({}, 1);  // returns after the step was published
  };
  run(0);
  clock.advance_s(1);
  run(1);
  EXPECT_EQ(mirror.heartbeats(), 1);
  EXPECT_TRUE(mirror.evict_soon().empty()) << "there is room";
  for (int salt = 2; salt < 60; ++salt) run(salt);
  clock.advance_s(1);
  run(60);
  EXPECT_EQ(mirror.heartbeats(), 2);
  EXPECT_EQ(mirror.error(), "");
  const std::vector<Hash128> announced = mirror.evict_soon();
  ASSERT_GE(announced.size(), 7u);
  run(61);  // needs 7 blocks
  for (size_t index = 0; index < 7; ++index) EXPECT_FALSE(mirror.copies().contains(announced[index])) << index;
}

TEST_F(EngineLoopTest, HintsPinAndReleaseAPrefix) {
  const std::unique_ptr<Engine> loop = engine();
  const GenerateRequest request = test_request("a", test_prompt(100), 2);
  const auto sink = std::make_shared<RecordingSink>();
  ASSERT_TRUE(loop->submit(request, sink).ok());
  EXPECT_TRUE(sink->wait().ok());
  const std::vector<Hash128> chain = chain_of(chain_root(test_options().fingerprint, "", ""), request.prompt);
  EXPECT_EQ(loop->pin(chain, 60), 6);
  for (int index = 0; index < 60; ++index) {  // 60 * 7 blocks through a pool of 256
    const auto filler = std::make_shared<RecordingSink>();
    ASSERT_TRUE(loop->submit(test_request("f" + std::to_string(index), test_prompt(112, index + 1), 1), filler).ok());
    EXPECT_TRUE(filler->wait().ok());
  }
  const auto again = std::make_shared<RecordingSink>();
  ASSERT_TRUE(loop->submit(test_request("b", request.prompt, 2), again).ok());
  EXPECT_TRUE(again->wait().ok());
  EXPECT_EQ(again->start->cached_tokens(), 96);
  EXPECT_EQ(loop->release(chain), 6);
  EXPECT_EQ(loop->release({{Hash128{1, 2}}}), 0);
}

}  // namespace
}  // namespace warmpath

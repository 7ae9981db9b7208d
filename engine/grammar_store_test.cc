#include "engine/grammar_store.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "engine/engine_loop.h"
#include "engine/test_engine.h"

namespace warmpath {
namespace {

// A compiler that takes as long as the test says, and makes grammars of `size` bytes.
class SlowGrammar final : public CompiledGrammar {
 public:
  explicit SlowGrammar(size_t size) : size_(size) {}
  size_t bytes() const override { return size_; }

 private:
  const size_t size_;
};

class SlowCompiler final : public GrammarCompiler {
 public:
  struct Shared {
    std::mutex mutex;  // held: compilations wait
    std::atomic<int> compiled{0};
  };
  explicit SlowCompiler(Shared& shared) : shared_(shared) {}
  Result<std::shared_ptr<const CompiledGrammar>> compile(const Grammar& grammar) const override {
    const std::lock_guard lock(shared_.mutex);
    ++shared_.compiled;
    if (grammar.text == "bad") return invalid_argument("bad");
    return std::shared_ptr<const CompiledGrammar>(std::make_shared<SlowGrammar>(1000));
  }

 private:
  Shared& shared_;
};

struct GrammarStoreTest : testing::Test {
  std::unique_ptr<GrammarStore> store(GrammarStore::Options options = {}) {
    return std::make_unique<GrammarStore>(
        [this]() -> Result<std::unique_ptr<GrammarCompiler>> { return {std::make_unique<SlowCompiler>(shared)}; },
        options);
  }
  static GrammarStore::Compiled get(GrammarStore& store, const std::string& text) {
    std::promise<GrammarStore::Compiled> promise;
    store.get(Grammar::literal(text), [&](const GrammarStore::Compiled& compiled) { promise.set_value(compiled); });
    return promise.get_future().get();
  }
  SlowCompiler::Shared shared;
};

TEST_F(GrammarStoreTest, CompilesEachGrammarOnceAndRefusesOnce) {
  const auto kept = store();
  const auto first = get(*kept, "a");
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(*get(*kept, "a"), *first) << "the very same";
  EXPECT_FALSE(get(*kept, "bad").ok());
  EXPECT_FALSE(get(*kept, "bad").ok());
  EXPECT_EQ(shared.compiled, 2);
  EXPECT_EQ(kept->compilations(), 2);
}

TEST_F(GrammarStoreTest, OneCompilationServesAllWhoWait) {
  const auto kept = store();
  std::atomic<int> ready{0};
  {
    const std::lock_guard hold(shared.mutex);
    for (int n = 0; n < 5; ++n) kept->get(Grammar::literal("a"), [&](const GrammarStore::Compiled&) { ++ready; });
    EXPECT_EQ(ready, 0);
  }
  EXPECT_TRUE(get(*kept, "b").ok());  // after "a"
  EXPECT_EQ(ready, 5);
  EXPECT_EQ(shared.compiled, 2);
}

TEST_F(GrammarStoreTest, BoundsItsBytesAndItsQueue) {
  const auto kept = store({.most_bytes = 4000, .most_waiting = 2});
  for (int n = 0; n < 20; ++n) EXPECT_TRUE(get(*kept, std::to_string(n)).ok());
  EXPECT_LE(kept->bytes(), 4000u);
  EXPECT_EQ(shared.compiled, 20);
  EXPECT_TRUE(get(*kept, "19").ok());
  EXPECT_EQ(shared.compiled, 20) << "the last one is still there";
  EXPECT_TRUE(get(*kept, "0").ok());
  EXPECT_EQ(shared.compiled, 21) << "the first one is not";

  std::atomic<int> full{0}, ready{0};
  {
    const std::lock_guard hold(shared.mutex);
    for (int n = 100; n < 110; ++n) {
      kept->get(Grammar::literal(std::to_string(n)), [&](const GrammarStore::Compiled& compiled) {
        ++(compiled.ok() ? ready : full);
        EXPECT_TRUE(compiled.ok() || compiled.status().code() == StatusCode::kResourceExhausted);
      });
    }
    EXPECT_GE(full, 7);
  }
  while (ready + full < 10) std::this_thread::yield();
}

TEST_F(GrammarStoreTest, WhatStillWaitsAtTheEndIsCancelled) {
  std::atomic<int> cancelled{0};
  auto kept = store();
  std::unique_lock hold(shared.mutex);
  for (int n = 0; n < 3; ++n) {
    kept->get(Grammar::literal(std::to_string(n)), [&](const GrammarStore::Compiled& compiled) {
      if (!compiled.ok() && compiled.status().code() == StatusCode::kCancelled) ++cancelled;
    });
  }
  std::thread ender([&] { kept.reset(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  hold.unlock();
  ender.join();
  EXPECT_GE(cancelled, 2);
}

// In the loop: a request whose grammar is being compiled holds up nobody, and can be cancelled.
TEST(GrammarLoopTest, OthersGoOnWhileAGrammarIsCompiled) {
  if (!GrammarCompiler::available()) GTEST_SKIP() << "this build has no structured output";
  TestBackend backend(TestBackend::Options{});
  const Vocabulary vocabulary = synthetic_vocabulary();
  const auto loop = Engine::create(backend, vocabulary, test_options(), SystemClock::instance());
  // Large enough to take a while.
  std::string schema = R"({"type":"object","properties":{)";
  for (int n = 0; n < 400; ++n)
    schema += (n > 0 ? ",\"" : "\"") + std::string("property_number_") + std::to_string(n) + R"(":{"type":"string"})";
  GenerateRequest large = test_request("large", test_prompt(40), 8, 1);
  large.grammar = Grammar::json_schema(schema + "}}", 1);
  GenerateRequest cancelled = large;
  cancelled.request_id = "cancelled";
  const auto large_sink = std::make_shared<RecordingSink>();
  const auto cancelled_sink = std::make_shared<RecordingSink>();
  const auto plain_sink = std::make_shared<RecordingSink>();
  ASSERT_TRUE(loop->submit(large, large_sink).ok());
  ASSERT_TRUE(loop->submit(cancelled, cancelled_sink).ok());
  loop->cancel("cancelled");
  ASSERT_TRUE(loop->submit(test_request("plain", test_prompt(40), 8), plain_sink).ok());
  EXPECT_TRUE(plain_sink->wait().ok());
  EXPECT_EQ(cancelled_sink->wait().code(), StatusCode::kCancelled);
  EXPECT_TRUE(large_sink->wait().ok());
  EXPECT_EQ(large_sink->tokens[0].size(), 8u);
  GenerateRequest refused = test_request("refused", test_prompt(40), 8, 1);
  refused.grammar = Grammar::json_schema(R"({"not":{}})", 1);
  const auto refused_sink = std::make_shared<RecordingSink>();
  ASSERT_TRUE(loop->submit(refused, refused_sink).ok());
  EXPECT_EQ(refused_sink->wait().code(), StatusCode::kInvalidArgument);
  EXPECT_NE(refused_sink->wait().message().find("'not' at #"), std::string::npos);
}

}  // namespace
}  // namespace warmpath

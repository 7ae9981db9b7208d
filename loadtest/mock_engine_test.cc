#include "loadtest/mock_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <mutex>
#include <numeric>
#include <thread>

#include "base/block_chain.h"
#include "engine/kv_mirror.h"
#include "engine/recording_sink.h"
#include "text/vocabulary.h"

namespace warmpath {
namespace {

using testing::HasSubstr;

TEST(MockScript, TheFirstLineThatFitsAnswers) {
  const auto script = MockScript::parse(
      "# a comment\n\n"
      R"({"when": "weather", "reply": "It rains.", "times": 1})"
      "\n"
      R"({"when": "weather", "fault": "error", "after_tokens": 2, "status": "internal", "message": "storm"})"
      "\n"
      R"({"reply": "else"})"
      "\n");
  ASSERT_TRUE(script.ok()) << script.status().to_string();
  EXPECT_TRUE((*script)->needs_text());
  EXPECT_EQ((*script)->pick("the weather?")->reply, "It rains.");
  const MockReply* second = (*script)->pick("the weather?");
  EXPECT_EQ(second->fault, MockReply::Fault::kError);
  EXPECT_EQ(second->after_tokens, 2);
  EXPECT_EQ(second->status, Status(StatusCode::kInternal, "storm"));
  EXPECT_EQ((*script)->pick("hello")->reply, "else");
  EXPECT_EQ((*MockScript::parse(""))->pick("x"), nullptr);
}

TEST(MockScript, ALineMaySayWhatMustBeAbsent) {
  const auto script = MockScript::parse(R"({"when": "weather", "unless": "<tools>", "reply": "a title"})"
                                        "\n"
                                        R"({"unless": "rain", "reply": "dry"})"
                                        "\n");
  ASSERT_TRUE(script.ok()) << script.status().to_string();
  EXPECT_TRUE((*script)->needs_text());
  EXPECT_EQ((*script)->pick("the weather")->reply, "a title");
  EXPECT_EQ((*script)->pick("<tools> the weather")->reply, "dry");
  EXPECT_EQ((*script)->pick("<tools> rain"), nullptr);
}

TEST(MockScript, CallsAndReasoningAreWrittenAsAModelWritesThem) {
  const auto script = MockScript::parse(
      R"({"reply": "Look.", "reasoning": "hm", "calls": [{"name": "ls", "arguments": {"path": "a\"b"}}, {"name": "pwd"}]})"
      "\n"
      R"({"calls": []})");
  ASSERT_TRUE(script.ok()) << script.status().to_string();
  EXPECT_EQ((*script)->pick("x")->reply,
            "<think>\nhm\n</think>\n\nLook.\n<tool_call>\n{\"name\": \"ls\", \"arguments\": {\"path\":\"a\\\"b\"}}\n"
            "</tool_call>\n<tool_call>\n{\"name\": \"pwd\", \"arguments\": {}}\n</tool_call>");
}

TEST(MockScript, MistakesAreNamed) {
  for (const auto& [line, text] :
       std::vector<std::pair<std::string, std::string>>{{"\n{", "script line 2: it is not a JSON object"},
                                                        {"[]", "not a JSON object"},
                                                        {R"({"repl": "x"})", "field 'repl' is not known"},
                                                        {R"({"reply": 3})", "'reply' must be a string"},
                                                        {R"({"calls": [{"arguments": {}}]})", "'calls' must hold"},
                                                        {R"({"times": 0})", "'times' must be a number from 1 on"},
                                                        {R"({"fault": "boom"})", "use refuse, error, hang or exit"},
                                                        {R"({"status": "boom"})", "status 'boom' is not known"}}) {
    EXPECT_THAT(MockScript::parse(line).status().message(), HasSubstr(text)) << line;
  }
  EXPECT_EQ(MockScript::read("/nonexistent").status().code(), StatusCode::kNotFound);
}

class MockEngineTest : public testing::Test {
 protected:
  MockEngineTest() {
    options_.tokenizer = *Tokenizer::create(synthetic_vocabulary());
    options_.fingerprint = hash128("test");
    options_.context_tokens = 1024;
    options_.kv_blocks = 64;
  }
  ~MockEngineTest() override { timer_.stop(); }

  MockEngine& start() {
    engine_ = std::make_unique<MockEngine>(options_, timer_);
    return *engine_;
  }
  void script(const std::string& text) { options_.script = *MockScript::parse(text); }

  static GenerateRequest request(std::string id, int tokens, int max_tokens = 8, TokenId first = 0) {
    GenerateRequest made;
    made.request_id = std::move(id);
    made.prompt.resize(static_cast<size_t>(tokens));
    for (int i = 0; i < tokens; ++i) made.prompt[static_cast<size_t>(i)] = (first + i) % 256;
    made.sampling.max_tokens = max_tokens;
    return made;
  }
  Status run(GenerateRequest made, const std::shared_ptr<RecordingSink>& sink) {
    WARMPATH_RETURN_IF_ERROR(engine_->submit(std::move(made), sink));
    return sink->wait();
  }
  std::string text_of(const RecordingSink& sink) { return options_.tokenizer->decode(sink.tokens[0]); }

  MockTimer timer_;  // stopped before the engine goes
  MockEngineOptions options_;
  std::unique_ptr<MockEngine> engine_;
};

TEST_F(MockEngineTest, AnswersAtOnceAndSecondTimeFromTheCache) {
  start();
  for (int round = 0; round < 2; ++round) {
    auto sink = std::make_shared<RecordingSink>();
    ASSERT_TRUE(engine_->submit(request("a", 100), sink).ok());
    ASSERT_TRUE(sink->done) << "instant";
    EXPECT_EQ(sink->tokens[0].size(), 8u);
    EXPECT_EQ(text_of(*sink), "This is ");
    EXPECT_EQ(sink->finish[0]->reason, FinishReason::kLength);
    EXPECT_EQ(sink->finish[0]->completion_tokens, 8);
    EXPECT_EQ(sink->start->cached_tokens(), round == 0 ? 0 : 96);
    EXPECT_EQ(sink->timings->prefill_tokens, round == 0 ? 100 : 4);
    EXPECT_EQ(sink->updates, 1);
  }
  auto sink = std::make_shared<RecordingSink>();
  GenerateRequest salted = request("a", 100);
  salted.salt = "tenant";
  EXPECT_TRUE(run(salted, sink).ok());
  EXPECT_EQ(sink->start->cached_tokens(), 0) << "another tenant's blocks";
  EXPECT_EQ(engine_->stats().requests, 3);
  EXPECT_EQ(engine_->stats().cached_tokens, 96);
  engine_->check_integrity();
}

TEST_F(MockEngineTest, EveryChoiceAndLogProbsWhenAsked) {
  start();
  auto sink = std::make_shared<RecordingSink>(3);
  GenerateRequest made = request("a", 20, 4);
  made.sampling.n = 3;
  made.sampling.top_logprobs = 1;
  EXPECT_TRUE(run(made, sink).ok());
  EXPECT_EQ(sink->tokens[0], sink->tokens[2]);
  EXPECT_EQ(sink->outputs.size(), 12u);
  EXPECT_EQ(sink->outputs[0].top_logprobs.size(), 1u);
}

TEST_F(MockEngineTest, ScriptedRepliesEndWithTheEndTokenAndResume) {
  script(R"({"reply": "one two"})");
  start();
  auto whole = std::make_shared<RecordingSink>();
  EXPECT_TRUE(run(request("a", 20, 100), whole).ok());
  EXPECT_EQ(text_of(*whole).substr(0, 7), "one two");
  EXPECT_EQ(whole->finish[0]->reason, FinishReason::kStop);
  EXPECT_EQ(whole->finish[0]->stop_token, options_.tokenizer->vocabulary().end_of_generation.front());

  auto rest = std::make_shared<RecordingSink>();
  GenerateRequest resumed = request("b", 20, 100);
  resumed.output_prefix.assign(whole->tokens[0].begin(), whole->tokens[0].begin() + 3);
  EXPECT_TRUE(run(resumed, rest).ok());
  std::vector<TokenId> joined = resumed.output_prefix;
  joined.insert(joined.end(), rest->tokens[0].begin(), rest->tokens[0].end());
  EXPECT_EQ(joined, whole->tokens[0]);
  EXPECT_EQ(rest->finish[0]->completion_tokens, whole->finish[0]->completion_tokens);
}

TEST_F(MockEngineTest, PromptsThatDoNotFitAreRefused) {
  start();
  auto sink = std::make_shared<RecordingSink>();
  EXPECT_EQ(engine_->submit(request("a", 1020, 8), sink).code(), StatusCode::kContextLengthExceeded);
  GenerateRequest alien = request("a", 20);
  alien.prompt[3] = 5000;
  EXPECT_THAT(engine_->submit(alien, sink).message(), HasSubstr("token 5000"));
  engine_->drain();
  EXPECT_EQ(engine_->submit(request("a", 20), sink).code(), StatusCode::kUnavailable);
  EXPECT_TRUE(engine_->stats().draining);
}

TEST_F(MockEngineTest, TheTimingModelHolds) {
  options_.prefill_tokens_per_s = 2'000;  // 100 tokens: 50 ms
  options_.decode_step_s = 0.005;
  start();
  auto first = std::make_shared<RecordingSink>(), second = std::make_shared<RecordingSink>();
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_TRUE(engine_->submit(request("a", 100, 4, 0), first).ok());
  ASSERT_TRUE(engine_->submit(request("b", 100, 4, 7), second).ok());
  EXPECT_TRUE(first->wait().ok());
  EXPECT_TRUE(second->wait().ok());
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  EXPECT_GE(seconds, 0.115) << "two prefills one after the other, then three decode steps";
  EXPECT_NEAR(first->start->prefill_s, 0.05, 0.002);
  EXPECT_GT(second->start->prefill_s, 0.05) << "the second waits for the first";
  EXPECT_EQ(first->updates, 4);
  EXPECT_GE(first->timings->decode_s, 0.014);
}

TEST_F(MockEngineTest, CancelFreesTheSlotAndTheNextStarts) {
  options_.max_running = 1;
  script(R"({"when": "", "fault": "hang", "after_tokens": 2, "times": 1})");
  start();
  auto hanging = std::make_shared<RecordingSink>(), waiting = std::make_shared<RecordingSink>();
  ASSERT_TRUE(engine_->submit(request("a", 20), hanging).ok());
  ASSERT_TRUE(engine_->submit(request("b", 20), waiting).ok());
  EXPECT_EQ(hanging->tokens[0].size(), 2u);
  EXPECT_FALSE(hanging->done);
  EXPECT_FALSE(waiting->done);
  EXPECT_EQ(engine_->stats().running, 1);
  EXPECT_EQ(engine_->stats().queued, 1);
  EXPECT_EQ(engine_->submit(request("a", 20), waiting).code(), StatusCode::kInvalidArgument) << "the id is in use";
  engine_->cancel("a");
  EXPECT_EQ(hanging->wait().code(), StatusCode::kCancelled);
  EXPECT_TRUE(waiting->wait().ok());
  EXPECT_EQ(engine_->stats().running, 0);
  engine_->check_integrity();
}

TEST_F(MockEngineTest, FaultsAndDeadlines) {
  script(R"({"fault": "refuse", "status": "resource_exhausted", "message": "full", "times": 1})"
         "\n"
         R"({"fault": "error", "after_tokens": 3, "message": "gone", "times": 1})"
         "\n"
         R"({"fault": "hang"})");
  start();
  auto sink = std::make_shared<RecordingSink>();
  EXPECT_EQ(engine_->submit(request("a", 20), sink), Status(StatusCode::kResourceExhausted, "full"));
  EXPECT_EQ(run(request("b", 20), sink), Status(StatusCode::kUnavailable, "gone"));
  EXPECT_EQ(sink->tokens[0].size(), 3u);
  auto late = std::make_shared<RecordingSink>();
  GenerateRequest hurried = request("c", 20);
  hurried.deadline_s = 0.02;
  EXPECT_EQ(run(hurried, late).code(), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(engine_->stats().running, 0);
}

// A subscriber believes exactly what the replica holds, through evictions, and hears it confirmed.
TEST_F(MockEngineTest, EventsMirrorTheCache) {
  start();
  for (int i = 0; i < 5; ++i) {
    auto sink = std::make_shared<RecordingSink>();
    ASSERT_TRUE(run(request("before", 200, 8, i * 31), sink).ok());
  }
  std::mutex mutex;
  KvMirror mirror;
  const int64_t id = engine_->subscribe([&](const KvEventBatch& batch) {
    const std::lock_guard lock(mutex);
    mirror.apply(batch);
  });
  for (int i = 0; i < 50; ++i) {
    auto sink = std::make_shared<RecordingSink>();
    ASSERT_TRUE(run(request("during", 100 + i, 8, i * 17), sink).ok());
  }
  for (int wait = 0; wait < 300; ++wait) {
    const std::lock_guard lock(mutex);
    if (mirror.heartbeats() > 0) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  const std::lock_guard lock(mutex);
  EXPECT_EQ(mirror.error(), "");
  EXPECT_GT(mirror.heartbeats(), 0);
  const ReplicaStats stats = engine_->stats();
  EXPECT_EQ(static_cast<int64_t>(mirror.copies().size()), stats.cached_blocks);
  EXPECT_GT(stats.evicted_blocks, 0);
  const std::vector<TokenId> last = request("", 149, 8, 49 * 17).prompt;
  for (const Hash128 identity : chain_of(chain_root(options_.fingerprint, "", ""), last)) {
    EXPECT_TRUE(mirror.copies().contains(identity)) << "the gateway computes the same identities";
  }
  engine_->unsubscribe(id);
}

}  // namespace
}  // namespace warmpath

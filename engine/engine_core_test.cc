#include "engine/engine_core.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/test_engine.h"

namespace warmpath {
namespace {

using testing::HasSubstr;

TEST(EngineCoreTest, OneRequestGivesTheReferenceAnswer) {
  TestEngine engine;
  const GenerateRequest request = test_request("a", test_prompt(100), 40);
  const auto sink = engine.start(request);
  engine.run();
  ASSERT_TRUE(sink->done.has_value() && sink->done->ok());
  EXPECT_EQ(sink->tokens[0], engine.reference(request));
  EXPECT_EQ(sink->tokens[0].size(), 40u);
  EXPECT_EQ(sink->finish[0]->reason, FinishReason::kLength);
  EXPECT_EQ(sink->finish[0]->completion_tokens, 40);
  EXPECT_EQ(sink->updates, 40) << "one message a step";
  EXPECT_EQ(sink->timings->prefill_tokens, 100);
  EXPECT_EQ(sink->timings->decode_steps, 39);
  EXPECT_DOUBLE_EQ(sink->timings->mean_decode_batch, 1);
  EXPECT_EQ(engine.core->stats().generated_tokens, 40);
  EXPECT_EQ(engine.core->stats().used_blocks, 0);
}

TEST(EngineCoreTest, ACacheHitComputesOnlyTheRestAndAnswersTheSame) {
  TestEngine engine;
  const GenerateRequest first = test_request("a", test_prompt(100), 20);
  const auto first_sink = engine.start(first);
  engine.run();
  EXPECT_EQ(first_sink->start->cached_tokens(), 0);
  // The same prompt again: 6 whole blocks are there, 3 tokens are copied from the 7th, the last one is computed.
  GenerateRequest second = first;
  second.request_id = "b";
  int64_t computed = engine.backend.computed_tokens();
  const auto second_sink = engine.start(second);
  engine.run();
  EXPECT_EQ(second_sink->tokens, first_sink->tokens);
  EXPECT_EQ(second_sink->start->cached_device_tokens, 96);
  EXPECT_EQ(second_sink->start->tail_tokens, 3);
  EXPECT_EQ(second_sink->timings->prefill_tokens, 1);
  EXPECT_EQ(engine.backend.computed_tokens() - computed, 1 + 19);
  // The next turn: decoded blocks are found as well. 100 + 19 computed tokens are 7 whole blocks and 7 more.
  GenerateRequest third = test_request("c", first.prompt, 5);
  third.prompt.insert(third.prompt.end(), first_sink->tokens[0].begin(), first_sink->tokens[0].end());
  third.prompt.insert(third.prompt.end(), 30, 5);
  const auto third_sink = engine.start(third);
  engine.run();
  EXPECT_EQ(third_sink->start->cached_device_tokens, 112);
  EXPECT_EQ(third_sink->start->tail_tokens, 7);
  EXPECT_EQ(third_sink->tokens[0], engine.reference(third));
  const ReplicaStats stats = engine.core->stats();
  EXPECT_EQ(stats.cached_tokens, 96 + 112);
  EXPECT_EQ(stats.tail_tokens, 3 + 7);
}

TEST(EngineCoreTest, AnEditedPromptCopiesWhatABlockBeginsWith) {
  TestEngine engine;
  engine.start(test_request("a", test_prompt(100), 1));
  engine.run();
  GenerateRequest edited = test_request("b", test_prompt(100), 20);
  edited.prompt[42] = 5;
  const auto sink = engine.start(edited);
  engine.run();
  EXPECT_EQ(sink->start->cached_tokens(), 32);
  EXPECT_EQ(sink->start->tail_tokens, 10);
  EXPECT_EQ(sink->tokens[0], engine.reference(edited));
}

TEST(EngineCoreTest, ARunningAnswersLastBlockIsCopiedWhileItGrows) {
  TestEngine engine;
  const GenerateRequest first = test_request("a", test_prompt(100), 40);
  const auto first_sink = engine.start(first);
  for (int step = 0; step < 5; ++step) engine.step();
  GenerateRequest second = test_request("b", test_prompt(105), 40);
  const auto second_sink = engine.start(second);
  engine.step();  // copies 4 tokens of the block that `a` writes to in the same step
  EXPECT_EQ(engine.backend.copied_tokens(), 4);
  engine.run();
  EXPECT_EQ(first_sink->tokens[0], engine.reference(first));
  EXPECT_EQ(second_sink->tokens[0], engine.reference(second));
}

TEST(EngineCoreTest, WithoutRoomForTheBlockToCopyFromItsTokensAreComputed) {
  TestBackend::Options backend;
  backend.kv_blocks = 4;
  TestEngine engine(backend);
  engine.start(test_request("a", test_prompt(60), 1));
  engine.run();
  // 64 tokens take the whole cache: what the fourth block holds goes to make room for its successor.
  GenerateRequest request = test_request("b", test_prompt(56), 1);
  request.prompt.insert(request.prompt.end(), 7, 5);
  const auto sink = engine.start(request);
  engine.run();
  EXPECT_EQ(sink->start->cached_tokens(), 48);
  EXPECT_EQ(sink->start->tail_tokens, 0);
  EXPECT_EQ(sink->tokens[0], engine.reference(request));
}

TEST(EngineCoreTest, AFullHitComputesOnlyTheLastToken) {
  TestEngine engine;
  engine.start(test_request("a", test_prompt(64), 1));
  engine.run();
  const int64_t computed = engine.backend.computed_tokens();
  const auto sink = engine.start(test_request("b", test_prompt(64), 1));
  engine.run();
  EXPECT_EQ(sink->start->cached_device_tokens, 48);
  EXPECT_EQ(sink->start->tail_tokens, 15);
  EXPECT_EQ(engine.backend.computed_tokens() - computed, 1);
  EXPECT_EQ(engine.core->stats().cached_blocks, 4) << "the spare copy of the last block was forgotten";
}

TEST(EngineCoreTest, TenantsDoNotShare) {
  TestEngine engine;
  GenerateRequest request = test_request("a", test_prompt(64), 1);
  request.salt = "alice";
  engine.start(request);
  engine.run();
  request.request_id = "b";
  request.salt = "bob";
  const auto sink = engine.start(request);
  engine.run();
  EXPECT_EQ(sink->start->cached_tokens(), 0);
}

TEST(EngineCoreTest, ADecodeWaitsForAtMostOneChunkOfANeighboursPrompt) {
  EngineOptions options = test_options();
  options.step_tokens = 64;
  TestEngine engine({}, options);
  engine.backend.keep_plans();
  const auto decoding = engine.start(test_request("a", test_prompt(10, 1), 50));
  engine.step();
  const auto prompt = engine.start(test_request("b", test_prompt(1000, 2), 3));
  engine.run();
  EXPECT_EQ(decoding->tokens[0].size(), 50u);
  EXPECT_EQ(prompt->tokens[0].size(), 3u);
  for (size_t step = 1; step <= 15; ++step) {
    const StepPlan& plan = engine.backend.plans()[step];
    ASSERT_EQ(plan.sequences.size(), 2u);
    EXPECT_EQ(plan.sequences[0].tokens.size(), 1u) << "the decode comes first";
    EXPECT_EQ(plan.sequences[1].tokens.size(), 63u) << "the budget is used up";
    EXPECT_EQ(plan.sequences[1].logit_rows, 0);
  }
}

TEST(EngineCoreTest, PriorityGoesFirstAndArrivalBreaksTies) {
  EngineOptions options = test_options();
  options.max_running = 1;
  TestEngine engine({}, options);
  std::vector<std::string> order;
  const auto start = [&](const std::string& id, int priority, int salt) {
    GenerateRequest request = test_request(id, test_prompt(20, salt), 2);
    request.priority = priority;
    engine.start(request)->on_each_update = [&order, id] {
      if (order.empty() || order.back() != id) order.push_back(id);
    };
  };
  start("low", -1, 1);
  start("first", 0, 2);
  start("second", 0, 3);
  start("high", 9, 4);
  EXPECT_EQ(engine.core->stats().queued, 4);
  EXPECT_EQ(engine.core->stats().queued_tokens, 80);
  engine.run();
  EXPECT_EQ(order, (std::vector<std::string>{"high", "first", "second", "low"}));
}

TEST(EngineCoreTest, RequestsInOneBatchComputeASharedPrefixOnce) {
  EngineOptions options = test_options();
  options.step_tokens = 128;
  TestEngine engine({}, options);
  const std::vector<TokenId> base = test_prompt(800, 1);
  std::vector<GenerateRequest> requests;
  std::vector<std::shared_ptr<RecordingSink>> sinks;
  for (int index = 0; index < 8; ++index) {
    GenerateRequest request = test_request(std::to_string(index), base, 4);
    for (int extra = 0; extra < 20; ++extra) request.prompt.push_back(200 + index);
    requests.push_back(request);
    sinks.push_back(engine.start(request));
  }
  EXPECT_EQ(engine.core->stats().queued_tokens, 8 * 820);
  engine.run();
  for (size_t index = 0; index < 8; ++index) EXPECT_EQ(sinks[index]->tokens[0], engine.reference(requests[index]));
  // 800 once, and each one's own 20 and 3 decodes.
  EXPECT_EQ(engine.backend.computed_tokens(), 800 + 8 * (20 + 3));
  EXPECT_EQ(engine.core->stats().cached_tokens, 7 * 800);
}

TEST(EngineCoreTest, WhoeverWaitsForASharedPrefixGoesOnWhenItsOwnerLeaves) {
  EngineOptions options = test_options();
  options.step_tokens = 32;
  TestEngine engine({}, options);
  const GenerateRequest owner = test_request("owner", test_prompt(320), 4);
  GenerateRequest waiter = owner;
  waiter.request_id = "waiter";
  const auto owner_sink = engine.start(owner);
  const auto waiter_sink = engine.start(waiter);
  for (int step = 0; step < 3; ++step) engine.step();
  EXPECT_EQ(engine.core->stats().running, 1);
  engine.core->cancel("owner", {StatusCode::kCancelled, "test"});
  engine.core->check_integrity();
  engine.run();
  EXPECT_EQ(owner_sink->done->code(), StatusCode::kCancelled);
  EXPECT_EQ(waiter_sink->tokens[0], engine.reference(waiter));
  EXPECT_EQ(waiter_sink->start->cached_tokens(), 96) << "what the owner had computed is kept";
}

TEST(EngineCoreTest, ChoicesShareThePromptsBlocksAndDifferInTheirDraws) {
  for (const int length : {100, 96}) {
    TestEngine engine;
    GenerateRequest request = test_request("a", test_prompt(length), 30, 1.0f);
    request.sampling.n = 5;
    const auto sink = engine.start(request);
    engine.run();
    for (int32_t choice = 0; choice < 5; ++choice) {
      EXPECT_EQ(sink->tokens[static_cast<size_t>(choice)], engine.reference(request, choice));
      EXPECT_TRUE(sink->finish[static_cast<size_t>(choice)].has_value());
    }
    EXPECT_NE(sink->tokens[0], sink->tokens[1]);
    // The prompt once, its last token once more for each other choice.
    int64_t decoded = 0;
    for (const auto& finish : sink->finish) decoded += finish->completion_tokens - 1;
    EXPECT_EQ(engine.backend.computed_tokens(), length + 4 + decoded);
  }
}

TEST(EngineCoreTest, WithoutThePrefixCacheOnlyTheChoicesOfARequestShare) {
  EngineOptions options = test_options();
  options.prefix_cache = false;
  TestEngine engine({}, options);
  GenerateRequest request = test_request("a", test_prompt(100), 2, 1.0f);
  request.sampling.n = 3;
  engine.start(request);
  engine.run();
  EXPECT_LE(engine.backend.computed_tokens(), 100 + 2 * 4 + 3);
  request.request_id = "b";
  const auto sink = engine.start(request);
  engine.run();
  EXPECT_EQ(sink->start->cached_tokens(), 0);
  EXPECT_EQ(engine.core->stats().free_blocks, 256);
  EXPECT_FALSE(engine.core->journal().flush().has_value()) << "nothing is published";
}

TEST(EngineCoreTest, TooFewBlocksPreemptTheNewestAndNobodysAnswerChanges) {
  TestBackend::Options backend;
  backend.kv_blocks = 12;
  TestEngine engine(backend);
  std::vector<GenerateRequest> requests;
  std::vector<std::shared_ptr<RecordingSink>> sinks;
  for (int index = 0; index < 4; ++index) {
    requests.push_back(test_request(std::to_string(index), test_prompt(30, index + 1), 100));
    requests.back().sampling.min_tokens = 100;
    sinks.push_back(engine.start(requests.back()));
  }
  engine.run();
  for (size_t index = 0; index < 4; ++index) {
    EXPECT_EQ(sinks[index]->tokens[0], engine.reference(requests[index])) << index;
  }
  EXPECT_GT(engine.core->stats().preemptions, 0);
  EXPECT_EQ(sinks[0]->timings->preemptions, 0) << "the oldest is never preempted";
}

TEST(EngineCoreTest, APromptTakesBackTheBlocksOfALesserDecodeThatIsAlreadyInTheStep) {
  TestBackend::Options backend;
  backend.kv_blocks = 35;
  backend.context_tokens = 560;
  EngineOptions options = test_options();
  options.step_tokens = 12;
  options.max_running = 2;
  TestEngine engine(backend, options);
  GenerateRequest prompt = test_request("prompt", test_prompt(500, 1), 5);  // 32 blocks, 45 steps
  prompt.priority = 1;
  GenerateRequest decode = test_request("decode", test_prompt(10, 2), 100);  // outgrows the other 3 before that
  decode.sampling.min_tokens = 100;
  const auto decode_sink = engine.start(decode);
  engine.step();
  const auto prompt_sink = engine.start(prompt);
  engine.run();
  EXPECT_EQ(decode_sink->timings->preemptions, 1);
  EXPECT_EQ(prompt_sink->timings->preemptions, 0);
  EXPECT_EQ(prompt_sink->tokens[0], engine.reference(prompt));
  EXPECT_EQ(decode_sink->tokens[0], engine.reference(decode));
}

TEST(EngineCoreTest, CancelFreesTheSlotAndTheBlocksInQueuePrefillAndDecode) {
  EngineOptions options = test_options();
  options.step_tokens = 32;
  options.max_running = 2;
  TestEngine engine({}, options);
  const auto decoding = engine.start(test_request("decoding", test_prompt(10, 1), 100));
  engine.step();
  const auto prefilling = engine.start(test_request("prefilling", test_prompt(500, 2), 10));
  engine.step();
  const auto waiting = engine.start(test_request("waiting", test_prompt(20, 3), 10));
  engine.step();
  EXPECT_EQ(engine.core->stats().running, 2);
  for (const char* id : {"waiting", "prefilling", "decoding", "unknown"}) {
    engine.core->cancel(id, {StatusCode::kCancelled, "test"});
    engine.core->check_integrity();
  }
  for (const auto& sink : {decoding, prefilling, waiting}) EXPECT_EQ(sink->done->code(), StatusCode::kCancelled);
  EXPECT_GT(decoding->tokens[0].size(), 0u);
  EXPECT_EQ(engine.core->stats().used_blocks, 0);
  EXPECT_EQ(engine.core->stats().queued_tokens, 0);
  EXPECT_EQ(engine.core->stats().cancelled, 3);
  EXPECT_FALSE(engine.step());
}

TEST(EngineCoreTest, ADeadlineEndsARequestWhereverItIs) {
  EngineOptions options = test_options();
  options.max_running = 1;
  TestEngine engine({}, options);
  GenerateRequest request = test_request("running", test_prompt(10, 1), 1000);
  request.sampling.min_tokens = 1000;
  request.deadline_s = 0.05;
  const auto running = engine.start(request);
  request.request_id = "waiting";
  request.deadline_s = 0.02;
  const auto waiting = engine.start(request);
  const auto last = engine.start(test_request("last", test_prompt(10, 2), 3));
  engine.run();
  EXPECT_EQ(running->done->code(), StatusCode::kDeadlineExceeded);
  EXPECT_NEAR(static_cast<double>(running->tokens[0].size()), 49, 1);
  EXPECT_EQ(waiting->done->code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(waiting->done->message(), HasSubstr("in the queue"));
  EXPECT_TRUE(last->done->ok());
}

TEST(EngineCoreTest, AFailedStepFailsItsRequestsAndNothingOfThemIsReused) {
  TestEngine engine;
  const GenerateRequest failing = test_request("failing", test_prompt(100, 1), 20);
  const auto failed = engine.start(failing);
  for (int step = 0; step < 3; ++step) engine.step();
  engine.backend.fail_next(1);
  engine.step();
  ASSERT_TRUE(failed->done.has_value());
  EXPECT_EQ(failed->done->code(), StatusCode::kInternal);
  EXPECT_THAT(failed->done->message(), HasSubstr("made to fail"));
  EXPECT_EQ(engine.core->stats().cached_blocks, 0);
  GenerateRequest again = failing;
  again.request_id = "again";
  const auto sink = engine.start(again);
  engine.run();
  EXPECT_EQ(sink->start->cached_tokens(), 0);
  EXPECT_EQ(sink->tokens[0], engine.reference(again));
}

TEST(EngineCoreTest, AFailedStepSparesTheRequestsThatWereNotInIt) {
  EngineOptions options = test_options();
  options.step_tokens = 16;
  options.max_running = 4;
  TestEngine engine({}, options);
  GenerateRequest first = test_request("first", test_prompt(200, 1), 20), second = first;
  second.request_id = "second";
  const auto first_sink = engine.start(first);
  const auto second_sink = engine.start(second);  // waits for the first one's blocks
  engine.step();
  engine.backend.fail_next(1);
  engine.run();
  EXPECT_FALSE(first_sink->done->ok());
  EXPECT_TRUE(second_sink->done->ok());
  EXPECT_EQ(second_sink->tokens[0], engine.reference(second));
}

TEST(EngineCoreTest, AResumedRequestGoesOnAsIfNothingHadHappened) {
  TestEngine engine;
  GenerateRequest request = test_request("a", test_prompt(50), 40, 0.9f);
  request.sampling.frequency_penalty = 1.0f;
  request.sampling.min_tokens = 40;
  const std::vector<TokenId> whole = engine.reference(request);
  ASSERT_EQ(whole.size(), 40u);
  request.output_prefix.assign(whole.begin(), whole.begin() + 17);
  const auto sink = engine.start(request);
  engine.run();
  EXPECT_EQ(sink->tokens[0], std::vector<TokenId>(whole.begin() + 17, whole.end()));
  EXPECT_EQ(sink->finish[0]->completion_tokens, 40) << "the prefix counts";
}

TEST(EngineCoreTest, AResumeOfAFinishedAnswerEndsAtOnce) {
  TestEngine engine;
  GenerateRequest request = test_request("a", test_prompt(50), 5);
  request.output_prefix = {1, 2, 3, 4, 5};
  const auto full = engine.start(request);
  EXPECT_EQ(full->finish[0]->reason, FinishReason::kLength);
  request.request_id = "b";
  request.output_prefix = {1, 2, kTestEnd};
  const auto ended = engine.start(request);
  EXPECT_EQ(ended->finish[0]->reason, FinishReason::kStop);
  EXPECT_EQ(ended->finish[0]->stop_token, kTestEnd);
  request.request_id = "c";
  request.output_prefix = {'h', 'a', 'l', 't'};
  request.sampling.stop = {"halt"};
  const auto stopped = engine.start(request);
  EXPECT_EQ(stopped->finish[0]->stop_string, 0);
  for (const auto& sink : {full, ended, stopped}) EXPECT_TRUE(sink->done->ok());
  EXPECT_FALSE(engine.step());
}

TEST(EngineCoreTest, EndTokensStopTokensAndStopStringsEndAnAnswer) {
  TestEngine engine;
  GenerateRequest request = test_request("a", test_prompt(50), 60);
  request.sampling.ignore_eos = true;
  request.sampling.min_tokens = 60;
  request.sampling.min_tokens = 0;
  const auto whole = engine.start(request);
  engine.run();
  const std::vector<TokenId>& tokens = whole->tokens[0];
  ASSERT_EQ(tokens.size(), 60u);

  request.request_id = "token";
  request.sampling.stop_tokens = {tokens[20]};
  const auto by_token = engine.start(request);
  engine.run();
  const auto first = static_cast<size_t>(std::find(tokens.begin(), tokens.end(), tokens[20]) - tokens.begin());
  EXPECT_EQ(by_token->tokens[0].size(), first) << "the stop token is no output";
  EXPECT_EQ(by_token->finish[0]->reason, FinishReason::kStop);
  EXPECT_EQ(by_token->finish[0]->stop_token, tokens[20]);
  EXPECT_EQ(by_token->finish[0]->completion_tokens, static_cast<int32_t>(first) + 1);

  // A stop string over two tokens of text: synthetic vocabularies spell one byte a token.
  size_t at = 5;
  while (tokens[at] >= 256 || tokens[at + 1] >= 256) ++at;
  request.request_id = "string";
  request.sampling.stop_tokens = {};
  request.sampling.stop = {"never in there",
                           std::string{static_cast<char>(tokens[at]), static_cast<char>(tokens[at + 1])}};
  const auto by_string = engine.start(request);
  engine.run();
  EXPECT_EQ(by_string->finish[0]->reason, FinishReason::kStop);
  EXPECT_EQ(by_string->finish[0]->stop_string, 1);
  EXPECT_LE(by_string->tokens[0].size(), at + 2);
  EXPECT_EQ(by_string->tokens[0].back(), tokens[at + 1]);
}

TEST(EngineCoreTest, TheEndTokenIsNotSampledBeforeMinTokens) {
  TestEngine engine;
  GenerateRequest request = test_request("a", test_prompt(50), 100);
  request.sampling.logit_bias = {{kTestEnd, 100.0f}};
  request.sampling.min_tokens = 7;
  const auto sink = engine.start(request);
  engine.run();
  EXPECT_EQ(sink->tokens[0].size(), 7u);
  EXPECT_EQ(sink->finish[0]->stop_token, kTestEnd);
}

TEST(EngineCoreTest, RefusalsNameTheFieldAndBothNumbers) {
  TestBackend::Options backend;
  backend.context_tokens = 100;
  TestEngine engine(backend);
  const auto refusal = [&](GenerateRequest request) { return engine.core->check(request); };
  Status status = refusal(test_request("a", test_prompt(100), 1));
  EXPECT_EQ(status.code(), StatusCode::kContextLengthExceeded);
  EXPECT_THAT(status.message(), testing::AllOf(HasSubstr("100 tokens"), HasSubstr("holds 100")));
  status = refusal(test_request("a", test_prompt(60), 41));
  EXPECT_EQ(status.code(), StatusCode::kContextLengthExceeded);
  EXPECT_THAT(status.message(), testing::AllOf(HasSubstr("60"), HasSubstr("41"), HasSubstr("at most 40")));
  EXPECT_TRUE(refusal(test_request("a", test_prompt(60), 40)).ok());
  EXPECT_EQ(refusal(test_request("a", {}, 1)).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(refusal(test_request("", {1}, 1)).code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(refusal(test_request("a", {1, 2, 320}, 1)).message(), HasSubstr("prompt[2] is token 320"));
  EXPECT_THAT(refusal(test_request("a", {-1}, 1)).message(), HasSubstr("prompt[0]"));
  GenerateRequest request = test_request("a", {1}, 9);
  request.sampling.n = 2;
  request.output_prefix = {1};
  EXPECT_THAT(refusal(request).message(), HasSubstr("output_prefix"));
  request = test_request("a", {1}, 9);
  request.sampling.temperature = std::nanf("");
  EXPECT_THAT(refusal(request).message(), HasSubstr("temperature"));
  request = test_request("a", {1}, 9);
  request.deadline_s = -1;
  EXPECT_THAT(refusal(request).message(), HasSubstr("deadline_s"));
}

TEST(EngineCoreTest, ARequestThatTheWholeKvCannotHoldIsRefused) {
  TestBackend::Options backend;
  backend.kv_blocks = 4;
  TestEngine engine(backend);
  const Status status = engine.core->check(test_request("a", test_prompt(60), 5));
  EXPECT_EQ(status.code(), StatusCode::kContextLengthExceeded);
  EXPECT_THAT(status.message(), testing::AllOf(HasSubstr("KV cache"), HasSubstr("64")));
  // Without max_tokens it runs until the KV is full.
  const auto sink = engine.start([] {
    GenerateRequest request = test_request("b", test_prompt(30), -1);
    request.sampling.ignore_eos = true;
    return request;
  }());
  engine.run();
  EXPECT_EQ(sink->tokens[0].size(), 34u);
  EXPECT_EQ(sink->finish[0]->reason, FinishReason::kLength);
}

}  // namespace
}  // namespace warmpath

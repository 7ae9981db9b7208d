// What becomes of a request when replicas fail, fill up or stay silent, and when its client leaves.
#include <gmock/gmock.h>

#include "router/gateway_fixture.h"

namespace warmpath {
namespace {

using ::testing::HasSubstr;
using FailureTest = GatewayFixture;

Status lost() { return unavailable("connection reset"); }

TEST_F(FailureTest, AnotherReplicaAnswersBeforeTheFirstByte) {
  start();
  a_->on_generate = [](const std::shared_ptr<TestCall>& call) {
    call->start(0);
    call->done(lost());
  };
  b_->on_generate = [](const std::shared_ptr<TestCall>& call) { call->reply("ok"); };
  for (int turn = 0; turn < 4; ++turn) {
    const SeenAnswer answer = ask("POST", kChatPath, chat("hi", kStream));
    EXPECT_EQ(answer.status, 200);
    EXPECT_TRUE(answer.ended);
    EXPECT_THAT(answer.body, HasSubstr(R"("content":"ok")"));
    EXPECT_EQ(answer.header("x-warmpath-replica"), "b");
  }
  EXPECT_THAT(ask_admin("/receipts").body, HasSubstr(R"("outcome":"unavailable")"));
}

// The replica that is asked first says the beginning and dies; the other one goes on.
TEST_F(FailureTest, AStreamIsResumedElsewhere) {
  start();
  std::atomic<int> asked{0};
  std::vector<TokenId> prefix;
  for (const auto& upstream : {a_, b_}) {
    upstream->on_generate = [&](const std::shared_ptr<TestCall>& call) {
      if (asked++ == 0) {
        call->start(3);
        call->text("half an ans");
        call->done(lost());
        return;
      }
      prefix = call->request().output_prefix;
      call->start(0);
      call->text("wer");
      call->finish(FinishReason::kStop);
      call->done({});
    };
  }
  const SeenAnswer answer = ask("POST", kChatPath, chat("hi", kStream));
  EXPECT_TRUE(answer.ended);
  EXPECT_EQ(prefix.size(), 11u);
  EXPECT_THAT(answer.body, HasSubstr(R"("content":"half an ans")"));
  EXPECT_THAT(answer.body, HasSubstr(R"("content":"wer")"));
  EXPECT_THAT(answer.body, HasSubstr("[DONE]"));
  EXPECT_THAT(ask_admin("/receipts").body, HasSubstr(R"("resumed_tokens":11)"));
}

TEST_F(FailureTest, AStreamOfSeveralChoicesIsCutAfterTheFirstByte) {
  start();
  for (const auto& upstream : {a_, b_}) {
    upstream->on_generate = [](const std::shared_ptr<TestCall>& call) {
      call->start(0);
      call->text("half an ans");
      call->done(lost());
    };
  }
  const SeenAnswer answer = ask("POST", kChatPath, chat("hi", std::string(kStream) + R"(,"n":2)"));
  EXPECT_TRUE(answer.aborted);
  EXPECT_EQ(a_->calls() + b_->calls(), 1u);
}

TEST_F(FailureTest, AStreamIsCutWhenNobodyCanResumeIt) {
  start();
  for (const auto& upstream : {a_, b_}) {
    upstream->on_generate = [](const std::shared_ptr<TestCall>& call) {
      call->start(0);
      call->text("half an ans");
      call->done(lost());
    };
  }
  const SeenAnswer answer = ask("POST", kChatPath, chat("hi", kStream));
  EXPECT_TRUE(answer.aborted);
  EXPECT_FALSE(answer.ended);
  EXPECT_THAT(answer.body, ::testing::Not(HasSubstr("[DONE]")));
  EXPECT_EQ(a_->calls() + b_->calls(), 2u);
  EXPECT_TRUE(eventually([&] { return core_->services().in_progress.load() == 0; }));
}

TEST_F(FailureTest, WhenTheDrainIsOverWhatHasNotBegunIsToldSoAndWhatHasIsCut) {
  start();
  for (const auto& upstream : {a_, b_}) {
    upstream->on_generate = [](const std::shared_ptr<TestCall>& call) {
      call->start(0);
      call->text("half an ans");
    };
  }
  const auto whole = send("POST", kChatPath, chat("one"));
  const auto stream = send("POST", kChatPath, chat("two", kStream));
  ASSERT_TRUE(stream->wait_until([](const SeenAnswer& seen) { return seen.body.find("half") != std::string::npos; }));
  ASSERT_TRUE(eventually([&] { return a_->calls() + b_->calls() == 2u; }));
  whole->end_drain();
  stream->end_drain();
  const SeenAnswer told = whole->answer();
  EXPECT_EQ(told.status, 503);
  EXPECT_TRUE(told.ended);
  EXPECT_FALSE(told.header("retry-after").empty());
  EXPECT_THAT(told.body, HasSubstr(R"("code":"service_unavailable")"));
  EXPECT_TRUE(stream->answer().aborted);
  EXPECT_FALSE(stream->answer().ended);
  EXPECT_TRUE(eventually([&] { return core_->services().in_progress.load() == 0; }));
  const std::string receipts = ask_admin("/receipts").body;
  EXPECT_THAT(receipts, HasSubstr(R"("outcome":"drain_over")"));
  EXPECT_THAT(receipts, ::testing::Not(HasSubstr(R"("outcome":"cancelled")")));
}

TEST_F(FailureTest, AWholeAnswerIsBegunAgainElsewhere) {
  start();
  a_->on_generate = [](const std::shared_ptr<TestCall>& call) {
    call->start(0);
    call->text("from a");
    call->done(lost());
  };
  b_->on_generate = [](const std::shared_ptr<TestCall>& call) { call->reply("from b"); };
  for (int turn = 0; turn < 2; ++turn) {
    EXPECT_THAT(ask("POST", kChatPath, chat("hi")).body, HasSubstr(R"("content":"from b")"));
  }
}

TEST_F(FailureTest, NobodyLeftIs503WithRetryAfter) {
  start();
  a_->set_down(true);
  b_->set_down(true);
  const SeenAnswer answer = ask("POST", kChatPath, chat("hi", kStream));
  EXPECT_EQ(answer.status, 503);
  EXPECT_GE(std::stoi("0" + answer.header("retry-after")), 1);
  EXPECT_THAT(answer.body, HasSubstr(R"("error":{)"));
  ASSERT_TRUE(eventually([&] { return ask("GET", "/readyz").status == 503; }));
  a_->set_down(false);
  ASSERT_TRUE(eventually([&] { return ask("GET", "/readyz").status == 200; }));
}

TEST_F(FailureTest, AReplicasOwnRefusalReachesTheClient) {
  start();
  for (const auto& upstream : {a_, b_}) {
    upstream->on_generate = [](const std::shared_ptr<TestCall>& call) {
      call->done({StatusCode::kContextLengthExceeded, "This model's maximum context length is 8 tokens."});
    };
  }
  const SeenAnswer answer = ask("POST", kChatPath, chat("hi"));
  EXPECT_EQ(answer.status, 400);
  EXPECT_THAT(answer.body, HasSubstr("context_length_exceeded"));
  EXPECT_EQ(a_->calls() + b_->calls(), 1u);
}

TEST_F(FailureTest, AFullFleetIsWaitedFor) {
  start();
  std::atomic<bool> full{true};
  for (const auto& upstream : {a_, b_}) {
    upstream->on_generate = [&](const std::shared_ptr<TestCall>& call) {
      if (full.load()) {
        call->done(resource_exhausted("queue full"));
      } else {
        call->reply("at last");
      }
    };
  }
  const auto exchange = send("POST", kChatPath, chat("hi"));
  ASSERT_TRUE(eventually([&] { return core_->services().waiting.load() == 1; }));
  full.store(false);
  EXPECT_THAT(exchange->answer().body, HasSubstr("at last"));
  EXPECT_TRUE(eventually([&] { return core_->services().waiting.load() == 0; }));
}

TEST_F(FailureTest, WhoWaitedLongestIsServedFirst) {
  config_.models[0].endpoints = {{"a", ""}};
  start();
  std::atomic<bool> full{true};
  std::mutex mutex;
  std::vector<std::string> served;
  a_->on_generate = [&](const std::shared_ptr<TestCall>& call) {
    if (full.load()) {
      call->done(resource_exhausted("queue full"));
      return;
    }
    const std::lock_guard lock(mutex);
    served.push_back(call->prompt_text());
    call->reply("x");
  };
  std::vector<std::shared_ptr<TestExchange>> exchanges;
  for (const char* name : {"1st", "2nd", "3rd", "4th"}) {
    exchanges.push_back(send("POST", "/v1/completions", std::string(R"({"prompt":")") + name + "\"}"));
    ASSERT_TRUE(eventually([&] { return core_->services().waiting.load() == static_cast<int>(exchanges.size()); }));
  }
  // Only the first one asks again while there is no room.
  const size_t asked = a_->calls();
  EXPECT_LE(asked, 3u);
  full.store(false);
  for (const auto& exchange : exchanges) EXPECT_EQ(exchange->answer().status, 200);
  EXPECT_THAT(served, ::testing::ElementsAre("1st", "2nd", "3rd", "4th"));
  EXPECT_TRUE(core_->fleet().find("m")->waiting_room().empty());
}

TEST_F(FailureTest, WaitingEndsWith429) {
  config_.limits.queue_wait_s = 0.2;
  start();
  for (const auto& upstream : {a_, b_}) {
    upstream->on_generate = [](const std::shared_ptr<TestCall>& call) { call->done(resource_exhausted("queue full")); };
  }
  const SeenAnswer answer = ask("POST", kChatPath, chat("hi"));
  EXPECT_EQ(answer.status, 429);
  EXPECT_GE(std::stoi("0" + answer.header("retry-after")), 1);
  EXPECT_TRUE(eventually([&] { return core_->services().waiting.load() == 0; }));
}

TEST_F(FailureTest, TooManyRequestsIs429AtOnce) {
  config_.limits.max_requests = 1;
  start();
  const auto first = send("POST", kChatPath, chat("hi"));
  ASSERT_TRUE(eventually([&] { return a_->calls() + b_->calls() == 1; }));
  const SeenAnswer second = ask("POST", kChatPath, chat("hi"));
  EXPECT_EQ(second.status, 429);
  EXPECT_EQ(second.header("retry-after"), "1");
  (a_->calls() > 0 ? a_ : b_)->call(0)->reply("x");
  EXPECT_EQ(first->answer().status, 200);
}

// The client leaves before anything came, after the start, and in the middle of the text.
TEST_F(FailureTest, AClientThatLeavesFreesTheSlot) {
  start();
  for (int stage = 0; stage < 3; ++stage) {
    const size_t a_before = a_->calls();
    const size_t b_before = b_->calls();
    const auto exchange = send("POST", kChatPath, chat("hi", kStream));
    ASSERT_TRUE(eventually([&] { return a_->calls() + b_->calls() == a_before + b_before + 1; }));
    const auto call = a_->calls() > a_before ? a_->call(a_before) : b_->call(b_before);
    if (stage >= 1) call->start(0);
    if (stage >= 2) {
      call->text("abc");
      ASSERT_TRUE(exchange->wait_until([](const SeenAnswer& seen) { return seen.streamed; }));
    }
    EXPECT_FALSE(call->cancelled());
    exchange->leave();
    EXPECT_TRUE(eventually([&] { return call->cancelled(); })) << stage;
    EXPECT_TRUE(eventually([&] { return core_->services().in_progress.load() == 0; }));
  }
  const ReplicaList replicas = core_->fleet().find("m")->replicas();
  EXPECT_TRUE(eventually([&] {
    Candidate a, b;
    replicas[0]->fill(a);
    replicas[1]->fill(b);
    return a.requests() + b.requests() == 0;
  }));
}

TEST_F(FailureTest, AClientThatLeavesWhileWaitingIsForgotten) {
  start();
  for (const auto& upstream : {a_, b_}) {
    upstream->on_generate = [](const std::shared_ptr<TestCall>& call) { call->done(resource_exhausted("queue full")); };
  }
  const auto exchange = send("POST", kChatPath, chat("hi"));
  ASSERT_TRUE(eventually([&] { return core_->services().waiting.load() == 1; }));
  exchange->leave();
  EXPECT_TRUE(eventually([&] { return core_->services().waiting.load() == 0; }));
}

TEST_F(FailureTest, AClientThatLeavesWhileItsPromptIsPreparedIsForgotten) {
  start();
  for (int round = 0; round < 20; ++round) {
    const auto exchange = send("POST", kChatPath, chat(std::string(200'000, static_cast<char>('a' + round))));
    exchange->leave();
    EXPECT_TRUE(eventually([&] { return core_->services().in_progress.load() == 0; }));
  }
}

TEST_F(FailureTest, KeepAliveCommentsWhileASlowPromptIsComputed) {
  config_.limits.headers_after_s = 0.05;
  config_.limits.keep_alive_s = 0.05;
  start();
  const auto exchange = send("POST", kChatPath, chat("hi", kStream));
  ASSERT_TRUE(exchange->wait_until([](const SeenAnswer& seen) {
    const size_t first = seen.body.find(": keep-alive\n\n");
    return first != std::string::npos && seen.body.find(": keep-alive\n\n", first + 1) != std::string::npos;
  }));
  // Headers are sent, but nothing of the answer: another replica may still take over.
  const bool at_a = a_->calls() > 0;
  (at_a ? a_ : b_)->call(0)->done(lost());
  const auto second = (at_a ? b_ : a_)->call(0);
  ASSERT_NE(second, nullptr);
  second->reply("fine");
  const SeenAnswer answer = exchange->answer();
  EXPECT_TRUE(answer.ended);
  EXPECT_THAT(answer.body, HasSubstr(R"("content":"fine")"));
}

TEST_F(FailureTest, ARequestHasADeadline) {
  config_.limits.request_timeout_s = 0.2;
  start();
  const auto exchange = send("POST", kChatPath, chat("hi"));
  const auto call =
      eventually([&] { return a_->calls() + b_->calls() == 1; }) && a_->calls() > 0 ? a_->call(0) : b_->call(0);
  EXPECT_GT(call->request().deadline_s, 0);
  EXPECT_LE(call->request().deadline_s, 0.2);
  EXPECT_EQ(exchange->answer().status, 504);
  EXPECT_TRUE(eventually([&] { return call->cancelled(); }));
}

TEST_F(FailureTest, AStreamWithoutAFinishIsNotEndedCleanly) {
  start();
  for (const auto& upstream : {a_, b_}) {
    upstream->on_generate = [](const std::shared_ptr<TestCall>& call) {
      call->start(0);
      call->text("abc");
      call->done({});
    };
  }
  EXPECT_TRUE(ask("POST", kChatPath, chat("hi", kStream)).aborted);
  EXPECT_EQ(ask("POST", kChatPath, chat("hi")).status, 500);
}

TEST_F(FailureTest, DrainFinishesWhatRunsAndRefusesTheRest) {
  start();
  const auto running = send("POST", kChatPath, chat("hi"));
  ASSERT_TRUE(eventually([&] { return a_->calls() + b_->calls() == 1; }));
  core_->begin_drain();
  EXPECT_EQ(ask("GET", "/readyz").status, 503);
  EXPECT_EQ(ask("GET", "/healthz").status, 200);
  const SeenAnswer refused = ask("POST", kChatPath, chat("hi"));
  EXPECT_EQ(refused.status, 503);
  EXPECT_GE(std::stoi("0" + refused.header("retry-after")), 1);
  (a_->calls() > 0 ? a_ : b_)->call(0)->reply("done");
  EXPECT_EQ(running->answer().status, 200);
}

}  // namespace
}  // namespace warmpath

// The messages and the responses wire through the whole gateway: their events in order, their errors, their
// keep-alives, and the small endpoints that agents probe.
#include <gmock/gmock.h>

#include <algorithm>

#include "router/gateway_fixture.h"

namespace warmpath {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class WiresTest : public GatewayFixture {
 protected:
  static constexpr const char* kMessagesPath = "/v1/messages";
  static constexpr const char* kResponsesPath = "/v1/responses";
  static constexpr const char* kAnswer =
      "<think>hm</think>Look.<tool_call>{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}</tool_call>";

  void SetUp() override {
    GatewayFixture::SetUp();
    config_.models[0].parsers.reasoning = ReasoningFormat::kThink;
  }

  static std::string messages(const std::string& more = "") {
    return R"({"model":"m","max_tokens":200,"messages":[{"role":"user","content":"hi"}],)"
           R"("tools":[{"name":"read","input_schema":{"type":"object"}}])" +
           more + "}";
  }
  static std::string responses(const std::string& more = "") {
    return R"({"model":"m","input":"hi","tools":[{"type":"function","name":"read"},)"
           R"({"type":"namespace","name":"agents","tools":[{"type":"function","name":"spawn"}]},)"
           R"({"type":"custom","name":"patch"}])" +
           more + "}";
  }

  // The names of a stream's events, in order, neighbours once.
  static std::vector<std::string> events(const std::string& body) {
    std::vector<std::string> names;
    for (size_t at = body.find("event: "); at != std::string::npos; at = body.find("event: ", at + 1)) {
      std::string name = body.substr(at + 7, body.find('\n', at) - at - 7);
      if (names.empty() || names.back() != name) names.push_back(std::move(name));
    }
    return names;
  }
};

TEST_F(WiresTest, MessagesStream) {
  start();
  reply_always(kAnswer, 16);
  const SeenAnswer answer = ask("POST", "/v1/messages?beta=true", messages(kStream));
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_THAT(events(answer.body),
              ElementsAre("message_start", "content_block_start", "content_block_delta", "content_block_stop",
                          "content_block_start", "content_block_delta", "content_block_stop", "content_block_start",
                          "content_block_delta", "content_block_stop", "message_delta", "message_stop"));
  EXPECT_THAT(answer.body, HasSubstr(R"("message":{"id":"msg_)"));
  EXPECT_THAT(answer.body, HasSubstr(R"("index":0,"content_block":{"type":"thinking")"));
  EXPECT_THAT(answer.body, HasSubstr(R"("delta":{"type":"thinking_delta","thinking":"hm"})"));
  EXPECT_THAT(answer.body, HasSubstr(R"("index":1,"content_block":{"type":"text","text":""})"));
  EXPECT_THAT(answer.body, HasSubstr(R"("index":2,"content_block":{"type":"tool_use","id":"toolu_)"));
  EXPECT_THAT(answer.body, HasSubstr(R"("delta":{"type":"input_json_delta","partial_json":"{\"path\": \"a\"}"})"));
  EXPECT_THAT(answer.body, HasSubstr(R"("delta":{"stop_reason":"tool_use","stop_sequence":null})"));
  EXPECT_THAT(answer.body, HasSubstr(R"("cache_read_input_tokens":16,"output_tokens":)"));
}

TEST_F(WiresTest, MessagesWhole) {
  start();
  reply_always(kAnswer);
  const SeenAnswer answer = ask("POST", kMessagesPath, messages());
  EXPECT_THAT(answer.body, HasSubstr(R"("content":[{"type":"thinking","thinking":"hm","signature":"warmpath"},)"
                                     R"({"type":"text","text":"Look."},{"type":"tool_use","id":"toolu_)"));
  EXPECT_THAT(answer.body, HasSubstr(R"("name":"read","input":{"path": "a"}}],"stop_reason":"tool_use")"));
  EXPECT_NE(answer.header("request-id"), "");
  const SeenAnswer stopped = ask("POST", kMessagesPath, messages(R"(,"stop_sequences":["ook"])"));
  EXPECT_THAT(stopped.body, HasSubstr(R"("stop_reason":"stop_sequence","stop_sequence":"ook")"));
}

TEST_F(WiresTest, MessagesErrorsHaveTheirShape) {
  start();
  const SeenAnswer unknown =
      ask("POST", kMessagesPath, R"({"model":"x","max_tokens":1,"messages":[{"role":"user","content":"a"}]})");
  EXPECT_EQ(unknown.status, 404);
  EXPECT_THAT(unknown.body, HasSubstr(R"({"type":"error","error":{"type":"not_found_error")"));
  const SeenAnswer long_one =
      ask("POST", kMessagesPath,
          R"({"max_tokens":1,"messages":[{"role":"user","content":")" + std::string(5000, 'a') + "\"}]}");
  EXPECT_EQ(long_one.status, 400);
  EXPECT_THAT(long_one.body, HasSubstr("prompt is too long: "));
  EXPECT_THAT(long_one.body, HasSubstr(" tokens > 4096 maximum"));
  EXPECT_EQ(ask("GET", kMessagesPath).status, 405);
  EXPECT_THAT(ask("GET", "/v1/models/none", "", {{"anthropic-version", "2023-06-01"}}).body,
              HasSubstr("not_found_error"));
  core_->begin_drain();
  const SeenAnswer overloaded = ask("POST", kMessagesPath, messages());
  EXPECT_EQ(overloaded.status, 529);
  EXPECT_THAT(overloaded.body, HasSubstr("overloaded_error"));
  EXPECT_NE(overloaded.header("retry-after"), "");
}

TEST_F(WiresTest, CountTokensCountsWhatWouldBeSent) {
  start();
  reply_always("x");
  const std::string body = R"({"model":"m","messages":[{"role":"user","content":"hello"}])";
  const SeenAnswer counted = ask("POST", "/v1/messages/count_tokens", body + "}");
  const SeenAnswer answer = ask("POST", kMessagesPath, body + R"(,"max_tokens":5})");
  const size_t at = answer.body.find(R"("input_tokens":)");
  EXPECT_EQ(counted.body, "{" + answer.body.substr(at, answer.body.find(',', at) - at) + "}");
}

TEST_F(WiresTest, ResponsesStream) {
  start();
  reply_always(kAnswer, 16);
  const SeenAnswer answer = ask("POST", kResponsesPath, responses(kStream));
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_THAT(
      events(answer.body),
      ElementsAre("response.created", "response.in_progress", "response.output_item.added",
                  "response.reasoning_summary_part.added", "response.reasoning_summary_text.delta",
                  "response.reasoning_summary_text.done", "response.reasoning_summary_part.done",
                  "response.output_item.done", "response.output_item.added", "response.content_part.added",
                  "response.output_text.delta", "response.output_text.done", "response.content_part.done",
                  "response.output_item.done", "response.output_item.added", "response.function_call_arguments.delta",
                  "response.function_call_arguments.done", "response.output_item.done", "response.completed"));
  EXPECT_THAT(answer.body, HasSubstr(R"("sequence_number":0)"));
  EXPECT_THAT(answer.body, HasSubstr(R"("output_index":2,"item":{"id":"fc_)"));
  EXPECT_THAT(answer.body, HasSubstr(R"("name":"read","arguments":"{\"path\": \"a\"}","status":"completed"}],)"));
  EXPECT_THAT(answer.body, HasSubstr(R"("input_tokens_details":{"cached_tokens":16})"));
  EXPECT_THAT(answer.body, Not(HasSubstr("[DONE]")));
}

TEST_F(WiresTest, ResponsesMapsToolNamesBack) {
  start();
  reply_always(
      "<tool_call>{\"name\": \"agents__spawn\"}</tool_call>"
      "<tool_call>{\"name\": \"patch\", \"arguments\": {\"input\": \"*** a\\n\"}}</tool_call>");
  for (const std::string& more : {std::string(), std::string(kStream)}) {
    const SeenAnswer answer = ask("POST", kResponsesPath, responses(more));
    EXPECT_THAT(answer.body, HasSubstr(R"("name":"spawn","namespace":"agents","arguments":"{}")"));
    EXPECT_THAT(answer.body, HasSubstr(R"("type":"custom_tool_call","call_id":"call_)"));
    EXPECT_THAT(answer.body, HasSubstr(R"("name":"patch","input":"*** a\n","status":"completed")"));
  }
}

TEST_F(WiresTest, ResponsesThatEndEarlyAreIncomplete) {
  start();
  for (const auto& upstream : {a_, b_}) {
    upstream->on_generate = [](const std::shared_ptr<TestCall>& call) {
      call->start(0);
      call->text("half");
      call->finish(FinishReason::kLength);
      call->done({});
    };
  }
  const SeenAnswer answer = ask("POST", kResponsesPath, responses(kStream));
  EXPECT_EQ(events(answer.body).back(), "response.incomplete");
  EXPECT_THAT(answer.body, HasSubstr(R"("incomplete_details":{"reason":"max_output_tokens"})"));
}

TEST_F(WiresTest, ToolsThatServersRunAreNamedInAHeader) {
  start();
  reply_always("x");
  const SeenAnswer answer = ask("POST", kResponsesPath, R"({"input":"a","tools":[{"type":"web_search"}]})");
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(answer.header("x-warmpath-tools-left-out"), "web_search");
}

TEST_F(WiresTest, EachWireIsKeptAliveInItsOwnWay) {
  config_.limits.keep_alive_s = 0.02;
  config_.limits.headers_after_s = 0.02;
  start();
  const std::pair<std::shared_ptr<TestExchange>, std::string> rows[] = {
      {send("POST", kChatPath, chat("hi", kStream)), "\n\n: keep-alive\n\n: keep-alive"},
      {send("POST", kMessagesPath, messages(kStream)), "event: ping\ndata: {\"type\":\"ping\"}\n\nevent: ping"},
      {send("POST", kResponsesPath, responses(kStream)), R"("type":"response.in_progress","sequence_number":2)"},
  };
  for (const auto& [exchange, text] : rows) {
    EXPECT_TRUE(exchange->wait_until([&, &wanted = text](const SeenAnswer& seen) {
      return seen.body.find(wanted) != std::string::npos;
    })) << exchange->seen().body;
    exchange->leave();
  }
}

TEST_F(WiresTest, AFailedReplicaIsReplacedBehindOpenHeaders) {
  config_.limits.headers_after_s = 0.02;
  start();
  const auto exchange = send("POST", kMessagesPath, messages(kStream));
  ASSERT_TRUE(exchange->wait_until(
      [](const SeenAnswer& seen) { return seen.body.find("message_start") != std::string::npos; }));
  const bool first_is_a = a_->calls() == 1;
  reply_always("saved");
  (first_is_a ? a_ : b_)->call(0)->done(unavailable("gone"));
  const SeenAnswer answer = exchange->answer();
  EXPECT_TRUE(answer.ended);
  EXPECT_THAT(answer.body, HasSubstr(R"("text":"saved")"));
  const auto names = events(answer.body);
  EXPECT_EQ(std::count(names.begin(), names.end(), "message_start"), 1);
}

TEST_F(WiresTest, ProbesAndSmallEndpoints) {
  start();
  for (const char* path : {"/", "/api/hello"}) {
    EXPECT_EQ(ask("HEAD", path).status, 200);
    EXPECT_EQ(ask("GET", path).status, 200);
  }
  const SeenAnswer tokens = ask("POST", "/v1/tokenize", R"({"prompt":"abc"})");
  EXPECT_EQ(tokens.body, R"({"count":3,"max_model_len":4096,"tokens":[100,101,102]})");
  EXPECT_THAT(ask("POST", "/tokenize", R"({"messages":[{"role":"user","content":"a"}]})").body,
              HasSubstr(R"("tokens":[)"));
  EXPECT_EQ(ask("POST", "/v1/tokenize", R"({"messages":[]})").status, 400);
  const SeenAnswer embeddings = ask("POST", "/v1/embeddings", R"({"input":"a"})");
  EXPECT_EQ(embeddings.status, 404);
  EXPECT_THAT(embeddings.body, HasSubstr("none of them makes embeddings"));
  EXPECT_THAT(ask("GET", "/v1/models").body, HasSubstr(R"("created_at":"20)"));
  EXPECT_EQ(ask("POST", "/responses", R"({"input":"a","previous_response_id":"r"})").status, 400);
}

}  // namespace
}  // namespace warmpath

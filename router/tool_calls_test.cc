// Calls of tools and reasoning through the whole gateway: what a model writes as markup, clients get as their wire's
// own objects.
#include <gmock/gmock.h>

#include "router/gateway_fixture.h"

namespace warmpath {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class ToolCallsTest : public GatewayFixture {
 protected:
  static constexpr const char* kTools =
      R"(,"tools":[{"type":"function","function":{"name":"read","parameters":{"type":"object"}}}])";
  static constexpr const char* kCall =
      "Let me look.\n<tool_call>{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}</tool_call>";

  std::string metrics() { return ask_admin("/metrics").body; }
};

TEST_F(ToolCallsTest, Whole) {
  start();
  reply_always(kCall);
  const SeenAnswer answer = ask("POST", kChatPath, chat("hi", kTools));
  EXPECT_THAT(answer.body, HasSubstr(R"("content":"Let me look.")"));
  EXPECT_THAT(answer.body, HasSubstr(R"("tool_calls":[{"id":"call_)"));
  EXPECT_THAT(answer.body,
              HasSubstr(R"("type":"function","function":{"name":"read","arguments":"{\"path\": \"a\"}"}}])"));
  EXPECT_THAT(answer.body, HasSubstr(R"("finish_reason":"tool_calls")"));
  EXPECT_THAT(metrics(), HasSubstr("warmpath_tool_calls_total{model=\"m\"} 1"));
}

TEST_F(ToolCallsTest, OnlyCallsHaveNullContent) {
  start();
  reply_always("<tool_call>{\"name\": \"read\"}</tool_call>\n<tool_call>{\"name\": \"read\"}</tool_call>");
  const SeenAnswer answer = ask("POST", kChatPath, chat("hi", kTools));
  EXPECT_THAT(answer.body, HasSubstr(R"("content":null)"));
  EXPECT_THAT(answer.body, HasSubstr(R"("arguments":"{}"}},{"id":"call_)"));
}

TEST_F(ToolCallsTest, Streamed) {
  start();
  const auto exchange = send("POST", kChatPath, chat("hi", std::string(kTools) + kStream));
  const auto call = a_->call(0) ? a_->call(0) : b_->call(0);
  ASSERT_NE(call, nullptr);
  call->start(0);
  const auto shows = [&](const std::string& text) {
    return exchange->wait_until([&](const SeenAnswer& seen) { return seen.body.find(text) != std::string::npos; });
  };
  call->text("Let me look.\n<tool_call>{\"name\": \"read\", \"argum");
  ASSERT_TRUE(shows(R"("content":"Let me look.")"));
  EXPECT_THAT(exchange->seen().body, Not(HasSubstr("tool_calls")));
  call->text("ents\": {\"pa");
  ASSERT_TRUE(shows(R"("function":{"arguments":"{\"pa"}}])"));
  EXPECT_THAT(exchange->seen().body, HasSubstr(R"("tool_calls":[{"index":0,"id":"call_)"));
  call->text("th\": \"a\"}}</tool_call><tool_call>{\"name\": \"read\"}</tool_call>");
  ASSERT_TRUE(shows(R"("tool_calls":[{"index":1,"id":"call_)"));
  call->finish(FinishReason::kStop);
  call->done({});
  const SeenAnswer answer = exchange->answer();
  EXPECT_TRUE(answer.ended);
  EXPECT_THAT(answer.body, HasSubstr(R"("delta":{},"logprobs":null,"finish_reason":"tool_calls")"));
  EXPECT_THAT(answer.body, Not(HasSubstr("<tool_call>")));
}

TEST_F(ToolCallsTest, WithoutToolsTheMarkupIsText) {
  start();
  reply_always(kCall);
  EXPECT_THAT(ask("POST", kChatPath, chat("hi")).body, HasSubstr("<tool_call>"));
  const std::string none = std::string(kTools) + R"(,"tool_choice":"none")";
  EXPECT_THAT(ask("POST", kChatPath, chat("hi", none)).body, HasSubstr("<tool_call>"));
}

TEST_F(ToolCallsTest, TheConfigurationNamesTheFormat) {
  config_.models[0].parsers.tools = CallFormat::kMistral;
  config_.models[0].parsers.reasoning = ReasoningFormat::kThink;
  start();
  reply_always("<think>so</think>[TOOL_CALLS]read[ARGS]{\"path\": \"a\"}");
  const SeenAnswer answer = ask("POST", kChatPath, chat("hi", kTools));
  EXPECT_THAT(answer.body, HasSubstr(R"("reasoning_content":"so")"));
  EXPECT_THAT(answer.body, HasSubstr(R"("name":"read","arguments":"{\"path\": \"a\"}")"));
  EXPECT_THAT(answer.body, HasSubstr(R"("completion_tokens_details":{"reasoning_tokens":)"));
  const SeenAnswer streamed = ask("POST", kChatPath, chat("hi", std::string(kTools) + kStream));
  EXPECT_THAT(streamed.body, HasSubstr(R"("delta":{"reasoning_content":"so"})"));
}

TEST_F(ToolCallsTest, AMalformedCallIsTextAndCounted) {
  start();
  reply_always("<tool_call>{\"name\": 5}</tool_call>");
  const SeenAnswer answer = ask("POST", kChatPath, chat("hi", kTools));
  EXPECT_THAT(answer.body, HasSubstr(R"("content":"<tool_call>{\"name\": 5}</tool_call>")"));
  EXPECT_THAT(answer.body, HasSubstr(R"("finish_reason":"stop")"));
  EXPECT_THAT(metrics(), HasSubstr("warmpath_malformed_tool_calls_total{model=\"m\"} 1"));
}

TEST_F(ToolCallsTest, ACutCallEndsByLength) {
  start();
  for (const auto& upstream : {a_, b_}) {
    upstream->on_generate = [](const std::shared_ptr<TestCall>& call) {
      call->start(0);
      call->text("<tool_call>{\"name\": \"read\", \"arguments\": {\"path\": \"half");
      call->finish(FinishReason::kLength);
      call->done({});
    };
  }
  const SeenAnswer answer = ask("POST", kChatPath, chat("hi", kTools));
  EXPECT_THAT(answer.body, HasSubstr(R"("arguments":"{\"path\": \"half")"));
  EXPECT_THAT(answer.body, HasSubstr(R"("finish_reason":"length")"));
}

TEST_F(ToolCallsTest, ADemandedCallIsTheReplicasGrammar) {
  for (const auto& upstream : {a_, b_}) {
    upstream->change_description([](ReplicaDescription& description) { description.structured_output = true; });
  }
  start();
  std::vector<Grammar> grammars;
  for (const auto& upstream : {a_, b_}) {
    upstream->on_generate = [&](const std::shared_ptr<TestCall>& call) {
      grammars.push_back(call->request().grammar);
      call->reply("<tool_call>{\"name\": \"read\", \"arguments\": {}}</tool_call>");
    };
  }
  const auto with_tools = [](const char* choice) { return std::string(kTools) + R"(,"tool_choice":)" + choice; };
  EXPECT_EQ(ask("POST", kChatPath, chat("hi", with_tools(R"("required")"))).status, 200);
  EXPECT_EQ(ask("POST", kChatPath, chat("hi", with_tools(R"({"type":"function","function":{"name":"read"}})"))).status,
            200);
  EXPECT_EQ(ask("POST", kChatPath, chat("hi", with_tools(R"("auto")"))).status, 200);
  EXPECT_EQ(ask("POST", kChatPath, chat("hi", R"(,"response_format":{"type":"json_object"})")).status, 200);
  ASSERT_EQ(grammars.size(), 4u);
  EXPECT_EQ(grammars[0].kind, Grammar::Kind::kSequence);
  EXPECT_FALSE(grammars[1].empty());
  EXPECT_TRUE(grammars[2].empty()) << "the model decides";
  EXPECT_EQ(grammars[3].kind, Grammar::Kind::kJsonSchema);

  const std::pair<std::string, const char*> refusals[] = {
      {R"(,"tool_choice":"required")", "tool_choice"},
      {with_tools(R"({"type":"function","function":{"name":"write"}})"), "tool_choice"},
      {R"(,"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"not":{}}}})", "'not' at #"},
      {R"(,"tool_choice":"required","tools":[{"type":"function","function":{"name":"f","parameters":
          {"properties":{"x":{"type":"array","uniqueItems":true}}}}}])",
       "'uniqueItems' at #/properties/x"},
  };
  for (const auto& [fields, words] : refusals) {
    const SeenAnswer refused = ask("POST", kChatPath, chat("hi", fields));
    EXPECT_EQ(refused.status, 400) << fields;
    EXPECT_THAT(refused.body, HasSubstr(words));
  }
}

TEST_F(ToolCallsTest, ReplicasThatCannotConstrainArePassedOver) {
  b_->change_description([](ReplicaDescription& description) { description.structured_output = true; });
  start();
  reply_always("{}");
  const std::string format = R"(,"response_format":{"type":"json_object"})";
  for (int turn = 0; turn < 3; ++turn) {
    EXPECT_EQ(ask("POST", kChatPath, chat("hi", format)).header("x-warmpath-replica"), "b");
  }
}

TEST_F(ToolCallsTest, WhereNoReplicaCanConstrainADemandIsRefused) {
  start();
  const SeenAnswer refused = ask("POST", kChatPath, chat("hi", R"(,"response_format":{"type":"json_object"})"));
  EXPECT_EQ(refused.status, 400);
  EXPECT_THAT(refused.body, HasSubstr(R"("param":"response_format")"));
}

}  // namespace
}  // namespace warmpath

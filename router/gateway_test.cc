// Requests through the whole gateway, in process: what clients get, and what replicas are asked.
#include <gmock/gmock.h>

#include "router/gateway_fixture.h"

namespace warmpath {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using GatewayTest = GatewayFixture;

TEST_F(GatewayTest, WholeChatAnswer) {
  start();
  reply_always("hello", 16);
  const SeenAnswer answer = ask("POST", kChatPath, chat("hi"), {{"x-request-id", "my-id"}});
  EXPECT_EQ(answer.status, 200);
  EXPECT_THAT(answer.body, HasSubstr(R"("message":{"role":"assistant","content":"hello")"));
  EXPECT_THAT(answer.body, HasSubstr(R"("finish_reason":"stop")"));
  EXPECT_THAT(answer.body, HasSubstr(R"("completion_tokens":5)"));
  EXPECT_THAT(answer.body, HasSubstr(R"("prompt_tokens_details":{"cached_tokens":16})"));
  EXPECT_THAT(answer.body, HasSubstr(R"("model":"m")"));
  EXPECT_EQ(answer.header("x-request-id"), "my-id");
  EXPECT_EQ(answer.header("content-type"), "application/json");
  EXPECT_EQ(answer.header("x-warmpath-policy"), "round_robin");
  EXPECT_EQ(answer.header("x-warmpath-trust"), "exact");
  EXPECT_EQ(answer.header("x-warmpath-predicted-cached-tokens"), "0");
  EXPECT_TRUE(answer.header("x-warmpath-replica") == "a" || answer.header("x-warmpath-replica") == "b");
}

TEST_F(GatewayTest, ARepeatedPromptIsPredictedByItsPlacement) {
  config_.models[0].policy.name = "predicted_seconds";
  start();
  reply_always("x");
  const std::string body = chat(std::string(400, 'q'));
  const SeenAnswer first = ask("POST", kChatPath, body);
  const SeenAnswer second = ask("POST", kChatPath, body);
  EXPECT_EQ(first.header("x-warmpath-predicted-cached-tokens"), "0");
  EXPECT_GE(std::stoi(second.header("x-warmpath-predicted-cached-tokens")), 400);
  EXPECT_EQ(first.header("x-warmpath-replica"), second.header("x-warmpath-replica"));
}

TEST_F(GatewayTest, StreamsInOrderAndEndsCleanly) {
  start();
  reply_always("hey");
  const SeenAnswer answer =
      ask("POST", kChatPath, chat("hi", R"(,"stream":true,"stream_options":{"include_usage":true})"));
  EXPECT_EQ(answer.status, 200);
  EXPECT_TRUE(answer.streamed && answer.ended);
  EXPECT_EQ(answer.header("content-type"), "text/event-stream");
  const size_t role = answer.body.find(R"("role":"assistant")");
  const size_t text = answer.body.find(R"("content":"hey")");
  const size_t finish = answer.body.find(R"("finish_reason":"stop")");
  const size_t usage = answer.body.find(R"("choices":[],"usage":{"prompt_tokens")");
  const size_t done = answer.body.find("data: [DONE]\n\n");
  EXPECT_LT(role, text);
  EXPECT_LT(text, finish);
  EXPECT_LT(finish, usage);
  EXPECT_LT(usage, done);
  EXPECT_EQ(done + 14, answer.body.size());
}

TEST_F(GatewayTest, NeverHalfACharacterAndNoStopString) {
  start();
  const auto exchange = send("POST", kChatPath, chat("hi", R"(,"stream":true,"stop":["STOP"],"max_tokens":50)"));
  const auto call = a_->call(0) ? a_->call(0) : b_->call(0);
  ASSERT_NE(call, nullptr);
  call->start(0);
  call->text("caf\xC3");
  ASSERT_TRUE(exchange->wait_until([](const SeenAnswer& seen) { return seen.body.find("caf") != std::string::npos; }));
  EXPECT_THAT(exchange->seen().body, Not(HasSubstr("\xC3")));
  call->text("\xA9 ST");
  ASSERT_TRUE(
      exchange->wait_until([](const SeenAnswer& seen) { return seen.body.find("\xC3\xA9 ") != std::string::npos; }));
  EXPECT_THAT(exchange->seen().body, Not(HasSubstr("ST\"")));
  call->text("OPped");
  call->finish(FinishReason::kStop);
  call->done({});
  const SeenAnswer answer = exchange->answer();
  EXPECT_TRUE(answer.ended);
  EXPECT_THAT(answer.body, Not(HasSubstr("ST")));
  EXPECT_THAT(answer.body, Not(HasSubstr("ped")));
}

TEST_F(GatewayTest, ChoicesOfSeveralPromptsAreNumbered) {
  start();
  for (const auto& upstream : {a_, b_}) {
    upstream->on_generate = [](const std::shared_ptr<TestCall>& call) { call->reply("<" + call->prompt_text() + ">"); };
  }
  const SeenAnswer answer = ask("POST", "/v1/completions", R"({"prompt":["one","two"],"n":2})");
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_THAT(answer.body, HasSubstr(R"({"text":"<one>","index":0,)"));
  EXPECT_THAT(answer.body, HasSubstr(R"({"text":"<one>","index":1,)"));
  EXPECT_THAT(answer.body, HasSubstr(R"({"text":"<two>","index":2,)"));
  EXPECT_THAT(answer.body, HasSubstr(R"({"text":"<two>","index":3,)"));
  EXPECT_THAT(answer.body, HasSubstr(R"("prompt_tokens":6,"completion_tokens":20)"));
}

TEST_F(GatewayTest, TokenIdsAreSentAsTheyAre) {
  start();
  reply_always("x");
  const SeenAnswer answer = ask("POST", "/v1/completions", R"({"prompt":[5,6,7],"max_tokens":3,"temperature":0})");
  EXPECT_EQ(answer.status, 200) << answer.body;
  const auto call = a_->calls() > 0 ? a_->call(0) : b_->call(0);
  EXPECT_EQ(call->request().prompt, (std::vector<TokenId>{5, 6, 7}));
  EXPECT_EQ(call->request().sampling.max_tokens, 3);
  EXPECT_EQ(call->request().sampling.temperature, 0);
  EXPECT_EQ(ask("POST", "/v1/completions", R"({"prompt":[512]})").status, 400);
}

TEST_F(GatewayTest, LogProbabilities) {
  start();
  reply_always("ab");
  const SeenAnswer chat_answer = ask("POST", kChatPath, chat("hi", R"(,"logprobs":true,"top_logprobs":2)"));
  EXPECT_THAT(chat_answer.body,
              HasSubstr(R"("content":[{"token":"a","logprob":-0.25,"bytes":[97],"top_logprobs":[{"token":"a")"));
  const SeenAnswer completion = ask("POST", "/v1/completions", R"({"prompt":"x","logprobs":1})");
  EXPECT_THAT(completion.body, HasSubstr(R"("tokens":["a","b"],"token_logprobs":[-0.25,-0.25])"));
  EXPECT_THAT(completion.body, HasSubstr(R"("text_offset":[0,1])"));
}

TEST_F(GatewayTest, NamesOfModels) {
  start();
  reply_always("x");
  const auto body = [](const std::string& model) {
    return R"({"model":")" + model + R"(","messages":[{"role":"user","content":"hi"}]})";
  };
  EXPECT_THAT(ask("POST", kChatPath, body("alias-m")).body, HasSubstr(R"("model":"alias-m")"));
  EXPECT_EQ(ask("POST", "/chat/completions", body("org/m")).status, 200);
  const SeenAnswer unnamed = ask("POST", kChatPath, R"({"messages":[{"role":"user","content":"hi"}]})");
  EXPECT_THAT(unnamed.body, HasSubstr(R"("model":"m")"));
  const SeenAnswer unknown = ask("POST", kChatPath, body("gpt-9"));
  EXPECT_EQ(unknown.status, 404);
  EXPECT_THAT(unknown.body, HasSubstr(R"("code":"model_not_found")"));

  const SeenAnswer list = ask("GET", "/v1/models");
  EXPECT_THAT(list.body, HasSubstr(R"("id":"m")"));
  EXPECT_THAT(list.body, HasSubstr(R"("id":"alias-m")"));
  EXPECT_THAT(list.body, HasSubstr(R"("max_model_len":4096)"));
  EXPECT_EQ(ask("GET", "/v1/models/org%2Fm").status, 200);
  EXPECT_EQ(ask("GET", "/v1/models/org/m").status, 200);
  EXPECT_EQ(ask("GET", "/v1/models/nope").status, 404);
}

TEST_F(GatewayTest, RoutesAndMethods) {
  start();
  EXPECT_EQ(ask("GET", "/healthz").status, 200);
  EXPECT_EQ(ask("HEAD", "/").status, 200);
  EXPECT_EQ(ask("GET", "/readyz").status, 200);
  const SeenAnswer wrong_method = ask("GET", kChatPath);
  EXPECT_EQ(wrong_method.status, 405);
  EXPECT_EQ(wrong_method.header("allow"), "POST, OPTIONS");
  EXPECT_EQ(ask("OPTIONS", kChatPath).status, 204);
  const SeenAnswer nowhere = ask("POST", "/v1/embeddings", "{}");
  EXPECT_EQ(nowhere.status, 404);
  EXPECT_THAT(nowhere.body, HasSubstr(R"({"error":{"message":)"));
  EXPECT_EQ(ask("GET", "/healthz", "", {{"x-request-id", "bad id\n"}}).header("x-request-id").substr(0, 4), "req_");
}

TEST_F(GatewayTest, WithoutKeysNoForeignWebPageMaySpendItsTime) {
  start();
  reply_always("x");
  for (const char* origin :
       {"https://evil.example", "http://127.0.0.1.evil.example", "null", "http://localhost.evil.example:80"}) {
    const SeenAnswer answer = ask("POST", kChatPath, chat("hi"), {{"origin", origin}});
    EXPECT_EQ(answer.status, 403) << origin;
    EXPECT_THAT(answer.body, HasSubstr(R"("code":"foreign_origin")"));
  }
  for (const char* origin : {"http://localhost:3000", "http://127.0.0.1", "http://[::1]:8080", ""}) {
    EXPECT_EQ(ask("POST", kChatPath, chat("hi"), {{"origin", origin}}).status, 200) << origin;
  }
}

TEST_F(GatewayTest, TheAdminListenerAnswersToItsOwnNamesOnly) {
  config_.admin.hosts = {"gateway.internal"};
  start();
  for (const char* host : {"localhost:9090", "10.0.0.7:9090", "[::1]:9090", "gateway.internal"}) {
    EXPECT_EQ(ask_admin("/metrics", {{"host", host}}).status, 200) << host;
  }
  for (const char* path : {"/metrics", "/receipts", "/healthz"}) {
    EXPECT_EQ(ask_admin(path, {{"host", "evil.example:9090"}}).status, 403) << "a name made to point here";
    EXPECT_EQ(ask_admin(path, {{"host", "localhost"}, {"origin", "http://evil.example"}}).status, 403);
  }
}

TEST_F(GatewayTest, OverflowNamesBothNumbers) {
  start();
  reply_always("x");
  const SeenAnswer answer = ask("POST", "/v1/completions", R"({"prompt":")" + std::string(5000, 'a') + "\"}");
  EXPECT_EQ(answer.status, 400);
  EXPECT_THAT(answer.body, HasSubstr(R"("code":"context_length_exceeded")"));
  EXPECT_THAT(answer.body, HasSubstr("maximum context length is 4096 tokens. However, you requested 5016 tokens"));
  EXPECT_EQ(a_->calls() + b_->calls(), 0u);
}

TEST_F(GatewayTest, MaxTokensIsClampedOrRefused) {
  start();
  reply_always("x");
  EXPECT_EQ(ask("POST", "/v1/completions", R"({"prompt":[5,6],"max_tokens":32000})").status, 200);
  const auto call = a_->calls() > 0 ? a_->call(0) : b_->call(0);
  EXPECT_EQ(call->request().sampling.max_tokens, 4094);
  config_.models[0].max_tokens_rule = MaxTokensRule::kRefuse;
  ASSERT_TRUE(core_->reload(config_).ok());
  const SeenAnswer refused = ask("POST", "/v1/completions", R"({"prompt":[5,6],"max_tokens":32000})");
  EXPECT_EQ(refused.status, 400);
  EXPECT_THAT(refused.body, HasSubstr("you requested 32002 tokens"));
}

TEST_F(GatewayTest, BadMessagesAreNamedByIndex) {
  start();
  const std::pair<const char*, const char*> rows[] = {
      {R"([{"role":"user"}])", "messages[0].content"},
      {R"([{"role":"user","content":null}])", "messages[0].content"},
      {R"([{"role":"wizard","content":"x"}])", "messages[0].role"},
      {R"([{"content":"x"}])", "messages[0].role"},
      {R"([{"role":"user","content":"x"},{"role":"user","content":[{"type":"image_url","image_url":{}}]}])",
       "messages[1].content[0].type"},
      {R"([{"role":"user","content":[{"type":"text"}]}])", "messages[0].content[0].text"},
      {R"([{"role":"user","content":[5]}])", "messages[0].content[0]"},
      {R"([{"role":"user","content":7}])", "messages[0].content"},
      {R"([{"role":"assistant","tool_calls":[{"id":"1"}]}])", "messages[0].tool_calls[0].function"},
      {R"([{"role":"tool","content":"x","tool_call_id":5}])", "messages[0].tool_call_id"},
      {R"([{"role":"user","content":"\ud800x","content":tru}])", "messages[0]"},
  };
  for (const auto& [messages, param] : rows) {
    const SeenAnswer answer = ask("POST", kChatPath, std::string(R"({"messages":)") + messages + "}");
    EXPECT_EQ(answer.status, 400) << messages;
    EXPECT_THAT(answer.body, HasSubstr("\"param\":\"" + std::string(param) + "\"")) << messages;
  }
  const SeenAnswer tools = ask("POST", kChatPath, chat("hi", R"(,"tools":[{"type":"web_search"}])"));
  EXPECT_THAT(tools.body, HasSubstr(R"("param":"tools[0].type")"));
}

TEST_F(GatewayTest, AgentsOddHistoriesAreAccepted) {
  start();
  reply_always("x");
  const SeenAnswer answer = ask("POST", kChatPath, R"({"messages":[
      {"role":"developer","content":"be brief"},
      {"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},
      {"role":"assistant","content":""},
      {"role":"assistant","content":null,"reasoning_content":"hm",
       "tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}}]},
      {"role":"tool","tool_call_id":"1","content":"done"},
      {"role":"system","content":"late"},
      {"role":"user","content":"go on"}],
      "tools":[{"type":"function","function":{"name":"f"}}]})");
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(answer.header("x-warmpath-tools"), "default-rendering");
  const auto call = a_->calls() > 0 ? a_->call(0) : b_->call(0);
  EXPECT_THAT(call->prompt_text(), HasSubstr("be brief"));
  EXPECT_THAT(call->prompt_text(), Not(HasSubstr("developer")));
  EXPECT_THAT(call->prompt_text(), HasSubstr("go on"));
}

TEST_F(GatewayTest, LargeBodiesArePreparedByAWorker) {
  config_.models[0].endpoints = {{"a", ""}};
  a_->change_description([](ReplicaDescription& description) { description.context_tokens = 1'000'000; });
  start();
  reply_always("x");
  const SeenAnswer answer = ask("POST", kChatPath, chat(std::string(300'000, 'z')));
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_GT(a_->call(0)->request().prompt.size(), 300'000u);
}

}  // namespace
}  // namespace warmpath

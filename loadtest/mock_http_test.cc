#include "loadtest/mock_http.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "loadtest/http_client.h"
#include "text/vocabulary.h"

namespace warmpath {
namespace {

using testing::HasSubstr;

class MockHttpTest : public testing::Test {
 protected:
  ~MockHttpTest() override {
    http_.reset();
    timer_.stop();
  }
  void start(const std::string& script = "", double decode_s = 0) {
    MockEngineOptions options;
    options.tokenizer = *Tokenizer::create(synthetic_vocabulary());
    options.decode_step_s = decode_s;
    if (!script.empty()) options.script = *MockScript::parse(script);
    engine_ = std::make_unique<MockEngine>(options, timer_);
    auto http = MockHttp::start("127.0.0.1", {{engine_.get(), "mock", 0}});
    ASSERT_TRUE(http.ok()) << http.status().to_string();
    http_ = std::move(*http);
    client_ = std::make_unique<HttpClient>("127.0.0.1", http_->ports().at(0), 5.0);
  }
  Result<HttpReply> chat(const std::string& content, const std::string& more = "", const BodySink& sink = nullptr) {
    return client_->request("POST", "/v1/chat/completions", {{"content-type", "application/json"}},
                            R"({"model":"mock","messages":[{"role":"user","content":")" + content + "\"}]" + more + "}",
                            sink);
  }

  MockTimer timer_;
  std::unique_ptr<MockEngine> engine_;
  std::unique_ptr<MockHttp> http_;
  std::unique_ptr<HttpClient> client_;
};

TEST_F(MockHttpTest, AnswersWholeAndStreamedOnOneConnection) {
  start(R"({"when": "weather", "reply": "It \"rains\"."})");
  EXPECT_EQ(client_->request("GET", "/health", {}, "")->status, 200);
  for (int round = 0; round < 3; ++round) {
    const auto reply = chat("how will the weather be tomorrow, please?");
    ASSERT_TRUE(reply.ok()) << reply.status().to_string();
    EXPECT_EQ(reply->status, 200);
    EXPECT_THAT(reply->body, HasSubstr(R"("content":"It \"rains\".")"));
    EXPECT_THAT(reply->body, HasSubstr(R"("finish_reason":"stop")"));
    EXPECT_EQ(reply->body.find("\"cached_tokens\":0}") == std::string::npos, round > 0) << reply->body;
    const auto streamed = chat("how will the weather be tomorrow, please?", R"(,"stream":true)");
    ASSERT_TRUE(streamed.ok()) << streamed.status().to_string();
    EXPECT_THAT(streamed->body, HasSubstr(R"("delta":{"content":"It \"rains\"."})"));
    EXPECT_THAT(streamed->body, testing::EndsWith("data: [DONE]\n\n"));
  }
  EXPECT_THAT(chat("hi", R"(,"max_tokens":4)")->body, HasSubstr(R"("content":"This")"));
}

TEST_F(MockHttpTest, StreamsTokensAsTheyCome) {
  start("", 0.002);
  int events = 0;
  const auto streamed = chat("hi", R"(,"stream":true,"max_tokens":10)", [&](std::string_view bytes) {
    for (size_t at = 0; (at = bytes.find("\"content\"", at)) != std::string_view::npos; ++at) ++events;
    return true;
  });
  ASSERT_TRUE(streamed.ok()) << streamed.status().to_string();
  EXPECT_EQ(events, 10);
}

TEST_F(MockHttpTest, FaultsShowAsHttp) {
  start(R"({"when": "full", "fault": "refuse", "status": "resource_exhausted"})"
        "\n"
        R"({"when": "cut", "fault": "error", "after_tokens": 2})");
  EXPECT_EQ(chat("full")->status, 429);
  EXPECT_EQ(chat("cut")->status, 503);
  EXPECT_FALSE(chat("cut", R"(,"stream":true)").ok()) << "a broken stream has no clean end";
  EXPECT_EQ(client_->request("POST", "/v1/chat/completions", {}, "not json")->status, 400);
  EXPECT_EQ(client_->request("GET", "/nothing", {}, "")->status, 404);
}

TEST_F(MockHttpTest, AClientThatLeavesFreesTheSlot) {
  start(R"({"fault": "hang", "after_tokens": 1})");
  const auto left = chat("x", R"(,"stream":true)", [](std::string_view) { return false; });
  EXPECT_EQ(left.status().code(), StatusCode::kCancelled);
  client_.reset();
  for (int wait = 0; wait < 300 && engine_->stats().running > 0; ++wait) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(engine_->stats().running, 0);
}

TEST_F(MockHttpTest, ALargeBodyIsReadWhole) {
  start();
  const auto reply = chat(std::string(600'000, 'x'), R"(,"max_tokens":1)");
  EXPECT_EQ(reply->status, 400) << "150,000 tokens do not fit the context";
  EXPECT_THAT(reply->body, HasSubstr("context"));
  EXPECT_EQ(chat(std::string(100'000, 'x'), R"(,"max_tokens":1)")->status, 200);
}

}  // namespace
}  // namespace warmpath

// Session admission in the gateway: who waits, who is let in, and what clients see of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "router/gateway_fixture.h"

namespace warmpath {
namespace {

using ::testing::HasSubstr;

// One replica whose KV holds 1,024 tokens.
class AdmissionTest : public GatewayFixture {
 protected:
  void SetUp() override {
    GatewayFixture::SetUp();
    config_.models[0].endpoints = {{"a", ""}};
    config_.models[0].admission.enabled = true;
    a_->change_description([](ReplicaDescription& description) {
      description.device_blocks = 64;
      description.context_tokens = 4096;
    });
  }

  // A turn of `tokens` tokens and a few.
  std::shared_ptr<TestExchange> turn(const std::string& session, size_t tokens, const std::string& more = "") {
    return send("POST", "/v1/completions",
                R"({"prompt":")" + session + std::string(tokens, 'x') + R"(","max_tokens":4)" + more + "}",
                {{"x-session-id", session}});
  }
  AdmissionDesk::Counts counts() { return core_->fleet().find("m")->admission()->counts(); }
  bool waits(size_t turns) {
    return eventually([&] { return counts().waiting == turns; });
  }
};

TEST_F(AdmissionTest, ANewSessionWaitsForRoomAndSaysSo) {
  config_.models[0].admission.new_session_wait_s = 0.4;
  start();
  const auto first = turn("first", 600);
  ASSERT_NE(a_->call(0), nullptr);
  const auto second = turn("second", 600);
  ASSERT_TRUE(waits(1));
  a_->call(0)->reply("ok");
  EXPECT_EQ(first->answer().status, 200);
  EXPECT_EQ(first->answer().header("x-warmpath-admission-wait"), "");
  // The first session is live: its next turn goes while the second one waits.
  const auto next = turn("first", 650);
  ASSERT_NE(a_->call(1), nullptr);
  EXPECT_THAT(a_->call(1)->prompt_text(), HasSubstr("first"));
  a_->call(1)->reply("ok");
  EXPECT_EQ(next->answer().status, 200);
  // Its time is up: it begins.
  ASSERT_NE(a_->call(2), nullptr);
  EXPECT_THAT(a_->call(2)->prompt_text(), HasSubstr("second"));
  a_->call(2)->reply("ok");
  const SeenAnswer answer = second->answer();
  EXPECT_EQ(answer.status, 200);
  EXPECT_GT(std::stod("0" + answer.header("x-warmpath-admission-wait")), 0.3);
  EXPECT_THAT(ask_admin("/metrics").body, HasSubstr("warmpath_admission_live_sessions{model=\"m\"} 2"));
  // Both together are too much, and the younger one gives way.
  const auto third = turn("second", 650);
  EXPECT_TRUE(waits(1));
  EXPECT_EQ(counts().pauses, 1u);
  third->leave();
  EXPECT_TRUE(waits(0));
}

TEST_F(AdmissionTest, TheLongestWaitEndsWith429) {
  config_.models[0].admission.most_wait_s = 0.3;
  start();
  const auto first = turn("first", 600);
  ASSERT_NE(a_->call(0), nullptr);
  const SeenAnswer second = turn("second", 600)->answer();
  EXPECT_EQ(second.status, 429);
  EXPECT_GE(std::stoi("0" + second.header("retry-after")), 1);
  EXPECT_TRUE(waits(0));
  first->leave();
}

TEST_F(AdmissionTest, AStreamThatWaitsIsKeptAlive) {
  config_.limits.headers_after_s = 0.05;
  config_.limits.keep_alive_s = 0.1;
  config_.models[0].admission.new_session_wait_s = 0.8;
  start();
  const auto first = turn("first", 600);
  ASSERT_NE(a_->call(0), nullptr);
  const auto second = turn("second", 600, kStream);
  EXPECT_TRUE(second->wait_until([](const SeenAnswer& seen) { return seen.streamed && !seen.body.empty(); }));
  EXPECT_EQ(a_->calls(), 1u);
  ASSERT_NE(a_->call(1), nullptr);
  a_->call(1)->reply("at last");
  EXPECT_THAT(second->answer().body, HasSubstr("at last"));
  first->leave();
}

TEST_F(AdmissionTest, WithoutItNobodyWaits) {
  config_.models[0].admission.enabled = false;
  start();
  for (size_t n = 0; n < 4; ++n) {
    const auto exchange = turn("session " + std::to_string(n), 900);
    ASSERT_NE(a_->call(n), nullptr);
    exchange->leave();
  }
}

}  // namespace
}  // namespace warmpath

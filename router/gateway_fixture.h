// GatewayFixture: a whole GatewayCore over two TestUpstreams, "a" and "b", and one I/O thread.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "base/log.h"
#include "router/gateway_core.h"
#include "router/test_exchange.h"
#include "router/test_upstream.h"

namespace warmpath {

class GatewayFixture : public ::testing::Test {
 protected:
  void SetUp() override {
    set_log_level(LogLevel::kOff);
    config_.log.level = "off";
    ModelConfig& model = config_.models.emplace_back();
    model.name = "m";
    model.aliases = {"alias-m", "org/m"};
    model.policy.name = "round_robin";  // a, b, a, b: tests know who is asked
    model.endpoints = {{"a", ""}, {"b", ""}};
    a_ = std::make_shared<TestUpstream>("a");
    b_ = std::make_shared<TestUpstream>("b");
    upstreams_ = {{"a", a_}, {"b", b_}};
  }

  void TearDown() override {
    io_.stop();
    core_ = nullptr;
    for (const auto& [address, upstream] : upstreams_) upstream->drop_calls();
  }

  // Begins once both replicas are known exactly.
  void start() {
    create();
    ASSERT_TRUE(eventually([&] { return usable() == config_.models[0].endpoints.size(); }));
  }
  // Begins once both may be asked, whatever is known of what they hold.
  void start_without_streams() {
    create();
    ASSERT_TRUE(eventually([&] {
      const auto replicas = core_->fleet().find("m")->replicas();
      return std::all_of(replicas.begin(), replicas.end(), [](const auto& replica) { return replica->usable(); });
    }));
  }
  void create() {
    const auto factory = [this](const EndpointConfig& endpoint) -> Result<std::shared_ptr<Upstream>> {
      const auto found = upstreams_.find(endpoint.address);
      if (found == upstreams_.end()) return not_found("no such test upstream");
      return std::shared_ptr<Upstream>(found->second);
    };
    MonitorTiming timing;
    timing.stats_every_s = 0.02;
    timing.first_retry_s = 0.01;
    timing.longest_retry_s = 0.05;
    timing.longest_event_retry_s = 0.05;
    auto core = GatewayCore::create(config_, factory, SystemClock::instance(), timing);
    ASSERT_TRUE(core.ok()) << core.status().message();
    core_ = std::move(core).value();
  }

  size_t usable() {
    size_t count = 0;
    for (const auto& replica : core_->fleet().find("m")->replicas()) {
      count += replica->usable() && replica->trust() == Trust::kExact;
    }
    return count;
  }

  static bool eventually(const std::function<bool()>& happened) {
    for (int wait = 0; wait < 2500; ++wait) {
      if (happened()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return false;
  }

  std::shared_ptr<TestExchange> send(std::string method, std::string target, std::string body = "",
                                     HttpHeaders headers = {}) {
    auto exchange =
        std::make_shared<TestExchange>(io_, std::move(method), std::move(target), std::move(headers), std::move(body));
    exchange->send_to(core_->gateway());
    return exchange;
  }
  SeenAnswer ask(std::string method, std::string target, std::string body = "", HttpHeaders headers = {}) {
    return send(std::move(method), std::move(target), std::move(body), std::move(headers))->answer();
  }
  SeenAnswer ask_admin(std::string target, HttpHeaders headers = {}) {
    auto exchange = std::make_shared<TestExchange>(io_, "GET", std::move(target), std::move(headers), "");
    exchange->send_to(core_->admin());
    return exchange->answer();
  }

  static std::string chat(const std::string& content, const std::string& more = "") {
    return R"({"model":"m","messages":[{"role":"user","content":")" + content + "\"}]" + more + "}";
  }
  static constexpr const char* kChatPath = "/v1/chat/completions";
  static constexpr const char* kStream = R"(,"stream":true)";

  void reply_always(const std::string& text, int32_t cached = 0) {
    for (const auto& upstream : {a_, b_}) {
      upstream->on_generate = [text, cached](const std::shared_ptr<TestCall>& call) { call->reply(text, cached); };
    }
  }

  GatewayConfig config_;
  std::shared_ptr<TestUpstream> a_;
  std::shared_ptr<TestUpstream> b_;
  std::map<std::string, std::shared_ptr<TestUpstream>> upstreams_;
  TaskQueue io_{"io", 1};
  std::unique_ptr<GatewayCore> core_;
};

}  // namespace warmpath

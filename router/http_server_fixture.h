// What the HTTP server's tests share: a handler that answers by path, and a server around it.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "router/http_server.h"
#include "router/http_test_client.h"

namespace warmpath {

// Answers by path; what a test wants to do itself it puts into `other`.
class TestHandler final : public HttpHandler {
 public:
  void handle(std::shared_ptr<HttpExchange> exchange) override {
    ++handled;
    const HttpRequest& request = exchange->request();
    if (request.path == "/hello") {
      exchange->respond(200, {{"content-type", "text/plain"}}, "hello");
    } else if (request.path == "/echo") {
      exchange->respond(200, {{"x-target", std::string(request.target)}, {"x-query", std::string(request.query)}},
                        std::string(request.body));
    } else if (request.path == "/drop") {
      exchange.reset();
    } else if (request.path == "/throw") {
      throw std::runtime_error("thrown by a handler");
    } else if (other) {
      other(std::move(exchange));
    } else {
      exchange->respond(404, {}, "");
    }
  }

  std::optional<HttpAnswer> refuse_before_body(const HttpRequest&) override { return early; }

  std::function<void(std::shared_ptr<HttpExchange>)> other;
  std::optional<HttpAnswer> early;  // set before, or between, requests
  std::atomic<int> handled{0};
};

class HttpServerTest : public ::testing::Test {
 protected:
  void serve(const HttpLimits& limits = {}, int threads = 2) {
    server = std::make_unique<HttpServer>(limits, threads);
    auto bound = server->listen("127.0.0.1", 0, &handler);
    ASSERT_TRUE(bound.ok()) << bound.status().message();
    port = *bound;
    server->start();
  }

  bool eventually(const std::function<bool()>& condition, double timeout_s = 5) {
    auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(timeout_s);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return true;
  }

  uint64_t refused(HttpRefusal refusal) { return server->counters().refused[static_cast<size_t>(refusal)]; }

  TestHandler handler;
  std::vector<std::shared_ptr<HttpExchange>> held;  // a handler's own: exchanges it keeps
  std::unique_ptr<HttpServer> server;
  uint16_t port = 0;
};

}  // namespace warmpath

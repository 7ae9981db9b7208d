// The protocol part of the hostile table against the HTTP server alone, with a handler that answers at once; and random
// damage to valid requests. Each run prints how many rows it played.

#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <random>
#include <string>

#include "router/http_server.h"
#include "router/http_test_client.h"
#include "tests/hostile/hostile_table.h"

namespace warmpath {
namespace {

const std::string kOkBody = R"({"model":"tiny","prompt":"hi","max_tokens":1})";

// The gateway's paths, without what is behind them.
class StubHandler final : public HttpHandler {
 public:
  void handle(std::shared_ptr<HttpExchange> exchange) override {
    const HttpRequest& request = exchange->request();
    const bool models = request.path == "/v1/models";
    if (!models && request.path != "/v1/completions") return error(*exchange, 404, {});
    std::string_view method = models ? "GET" : "POST";
    if (request.method != method) return error(*exchange, 405, {{"allow", std::string(method)}});
    if (!models && request.body != kOkBody) return error(*exchange, 400, {});
    exchange->respond(200, {{"content-type", "application/json"}}, R"({"object":"list","data":[]})");
  }

 private:
  void error(HttpExchange& exchange, int status, HttpHeaders headers) {
    headers.emplace_back("content-type", "application/json");
    exchange.respond(status, headers, http_error_body(http_reason(status), "invalid_request_error"));
  }
};

class HttpHostileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto bound = server.listen("127.0.0.1", 0, &handler);
    ASSERT_TRUE(bound.ok());
    port = *bound;
    server.start();
  }

  bool alive() { return TestClient(port).ask(test_get("/v1/models")).status == 200; }

  StubHandler handler;
  HttpServer server{{}, 2};
  uint16_t port = 0;
};

TEST_F(HttpHostileTest, EveryRowOfTheProtocolTable) {
  auto rows = load_hostile_table(WARMPATH_SOURCE_DIR "/tests/hostile/protocol.yaml", hostile_variables(kOkBody));
  ASSERT_TRUE(rows.ok()) << rows.status().message();
  ASSERT_GE(rows->size(), 200u);
  for (const HostileRow& row : *rows) EXPECT_EQ(play_hostile_row(row, port), "") << "row `" << row.name << "`";
  EXPECT_TRUE(alive());
  std::printf("%zu rows\n", rows->size());
}

// The order of bytes is what is checked here: whatever comes, the server answers or closes, and lives.
TEST_F(HttpHostileTest, RandomDamageNeverHurts) {
  std::mt19937 random(20240607);
  auto pick = [&](size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random); };
  const std::string seeds[] = {
      test_get("/v1/models", "Connection: keep-alive\r\nAccept: */*\r\n"),
      test_post("/v1/completions", kOkBody, "Content-Type: application/json\r\nExpect: 100-continue\r\n"),
      "POST /v1/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: "
      "chunked\r\n\r\n5;a=\"b\"\r\nhello\r\n3\r\nabc\r\n0\r\nA: b\r\n\r\n"};
  int answered = 0;
  for (int round = 0; round < 1500; ++round) {
    std::string bytes = seeds[pick(3)] + seeds[pick(3)];
    for (size_t n = 1 + pick(4); n > 0; --n) {
      size_t at = pick(bytes.size());
      switch (pick(5)) {
        case 0:
          bytes[at] = static_cast<char>(pick(256));
          break;
        case 1:
          bytes.erase(at, 1 + pick(20));
          break;
        case 2:
          bytes.insert(at, 1 + pick(20), static_cast<char>(pick(256)));
          break;
        case 3:
          bytes.insert(at, bytes.substr(pick(bytes.size()), pick(60)));
          break;
        case 4:
          bytes.resize(at);
          break;
      }
      if (bytes.empty()) bytes = "x";
    }
    TestClient client(port);
    size_t cut = pick(bytes.size() + 1);
    client.send(bytes.substr(0, cut));
    client.send(bytes.substr(cut));
    client.half_close();
    int last = 0;
    for (TestResponse response; (response = client.read_response()).status != 0;) {
      ++answered;
      EXPECT_TRUE(response.complete) << bytes;
      last = response.status;
    }
    EXPECT_TRUE(last == 0 || (last >= 200 && last < 506)) << last;
    EXPECT_TRUE(client.closed_by_peer(3)) << bytes;
  }
  EXPECT_GT(answered, 500);
  EXPECT_TRUE(alive());
  std::printf("%d answers to 1500 damaged connections\n", answered);
}

}  // namespace
}  // namespace warmpath

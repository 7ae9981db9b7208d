// Each of HttpLimits' limits, reached over real sockets.

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "router/http_server_fixture.h"

namespace warmpath {
namespace {

using HttpLimitsTest = HttpServerTest;

void sleep_s(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

TEST_F(HttpLimitsTest, ABodyOverTheLimitIsRefusedBeforeItIsRead) {
  serve({.max_body_bytes = 1000});
  TestClient client(port);
  TestResponse response = client.ask("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1001\r\n\r\n");
  EXPECT_EQ(response.status, 413);
  EXPECT_EQ(response.header("connection"), "close");
  EXPECT_EQ(TestClient(port).ask(test_post("/echo", std::string(1000, 'x'))).status, 200);
  // Chunked: the chunk that passes the limit is refused at its size line.
  TestResponse chunked =
      TestClient(port).ask("POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3e7\r\n" +
                           std::string(999, 'x') + "\r\n2\r\n");
  EXPECT_EQ(chunked.status, 413);
  TestResponse huge =
      TestClient(port).ask("POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n");
  EXPECT_EQ(huge.status, 413);
}

TEST_F(HttpLimitsTest, TheAnswerToAnUnreadBodyReachesAClientThatIsStillSending) {
  serve({.max_body_bytes = 1000});
  TestClient client(port);
  // More than the socket buffers hold: without the lingering close the reset would overtake the answer.
  TestResponse response = client.ask(test_post("/echo", std::string(80 << 20, 'x')));
  EXPECT_EQ(response.status, 413);
  EXPECT_TRUE(response.complete);
  EXPECT_FALSE(response.reset);
  client.half_close();
  EXPECT_TRUE(client.closed_by_peer(5));
}

TEST_F(HttpLimitsTest, LingeringHasAnEnd) {
  serve({.max_body_bytes = 1000, .linger_s = 0.2, .linger_total_s = 0.6, .linger_bytes = 1 << 20});
  const std::string head = "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n\r\n";
  TestClient silent(port), trickling(port), flooding(port);
  for (TestClient* client : {&silent, &trickling, &flooding}) EXPECT_EQ(client->ask(head).status, 413);
  EXPECT_TRUE(eventually(
      [&] {
        trickling.send("x");
        sleep_s(0.02);
        return server->counters().active == 1;
      },
      3))
      << server->counters().active;
  flooding.send(std::string(8 << 20, 'x'));
  EXPECT_TRUE(eventually([&] { return server->counters().active == 0; }));
}

TEST_F(HttpLimitsTest, TheHandlerMayRefuseALargeBodyBeforeItIsRead) {
  handler.early = HttpAnswer{401, {{"content-type", "text/plain"}}, "no key"};
  serve({.large_body_bytes = 1000});
  EXPECT_EQ(TestClient(port).ask(test_post("/echo", std::string(1000, 'x'))).status, 200);
  TestClient large(port);
  TestResponse refused_large = large.ask("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1001\r\n\r\n");
  EXPECT_EQ(refused_large.status, 401);
  EXPECT_EQ(refused_large.body, "no key");
  EXPECT_EQ(refused_large.header("connection"), "close");
  large.half_close();
  EXPECT_TRUE(large.closed_by_peer(5));
  EXPECT_EQ(TestClient(port).ask("POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n").status, 401);
  EXPECT_EQ(TestClient(port)
                .ask("POST /echo HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2000\r\n\r\n")
                .status,
            401);
  EXPECT_EQ(server->counters().body_bytes, 0u);
  handler.early.reset();
  EXPECT_EQ(TestClient(port).ask(test_post("/echo", std::string(2000, 'x'))).body.size(), 2000u);
}

TEST_F(HttpLimitsTest, BodiesInFlightAreBoundedTogether) {
  serve({.max_total_body_bytes = 1 << 20});
  std::promise<std::shared_ptr<HttpExchange>> seen;
  handler.other = [&](std::shared_ptr<HttpExchange> exchange) { seen.set_value(std::move(exchange)); };
  TestClient holder(port);
  holder.send(test_post("/hold", std::string(700 << 10, 'x')));
  auto exchange = seen.get_future().get();
  EXPECT_GE(server->counters().body_bytes, 700u << 10);

  TestResponse refusal = TestClient(port).ask("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 700000\r\n\r\n");
  EXPECT_EQ(refusal.status, 503);
  EXPECT_EQ(refusal.header("retry-after"), "1");
  TestResponse chunked =
      TestClient(port).ask("POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\naae60\r\n" +
                           std::string(700000, 'x') + "\r\n0\r\n\r\n");
  EXPECT_EQ(chunked.status, 503);
  EXPECT_EQ(refused(HttpRefusal::kBodiesInFlight), 2u);
  EXPECT_EQ(TestClient(port).ask(test_post("/echo", "small")).status, 200);

  auto* raw = exchange.get();
  raw->post([exchange = std::move(exchange)] { exchange->respond(200, {}, ""); });
  EXPECT_EQ(holder.read_response().status, 200);
  EXPECT_TRUE(eventually([&] { return server->counters().body_bytes == 0; }));
  EXPECT_EQ(TestClient(port).ask(test_post("/echo", std::string(700000, 'x'))).status, 200);
}

TEST_F(HttpLimitsTest, AClaimedLengthCostsNothing) {
  serve({.max_total_body_bytes = 64 << 20});
  std::vector<std::unique_ptr<TestClient>> liars;
  for (int i = 0; i < 50; ++i) {
    liars.push_back(std::make_unique<TestClient>(port));
    liars.back()->send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 30000000\r\n\r\nx");
  }
  ASSERT_TRUE(eventually([&] { return server->counters().requests == 50; }));
  EXPECT_LE(server->counters().body_bytes, 50u * (512 << 10));
  EXPECT_EQ(TestClient(port).ask(test_post("/echo", std::string(3 << 20, 'x'))).status, 200);
}

TEST_F(HttpLimitsTest, ASlowHeaderTimesOut) {
  serve({.head_read_s = 0.1});
  TestClient client(port);
  client.send("GET /hello HTTP/1.1\r\nHo");
  for (int i = 0; i < 8 && client.send("s"); ++i) sleep_s(0.03);  // a byte now and then does not help
  TestResponse response = client.read_response();
  EXPECT_EQ(response.status, 408);
  EXPECT_EQ(refused(HttpRefusal::kHeadTimeout), 1u);
}

TEST_F(HttpLimitsTest, AStalledBodyTimesOut) {
  serve({.body_stall_s = 0.1});
  TestClient client(port);
  EXPECT_EQ(client.ask("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf").status, 408);
}

TEST_F(HttpLimitsTest, ASlowBodyTimesOutEvenIfItNeverStalls) {
  serve({.min_body_bytes_per_s = 1000, .body_grace_s = 0.1});
  TestClient client(port);
  client.send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n");
  for (int i = 0; i < 20 && client.send("x"); ++i) sleep_s(0.02);
  EXPECT_EQ(client.read_response().status, 408);
  EXPECT_EQ(refused(HttpRefusal::kBodyTimeout), 1u);
}

TEST_F(HttpLimitsTest, IdleConnectionsAreClosedWithoutAWord) {
  serve({.idle_s = 0.1});
  TestClient fresh(port), used(port);
  EXPECT_EQ(used.ask(test_get("/hello")).status, 200);
  EXPECT_EQ(fresh.read_response(false, 3).status, 0);
  EXPECT_TRUE(used.closed_by_peer(3));
  EXPECT_TRUE(eventually([&] { return server->counters().idle_closed == 2; }));
}

TEST_F(HttpLimitsTest, AWorkingHandlerIsNotIdle) {
  serve({.idle_s = 0.05, .head_read_s = 0.05, .body_stall_s = 0.05, .write_stall_s = 0.05});
  handler.other = [](std::shared_ptr<HttpExchange> exchange) {
    auto* raw = exchange.get();
    raw->post_after(0.3, [exchange = std::move(exchange)] { exchange->respond(200, {}, "slow"); });
  };
  EXPECT_EQ(TestClient(port).ask(test_post("/slow", "body")).body, "slow");
}

TEST_F(HttpLimitsTest, ConnectionsAreBoundedPerListener) {
  serve({.max_connections = 3});
  TestHandler admin;
  auto admin_port = server->listen("127.0.0.1", 0, &admin);
  ASSERT_TRUE(admin_port.ok());
  {
    std::vector<std::unique_ptr<TestClient>> held;
    for (int i = 0; i < 3; ++i) {
      held.push_back(std::make_unique<TestClient>(port));
      held.back()->send("GET /hello HTTP/1.1\r\n");  // at work, if slowly
    }
    ASSERT_TRUE(eventually([&] { return server->counters().bytes_in == 3 * 21; }));
    TestClient extra(port);
    TestResponse response = extra.read_response();  // told so before it asks
    EXPECT_EQ(response.status, 503);
    EXPECT_EQ(response.header("retry-after"), "1");
    EXPECT_EQ(TestClient(*admin_port).ask(test_get("/hello")).status, 200);
  }
  EXPECT_TRUE(eventually([&] { return TestClient(port).ask(test_get("/hello")).status == 200; }));
  server->stop();
}

TEST_F(HttpLimitsTest, IdleConnectionsGiveWayToThoseThatAsk) {
  serve({.max_connections = 3}, 1);
  std::vector<std::unique_ptr<TestClient>> idle;
  for (int i = 0; i < 40; ++i) {
    idle.push_back(std::make_unique<TestClient>(port));
    ASSERT_EQ(idle.back()->ask(test_get("/hello")).status, 200) << i;
  }
  EXPECT_TRUE(idle[0]->closed_by_peer(3)) << "the one that has been idle for longest";
  EXPECT_EQ(idle[39]->ask(test_get("/hello")).status, 200);
  EXPECT_TRUE(eventually([&] { return server->counters().active == 3; })) << server->counters().active;
  EXPECT_EQ(refused(HttpRefusal::kTooManyConnections), 0u);
}

TEST_F(HttpLimitsTest, APipelinedFloodLeavesOthersTheirTurn) {
  serve({}, 1);
  std::string flood;
  while (flood.size() < 512 << 10) flood += test_get("/hello");
  const size_t requests = flood.size() / test_get("/hello").size();
  TestClient flooding(port), other(port);
  std::thread sender([&] { flooding.send(flood); });
  std::string answers;
  int before_the_end = 0;
  while (flooding.read_some(5)) {
    answers += flooding.take_buffer();
    size_t seen = 0;
    for (size_t at = 0; (at = answers.find("HTTP/1.1 200", at)) != std::string::npos; ++at) ++seen;
    if (seen == requests) break;
    EXPECT_EQ(other.ask(test_get("/hello")).status, 200);
    ++before_the_end;
  }
  sender.join();
  EXPECT_EQ(server->counters().requests, requests + static_cast<size_t>(before_the_end));
  EXPECT_GT(before_the_end, 2);
}

TEST_F(HttpLimitsTest, RequestsPerConnectionAreBounded) {
  serve({.max_requests_per_connection = 2});
  TestClient client(port);
  EXPECT_EQ(client.ask(test_get("/hello")).header("connection"), "");
  EXPECT_EQ(client.ask(test_get("/hello")).header("connection"), "close");
  EXPECT_TRUE(client.closed_by_peer(3));
}

TEST_F(HttpLimitsTest, AStreamsReaderThatStopsIsCutOff) {
  serve({.max_unsent_bytes = 256 << 10});
  std::promise<void> gone;
  handler.other = [&](std::shared_ptr<HttpExchange> exchange) {
    exchange->on_client_gone([&] { gone.set_value(); });
    exchange->begin_stream(200, {});
    auto write = std::make_shared<std::function<void()>>();
    auto* raw = exchange.get();
    // The handler goes on writing, as a model does that does not know its reader.
    *write = [raw, write_weak = std::weak_ptr(write)] {
      raw->write(std::string(50000, 'x'));
      if (auto again = write_weak.lock()) raw->post_after(0.0005, [again] { (*again)(); });
    };
    raw->post_after(0.0005, [write, exchange] { (*write)(); });
    held.push_back(std::move(exchange));
  };
  TestClient client(port, "127.0.0.1", 4096);
  client.send(test_get("/stream"));
  EXPECT_EQ(gone.get_future().wait_for(std::chrono::seconds(10)), std::future_status::ready);
  EXPECT_EQ(server->counters().slow_readers, 1u);
}

TEST_F(HttpLimitsTest, AnAnswerNobodyTakesIsGivenUp) {
  serve({.write_stall_s = 0.1});
  handler.other = [](std::shared_ptr<HttpExchange> exchange) {
    exchange->respond(200, {}, std::string(32 << 20, 'x'));
  };
  TestClient client(port, "127.0.0.1", 4096);
  client.send(test_get("/large"));
  EXPECT_TRUE(eventually([&] { return server->counters().slow_readers == 1; }));
  EXPECT_TRUE(eventually([&] { return server->counters().active == 0; }));
  EXPECT_FALSE(client.read_response().complete);
}

TEST_F(HttpLimitsTest, ALargeAnswerReachesASlowButSteadyReader) {
  serve({.write_stall_s = 0.3});
  handler.other = [](std::shared_ptr<HttpExchange> exchange) { exchange->respond(200, {}, std::string(4 << 20, 'x')); };
  TestClient client(port, "127.0.0.1", 4096);
  client.send(test_get("/large"));
  sleep_s(0.1);
  EXPECT_TRUE(client.read_response().complete);
}

TEST_F(HttpLimitsTest, PipelinedBytesWaitInTheKernel) {
  serve({.max_pipelined_bytes = 1000});
  std::promise<std::shared_ptr<HttpExchange>> seen;
  handler.other = [&](std::shared_ptr<HttpExchange> exchange) { seen.set_value(std::move(exchange)); };
  TestClient client(port);
  std::string many;
  for (int i = 0; i < 1000; ++i) many += test_get("/hello");
  client.send(test_get("/wait"));
  auto exchange = seen.get_future().get();
  client.send(many);
  sleep_s(0.05);
  EXPECT_LE(server->counters().bytes_in, 1100u);
  auto* raw = exchange.get();
  raw->post([exchange = std::move(exchange)] { exchange->respond(200, {}, "first"); });
  EXPECT_EQ(client.read_response().body, "first");
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(client.read_response().body, "hello") << i;
}

TEST_F(HttpLimitsTest, ContinueIsSentForABodyThatWaitsForIt) {
  serve();
  TestClient client(port);
  client.send("POST /echo HTTP/1.1\r\nHost: x\r\nExpect: 100-Continue\r\nContent-Length: 4\r\n\r\n");
  ASSERT_TRUE(client.read_some(5));
  EXPECT_EQ(client.take_buffer(), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("body");
  EXPECT_EQ(client.read_response().body, "body");
  // A body that is refused gets the refusal instead.
  HttpLimits small{.max_body_bytes = 3};
  server.reset();
  serve(small);
  TestClient refused_client(port);
  refused_client.send("POST /echo HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n");
  ASSERT_TRUE(refused_client.read_some(5));
  EXPECT_EQ(refused_client.take_buffer().substr(0, 12), "HTTP/1.1 413");
}

}  // namespace
}  // namespace warmpath

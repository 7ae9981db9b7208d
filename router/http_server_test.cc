// The server over real sockets: answers, streams, clients that leave, limits, the end.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "router/http_server_fixture.h"

namespace warmpath {
namespace {

TEST_F(HttpServerTest, AnswersManyRequestsOnOneConnection) {
  serve();
  TestClient client(port);
  for (int i = 0; i < 100; ++i) {
    TestResponse response = client.ask(test_get("/hello"));
    ASSERT_EQ(response.status, 200);
    EXPECT_EQ(response.body, "hello");
    EXPECT_EQ(response.header("connection"), "");
    EXPECT_FALSE(response.header("date").empty());
  }
  EXPECT_EQ(server->counters().requests, 100u);
  EXPECT_EQ(server->counters().accepted, 1u);
}

TEST_F(HttpServerTest, EchoesBodiesOfEverySizeWithPaddingBehind) {
  serve();
  handler.other = [](std::shared_ptr<HttpExchange> exchange) {
    std::string_view body = exchange->request().body;
    int padding = 0;
    for (size_t i = 0; i < 64; ++i) padding += body.data()[body.size() + i];
    exchange->respond(padding == 0 ? 200 : 500, {}, std::string(body));
  };
  TestClient client(port);
  for (size_t size : {0u, 1u, 4095u, 65535u, 65536u, 70000u, 463185u, 3000000u}) {
    std::string body(size, 'x');
    for (size_t i = 0; i < size; ++i) body[i] = static_cast<char>('a' + i % 23);
    TestResponse response = client.ask(test_post("/padded", body));
    EXPECT_EQ(response.status, 200) << size;
    EXPECT_TRUE(response.body == body) << size;
  }
  EXPECT_TRUE(eventually([&] { return server->counters().body_bytes == 0; }));
}

TEST_F(HttpServerTest, TakesRequestsByteByByte) {
  serve();
  TestClient client(port);
  for (char c : test_post("/echo?a=%20b", "payload")) ASSERT_TRUE(client.send({&c, 1}));
  TestResponse response = client.read_response();
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body, "payload");
  EXPECT_EQ(response.header("x-query"), "a=%20b");
}

TEST_F(HttpServerTest, AnswersPipelinedRequestsInOrder) {
  serve();
  std::vector<std::shared_ptr<HttpExchange>> waiting;
  handler.other = [](std::shared_ptr<HttpExchange> exchange) {
    // The later the request, the sooner it would be ready: order must come from the connection.
    double delay = exchange->request().path == "/1" ? 0.05 : 0.0;
    auto* raw = exchange.get();
    raw->post_after(
        delay, [exchange = std::move(exchange)] { exchange->respond(200, {}, std::string(exchange->request().path)); });
  };
  TestClient client(port);
  client.send(test_get("/1") + test_post("/2", "body") + test_get("/hello") + test_get("/4"));
  EXPECT_EQ(client.read_response().body, "/1");
  EXPECT_EQ(client.read_response().body, "/2");
  EXPECT_EQ(client.read_response().body, "hello");
  EXPECT_EQ(client.read_response().body, "/4");
}

TEST_F(HttpServerTest, StreamsChunksFromAnotherThread) {
  serve();
  std::vector<std::thread> threads;
  std::mutex mutex;
  handler.other = [&](std::shared_ptr<HttpExchange> exchange) {
    std::lock_guard lock(mutex);
    threads.emplace_back([exchange] {
      exchange->post([exchange] { exchange->begin_stream(200, {{"content-type", "text/event-stream"}}); });
      for (int i = 0; i < 50; ++i) {
        exchange->post([exchange, i] { exchange->write("data: " + std::to_string(i) + "\n\n"); });
      }
      exchange->post([exchange] { exchange->end(); });
    });
  };
  std::string expected;
  for (int i = 0; i < 50; ++i) expected += "data: " + std::to_string(i) + "\n\n";
  TestClient client(port);
  for (int round = 0; round < 20; ++round) {
    TestResponse response = client.ask(test_get("/stream"));
    EXPECT_EQ(response.status, 200);
    EXPECT_TRUE(response.complete);
    EXPECT_EQ(response.body, expected);
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(HttpServerTest, AbortIsNotACleanEnd) {
  serve();
  handler.other = [](std::shared_ptr<HttpExchange> exchange) {
    if (exchange->request().path == "/before") return exchange->abort();
    exchange->begin_stream(200, {});
    exchange->write("half");
    auto* raw = exchange.get();
    raw->post_after(0.02, [exchange = std::move(exchange)] { exchange->abort(); });
  };
  TestResponse before = TestClient(port).ask(test_get("/before"));
  EXPECT_EQ(before.status, 0);
  TestResponse chunked = TestClient(port).ask(test_get("/during"));
  EXPECT_EQ(chunked.status, 200);
  EXPECT_EQ(chunked.body, "half");
  EXPECT_FALSE(chunked.complete);
  // An HTTP/1.0 answer ends with the connection, so an abort must look like an error there.
  TestResponse http10 = TestClient(port).ask("GET /during HTTP/1.0\r\n\r\n");
  EXPECT_EQ(http10.status, 200);
  EXPECT_EQ(http10.header("transfer-encoding"), "");
  EXPECT_TRUE(http10.reset);
  EXPECT_FALSE(http10.complete);
}

TEST_F(HttpServerTest, Http10GetsItsAnswerAndAClose) {
  serve();
  handler.other = [](std::shared_ptr<HttpExchange> exchange) {
    exchange->begin_stream(200, {});
    exchange->write("one ");
    exchange->write("two");
    exchange->end();
  };
  TestClient plain(port);
  TestResponse response = plain.ask("GET /hello HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_EQ(response.body, "hello");
  EXPECT_EQ(response.header("connection"), "close");
  EXPECT_TRUE(plain.closed_by_peer(3));
  TestResponse stream = TestClient(port).ask("GET /stream HTTP/1.0\r\n\r\n");
  EXPECT_EQ(stream.body, "one two");
  EXPECT_TRUE(stream.complete);
}

TEST_F(HttpServerTest, HeadAnswersCarryNoBody) {
  serve();
  TestClient client(port);
  TestResponse head = client.ask("HEAD /hello HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.header("content-length"), "5");
  EXPECT_EQ(client.ask(test_get("/hello")).body, "hello");
}

TEST_F(HttpServerTest, DroppedAndThrowingHandlersAnswer500) {
  serve();
  for (const char* path : {"/drop", "/throw"}) {
    TestClient client(port);
    TestResponse response = client.ask(test_get(path));
    EXPECT_EQ(response.status, 500) << path;
    EXPECT_NE(response.body.find("\"type\":\"server_error\""), std::string::npos) << response.body;
  }
  EXPECT_EQ(TestClient(port).ask(test_get("/hello")).status, 200);
  EXPECT_TRUE(eventually([&] { return server->counters().in_flight == 0; }));
}

TEST_F(HttpServerTest, DroppedOnAnotherThreadMidStreamAborts) {
  serve();
  std::thread thread;
  handler.other = [&](std::shared_ptr<HttpExchange> exchange) {
    exchange->begin_stream(200, {});
    exchange->write("half");
    thread = std::thread([exchange = std::move(exchange)]() mutable {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      exchange.reset();
    });
  };
  TestResponse response = TestClient(port).ask(test_get("/stream"));
  EXPECT_EQ(response.body, "half");
  EXPECT_FALSE(response.complete);
  thread.join();
}

TEST_F(HttpServerTest, NoticesAClientThatLeavesWhileTheHandlerWorks) {
  serve();
  std::atomic<int> gone{0};
  std::mutex mutex;
  std::vector<std::shared_ptr<HttpExchange>> held;
  handler.other = [&](std::shared_ptr<HttpExchange> exchange) {
    exchange->on_client_gone([&] { ++gone; });
    if (exchange->request().path == "/stream") {
      exchange->begin_stream(200, {});
      exchange->write("first");
    }
    std::lock_guard lock(mutex);
    held.push_back(std::move(exchange));
  };
  auto wait_for = [&](int n) { return eventually([&] { return gone == n; }); };

  TestClient closes(port);
  closes.send(test_get("/queue"));
  ASSERT_TRUE(eventually([&] { return handler.handled == 1; }));
  closes.close();
  EXPECT_TRUE(wait_for(1));

  TestClient resets(port);
  resets.send(test_get("/queue"));
  ASSERT_TRUE(eventually([&] { return handler.handled == 2; }));
  resets.reset();
  EXPECT_TRUE(wait_for(2));

  TestClient mid_stream(port);
  mid_stream.send(test_get("/stream"));
  ASSERT_TRUE(mid_stream.read_some(5));
  mid_stream.close();
  EXPECT_TRUE(wait_for(3));

  // Even behind bytes it sent ahead, and behind more of them than the server reads.
  TestClient sends_ahead(port);
  sends_ahead.send(test_get("/queue") + test_get("/hello"));
  ASSERT_TRUE(eventually([&] { return handler.handled == 4; }));
  sends_ahead.close();
  EXPECT_TRUE(wait_for(4));
  TestClient sends_much(port);
  sends_much.send(test_get("/queue") + std::string(100 << 10, 'x'));
  ASSERT_TRUE(eventually([&] { return handler.handled == 5; }));
  sends_much.half_close();
  EXPECT_TRUE(wait_for(5));

  EXPECT_EQ(server->counters().clients_gone, 5u);
  EXPECT_EQ(server->counters().in_flight, 0u);
  // Late calls are ignored.
  std::lock_guard lock(mutex);
  for (auto& exchange : held) {
    exchange->post([exchange] {
      exchange->respond(200, {}, "late");
      exchange->end();
    });
  }
}

TEST_F(HttpServerTest, AHalfClosedClientStillGetsAPromptAnswer) {
  serve();
  TestClient client(port);
  client.send(test_get("/hello"));
  client.half_close();
  EXPECT_EQ(client.read_response().body, "hello");
}

TEST_F(HttpServerTest, GoneCallbackRegisteredLateIsStillCalled) {
  serve();
  std::promise<void> gone;
  std::promise<std::shared_ptr<HttpExchange>> seen;
  handler.other = [&](std::shared_ptr<HttpExchange> exchange) { seen.set_value(std::move(exchange)); };
  TestClient client(port);
  client.send(test_get("/wait"));
  auto exchange = seen.get_future().get();
  client.reset();
  ASSERT_TRUE(eventually([&] { return server->counters().clients_gone == 1; }));
  exchange->post([&] { exchange->on_client_gone([&] { gone.set_value(); }); });
  EXPECT_EQ(gone.get_future().wait_for(std::chrono::seconds(5)), std::future_status::ready);
}

TEST_F(HttpServerTest, PostAfterRunsOnlyWhileTheExchangeLives) {
  serve();
  std::atomic<int> ran{0};
  handler.other = [&](std::shared_ptr<HttpExchange> exchange) {
    exchange->post_after(0.01, [&] { ++ran; });
    exchange->post_after(30, [&, exchange] { ran += 100; });
    auto* raw = exchange.get();
    raw->post_after(0.05, [exchange = std::move(exchange)] { exchange->respond(200, {}, "done"); });
  };
  EXPECT_EQ(TestClient(port).ask(test_get("/timer")).body, "done");
  EXPECT_EQ(ran, 1);
}

TEST_F(HttpServerTest, ListensOnIpv6AndOnSeveralPorts) {
  serve();
  TestHandler admin;
  admin.other = [](std::shared_ptr<HttpExchange> exchange) {
    exchange->respond(200, {}, exchange->request().peer.substr(0, 5) == "[::1]" ? "v6" : "v4");
  };
  auto admin_port = server->listen("::1", 0, &admin);
  if (!admin_port.ok()) GTEST_SKIP() << "no IPv6 here: " << admin_port.status().message();
  EXPECT_EQ(TestClient(*admin_port, "::1").ask(test_get("/peer")).body, "v6");
  EXPECT_EQ(TestClient(port).ask(test_get("/hello")).body, "hello");
  server->stop();
}

TEST_F(HttpServerTest, APortInUseIsAnErrorWithARemedy) {
  serve();
  HttpServer second({}, 1);
  auto bound = second.listen("127.0.0.1", port, &handler);
  ASSERT_FALSE(bound.ok());
  EXPECT_NE(bound.status().message().find("choose another port"), std::string::npos) << bound.status().message();
  EXPECT_FALSE(second.listen("not-an-address", 0, &handler).ok());
}

TEST_F(HttpServerTest, DrainFinishesWhatRunsAndClosesWhatIdles) {
  serve();
  std::promise<std::shared_ptr<HttpExchange>> seen;
  handler.other = [&](std::shared_ptr<HttpExchange> exchange) { seen.set_value(std::move(exchange)); };
  TestClient idle(port), busy(port);
  EXPECT_EQ(idle.ask(test_get("/hello")).status, 200);
  busy.send(test_get("/slow"));
  auto exchange = seen.get_future().get();
  server->begin_drain();
  EXPECT_TRUE(idle.closed_by_peer(3));
  EXPECT_FALSE(server->wait_until_idle(0.05));
  EXPECT_EQ(TestClient(port).ask(test_get("/hello")).header("connection"), "close");  // still answers, says goodbye
  exchange->post([exchange] { exchange->respond(200, {}, "finished"); });
  TestResponse response = busy.read_response();
  EXPECT_EQ(response.body, "finished");
  EXPECT_EQ(response.header("connection"), "close");
  EXPECT_TRUE(server->wait_until_idle(5));
  server->stop_accepting();
  EXPECT_TRUE(eventually([&] { return !TestClient(port).connected(); }));
}

TEST_F(HttpServerTest, TheEndOfADrainIsToldToHandlersAndToWhoeverIsStillSending) {
  serve();
  std::atomic<int> gone{0};
  std::promise<void> both;
  handler.other = [&](std::shared_ptr<HttpExchange> exchange) {
    HttpExchange* raw = exchange.get();
    raw->on_client_gone([&] { ++gone; });
    if (raw->request().path == "/deaf") {
      held.push_back(std::move(exchange));
      both.set_value();
      return;
    }
    raw->on_drain_over([exchange = std::move(exchange)] {
      exchange->respond(503, {{"retry-after", "1"}}, "stopping");
    });
  };
  TestClient waiting(port), deaf(port), sending(port);
  waiting.send(test_get("/wait"));
  ASSERT_TRUE(eventually([&] { return handler.handled == 1; }));
  sending.send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nxx");
  deaf.send(test_get("/deaf"));
  both.get_future().wait();
  ASSERT_TRUE(eventually([&] { return server->counters().requests == 3; }));
  server->begin_drain();
  EXPECT_FALSE(server->wait_until_idle(0.05));
  EXPECT_FALSE(server->end_drain(0.05));  // one handler takes no notice
  EXPECT_EQ(gone, 0);
  TestResponse told = waiting.read_response();
  EXPECT_EQ(told.status, 503);
  EXPECT_EQ(told.header("connection"), "close");
  EXPECT_EQ(sending.read_response().status, 503);
  server->stop();
  EXPECT_EQ(gone, 1);
  EXPECT_EQ(deaf.read_response().status, 0);
}

TEST_F(HttpServerTest, StopAbortsWhatIsLeftAndOutlivedExchangesAreHarmless) {
  serve();
  std::atomic<int> gone{0};
  std::promise<std::shared_ptr<HttpExchange>> seen;
  handler.other = [&](std::shared_ptr<HttpExchange> exchange) {
    exchange->on_client_gone([&] { ++gone; });
    exchange->begin_stream(200, {});
    exchange->write("half");
    seen.set_value(std::move(exchange));
  };
  TestClient client(port);
  client.send(test_get("/stream"));
  auto exchange = seen.get_future().get();
  server->stop();
  EXPECT_EQ(gone, 1);
  EXPECT_FALSE(client.read_response().complete);
  server.reset();
  exchange->post([&] { ++gone; });
  exchange->respond(200, {}, "late");
  EXPECT_EQ(exchange->request().path, "/stream");
  exchange.reset();
  EXPECT_EQ(gone, 1);
}

}  // namespace
}  // namespace warmpath

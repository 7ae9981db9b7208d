// bench_http: what the HTTP server alone costs, with a handler that answers at once.
//
//   bench_http [--json] [--quick]
//
//   hello_c1_rps, hello_c1_us      one connection, one request at a time: requests/s, server CPU per request
//   hello_c32_rps, hello_c32_us    32 connections
//   post_us, post_cpu_us           a 463,185-byte POST (a 100,000-token chat request): wall and server CPU
//   chunk_cpu_us                   one server-sent event of 200 bytes, of 64 streams written from another thread
//   idle_rss_kb, connection_bytes  the process before any connection; what each of 1,000 idle connections adds
//
// The client is in this process; the server's CPU is the process's less the client thread's (CLOCK_THREAD_CPUTIME_ID).
// The server has one thread. Figures are medians of 5 rounds.
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "router/http_server.h"
#include "router/http_test_client.h"

namespace warmpath {
namespace {

constexpr size_t kPostBytes = 463185;
constexpr int kStreams = 64;
constexpr int kStreamEvents = 500;

double clock_us(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

struct Cost {
  double wall_us = 0;
  double server_cpu_us = 0;
};

// CPU of everything but the calling thread while `work` runs on it.
Cost measure(const std::function<void()>& work) {
  double wall = clock_us(CLOCK_MONOTONIC), all = clock_us(CLOCK_PROCESS_CPUTIME_ID);
  double mine = clock_us(CLOCK_THREAD_CPUTIME_ID);
  work();
  mine = clock_us(CLOCK_THREAD_CPUTIME_ID) - mine;
  all = clock_us(CLOCK_PROCESS_CPUTIME_ID) - all;
  return {clock_us(CLOCK_MONOTONIC) - wall, all - mine};
}

Cost median_of_5(double per, const std::function<void()>& work) {
  std::vector<Cost> costs;
  work();  // warm
  for (int round = 0; round < 5; ++round) costs.push_back(measure(work));
  auto middle = [&](double Cost::*field) {
    std::sort(costs.begin(), costs.end(), [&](const Cost& a, const Cost& b) { return a.*field < b.*field; });
    return costs[2].*field / per;
  };
  return {middle(&Cost::wall_us), middle(&Cost::server_cpu_us)};
}

double rss_kb() {
  FILE* file = std::fopen("/proc/self/statm", "r");
  long size = 0, resident = 0;
  if (file == nullptr || std::fscanf(file, "%ld %ld", &size, &resident) != 2) resident = 0;
  if (file != nullptr) std::fclose(file);
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1024;
}

class BenchHandler final : public HttpHandler {
 public:
  void handle(std::shared_ptr<HttpExchange> exchange) override {
    if (exchange->request().path != "/stream") {
      exchange->respond(200, {{"content-type", "text/plain"}}, "hello world");
      return;
    }
    exchange->begin_stream(200, {{"content-type", "text/event-stream"}});
    std::lock_guard lock(mutex_);
    streams_.push_back(std::move(exchange));
    if (streams_.size() == kStreams) writer_ = std::thread([this, streams = std::move(streams_)] { write(streams); });
  }
  void join() { writer_.join(); }

 private:
  // As an upstream's thread does it: one post per token and stream.
  void write(const std::vector<std::shared_ptr<HttpExchange>>& streams) {
    const std::string event = "data: " + std::string(192, 'x') + "\n\n";
    for (int i = 0; i < kStreamEvents; ++i) {
      for (const auto& stream : streams) stream->post([stream, event] { stream->write(event); });
      std::this_thread::sleep_for(std::chrono::microseconds(500));
    }
    for (const auto& stream : streams) stream->post([stream] { stream->end(); });
  }

  std::mutex mutex_;
  std::vector<std::shared_ptr<HttpExchange>> streams_;
  std::thread writer_;
};

// `connections` at once, each with one request in flight; answers are known to be equal in length.
void hello(uint16_t port, int connections, int requests) {
  std::vector<std::unique_ptr<TestClient>> clients;
  const std::string ask = "GET /hello HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n";
  int poll = epoll_create1(0);
  for (int i = 0; i < connections; ++i) {
    clients.push_back(std::make_unique<TestClient>(port));
    epoll_event event{.events = EPOLLIN, .data = {.fd = clients.back()->fd()}};
    epoll_ctl(poll, EPOLL_CTL_ADD, event.data.fd, &event);
    clients.back()->send(ask);
  }
  for (int answered = 0; answered < requests;) {
    epoll_event events[64];
    int n = epoll_wait(poll, events, 64, 1000);
    for (int i = 0; i < n; ++i) {
      char bytes[1024];
      if (::recv(events[i].data.fd, bytes, sizeof bytes, 0) <= 0) std::abort();
      ++answered;
      if (::send(events[i].data.fd, ask.data(), ask.size(), 0) < 0) std::abort();
    }
  }
  ::close(poll);
}

void post(uint16_t port, int requests) {
  TestClient client(port);
  const std::string ask = test_post("/post", std::string(kPostBytes, 'x'));
  char bytes[1024];
  for (int i = 0; i < requests; ++i) {
    client.send(ask);
    if (::recv(client.fd(), bytes, sizeof bytes, 0) <= 0) std::abort();
  }
}

void streams(uint16_t port, BenchHandler& handler) {
  std::vector<std::unique_ptr<TestClient>> clients;
  for (int i = 0; i < kStreams; ++i) {
    clients.push_back(std::make_unique<TestClient>(port));
    clients.back()->send(test_get("/stream", "Connection: close\r\n"));
  }
  for (auto& client : clients) client->closed_by_peer(60);
  handler.join();
}

int run(bool json, bool quick) {
  BenchHandler handler;
  HttpServer server({}, 1);
  auto port = server.listen("127.0.0.1", 0, &handler);
  if (!port.ok()) {
    std::fprintf(stderr, "%s\n", port.status().message().c_str());
    return 1;
  }
  server.start();
  const double idle_rss = rss_kb();
  const int scale = quick ? 1 : 4;
  Cost c1 = median_of_5(5000 * scale, [&] { hello(*port, 1, 5000 * scale); });
  std::printf("hello, 1 connection:    %8.0f requests/s, %5.2f us server CPU each\n", 1e6 / c1.wall_us,
              c1.server_cpu_us);
  Cost c32 = median_of_5(20000 * scale, [&] { hello(*port, 32, 20000 * scale); });
  std::printf("hello, 32 connections:  %8.0f requests/s, %5.2f us server CPU each\n", 1e6 / c32.wall_us,
              c32.server_cpu_us);
  Cost large = median_of_5(200 * scale, [&] { post(*port, 200 * scale); });
  std::printf("463 KB post:            %8.0f us, %5.0f us server CPU\n", large.wall_us, large.server_cpu_us);
  Cost chunk = median_of_5(kStreams * kStreamEvents, [&] { streams(*port, handler); });
  std::printf("streamed event:         %8.2f us CPU, its poster's included\n", chunk.server_cpu_us);
  double connection_bytes = 0;
  {
    double before = rss_kb();
    std::vector<std::unique_ptr<TestClient>> idle;
    for (int i = 0; i < 1000; ++i) {
      idle.push_back(std::make_unique<TestClient>(*port));
      if (!idle.back()->connected() || idle.back()->ask(test_get("/hello")).status != 200) break;
    }
    connection_bytes = (rss_kb() - before) * 1024 / static_cast<double>(std::max<size_t>(idle.size(), 1));
    std::printf("idle connection:        %8.0f bytes (client's side included); process %.0f KB\n", connection_bytes,
                idle_rss);
  }
  if (json) {
    std::printf(
        "{\"hello_c1_rps\":%.0f,\"hello_c1_us\":%.2f,\"hello_c32_rps\":%.0f,\"hello_c32_us\":%.2f,\"post_us\":%.1f,"
        "\"post_cpu_us\":%.1f,\"chunk_cpu_us\":%.2f,\"idle_rss_kb\":%.0f,\"connection_bytes\":%.0f}\n",
        1e6 / c1.wall_us, c1.server_cpu_us, 1e6 / c32.wall_us, c32.server_cpu_us, large.wall_us, large.server_cpu_us,
        chunk.server_cpu_us, idle_rss, connection_bytes);
  }
  return 0;
}

}  // namespace
}  // namespace warmpath

int main(int argc, char** argv) {
  bool json = false, quick = false;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--json") == 0) json = true;
    if (std::strcmp(argv[i], "--quick") == 0) quick = true;
    if (std::strcmp(argv[i], "--help") == 0) {
      std::puts("bench_http [--json] [--quick]: what the HTTP server alone costs");
      return 0;
    }
  }
  return warmpath::run(json, quick);
}

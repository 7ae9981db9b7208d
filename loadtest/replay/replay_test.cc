// The replay against a server whose every delay is scripted: each figure must be what the script says, computed by
// hand; and the figures of measures.h from records made by hand.
#include "loadtest/replay/replay.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/streambuf.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>

#include "loadtest/replay/prompt_maker.h"
#include "loadtest/replay/stream_client.h"
#include "loadtest/trace/shape.h"
#include "loadtest/trace/trace_reader.h"

namespace warmpath {
namespace {

namespace asio = boost::asio;
using tcp = asio::ip::tcp;

// Answers every completion alike: the first token after `first_s`, each further one `step_s` later. A token of a prompt
// is a word (spaces count them), 7 more for the template; of those `cached_share` are called cached.
struct Script {
  double first_s = 0.3;
  double step_s = 0.05;
  double cached_share = 0.5;
  int fail_every = 0;  // n: each n-th request gets a 503
};

class ScriptedServer {
 public:
  explicit ScriptedServer(Script script)
      : script_(script), acceptor_(context_, tcp::endpoint(asio::ip::address_v4::loopback(), 0)) {
    accepter_ = std::thread([this] {
      for (;;) {
        auto socket = std::make_shared<tcp::socket>(context_);
        boost::system::error_code error;
        acceptor_.accept(*socket, error);
        if (error) return;
        const std::lock_guard lock(mutex_);
        sockets_.push_back(socket);
        threads_.emplace_back([this, socket] { serve(*socket); });
      }
    });
  }
  ~ScriptedServer() {
    ::shutdown(acceptor_.native_handle(), SHUT_RDWR);
    accepter_.join();
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
      ending_.notify_all();
    }
    for (const auto& socket : sockets_) ::shutdown(socket->native_handle(), SHUT_RDWR);
    for (std::thread& thread : threads_) thread.join();
  }
  std::string url() { return "http://127.0.0.1:" + std::to_string(acceptor_.local_endpoint().port()); }
  // When the first and the last token of each answer really left, since the request had arrived; without the two
  // answers by which a replay measures how long a word is. A busy machine is later than the script: both sides are
  // compared with what it did.
  struct Served {
    double first_s;
    double last_s;
    int tokens;
  };
  std::vector<Served> served() {
    const std::lock_guard lock(mutex_);
    return {served_.begin() + std::min<std::ptrdiff_t>(2, std::ssize(served_)), served_.end()};
  }
  std::vector<std::string> bodies() {
    const std::lock_guard lock(mutex_);
    return bodies_;
  }

 private:
  void serve(tcp::socket& socket) {
    asio::streambuf buffer;
    boost::system::error_code error;
    for (;;) {
      const size_t head_bytes = asio::read_until(socket, buffer, "\r\n\r\n", error);
      if (error) return;
      std::string head(asio::buffers_begin(buffer.data()),
                       asio::buffers_begin(buffer.data()) + static_cast<long>(head_bytes));
      buffer.consume(head_bytes);
      const size_t length = std::stoul(head.substr(head.find("content-length: ") + 16));
      if (buffer.size() < length) asio::read(socket, buffer, asio::transfer_exactly(length - buffer.size()), error);
      if (error) return;
      const std::string body(asio::buffers_begin(buffer.data()),
                             asio::buffers_begin(buffer.data()) + static_cast<long>(length));
      buffer.consume(length);
      int number = 0;
      {
        const std::lock_guard lock(mutex_);
        bodies_.push_back(body);
        number = static_cast<int>(bodies_.size());
      }
      const auto arrived = std::chrono::steady_clock::now();
      if (script_.fail_every > 0 && number > 2 && number % script_.fail_every == 0) {
        asio::write(socket,
                    asio::buffer(std::string("HTTP/1.1 503 Service Unavailable\r\ncontent-length: 4\r\n\r\nbusy")),
                    error);
        continue;
      }
      const std::string content =
          body.substr(body.find("\"messages\":"), body.find(",\"stream\"") - body.find("\"messages\":"));
      const auto words = std::count(content.begin(), content.end(), ' ');
      const size_t limit_at = body.find("\"max_tokens\":") + 13;
      const int tokens = std::stoi(body.substr(limit_at));
      const int64_t prompt = words + 7;
      asio::write(
          socket,
          asio::buffer("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nx-warmpath-replica: " +
                       std::string(number % 2 == 0 ? "even" : "odd") + "\r\ntransfer-encoding: chunked\r\n\r\n"),
          error);
      const auto say = [&](const std::string& data) {
        const std::string event = "data: " + data + "\n\n";
        char size[32];
        std::snprintf(size, sizeof size, "%zx\r\n", event.size());
        asio::write(socket, asio::buffer(size + event + "\r\n"), error);
      };
      say(R"({"choices":[{"delta":{"role":"assistant","content":""}}]})");  // an announcement is no token
      Served told{0, 0, tokens};
      for (int n = 0; n < tokens; ++n) {
        const auto delay = std::chrono::duration<double>(script_.first_s + n * script_.step_s);
        std::unique_lock lock(mutex_);
        const auto due = arrived + std::chrono::duration_cast<std::chrono::steady_clock::duration>(delay);
        if (ending_.wait_until(lock, due, [this] { return ended_; })) return;
        lock.unlock();
        told.last_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - arrived).count();
        if (n == 0) told.first_s = told.last_s;
        say(R"({"choices":[{"delta":{"content":"word "}}]})");
      }
      {
        const std::lock_guard lock(mutex_);
        served_.push_back(told);
      }
      say(R"({"choices":[],"usage":{"prompt_tokens":)" + std::to_string(prompt) + R"(,"completion_tokens":)" +
          std::to_string(tokens) + R"(,"prompt_tokens_details":{"cached_tokens":)" +
          std::to_string(static_cast<int64_t>(static_cast<double>(prompt) * script_.cached_share)) + "}}}");
      say("[DONE]");
      asio::write(socket, asio::buffer(std::string("0\r\n\r\n")), error);
    }
  }

  const Script script_;
  asio::io_context context_;
  tcp::acceptor acceptor_;
  std::thread accepter_;
  std::mutex mutex_;
  std::condition_variable ending_;
  bool ended_ = false;
  std::vector<std::shared_ptr<tcp::socket>> sockets_;
  std::vector<std::thread> threads_;
  std::vector<std::string> bodies_;
  std::vector<Served> served_;
};

// Means of what the server really did.
struct Truth {
  double ttft_s = 0;
  double tpot_s = 0;
  double e2e_s = 0;
};

Truth truth_of(ScriptedServer& server) {
  Truth truth;
  double longer = 0;
  const std::vector<ScriptedServer::Served> served = server.served();
  for (const ScriptedServer::Served& answer : served) {
    truth.ttft_s += answer.first_s / static_cast<double>(served.size());
    truth.e2e_s += answer.last_s / static_cast<double>(served.size());
    if (answer.tokens < 2) continue;
    truth.tpot_s += (answer.last_s - answer.first_s) / (answer.tokens - 1);
    ++longer;
  }
  if (longer > 0) truth.tpot_s /= longer;
  return truth;
}

// What the client may be off by: it cannot see a token before it left, and it is told how late it was in sending.
void expect_between(double value, double truth, double lateness_s) {
  EXPECT_GE(value, truth - 0.001);
  EXPECT_LE(value, truth + lateness_s + 0.03);
}

// Whole runs: at least what the script says, and not much more.
void expect_about(double value, double scripted, double late = 0.25) {
  EXPECT_GE(value, scripted - 0.002);
  EXPECT_LE(value, scripted + late);
}

TEST(Replay, OpenLoopFiguresAreTheScripts) {
  ScriptedServer server({.first_s = 0.3, .step_s = 0.05});
  std::string text;
  for (int n = 0; n < 8; ++n) {  // two at a time, 0.2 s apart; 1,030 tokens, of which the first block is everybody's
    text += R"({"timestamp": )" + std::to_string(n / 2 * 200) +
            R"(, "input_length": 1030, "output_length": 5, "hash_ids": [0, )" + std::to_string(2 * n + 1) + ", " +
            std::to_string(2 * n + 2) + "]}\n";
  }
  const Result<Trace> trace = parse_trace(text, "made");
  ASSERT_TRUE(trace.ok()) << trace.status().message();
  ReplayOptions options;
  options.urls = {server.url()};
  options.slo = {.ttft_s = 30, .tpot_s = 5};
  const Result<ReplayOutcome> outcome = replay(*trace, options);
  ASSERT_TRUE(outcome.ok()) << outcome.status().message();
  const Outcome& figures = outcome->figures;
  EXPECT_EQ(figures.turns, 8);
  EXPECT_EQ(figures.failed, 0);
  const Truth truth = truth_of(server);
  EXPECT_GE(truth.ttft_s, 0.3);
  EXPECT_GE(truth.e2e_s, 0.3 + 4 * 0.05);
  expect_between(figures.ttft_mean_s, truth.ttft_s, outcome->lateness_max_s);
  expect_between(figures.e2e_mean_s, truth.e2e_s, outcome->lateness_max_s);
  expect_between(outcome->ttft_from_sent_mean_s, truth.ttft_s, 0);
  EXPECT_NEAR(figures.tpot_mean_s, truth.tpot_s, 0.03 / 4);
  expect_about(figures.ttft_p50_s, 0.3);
  expect_about(figures.seconds, 0.6 + 0.5, 0.5);  // the last is sent at 0.6 s
  EXPECT_EQ(figures.goodput, 1);
  EXPECT_NEAR(figures.hit_ratio, 0.5, 0.001);
  EXPECT_NEAR(outcome->tokens_per_word, 1, 1e-9);
  EXPECT_LE(outcome->prompt_error_max, 0.01);
  EXPECT_EQ(outcome->answers_off, 0);
  EXPECT_TRUE(outcome->cache_told);
  ASSERT_EQ(outcome->replicas.size(), 2u);
  EXPECT_EQ(outcome->replicas.at("even").turns + outcome->replicas.at("odd").turns, 8);
  // Equal ids are equal bytes: after the salt, all eight share the first block and no more.
  std::set<std::string> heads;
  std::set<std::string> wholes;
  const std::vector<std::string> bodies = server.bodies();
  for (size_t n = 2; n < bodies.size(); ++n) {
    heads.insert(bodies[n].substr(0, 2500));
    wholes.insert(bodies[n]);
  }
  EXPECT_EQ(heads.size(), 1u);
  EXPECT_EQ(wholes.size(), 8u);
  EXPECT_NE(replay_json(*outcome).find("\"turns\":8"), std::string::npos);
}

TEST(Replay, ClosedLoopWaitsItsPausesAndFailuresCount) {
  ScriptedServer server({.first_s = 0.1, .step_s = 0.02, .cached_share = 0});
  const Result<Trace> trace =
      parse_trace(R"({"block_size":64,"req":[["n",0,0,0,1,null,128,6,[[1,2]]],["n",0,0,0.3,1,null,256,1,[[1,4]]]]})"
                  "\n"
                  R"({"block_size":64,"req":[["n",0,0,0,1,null,128,6,[[1,2]]],["n",0,0,0.3,1,null,256,1,[[1,4]]]]})",
                  "made");
  ASSERT_TRUE(trace.ok()) << trace.status().message();
  ReplayOptions options;
  options.urls = {server.url()};
  options.concurrency = 1;
  const Result<ReplayOutcome> outcome = replay(*trace, options);
  ASSERT_TRUE(outcome.ok()) << outcome.status().message();
  EXPECT_EQ(outcome->figures.turns, 4);
  const Truth truth = truth_of(server);
  expect_between(outcome->figures.ttft_mean_s, truth.ttft_s, outcome->lateness_max_s);
  EXPECT_NEAR(outcome->figures.tpot_mean_s, truth.tpot_s, 0.03 / 5);
  // Two turns of each session, and the pause of 0.3 s between them.
  expect_between(outcome->figures.session_mean_s, 2 * truth.e2e_s + 0.3, 2 * outcome->lateness_max_s);
  // First turn 0.1 + 5 * 0.02, pause 0.3, second turn 0.1.
  expect_about(outcome->figures.session_mean_s, 0.2 + 0.3 + 0.1);
  expect_about(outcome->figures.seconds, 2 * 0.6, 0.5);  // one session after the other
  expect_about(outcome->figures.first_turn_p99_s, 0.1);

  ScriptedServer failing({.first_s = 0.01, .step_s = 0.001, .cached_share = 0, .fail_every = 4});
  options.urls = {failing.url()};
  const Result<ReplayOutcome> failed = replay(*trace, options);
  ASSERT_TRUE(failed.ok());
  EXPECT_EQ(failed->figures.failed, 1);
  ASSERT_EQ(failed->errors.size(), 1u);
  EXPECT_EQ(failed->errors.begin()->first, "HTTP 503: busy");
  EXPECT_LT(failed->figures.goodput, 1);
}

TEST(Replay, HundredsOfStreamsAtOnceAndAStopKeepsWhatWasMeasured) {
  ScriptedServer server({.first_s = 0.2, .step_s = 0.02, .cached_share = 0});
  const Result<Trace> trace = shape_trace("sessions=300,turns=1,base=0,first=64,turn=0,output=10,think=0", 1);
  ASSERT_TRUE(trace.ok());
  ReplayOptions options;
  options.urls = {server.url()};
  options.concurrency = 300;
  const auto begun = std::chrono::steady_clock::now();
  const Result<ReplayOutcome> outcome = replay(*trace, options);
  ASSERT_TRUE(outcome.ok()) << outcome.status().message();
  EXPECT_EQ(outcome->figures.turns, 300);
  EXPECT_EQ(outcome->figures.failed, 0);
  EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count(), 30)
      << "not one by one: 114 s";

  ScriptedServer slow({.first_s = 0.01, .step_s = 100});
  std::atomic<bool> stop{false};
  options.urls = {slow.url()};
  options.stop = &stop;
  options.concurrency = 2;
  std::thread stopper([&stop] {
    std::this_thread::sleep_for(std::chrono::milliseconds(700));
    stop = true;
  });
  const Result<ReplayOutcome> stopped = replay(*trace, options);
  stopper.join();
  ASSERT_TRUE(stopped.ok()) << stopped.status().message();
  EXPECT_TRUE(stopped->stopped);
  EXPECT_EQ(stopped->unfinished, 2);
}

TEST(Replay, SaysWhatIsWrongWithItsTarget) {
  const Result<Trace> trace = shape_trace("sessions=1,turns=1", 1);
  ReplayOptions options;
  options.urls = {"ftp://example"};
  EXPECT_NE(replay(*trace, options).status().message().find("no URL"), std::string::npos);
  options.urls = {"http://127.0.0.1:1"};
  EXPECT_NE(replay(*trace, options).status().message().find("cannot connect"), std::string::npos);
  EXPECT_EQ(parse_stream_target("https://api.example.com/v1/")->path, "/v1");
  EXPECT_EQ(parse_stream_target("127.0.0.1:8080")->path, "/v1");
  EXPECT_EQ(parse_stream_target("https://api.example.com")->port, "443");
}

TEST(PromptMaker, BlocksAreEqualBytesAndLengthsAreExact) {
  const TokenScale scale = scale_from(100, 163, 1100, 1663);  // 1.5 tokens a word and 13 more
  EXPECT_NEAR(scale.tokens_per_word, 1.5, 1e-9);
  EXPECT_NEAR(scale.overhead_tokens, 13, 1e-9);
  const PromptMaker maker(scale, 64, "salt");
  TraceTurn first;
  first.input_tokens = 640;
  first.base_tokens = 128;
  first.blocks = {{0, 10}};
  TraceTurn second = first;
  second.input_tokens = 900;
  second.blocks = {{0, 10}, {40, 4}};
  const std::string a = maker.messages(first, 0);
  const std::string b = maker.messages(second, 1);
  const size_t shared = a.size() - 3;  // but for the closing of the list
  EXPECT_EQ(a.substr(0, shared), b.substr(0, shared));
  EXPECT_NE(a.find(R"("role":"system")"), std::string::npos);
  // Words + salt: (640 - 13) / 1.5.
  EXPECT_NEAR(static_cast<double>(std::count(a.begin(), a.end(), ' ')), 418 + 2, 1);
}

TEST(Measures, FromRecordsByHand) {
  std::vector<TurnRecord> records(4);
  // Two turns of session 0, one of session 1, one that failed.
  records[0] = {0, true, true, 0, 10, 11, 13, 1000, 21, 0};
  records[1] = {0, false, true, 0, 20, 20.5, 22.5, 2000, 41, 900};
  records[2] = {1, true, true, 1, 12, 15, 15, 500, 1, 0};
  records[3] = {2, true, false, -1, 13, 0, 0, 500, 0, 0};
  const Outcome outcome = measure(records, {.ttft_s = 1, .tpot_s = 0.05});
  EXPECT_EQ(outcome.turns, 4);
  EXPECT_EQ(outcome.failed, 1);
  EXPECT_DOUBLE_EQ(outcome.ttft_mean_s, (1 + 0.5 + 3) / 3);
  EXPECT_DOUBLE_EQ(outcome.ttft_p50_s, 1);
  EXPECT_DOUBLE_EQ(outcome.ttft_p99_s, 1 + 0.98 * 2);
  EXPECT_DOUBLE_EQ(outcome.tpot_mean_s, (0.1 + 0.05) / 2);
  EXPECT_DOUBLE_EQ(outcome.goodput, 0.25);  // the second turn alone
  EXPECT_DOUBLE_EQ(outcome.hit_ratio, 900.0 / 3500);
  EXPECT_DOUBLE_EQ(outcome.follow_up_hit_ratio, 900.0 / 2000);
  EXPECT_DOUBLE_EQ(outcome.session_mean_s, (12.5 + 3) / 2);
  EXPECT_DOUBLE_EQ(outcome.seconds, 12.5);
  const double values[] = {1, 2, 3};
  EXPECT_DOUBLE_EQ(interval_of(values).mean, 2);
  EXPECT_NEAR(interval_of(values).half_width, 4.303 / std::sqrt(3.0), 1e-9);
}

}  // namespace
}  // namespace warmpath

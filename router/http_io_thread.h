// One thread of the HTTP server and what is shared by all of them. Internal to http_*.cc: includes Asio.
//
// Thread safety: post() from any thread, also after close(); everything else on the thread itself, or before it runs
// and after it was joined.
#pragma once

#include <array>
#include <atomic>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_set>
#include <vector>

#include "router/http_body.h"
#include "router/http_counters.h"
#include "router/http_limits.h"

namespace warmpath {

class HttpConnection;

using HttpExecutor = boost::asio::io_context::executor_type;
using HttpClock = std::chrono::steady_clock;
using HttpTimer = boost::asio::basic_waitable_timer<HttpClock, boost::asio::wait_traits<HttpClock>, HttpExecutor>;
using HttpSocket = boost::asio::basic_stream_socket<boost::asio::ip::tcp, HttpExecutor>;

inline HttpClock::duration http_seconds(double seconds) {
  return std::chrono::duration_cast<HttpClock::duration>(std::chrono::duration<double>(seconds));
}

// A counter with one writer at a time; readers may lag.
class HttpCounter {
 public:
  void add(uint64_t n) { value_.store(get() + n, std::memory_order_relaxed); }
  uint64_t get() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

struct HttpThreadCounters {
  HttpCounter accepted, requests, bytes_in, bytes_out, clients_gone, slow_readers, truncated, idle_closed;
  std::array<HttpCounter, kHttpRefusals> refused;
};

struct HttpShared {
  explicit HttpShared(const HttpLimits& l)
      : limits(l), bodies(std::make_shared<HttpBodyBudget>(l.max_total_body_bytes)) {}
  const HttpLimits limits;
  std::shared_ptr<HttpBodyBudget> bodies;
  std::atomic<uint64_t> in_flight{0};
  std::atomic<bool> draining{false};
};

class HttpIoThread {
 public:
  explicit HttpIoThread(std::shared_ptr<HttpShared> shared);

  void start();
  // Stops the loop once everything posted before has run, and joins.
  void join();
  // Destroys what is left in the loop. REQUIRES: joined or never started.
  void close();

  // Tasks posted close together are taken in one go. `keep`, if any, lives until the task has run.
  void post(std::function<void()> task, std::shared_ptr<void> keep = nullptr);

  boost::asio::io_context& context() { return *context_; }
  HttpShared& shared() { return *shared_; }
  const HttpLimits& limits() const { return shared_->limits; }
  HttpThreadCounters& counters() { return counters_; }
  std::span<char> scratch() { return scratch_; }
  // "date: Sun, 06 Nov 1994 08:49:37 GMT\r\n", formatted once a second.
  std::string_view date_field();

  void add(std::shared_ptr<HttpConnection> connection);
  void remove(const std::shared_ptr<HttpConnection>& connection);
  // Closes the connection that has been idle for longest; false if there is none.
  bool close_one_idle();
  std::vector<std::shared_ptr<HttpConnection>> connections() const;
  // Connections of this thread, coming ones included; read by the accepting thread.
  std::atomic<size_t>& load() { return load_; }

 private:
  struct Mail {
    std::function<void()> task;
    std::shared_ptr<void> keep;
  };

  void run();
  void take_mail();
  void arm_tick();
  void tick();
  bool trim_memory(HttpClock::time_point now);

  std::shared_ptr<HttpShared> shared_;
  std::unique_ptr<boost::asio::io_context> context_;
  std::mutex post_mutex_;
  bool closed_ = false;
  std::vector<Mail> mail_;        // under post_mutex_; if there is any, take_mail() is in the loop
  std::vector<Mail> taken_mail_;  // empty but while take_mail() runs
  std::thread thread_;
  std::optional<HttpTimer> tick_timer_;
  bool ticking_ = false;
  HttpClock::duration tick_period_;
  HttpClock::time_point quiet_since_{};  // no answer in flight
  std::unordered_set<std::shared_ptr<HttpConnection>> connections_;
  std::atomic<size_t> load_{0};
  HttpThreadCounters counters_;
  std::vector<char> scratch_;
  std::string date_field_;
  time_t date_second_ = 0;
};

}  // namespace warmpath

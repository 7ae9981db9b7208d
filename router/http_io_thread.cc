#include "router/http_io_thread.h"

#include <malloc.h>

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <ctime>
#include <exception>

#include "base/log.h"
#include "router/http_connection.h"

namespace warmpath {
namespace {

constexpr size_t kScratchBytes = 64 << 10;

// Bodies, and what is made of them, leave the allocator with free pages that it keeps. Once so many bytes of bodies
// were freed and nothing has been in flight for a while, the pages go back to the system.
constexpr uint64_t kTrimAfterBytes = 16 << 20;
constexpr double kTrimAfterQuietS = 2;

// Deadlines are checked by a sweep; it must be fine enough for the shortest of them.
HttpClock::duration sweep_period(const HttpLimits& limits) {
  double shortest = std::min({limits.idle_s, limits.head_read_s, limits.body_stall_s, limits.write_stall_s,
                              limits.linger_s, limits.body_grace_s});
  return http_seconds(std::clamp(shortest / 4, 0.01, 0.5));
}

// False if the work threw.
template <typename Work>
bool run_guarded(const Work& work) {
  try {
    work();
    return true;
  } catch (const std::exception& e) {
    // A handler's task threw. Its exchange, if it was dropped by that, is answered 500; the others live on.
    log_error("http_task_threw", {{"what", e.what()}});
    return false;
  }
}

}  // namespace

HttpIoThread::HttpIoThread(std::shared_ptr<HttpShared> shared)
    : shared_(std::move(shared)),
      context_(std::make_unique<boost::asio::io_context>(1)),
      tick_timer_(std::in_place, *context_),
      tick_period_(sweep_period(shared_->limits)),
      scratch_(kScratchBytes) {}

void HttpIoThread::start() {
  thread_ = std::thread([this] { run(); });
}

void HttpIoThread::run() {
  auto guard = boost::asio::make_work_guard(*context_);
  while (!run_guarded([this] { context_->run(); })) {
  }
}

void HttpIoThread::join() {
  if (!thread_.joinable()) return;
  post([this] { context_->stop(); });
  thread_.join();
}

void HttpIoThread::close() {
  {
    std::lock_guard lock(post_mutex_);
    if (closed_) return;
    closed_ = true;
  }
  for (const auto& connection : connections()) connection->force_abort();
  tick_timer_.reset();
  mail_.clear();     // nobody adds to it any more
  context_.reset();  // with every task that still waited
}

void HttpIoThread::post(std::function<void()> task, std::shared_ptr<void> keep) {
  std::lock_guard lock(post_mutex_);
  if (closed_) return;
  mail_.push_back({std::move(task), std::move(keep)});
  if (mail_.size() == 1) boost::asio::post(*context_, [this] { take_mail(); });
}

void HttpIoThread::take_mail() {
  {
    std::lock_guard lock(post_mutex_);
    taken_mail_.swap(mail_);
  }
  for (Mail& each : taken_mail_) {
    const Mail mail = std::move(each);
    run_guarded(mail.task);
  }
  taken_mail_.clear();
}

std::string_view HttpIoThread::date_field() {
  time_t now = std::time(nullptr);
  if (now != date_second_) {
    date_second_ = now;
    tm utc;
    gmtime_r(&now, &utc);
    char text[64];
    size_t n = std::strftime(text, sizeof text, "date: %a, %d %b %Y %H:%M:%S GMT\r\n", &utc);
    date_field_.assign(text, n);
  }
  return date_field_;
}

void HttpIoThread::add(std::shared_ptr<HttpConnection> connection) {
  connections_.insert(std::move(connection));
  if (!ticking_) arm_tick();
}

void HttpIoThread::remove(const std::shared_ptr<HttpConnection>& connection) { connections_.erase(connection); }

bool HttpIoThread::close_one_idle() {
  std::shared_ptr<HttpConnection> longest;
  for (const auto& connection : connections_) {
    if (connection->is_idle() && (!longest || connection->deadline() < longest->deadline())) longest = connection;
  }
  if (longest) longest->close_if_idle();
  return longest != nullptr;
}

std::vector<std::shared_ptr<HttpConnection>> HttpIoThread::connections() const {
  return {connections_.begin(), connections_.end()};
}

void HttpIoThread::arm_tick() {
  ticking_ = true;
  tick_timer_->expires_after(tick_period_);
  tick_timer_->async_wait([this](const boost::system::error_code& ec) {
    if (!ec) tick();
  });
}

// Returns true while there is something to trim later.
bool HttpIoThread::trim_memory(HttpClock::time_point now) {
  if (shared_->bodies->freed() < kTrimAfterBytes) return false;
  if (shared_->in_flight.load(std::memory_order_relaxed) > 0) {
    quiet_since_ = {};
  } else if (quiet_since_ == HttpClock::time_point{}) {
    quiet_since_ = now;
  } else if (now - quiet_since_ >= http_seconds(kTrimAfterQuietS)) {
    quiet_since_ = {};
    if (shared_->bodies->take_freed(kTrimAfterBytes)) malloc_trim(0);
    return false;
  }
  return true;
}

// An idle server has no timer: the sweep stops with the last connection.
void HttpIoThread::tick() {
  ticking_ = false;
  HttpClock::time_point now = HttpClock::now();
  std::vector<std::shared_ptr<HttpConnection>> due;
  for (const auto& connection : connections_) {
    if (connection->is_due(now)) due.push_back(connection);
  }
  for (const auto& connection : due) connection->on_due(now);
  const bool trim_later = trim_memory(now);
  if (trim_later || !connections_.empty()) arm_tick();
}

}  // namespace warmpath

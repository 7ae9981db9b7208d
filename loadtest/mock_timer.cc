#include "loadtest/mock_timer.h"

#include <chrono>

namespace warmpath {

MockTimer::MockTimer() : thread_([this] { run(); }) {}

void MockTimer::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void MockTimer::at(MonotonicNs time, std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  const bool earliest = entries_.empty() || time < entries_.top().time;
  entries_.push({time, next_number_++, std::move(task)});
  if (earliest) changed_.notify_all();
}

void MockTimer::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (entries_.empty()) {
      changed_.wait(lock);
      continue;
    }
    const MonotonicNs wait = entries_.top().time - SystemClock::instance().now_ns();
    if (wait > 0) {
      changed_.wait_for(lock, std::chrono::nanoseconds(wait));
      continue;
    }
    const std::function<void()> task = std::move(const_cast<Entry&>(entries_.top()).task);
    entries_.pop();
    lock.unlock();
    task();
    lock.lock();
  }
}

}  // namespace warmpath

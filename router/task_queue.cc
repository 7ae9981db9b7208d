#include "router/task_queue.h"

#include <pthread.h>

namespace warmpath {

TaskQueue::TaskQueue(const std::string& name, int threads) {
  for (int n = 0; n < threads; ++n) {
    threads_.emplace_back([this] { run(); });
    pthread_setname_np(threads_.back().native_handle(), name.substr(0, 15).c_str());
  }
}

TaskQueue::~TaskQueue() { stop(); }

void TaskQueue::post(Task task) {
  {
    const std::lock_guard lock(mutex_);
    if (stopped_) return;
    due_.push_back(std::move(task));
  }
  changed_.notify_one();
}

void TaskQueue::post_after(double delay_s, Task task) {
  {
    const std::lock_guard lock(mutex_);
    if (stopped_) return;
    const auto delay = std::chrono::duration_cast<Time::duration>(std::chrono::duration<double>(delay_s));
    later_.emplace(std::chrono::steady_clock::now() + delay, std::move(task));
  }
  changed_.notify_one();
}

void TaskQueue::stop() {
  // Tasks are destroyed outside the lock: what they hold may call back.
  std::deque<Task> due;
  std::multimap<Time, Task> later;
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    due.swap(due_);
    later.swap(later_);
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

size_t TaskQueue::waiting() const {
  const std::lock_guard lock(mutex_);
  return due_.size();
}

void TaskQueue::run() {
  std::unique_lock lock(mutex_);
  while (!stopped_) {
    const Time now = std::chrono::steady_clock::now();
    while (!later_.empty() && later_.begin()->first <= now) {
      due_.push_back(std::move(later_.begin()->second));
      later_.erase(later_.begin());
    }
    if (due_.empty()) {
      if (later_.empty()) {
        changed_.wait(lock);
      } else {
        const Time next = later_.begin()->first;
        changed_.wait_until(lock, next);
      }
      continue;
    }
    Task task = std::move(due_.front());
    due_.pop_front();
    if (!due_.empty()) changed_.notify_one();
    lock.unlock();
    task();
    task = nullptr;
    lock.lock();
  }
}

}  // namespace warmpath

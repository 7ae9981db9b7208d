// TaskQueue: tasks run by a few threads of its own, now or after a delay. With one thread they run one after another in
// the order posted (those with a delay: in the order they fall due), which makes that thread the owner of whatever only
// its tasks touch.
// Thread safety: every method may be called from any thread; stop() and the destructor not from a task.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace warmpath {

class TaskQueue {
 public:
  using Task = std::function<void()>;

  // `name` shows in debuggers and `top -H`.
  TaskQueue(const std::string& name, int threads);
  ~TaskQueue();  // stop()
  TaskQueue(const TaskQueue&) = delete;
  TaskQueue& operator=(const TaskQueue&) = delete;

  // Dropped once stopped.
  void post(Task task);
  void post_after(double delay_s, Task task);
  // Drops what has not begun and joins the threads. Idempotent.
  void stop();
  size_t waiting() const;  // tasks due and not begun

 private:
  using Time = std::chrono::steady_clock::time_point;
  void run();

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> due_;
  std::multimap<Time, Task> later_;
  bool stopped_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace warmpath

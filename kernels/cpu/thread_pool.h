// ThreadPool: runs the parts of one parallel loop at a time on a fixed set of threads, the caller's among them.
//
// Made for loops of a few microseconds, hundreds a step. Threads claim tasks one by one, so a thread that the kernel
// has descheduled delays only the task it holds: two engines sharing the cores slow each other down, they do not stall.
// Idle workers spin for a few tens of microseconds, then sleep on a futex. Which thread runs a task never changes a
// result: tasks write disjoint memory and share no sums.
//
// Thread safety: run() belongs to one caller at a time (not reentrant).
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <type_traits>
#include <vector>

namespace warmpath {

class ThreadPool {
 public:
  static constexpr int32_t kMaxTasks = 0xffff;

  // `threads` >= 1 counts the caller: threads - 1 workers are started.
  explicit ThreadPool(int32_t threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int32_t threads() const { return static_cast<int32_t>(workers_.size()) + 1; }

  // Calls body(task, thread) for every task in [0, tasks), thread in [0, threads()), and returns when all are done.
  // REQUIRES tasks <= kMaxTasks.
  template <typename Body>
  void run(int32_t tasks, Body&& body) {
    if (tasks <= 1 || workers_.empty()) {
      for (int32_t task = 0; task < tasks; ++task) body(task, 0);
      return;
    }
    using Plain = std::remove_reference_t<Body>;
    run_erased(
        tasks, [](void* context, int32_t task, int32_t thread) { (*static_cast<Plain*>(context))(task, thread); },
        &body);
  }

 private:
  using Function = void (*)(void* context, int32_t task, int32_t thread);

  void run_erased(int32_t tasks, Function function, void* context);
  void work(int32_t thread);
  bool claim_and_run(uint64_t word, int32_t thread);

  // epoch (32 bits) | tasks (16) | next task (16): claiming by compare-and-swap proves that the job is still running.
  alignas(64) std::atomic<uint64_t> word_{0};
  alignas(64) std::atomic<int32_t> unfinished_{0};
  std::atomic<int32_t> sleepers_{0};
  std::atomic<bool> stop_{false};
  Function function_ = nullptr;  // of the running job: written before word_ is published, read after a claim
  void* context_ = nullptr;
  uint32_t epoch_ = 0;
  std::vector<std::thread> workers_;
};

}  // namespace warmpath

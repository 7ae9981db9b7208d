#include "kernels/cpu/thread_pool.h"

#include <immintrin.h>

#include "base/check.h"

namespace warmpath {
namespace {

constexpr uint32_t tasks_of(uint64_t word) { return static_cast<uint32_t>(word >> 16) & 0xffff; }
constexpr uint32_t next_of(uint64_t word) { return static_cast<uint32_t>(word) & 0xffff; }

// About 40 us of pauses: longer than the gaps between the loops of a step, short beside a scheduler's time slice.
constexpr int kSpins = 1000;

}  // namespace

ThreadPool::ThreadPool(int32_t threads) {
  WARMPATH_CHECK(threads >= 1, "a pool counts its caller");
  workers_.reserve(static_cast<size_t>(threads - 1));
  for (int32_t thread = 1; thread < threads; ++thread) workers_.emplace_back([this, thread] { work(thread); });
}

ThreadPool::~ThreadPool() {
  stop_.store(true);
  word_.fetch_add(uint64_t{1} << 32);  // a new epoch without tasks
  word_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

bool ThreadPool::claim_and_run(uint64_t word, int32_t thread) {
  while (next_of(word) < tasks_of(word)) {
    if (!word_.compare_exchange_weak(word, word + 1, std::memory_order_acq_rel, std::memory_order_acquire)) continue;
    // The claimed task is unfinished, so run() has not returned and the job's fields stand.
    function_(context_, static_cast<int32_t>(next_of(word)), thread);
    unfinished_.fetch_sub(1, std::memory_order_acq_rel);
    return true;
  }
  return false;
}

void ThreadPool::run_erased(int32_t tasks, Function function, void* context) {
  WARMPATH_DCHECK(tasks <= kMaxTasks, "too many tasks for one loop");
  function_ = function;
  context_ = context;
  unfinished_.store(tasks, std::memory_order_relaxed);
  // Sequentially consistent with the worker's sleepers_ increment and its check of word_: one of the two sees the
  // other.
  word_.store((uint64_t{++epoch_} << 32) | (static_cast<uint64_t>(tasks) << 16));
  if (sleepers_.load() > 0) word_.notify_all();

  while (claim_and_run(word_.load(std::memory_order_acquire), 0)) {
  }
  for (int spins = 0; unfinished_.load(std::memory_order_acquire) != 0; ++spins) {
    if (spins < kSpins) {
      _mm_pause();
    } else {
      std::this_thread::yield();  // the core may be needed by the very thread that is waited for
    }
  }
}

void ThreadPool::work(int32_t thread) {
  uint64_t seen = word_.load(std::memory_order_acquire);
  for (;;) {
    while (claim_and_run(word_.load(std::memory_order_acquire), thread)) {
    }
    seen = word_.load(std::memory_order_acquire);
    if (next_of(seen) < tasks_of(seen)) continue;
    int spins = 0;
    while (word_.load(std::memory_order_acquire) == seen && ++spins < kSpins) _mm_pause();
    if (stop_.load(std::memory_order_acquire)) return;
    if (spins >= kSpins) {
      sleepers_.fetch_add(1);
      word_.wait(seen);
      sleepers_.fetch_sub(1);
    }
  }
}

}  // namespace warmpath

#include "kernels/cpu/thread_pool.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <numeric>
#include <thread>

namespace warmpath {
namespace {

TEST(ThreadPool, EveryTaskRunsOnceWhateverTheThreads) {
  for (int32_t threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (int32_t tasks : {0, 1, 2, 7, 1000}) {
      std::vector<int32_t> runs(static_cast<size_t>(tasks));
      pool.run(tasks, [&](int32_t task, int32_t thread) {
        EXPECT_GE(thread, 0);
        EXPECT_LT(thread, threads);
        ++runs[static_cast<size_t>(task)];  // a task is one thread's
      });
      for (int32_t count : runs) EXPECT_EQ(count, 1);
    }
  }
}

// Thousands of tiny loops back to back: a worker that is late for one must neither run nor miss the next.
TEST(ThreadPool, LoopsFollowEachOtherWithoutMixing) {
  ThreadPool pool(4);
  for (int64_t loop = 0; loop < 5000; ++loop) {
    const auto tasks = static_cast<int32_t>(1 + loop % 9);
    std::vector<int64_t> seen(static_cast<size_t>(tasks), -1);
    pool.run(tasks, [&seen, loop](int32_t task, int32_t) { seen[static_cast<size_t>(task)] = loop; });
    for (int64_t value : seen) ASSERT_EQ(value, loop);
  }
}

TEST(ThreadPool, WorkersThatFellAsleepWakeUp) {
  ThreadPool pool(3);
  for (int i = 0; i < 3; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // far beyond their spinning
    std::atomic<int32_t> sum{0};
    pool.run(100, [&](int32_t task, int32_t) { sum += task; });
    EXPECT_EQ(sum, 4950);
  }
}

// What a task writes is seen by the caller and by the tasks of later loops, without atomics.
TEST(ThreadPool, ALoopHappensBeforeTheNext) {
  ThreadPool pool(4);
  std::vector<int64_t> values(64, 1);
  for (int loop = 0; loop < 500; ++loop) {
    std::vector<int64_t> next(64);
    pool.run(64, [&](int32_t task, int32_t) {
      next[static_cast<size_t>(task)] =
          (values[static_cast<size_t>(task)] + values[static_cast<size_t>(task + 1) % 64]) % 1000003;
    });
    values = next;
  }
  std::vector<int64_t> expected(64, 1);
  for (int loop = 0; loop < 500; ++loop) {
    std::vector<int64_t> next(64);
    for (size_t i = 0; i < 64; ++i) next[i] = (expected[i] + expected[(i + 1) % 64]) % 1000003;
    expected = next;
  }
  EXPECT_EQ(values, expected);
}

TEST(ThreadPool, PoolsComeAndGo) {
  for (int i = 0; i < 100; ++i) {
    ThreadPool pool(1 + i % 4);
    if (i % 2 == 0) pool.run(3, [](int32_t, int32_t) {});
  }
}

}  // namespace
}  // namespace warmpath

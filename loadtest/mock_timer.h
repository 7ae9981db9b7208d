// MockTimer: one thread that runs small tasks when their time has come, for all mock replicas of the process.
// Thread safety: every method from any thread. Tasks of equal time run in the order in which they were given.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <queue>
#include <thread>
#include <vector>

#include "base/clock.h"

namespace warmpath {

class MockTimer {
 public:
  MockTimer();
  ~MockTimer() { stop(); }

  void at(MonotonicNs time, std::function<void()> task);
  // Waits for the task under way; those that are not due yet are dropped.
  void stop();

 private:
  struct Entry {
    MonotonicNs time;
    uint64_t number;
    std::function<void()> task;
    bool operator<(const Entry& other) const {  // the queue's top is the earliest
      return time != other.time ? time > other.time : number > other.number;
    }
  };
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::priority_queue<Entry> entries_;
  uint64_t next_number_ = 0;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace warmpath

// Clock: the only source of time for code that tests and the simulator must be able to drive.
// Thread safety: SystemClock and ManualClock may be read from any thread; only one thread may advance a ManualClock.
#pragma once

#include <atomic>
#include <cstdint>

namespace warmpath {

// Nanoseconds since an arbitrary start; never goes back.
using MonotonicNs = int64_t;

class Clock {
 public:
  virtual ~Clock() = default;
  virtual MonotonicNs now_ns() const = 0;
  double now_s() const { return static_cast<double>(now_ns()) * 1e-9; }
};

class SystemClock final : public Clock {
 public:
  MonotonicNs now_ns() const override;
  static const SystemClock& instance();
};

class ManualClock final : public Clock {
 public:
  MonotonicNs now_ns() const override { return now_.load(std::memory_order_relaxed); }
  void advance_ns(int64_t delta) { now_.fetch_add(delta, std::memory_order_relaxed); }
  void advance_s(double seconds) { advance_ns(static_cast<int64_t>(seconds * 1e9)); }

 private:
  std::atomic<MonotonicNs> now_{1};
};

}  // namespace warmpath

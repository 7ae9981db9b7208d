// Services: what requests in progress share. Owned by the gateway service, which outlives every I/O thread.
// Thread safety: the members guard themselves.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/clock.h"
#include "router/auth.h"
#include "router/fleet.h"
#include "router/http_counters.h"
#include "router/metrics.h"
#include "router/receipt_ring.h"
#include "router/task_queue.h"

namespace warmpath {

// What a reload may change while requests run; each request keeps the settings it began with.
struct LiveSettings {
  GatewayLimits limits;
  LogConfig log;
  std::shared_ptr<const Auth> auth;
  std::vector<std::string> admin_hosts;
};

struct Services {
  Fleet& fleet;
  Metrics& metrics;
  ReceiptRing& receipts;
  TaskQueue& workers;  // for prompts that are long to prepare
  const Clock& clock;

  std::atomic<int32_t> in_progress{0};
  std::atomic<int32_t> waiting{0};
  std::atomic<bool> draining{false};
  std::function<HttpCounters()> http_counters = {};  // of the main listener, for metrics; set before it starts

  std::shared_ptr<const LiveSettings> settings() const {
    const std::lock_guard lock(mutex);
    return current;
  }
  void set_settings(std::shared_ptr<const LiveSettings> fresh) {
    const std::lock_guard lock(mutex);
    current = std::move(fresh);
  }

  mutable std::mutex mutex = {};
  std::shared_ptr<const LiveSettings> current = nullptr;  // under `mutex`
};

}  // namespace warmpath

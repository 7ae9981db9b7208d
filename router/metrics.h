// Metrics: what the gateway counts, in Prometheus' text form (docs/metrics.md lists every name).
//
// Counters and histograms are bumped as things happen; gauges of replicas, the index and the HTTP server are read when
// somebody scrapes. Labels never hold a tenant, a key or a prompt.
// Thread safety: any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "router/http_counters.h"
#include "router/receipt.h"

namespace warmpath {

class Fleet;

class Metrics {
 public:
  Metrics();
  ~Metrics();

  void request_done(const std::string& model, std::string_view wire, int status, double seconds);
  void prompt_done(const Receipt& receipt);
  void failover(std::string_view model);
  void client_gone(std::string_view model);
  void stream_aborted(std::string_view model);
  void calls_done(std::string_view model, int64_t calls, int64_t malformed);  // of tools, in one answer
  void refused(std::string_view reason);  // "unauthenticated", "too_many_requests", ...

  void requests_in_progress(int change);
  void requests_waiting(int change);

  // Brings what is only read on demand up to date first. `http` may be null.
  std::string text(const Fleet& fleet, const HttpCounters* http);
  // Of every metric, used or not yet.
  std::vector<std::string> names() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace warmpath

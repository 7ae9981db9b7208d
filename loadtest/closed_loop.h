// ClosedLoop: N connections to one server, each sending its next request when the last one is answered; one thread,
// epoll. For measuring a gateway: the client must be much cheaper than what it measures. Thread safety: one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"

namespace warmpath {

struct ClosedLoopOptions {
  std::string host = "127.0.0.1";
  uint16_t port = 0;
  std::string target;  // "/v1/chat/completions"
  int connections = 16;
  double seconds = 3;  // ends by itself
  double reply_timeout_s = 30;
  // The body of request n (0, 1, ...); asked for while the clock runs, so it should be cheap.
  std::function<std::string(int64_t n)> body;
};

struct ClosedLoopResult {
  int64_t answered = 0;  // with status 200
  int64_t refused = 0;   // with another status
  double seconds = 0;
  std::vector<double> latencies_us;  // of answered requests
  std::string first_refusal;         // for people
};

// An error when the server cannot be reached or breaks off.
Result<ClosedLoopResult> run_closed_loop(const ClosedLoopOptions& options);

// The value below which `percent` of the (unsorted) values lie; 0 when there are none.
double percentile(std::vector<double> values, double percent);

}  // namespace warmpath

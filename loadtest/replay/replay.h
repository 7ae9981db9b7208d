// replay(): sends a trace to OpenAI-compatible servers as clients would, and measures what they get. Timed traces are
// an open loop: each turn is sent at its intended time, whether or not earlier ones were answered. Sessions are a
// closed loop: a turn is sent its pause after the answer before it. All latencies begin at the intended time of
// sending, so a client that cannot keep up shows; a run whose own lateness has a p99 of more than 10 ms is invalid.
// Thread safety: one replay at a time per thread; it owns its one I/O thread's loop until it returns.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "loadtest/measures.h"
#include "loadtest/trace/trace.h"

namespace warmpath {

struct ReplayOptions {
  std::vector<std::string> urls;  // gateways of one fleet: turns go to them in turn
  std::string model;              // empty: the first that the server lists is not asked for; none is named
  std::string api_key;
  double rate_scale = 1;
  double jitter_s = 0;
  double session_rate = 0.1;  // closed loop: sessions begun a second, at random
  int concurrency = 0;        // closed loop instead: so many sessions at a time
  uint64_t seed = 1;
  double timeout_s = 600;
  double stop_after_s = 0;    // no new turns after so long; 0: the whole trace
  std::string salt;           // empty: one of this run's own, so that nothing of earlier runs is found cached
  bool exact_lengths = true;  // ask for exactly the trace's output tokens (min_tokens, ignore_eos)
  std::string session_header = "x-session-id";  // empty: sessions are not named
  std::string replica_header = "x-warmpath-replica";
  Slo slo;
  double max_lateness_s = 0.010;            // p99
  const std::atomic<bool>* stop = nullptr;  // set from a signal: what was measured so far is the result
  std::function<void(const std::string& line)> on_progress;  // about once a second
};

struct ReplicaShare {
  int64_t turns = 0;
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;
};

struct ReplayOutcome {
  Outcome figures;
  double ttft_from_sent_mean_s = 0;  // the same without this client's lateness
  double lateness_p50_s = 0;
  double lateness_p99_s = 0;
  double lateness_max_s = 0;
  bool valid = true;
  bool stopped = false;    // before the trace's end
  int64_t unfinished = 0;  // turns under way when it was stopped; in no other figure
  double tokens_per_word = 0;
  double prompt_error_mean = 0;  // |tokens counted by the server / wanted - 1|
  double prompt_error_max = 0;
  int64_t prompts_off = 0;                       // by more than 5 %
  int64_t answers_off = 0;                       // answers of another length than asked for
  bool cache_told = false;                       // usage says what was cached
  std::map<std::string, ReplicaShare> replicas;  // by the name in the reply's header
  std::map<std::string, int64_t> errors;         // what went wrong, how often
};

// An error when nothing can be measured: no such URL, no answer to the first prompts.
Result<ReplayOutcome> replay(const Trace& trace, const ReplayOptions& options);

std::string replay_table(const ReplayOutcome& outcome);
std::string replay_json(const ReplayOutcome& outcome);

}  // namespace warmpath

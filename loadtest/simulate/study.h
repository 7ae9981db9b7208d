// A study: several policies on one trace, several seeds each, and what came out. What `warmpath simulate` runs.
// Thread safety: run_study() starts its own threads; the rest is pure.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "loadtest/simulate/simulation.h"
#include "policies/policy_rules.h"

namespace warmpath {

// One policy under study. `pooled` is a bound, not a policy: one cache as large as all together.
struct StudyArm {
  std::string label;
  PolicyConfig config;
  bool pooled = false;
  // Of a gateway's configuration.
  std::vector<PolicyRule> rules = {};
  std::vector<Labels> labels = {};
  bool admission = false;
};

// "predicted_seconds", "pooled_cache", or a policy's YAML: "{name: predicted_seconds, price: 4}"; each with
// "+admission" behind it if new sessions are to wait for room. Several are separated by commas. Errors name the word
// and the nearest valid one.
Result<std::vector<StudyArm>> parse_arms(const std::string& text);

// A number of blocks, or "10%" of the trace's distinct ones.
Result<int64_t> parse_kv_blocks(const std::string& text, const Trace& trace);

struct StudyRow {
  std::string label;
  std::vector<Outcome> outcomes;  // one per seed
  Interval of(double Outcome::*value) const;
};

struct Study {
  SimulationOptions base;  // policy, pooled, admission and seed are set per run
  std::vector<StudyArm> arms;
  int seeds = 1;
  int threads = 0;  // 0: as many as there are cores
};

// Rows in the arms' order. `on_run` is told how many of how many runs are done (from any thread, one at a time).
std::vector<StudyRow> run_study(const Trace& trace, const Study& study,
                                const std::function<void(int done, int all)>& on_run = nullptr);

}  // namespace warmpath

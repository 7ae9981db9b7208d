#include "loadtest/simulate/study.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cmath>
#include <mutex>
#include <thread>

#include "config/config.h"
#include "config/nearest_word.h"

namespace warmpath {

namespace {

constexpr const char* kPooled = "pooled_cache";

// At commas outside of braces and brackets.
std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> items;
  std::string item;
  int depth = 0;
  for (const char c : text) {
    depth += c == '{' || c == '[';
    depth -= c == '}' || c == ']';
    if (c == ',' && depth == 0) {
      items.push_back(std::move(item));
      item.clear();
    } else if (c != ' ' || depth > 0) {
      item += c;
    }
  }
  items.push_back(std::move(item));
  return items;
}

}  // namespace

Result<std::vector<StudyArm>> parse_arms(const std::string& text) {
  std::vector<StudyArm> arms;
  constexpr std::string_view kAdmission = "+admission";
  for (std::string item : split(text)) {
    const bool admission = item.size() > kAdmission.size() && item.ends_with(kAdmission);
    if (admission) {
      Result<std::vector<StudyArm>> bare = parse_arms(item.substr(0, item.size() - kAdmission.size()));
      if (!bare.ok()) return bare.status();
      for (StudyArm& arm : *bare) {
        arm.label += kAdmission;
        arm.admission = true;
        arms.push_back(std::move(arm));
      }
      continue;
    }
    if (item == "all") {
      for (const std::string& name : policy_names()) {
        if (name == "pipeline") continue;  // by itself it is predicted_seconds
        PolicyConfig config;
        config.name = name;
        arms.push_back({name, config, false});
      }
      continue;
    }
    if (item == kPooled) {
      PolicyConfig config;  // earliest first token: nobody pays a price
      config.predicted_seconds.price = 0;
      arms.push_back({kPooled, config, true});
      continue;
    }
    if (item.empty() || item.front() != '{') {
      std::vector<std::string> words = policy_names();
      if (std::find(words.begin(), words.end(), item) == words.end()) {
        words.push_back(kPooled);
        words.push_back("all");
        return invalid_argument("there is no policy \"" + item + "\"" + suggest_word(item, words));
      }
      PolicyConfig config;
      config.name = item;
      arms.push_back({item, config, false});
      continue;
    }
    ConfigResult<PolicyConfig> parsed = parse_config(policy_schema(), item, "--policy");
    if (!parsed.ok()) return invalid_argument(parsed.error_text());
    arms.push_back({parsed.config->label.empty() ? item : parsed.config->label, *parsed.config, false});
  }
  return arms;
}

Result<int64_t> parse_kv_blocks(const std::string& text, const Trace& trace) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string rest(end, text.data() + text.size());
  if (error != std::errc() || !(value > 0) || value > 1e12 || (!rest.empty() && rest != "%")) {
    return invalid_argument("\"" + text +
                            "\" is no number of KV blocks; write 1000 or 10% (of the trace's distinct ones)");
  }
  if (rest == "%") value = std::round(value / 100 * trace.distinct_blocks);
  return std::max<int64_t>(static_cast<int64_t>(value), 1);
}

Interval StudyRow::of(double Outcome::*value) const {
  std::vector<double> values;
  for (const Outcome& outcome : outcomes) values.push_back(outcome.*value);
  return interval_of(values);
}

std::vector<StudyRow> run_study(const Trace& trace, const Study& study,
                                const std::function<void(int done, int all)>& on_run) {
  const auto seeds = static_cast<size_t>(std::max(study.seeds, 1));
  std::vector<StudyRow> rows;
  for (const StudyArm& arm : study.arms) rows.push_back({arm.label, std::vector<Outcome>(seeds)});
  const size_t all = rows.size() * seeds;
  std::atomic<size_t> next{0};
  std::mutex mutex;
  int done = 0;
  const auto work = [&] {
    for (size_t n; (n = next.fetch_add(1)) < all;) {
      const StudyArm& arm = study.arms[n / seeds];
      SimulationOptions options = study.base;
      options.policy = [&arm] { return make_policy(arm.config, arm.rules); };
      options.labels = arm.labels;
      options.pooled = arm.pooled;
      options.admission = std::nullopt;
      if (arm.admission) options.admission.emplace(study.base.admission.value_or(SessionAdmissionOptions{}));
      options.seed = study.base.seed + n % seeds;
      rows[n / seeds].outcomes[n % seeds] = simulate(trace, options);
      const std::lock_guard lock(mutex);
      ++done;
      if (on_run) on_run(done, static_cast<int>(all));
    }
  };
  const size_t wanted = study.threads > 0 ? static_cast<size_t>(study.threads) : std::thread::hardware_concurrency();
  std::vector<std::thread> threads;
  for (size_t n = 1; n < std::min(std::max<size_t>(wanted, 1), all); ++n) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  return rows;
}

}  // namespace warmpath

#include "loadtest/measures.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

namespace warmpath {

double percentile_of_sorted(std::span<const double> sorted, double percent) {
  if (sorted.empty()) return 0;
  const double place = percent / 100 * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

namespace {

double mean_of(std::span<const double> values) {
  if (values.empty()) return 0;
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double ratio(int64_t part, int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

}  // namespace

Outcome measure(std::span<const TurnRecord> records, const Slo& slo) {
  Outcome outcome;
  std::vector<double> ttft, first_ttft, tpot, e2e;
  struct Span {
    double begin;
    double end;
  };
  std::unordered_map<uint32_t, Span> sessions;
  int64_t cached = 0, prompt = 0, follow_cached = 0, follow_prompt = 0, output = 0, good = 0;
  double begin = 0, end = 0;
  bool any = false;
  for (const TurnRecord& record : records) {
    ++outcome.turns;
    if (!record.answered) {
      ++outcome.failed;
      continue;
    }
    begin = any ? std::min(begin, record.arrival_s) : record.arrival_s;
    end = any ? std::max(end, record.end_s) : record.end_s;
    any = true;
    const auto [found, fresh] = sessions.try_emplace(record.session, Span{record.arrival_s, record.end_s});
    if (!fresh) {
      found->second = {std::min(found->second.begin, record.arrival_s), std::max(found->second.end, record.end_s)};
    }
    ttft.push_back(record.first_token_s - record.arrival_s);
    if (record.first_of_session) first_ttft.push_back(ttft.back());
    e2e.push_back(record.end_s - record.arrival_s);
    double per_token = 0;
    if (record.output_tokens > 1) {
      per_token = (record.end_s - record.first_token_s) / static_cast<double>(record.output_tokens - 1);
      tpot.push_back(per_token);
    }
    good += ttft.back() <= slo.ttft_s && per_token <= slo.tpot_s;
    cached += record.cached_tokens;
    prompt += record.input_tokens;
    output += record.output_tokens;
    if (!record.first_of_session) {
      follow_cached += record.cached_tokens;
      follow_prompt += record.input_tokens;
    }
  }
  std::sort(ttft.begin(), ttft.end());
  std::sort(first_ttft.begin(), first_ttft.end());
  std::sort(tpot.begin(), tpot.end());
  outcome.hit_ratio = ratio(cached, prompt);
  outcome.follow_up_hit_ratio = ratio(follow_cached, follow_prompt);
  outcome.ttft_mean_s = mean_of(ttft);
  outcome.ttft_p50_s = percentile_of_sorted(ttft, 50);
  outcome.ttft_p90_s = percentile_of_sorted(ttft, 90);
  outcome.ttft_p99_s = percentile_of_sorted(ttft, 99);
  outcome.first_turn_p99_s = percentile_of_sorted(first_ttft, 99);
  outcome.tpot_mean_s = mean_of(tpot);
  outcome.tpot_p99_s = percentile_of_sorted(tpot, 99);
  outcome.e2e_mean_s = mean_of(e2e);
  outcome.goodput = ratio(good, outcome.turns);
  double session_s = 0;
  for (const auto& [session, span] : sessions) session_s += span.end - span.begin;
  outcome.session_mean_s = sessions.empty() ? 0 : session_s / static_cast<double>(sessions.size());
  outcome.seconds = end - begin;
  outcome.output_tokens_per_s = outcome.seconds > 0 ? static_cast<double>(output) / outcome.seconds : 0;
  return outcome;
}

Interval interval_of(std::span<const double> values) {
  // Student's t for 95 %, two-sided, by degrees of freedom; beyond the table the normal's is near enough.
  constexpr double kT[] = {0,     12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
                           2.201, 2.179,  2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086};
  Interval interval{mean_of(values), 0};
  if (values.size() < 2) return interval;
  double squares = 0;
  for (const double value : values) squares += (value - interval.mean) * (value - interval.mean);
  const size_t freedom = values.size() - 1;
  const double t = freedom < std::size(kT) ? kT[freedom] : 1.96;
  interval.half_width = t * std::sqrt(squares / static_cast<double>(freedom) / static_cast<double>(values.size()));
  return interval;
}

std::span<const Figure> figures() {
  static constexpr Figure kFigures[] = {
      {"hit_ratio", &Outcome::hit_ratio},
      {"ideal_hit_ratio", &Outcome::ideal_hit_ratio},
      {"follow_up_hit_ratio", &Outcome::follow_up_hit_ratio},
      {"ttft_mean_s", &Outcome::ttft_mean_s},
      {"ttft_p50_s", &Outcome::ttft_p50_s},
      {"ttft_p90_s", &Outcome::ttft_p90_s},
      {"ttft_p99_s", &Outcome::ttft_p99_s},
      {"first_turn_p99_s", &Outcome::first_turn_p99_s},
      {"tpot_mean_s", &Outcome::tpot_mean_s},
      {"tpot_p99_s", &Outcome::tpot_p99_s},
      {"e2e_mean_s", &Outcome::e2e_mean_s},
      {"goodput", &Outcome::goodput},
      {"session_mean_s", &Outcome::session_mean_s},
      {"imbalance", &Outcome::imbalance},
      {"seconds", &Outcome::seconds},
      {"output_tokens_per_s", &Outcome::output_tokens_per_s},
  };
  return kFigures;
}

}  // namespace warmpath

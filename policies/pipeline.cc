#include "policies/pipeline.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "policies/eligible.h"

namespace warmpath {

namespace {

double share(int64_t part, int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

bool passes(const PipelineFilter& filter, const Candidate& candidate, int64_t most_cached) {
  if (filter.name == "within_load") {
    const WithinLoadOptions& limits = filter.within_load;
    return queued_prefill_seconds(candidate) <= limits.max_queue_s &&
           (limits.max_requests == 0 || candidate.requests() < limits.max_requests) &&
           share(candidate.active_tokens, candidate.capacity_tokens) <= limits.max_used_kv;
  }
  if (filter.name == "trust") return candidate.trust <= filter.trust.at_least;
  if (filter.name == "label") {
    if (candidate.labels == nullptr) return false;
    const auto label = candidate.labels->find(filter.label.key);
    const std::vector<std::string>& values = filter.label.values;
    return label != candidate.labels->end() &&
           (values.empty() || std::find(values.begin(), values.end(), label->second) != values.end());
  }
  if (filter.name == "cached") {
    return static_cast<double>(candidate.cached_tokens()) >= filter.cached.of_best * static_cast<double>(most_cached);
  }
  return true;  // healthy, not_draining, model: asked for already
}

double value_of(const PipelineScorer& scorer, const RequestView& request, const Candidate& candidate,
                const CandidateCost& cost) {
  if (scorer.name == "predicted_seconds") return cost.total;
  if (scorer.name == "queue_s") return queue_seconds(request, candidate);
  if (scorer.name == "prefill_s") return cost.prefill_s;
  if (scorer.name == "fetch_s") return cost.fetch_s;
  if (scorer.name == "decode_s") return decode_seconds(request, candidate);
  if (scorer.name == "requests") return candidate.requests();
  if (scorer.name == "running") return candidate.running;
  if (scorer.name == "queued") return candidate.queued;
  if (scorer.name == "uncached_tokens") return static_cast<double>(request.prompt_tokens - candidate.cached_tokens());
  if (scorer.name == "uncached_share") return 1 - share(candidate.cached_tokens(), request.prompt_tokens);
  return share(candidate.active_tokens, candidate.capacity_tokens);  // used_kv
}

bool needs_seconds(const PipelineScorer& scorer) {
  return scorer.name == "predicted_seconds" || scorer.name == "prefill_s" || scorer.name == "fetch_s";
}

}  // namespace

PipelinePolicy::PipelinePolicy(const PipelineOptions& options)
    : options_(options),
      in_seconds_(std::any_of(options.scorers.begin(), options.scorers.end(), needs_seconds)),
      seconds_(options.predicted_seconds) {}

Decision PipelinePolicy::decide(const RequestView& request, std::span<const Candidate> candidates, Rng& rng,
                                MonotonicNs) {
  Decision decision = start_decision(candidates);
  if (decision.verdict == Verdict::kNobody) return decision;
  decision.reason = "score";
  if (!filter(candidates, decision)) {
    decision.verdict = Verdict::kNobody;
    decision.reason = "filtered";
    return decision;
  }
  if (in_seconds_) seconds_.fill(request, candidates, decision);
  score(request, candidates, decision);
  decision.candidate = pick(candidates, decision, rng);
  return decision;
}

bool PipelinePolicy::filter(std::span<const Candidate> candidates, Decision& decision) const {
  std::vector<bool> stays(candidates.size());
  for (const PipelineFilter& filter : options_.filters) {
    int64_t most_cached = 0;
    for (size_t n = 0; n < candidates.size(); ++n) {
      if (decision.costs[n].eligible) most_cached = std::max(most_cached, candidates[n].cached_tokens());
    }
    bool any = false;
    for (size_t n = 0; n < candidates.size(); ++n) {
      stays[n] = decision.costs[n].eligible && passes(filter, candidates[n], most_cached);
      any |= stays[n];
    }
    if (!any && filter.is_strict()) {
      for (CandidateCost& cost : decision.costs) cost.eligible = false;
      return false;
    }
    if (!any) {
      decision.reason = "unfiltered";
      continue;
    }
    for (size_t n = 0; n < candidates.size(); ++n) decision.costs[n].eligible = stays[n];
  }
  return true;
}

void PipelinePolicy::score(const RequestView& request, std::span<const Candidate> candidates,
                           Decision& decision) const {
  std::vector<double> totals(candidates.size());
  std::vector<double> values(candidates.size());
  for (const PipelineScorer& scorer : options_.scorers) {
    double low = 0;
    double high = 0;
    bool any = false;
    for (size_t n = 0; n < candidates.size(); ++n) {
      values[n] = value_of(scorer, request, candidates[n], decision.costs[n]);
      if (!decision.costs[n].eligible) continue;
      low = any ? std::min(low, values[n]) : values[n];
      high = any ? std::max(high, values[n]) : values[n];
      any = true;
    }
    for (size_t n = 0; n < candidates.size(); ++n) {
      double value = values[n];
      if (scorer.normalized) value = high > low ? (value - low) / (high - low) : 0;
      totals[n] += scorer.weight * value;
    }
  }
  for (size_t n = 0; n < candidates.size(); ++n) decision.costs[n].total = totals[n];
}

size_t PipelinePolicy::pick(std::span<const Candidate> candidates, const Decision& decision, Rng& rng) const {
  const auto total = [&](size_t n) { return decision.costs[n].total; };
  const size_t lowest = pick_lowest(decision, rng, total);
  if (options_.picker.name == "lowest") {
    if (options_.picker.lowest.tie <= 0) return lowest;
    const double bound = total(lowest) + options_.picker.lowest.tie;
    return pick_lowest(decision, rng, [&](size_t n) { return std::pair(total(n) > bound, candidates[n].requests()); });
  }
  if (options_.picker.name == "two_choices") {
    std::vector<size_t> two;
    uint64_t seen = 0;
    for (size_t n = 0; n < candidates.size(); ++n) {  // a reservoir of two
      if (!decision.costs[n].eligible) continue;
      if (++seen <= 2) {
        two.push_back(n);
      } else if (const uint64_t place = rng.below(seen); place < 2) {
        two[place] = n;
      }
    }
    if (two.size() == 1) return two[0];
    if (total(two[0]) == total(two[1])) return two[rng.below(2)];
    return total(two[0]) < total(two[1]) ? two[0] : two[1];
  }
  // softmax: the chance of each falls by a factor of e with every `temperature` above the lowest.
  const auto weight = [&](size_t n) {
    if (!decision.costs[n].eligible) return 0.0;
    return std::exp((total(lowest) - total(n)) / options_.picker.softmax.temperature);
  };
  double sum = 0;
  for (size_t n = 0; n < candidates.size(); ++n) sum += weight(n);
  double left = rng.uniform() * sum;
  for (size_t n = 0; n < candidates.size(); ++n) {
    left -= weight(n);
    if (left < 0 && decision.costs[n].eligible) return n;
  }
  return lowest;
}

}  // namespace warmpath

#include "engine/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "base/hash128.h"
#include "engine/logit_row.h"

namespace warmpath {

namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

// Below this a temperature would overflow 1/T times the logits' range; the answer is greedy to float precision anyway.
constexpr float kGreedyTemperature = 1e-4f;

void apply_mask(std::span<const uint32_t> mask, std::vector<float>& logits) {
  for (size_t word = 0; word < mask.size(); ++word) {
    if (mask[word] == ~uint32_t{0}) continue;
    const size_t first = word * 32;
    const size_t count = std::min<size_t>(32, logits.size() - first);
    for (size_t bit = 0; bit < count; ++bit) {
      if ((mask[word] >> bit & 1) == 0) logits[first + bit] = kMinusInfinity;
    }
  }
}

}  // namespace

double uniform(SampleKey key) {
  const uint64_t words[3] = {key.seed, static_cast<uint64_t>(key.choice), static_cast<uint64_t>(key.position)};
  return static_cast<double>(hash128(words, sizeof words).lo >> 11) * 0x1p-53;
}

TokenCounts::TokenCounts(const SamplingParams& params, std::span<const TokenId> prompt)
    : wanted_(params.presence_penalty != 0 || params.frequency_penalty != 0 || params.repetition_penalty != 1) {
  if (params.repetition_penalty == 1) return;
  for (const TokenId token : prompt) counts_[token].in_prompt = true;
}

void TokenCounts::add(TokenId generated) {
  if (wanted_) ++counts_[generated].generated;
}

std::span<const float> Sampler::adjust(std::span<const float> logits, const SamplingParams& params,
                                       const TokenCounts& counts, std::span<const TokenId> banned,
                                       std::span<const uint32_t> mask) {
  if (counts.counts_.empty() && params.logit_bias.empty() && banned.empty() && mask.empty()) return logits;
  adjusted_.assign(logits.begin(), logits.end());
  for (const auto& [token, count] : counts.counts_) {
    float& logit = adjusted_[static_cast<size_t>(token)];
    logit = logit > 0 ? logit / params.repetition_penalty : logit * params.repetition_penalty;
    if (count.generated == 0) continue;
    logit -= params.frequency_penalty * static_cast<float>(count.generated) + params.presence_penalty;
  }
  for (const auto& [token, bias] : params.logit_bias) adjusted_[static_cast<size_t>(token)] += bias;
  for (const TokenId token : banned) adjusted_[static_cast<size_t>(token)] = kMinusInfinity;
  apply_mask(mask, adjusted_);
  return adjusted_;
}

// Walks the cumulative weights in id order until they pass u times their sum.
TokenId Sampler::draw_from_all(std::span<const float> logits, TokenId peak_token, float peak, float scale, float min_p,
                               double u) {
  weights_.resize(logits.size());
  double sum = exp_logits(logits, peak, scale, weights_.data());
  if (min_p > 0) {
    sum = 0;
    for (float& weight : weights_) {
      if (weight < min_p) weight = 0;
      sum += weight;
    }
  }
  double target = u * sum;
  for (size_t token = 0; token < weights_.size(); ++token) {
    target -= weights_[token];
    if (target < 0) return static_cast<TokenId>(token);
  }
  return peak_token;  // rounding left a rest of about 1e-7 of the sum
}

// Leaves in candidates_ the likeliest tokens whose probabilities first reach top_p.
void Sampler::nucleus(std::span<const float> logits, float peak, float scale, float top_p) {
  weights_.resize(logits.size());
  const double sum = exp_logits(logits, peak, scale, weights_.data());
  // Tokens less likely than (1 - p) / V have less than 1 - p together, so the rest reaches p: only those are sorted.
  const double threshold = (1 - static_cast<double>(top_p)) / static_cast<double>(vocabulary_) * sum;
  candidates_.clear();
  for (size_t token = 0; token < weights_.size(); ++token) {
    if (weights_[token] >= threshold && weights_[token] > 0) {
      candidates_.emplace_back(static_cast<TokenId>(token), logits[token]);
    }
  }
  const auto less_likely = [](const Candidate& left, const Candidate& right) {
    return left.second != right.second ? left.second < right.second : left.first > right.first;
  };
  // A heap, since the nucleus is mostly a small part of the candidates: each pop is the next likeliest.
  std::make_heap(candidates_.begin(), candidates_.end(), less_likely);
  double reached = 0;
  auto rest = candidates_.end();
  while (rest != candidates_.begin() && reached < top_p * sum) {
    std::pop_heap(candidates_.begin(), rest, less_likely);
    --rest;
    reached += weights_[static_cast<size_t>(rest->first)];
  }
  candidates_.erase(candidates_.begin(), rest);
  std::reverse(candidates_.begin(), candidates_.end());
}

TokenId Sampler::draw(std::span<const float> logits, TokenId peak_token, float peak, const SamplingParams& params,
                      double u) {
  const float scale = 1.0f / params.temperature;
  const bool has_top_k = params.top_k > 0 && params.top_k < vocabulary_;
  if (!has_top_k && params.top_p >= 1) return draw_from_all(logits, peak_token, peak, scale, params.min_p, u);
  if (has_top_k) {
    top_logits(logits, params.top_k, candidates_);
  } else {
    nucleus(logits, peak, scale, params.top_p);
  }
  weights_.resize(std::max(weights_.size(), candidates_.size()));
  double sum = 0;
  for (size_t index = 0; index < candidates_.size(); ++index) {
    weights_[index] = std::exp((candidates_[index].second - peak) * scale);
    sum += weights_[index];
  }
  // Likeliest first, so top_p and min_p each keep a leading part.
  size_t kept = candidates_.size();
  if (has_top_k && params.top_p < 1) {
    double reached = 0;
    for (kept = 0; kept < candidates_.size() && reached < params.top_p * sum;) reached += weights_[kept++];
  }
  while (kept > 1 && weights_[kept - 1] < params.min_p * weights_[0]) --kept;
  sum = 0;
  for (size_t index = 0; index < kept; ++index) sum += weights_[index];
  double target = u * sum;
  for (size_t index = 0; index < kept; ++index) {
    target -= weights_[index];
    if (target < 0) return candidates_[index].first;
  }
  return peak_token;
}

void Sampler::describe(std::span<const float> logits, int32_t top_logprobs, SampledToken& sampled) {
  const LogitPeak peak = logit_peak(logits);
  if (!std::isfinite(peak.logit)) {
    sampled.logprob = logits[static_cast<size_t>(sampled.token)] == peak.logit ? 0 : kMinusInfinity;
    return;
  }
  const double log_sum = peak.logit + std::log(exp_logits(logits, peak.logit, 1.0f, nullptr));
  const auto logprob = [&](float logit) { return static_cast<float>(logit - log_sum); };
  sampled.logprob = logprob(logits[static_cast<size_t>(sampled.token)]);
  top_logits(logits, top_logprobs, sampled.top_logprobs);
  for (auto& [token, value] : sampled.top_logprobs) value = logprob(value);
}

Result<SampledToken> Sampler::sample(std::span<const float> logits, const SamplingParams& params,
                                     const TokenCounts& counts, std::span<const TokenId> banned, SampleKey key,
                                     std::span<const uint32_t> mask) {
  WARMPATH_DCHECK(logits.size() == static_cast<size_t>(vocabulary_), "one logit per token");
  const std::span<const float> adjusted = adjust(logits, params, counts, banned, mask);
  const LogitPeak peak = logit_peak(adjusted);
  if (peak.token < 0 && !mask.empty()) {
    return invalid_argument(
        "the grammar leaves no token that the model could write next (or logit_bias and min_tokens left none): loosen "
        "the schema or grammar");
  }
  if (peak.token < 0) {
    return internal_error(
        "the model gave no token a logit above minus infinity (or logit_bias and min_tokens left none): check the "
        "model file");
  }
  SampledToken sampled;
  if (params.temperature < kGreedyTemperature || !std::isfinite(peak.logit)) {
    sampled.token = peak.token;
  } else {
    sampled.token = draw(adjusted, peak.token, peak.logit, params, uniform(key));
  }
  if (params.top_logprobs >= 0 && mask.empty()) describe(logits, params.top_logprobs, sampled);
  if (params.top_logprobs >= 0 && !mask.empty()) {
    masked_.assign(logits.begin(), logits.end());
    apply_mask(mask, masked_);
    describe(masked_, params.top_logprobs, sampled);
  }
  return sampled;
}

}  // namespace warmpath

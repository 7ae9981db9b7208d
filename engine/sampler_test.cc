#include "engine/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <random>

namespace warmpath {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> random_logits(size_t count, unsigned seed, float spread = 3) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, spread);
  std::vector<float> logits(count);
  for (float& logit : logits) logit = normal(random);
  return logits;
}

SamplingParams greedy() {
  SamplingParams params;
  params.temperature = 0;
  return params;
}

// The slow obvious reference: the whole distribution after every operation, as the header orders them.
std::vector<double> reference_distribution(std::vector<float> logits, const SamplingParams& params,
                                           const std::vector<TokenId>& prompt, const std::vector<TokenId>& output) {
  std::vector<double> x(logits.begin(), logits.end());
  for (size_t token = 0; token < x.size(); ++token) {
    const auto generated = std::count(output.begin(), output.end(), static_cast<TokenId>(token));
    const bool seen = generated > 0 || std::count(prompt.begin(), prompt.end(), static_cast<TokenId>(token)) > 0;
    if (seen) x[token] = x[token] > 0 ? x[token] / params.repetition_penalty : x[token] * params.repetition_penalty;
    x[token] -= params.frequency_penalty * static_cast<double>(generated);
    if (generated > 0) x[token] -= params.presence_penalty;
  }
  for (const auto& [token, bias] : params.logit_bias) x[static_cast<size_t>(token)] += bias;
  std::vector<size_t> order(x.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t left, size_t right) { return x[left] > x[right]; });
  if (params.top_k > 0) order.resize(std::min(order.size(), static_cast<size_t>(params.top_k)));
  std::vector<double> p(x.size(), 0);
  double sum = 0;
  for (const size_t token : order) sum += p[token] = std::exp((x[token] - x[order[0]]) / params.temperature);
  double reached = 0;
  size_t kept = 0;
  while (kept < order.size() && (params.top_p >= 1 || reached < params.top_p * sum)) reached += p[order[kept++]];
  const double peak = p[order[0]];
  std::vector<double> result(x.size(), 0);
  sum = 0;
  for (size_t index = 0; index < kept; ++index) {
    if (p[order[index]] >= params.min_p * peak) sum += result[order[index]] = p[order[index]];
  }
  for (double& value : result) value /= sum;
  return result;
}

TokenId draw(Sampler& sampler, const std::vector<float>& logits, const SamplingParams& params, int64_t position,
             const std::vector<TokenId>& prompt = {}, const std::vector<TokenId>& output = {}) {
  TokenCounts counts(params, prompt);
  for (const TokenId token : output) counts.add(token);
  const Result<SampledToken> sampled = sampler.sample(logits, params, counts, {}, {5, 0, position});
  EXPECT_TRUE(sampled.ok());
  return sampled->token;
}

TEST(SamplerTest, GreedyIsTheLikeliest) {
  Sampler sampler(1000);
  std::vector<float> logits = random_logits(1000, 1);
  logits[333] = 99;
  logits[444] = 99;
  EXPECT_EQ(draw(sampler, logits, greedy(), 0), 333);
  SamplingParams params = greedy();
  params.logit_bias = {{444, 1.0f}};
  EXPECT_EQ(draw(sampler, logits, params, 0), 444);
  params = greedy();
  params.presence_penalty = 0.5f;
  EXPECT_EQ(draw(sampler, logits, params, 0, {333}, {}), 333) << "the prompt does not count";
  EXPECT_EQ(draw(sampler, logits, params, 0, {}, {333}), 444);
  params = greedy();
  params.repetition_penalty = 1.5f;
  EXPECT_EQ(draw(sampler, logits, params, 0, {333}, {}), 444) << "the prompt counts";
}

TEST(SamplerTest, EveryCombinationDrawsFromTheReferencesDistribution) {
  constexpr int kVocabulary = 60, kDraws = 3000;
  const std::vector<float> logits = random_logits(kVocabulary, 2, 1.5f);
  const std::vector<TokenId> prompt = {1, 2, 3, 4, 4}, output = {4, 5, 5, 6};
  Sampler sampler(kVocabulary);
  double worst = 0;
  int combinations = 0;
  for (const float temperature : {0.5f, 1.0f, 1.7f}) {
    for (const int32_t top_k : {0, 1, 12}) {
      for (const float top_p : {1.0f, 0.6f}) {
        for (const float min_p : {0.0f, 0.2f}) {
          for (const bool penalties : {false, true}) {
            SamplingParams params;
            params.temperature = temperature;
            params.top_k = top_k;
            params.top_p = top_p;
            params.min_p = min_p;
            if (penalties) {
              params.presence_penalty = 0.4f;
              params.frequency_penalty = -0.3f;
              params.repetition_penalty = 1.3f;
              params.logit_bias = {{7, 2.0f}, {8, -100.0f}};
            }
            const std::vector<double> expected = reference_distribution(logits, params, prompt, output);
            std::vector<int> drawn(kVocabulary, 0);
            TokenCounts counts(params, prompt);
            for (const TokenId token : output) counts.add(token);
            for (int64_t position = 0; position < kDraws; ++position) {
              ++drawn[static_cast<size_t>(sampler.sample(logits, params, counts, {}, {3, 1, position})->token)];
            }
            double distance = 0;  // total variation
            for (size_t token = 0; token < kVocabulary; ++token) {
              EXPECT_TRUE(expected[token] > 0 || drawn[token] == 0) << "a token outside the truncated set";
              distance += std::abs(expected[token] - static_cast<double>(drawn[token]) / kDraws) / 2;
            }
            worst = std::max(worst, distance);
            ++combinations;
          }
        }
      }
    }
  }
  std::printf("%d combinations, worst total variation distance %.4f\n", combinations, worst);
  EXPECT_LT(worst, 0.07);  // about sqrt(60 / 3000) / 2
}

TEST(SamplerTest, ALargeVocabularyIsTruncatedExactly) {
  constexpr int kVocabulary = 49152;
  Sampler sampler(kVocabulary);
  std::mt19937 random(4);
  for (int round = 0; round < 12; ++round) {
    const std::vector<float> logits = random_logits(kVocabulary, static_cast<unsigned>(round), 1.0f + (round % 4));
    SamplingParams params;
    params.top_p = round % 2 == 0 ? 0.9f : 0.3f;
    params.top_k = round % 3 == 0 ? 200 : 0;
    const std::vector<double> expected = reference_distribution(logits, params, {}, {});
    // Walk the whole range of the draw: the extremes of the kept set must be reachable, nothing else.
    for (int64_t position = 0; position < 50; ++position) {
      const TokenId token = draw(sampler, logits, params, position);
      EXPECT_GT(expected[static_cast<size_t>(token)], 0);
    }
  }
}

TEST(SamplerTest, ADrawDependsOnSeedChoiceAndPositionAlone) {
  Sampler sampler(500), other(500);
  const std::vector<float> logits = random_logits(500, 6, 1);
  SamplingParams params;
  TokenCounts counts(params, {});
  std::vector<TokenId> first, second, seeds, choices;
  for (int64_t position = 0; position < 64; ++position) {
    first.push_back(sampler.sample(logits, params, counts, {}, {1, 0, position})->token);
    EXPECT_TRUE(other.sample(random_logits(500, 7), params, counts, {}, {9, 9, position}).ok());
    second.push_back(other.sample(logits, params, counts, {}, {1, 0, position})->token);
    seeds.push_back(sampler.sample(logits, params, counts, {}, {2, 0, position})->token);
    choices.push_back(sampler.sample(logits, params, counts, {}, {1, 1, position})->token);
  }
  EXPECT_EQ(first, second);
  EXPECT_NE(first, seeds);
  EXPECT_NE(first, choices);
}

TEST(SamplerTest, UniformNumbersAreUniform) {
  double sum = 0, squares = 0;
  for (int64_t position = 0; position < 100'000; ++position) {
    const double u = uniform({123, 4, position});
    ASSERT_TRUE(u >= 0 && u < 1);
    sum += u;
    squares += u * u;
  }
  EXPECT_NEAR(sum / 1e5, 0.5, 0.004);
  EXPECT_NEAR(squares / 1e5, 1.0 / 3, 0.004);
}

TEST(SamplerTest, LogProbabilitiesAreThoseOfTheRawLogits) {
  const std::vector<float> logits = random_logits(300, 8);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit));
  SamplingParams params;
  params.temperature = 0.3f;
  params.logit_bias = {{17, 50.0f}};
  params.top_logprobs = 4;
  Sampler sampler(300);
  const SampledToken sampled = *sampler.sample(logits, params, TokenCounts(params, {}), {}, {1, 0, 0});
  EXPECT_EQ(sampled.token, 17);
  EXPECT_NEAR(sampled.logprob, static_cast<double>(logits[17]) - std::log(sum), 1e-5);
  ASSERT_EQ(sampled.top_logprobs.size(), 4u);
  EXPECT_EQ(sampled.top_logprobs[0].first, std::max_element(logits.begin(), logits.end()) - logits.begin());
  for (size_t index = 0; index < 4; ++index) {
    const auto [token, logprob] = sampled.top_logprobs[index];
    EXPECT_NEAR(logprob, static_cast<double>(logits[static_cast<size_t>(token)]) - std::log(sum), 1e-5);
    EXPECT_LE(logprob, sampled.top_logprobs[index == 0 ? 0 : index - 1].second);
  }
  params.top_logprobs = -1;
  EXPECT_TRUE(sampler.sample(logits, params, TokenCounts(params, {}), {}, {1, 0, 0})->top_logprobs.empty());
}

TEST(SamplerTest, NonsenseLogitsGiveATokenOrAnErrorButNeverNonsense) {
  Sampler sampler(8);
  const TokenCounts none(SamplingParams{}, {});
  const auto sample = [&](const std::vector<float>& logits, const SamplingParams& params,
                          std::vector<TokenId> banned = {}) {
    return sampler.sample(logits, params, none, banned, {});
  };
  for (SamplingParams params : {greedy(), SamplingParams{}}) {
    for (const float top_p : {1.0f, 0.5f}) {
      for (const int32_t top_k : {0, 3, 100}) {
        params.top_p = top_p;
        params.top_k = top_k;
        params.top_logprobs = 3;
        EXPECT_EQ(sample({kNaN, kNaN, 1, kNaN, kNaN, -kInfinity, kNaN, kNaN}, params)->token, 2);
        EXPECT_EQ(sample({0, 0, kInfinity, 0, kInfinity, 0, 0, kNaN}, params)->token, 2);
        EXPECT_EQ(sample({-3e38f, 3e38f, 0, 0, 0, 0, 0, 0}, params)->token, 1);
        EXPECT_FALSE(sample(std::vector<float>(8, kNaN), params).ok());
        EXPECT_FALSE(sample(std::vector<float>(8, -kInfinity), params).ok());
        EXPECT_FALSE(sample(std::vector<float>(8, 1), params, {0, 1, 2, 3, 4, 5, 6, 7}).ok());
        EXPECT_EQ(sample(std::vector<float>(8, 1), params, {0, 1, 2, 3, 4, 5, 7})->token, 6);
      }
    }
  }
  SamplingParams cold;
  cold.temperature = 1e-30f;
  EXPECT_EQ(sample({1, 2, 3, 4, 5, 6, 7, 0}, cold)->token, 6);
}

}  // namespace
}  // namespace warmpath

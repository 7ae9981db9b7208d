#include "engine/logit_row.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace warmpath {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> random_logits(size_t count, unsigned seed, float spread = 5) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, spread);
  std::vector<float> logits(count);
  for (float& logit : logits) logit = normal(random);
  return logits;
}

TEST(LogitRowTest, PeakIsTheLowestIdOfTheLargest) {
  for (const size_t count : {1, 3, 16, 1023, 1024, 1025, 49152}) {
    std::vector<float> logits = random_logits(count, static_cast<unsigned>(count));
    const auto expected = std::max_element(logits.begin(), logits.end()) - logits.begin();
    EXPECT_EQ(logit_peak(logits).token, expected) << count;
    logits[static_cast<size_t>(expected)] = kNaN;
    logits.push_back(50);
    logits.push_back(kNaN);
    logits.push_back(50);
    EXPECT_EQ(logit_peak(logits).token, static_cast<TokenId>(count));
    EXPECT_EQ(logit_peak(logits).logit, 50);
  }
  EXPECT_EQ(logit_peak(std::vector<float>(100, -kInfinity)).token, -1);
  EXPECT_EQ(logit_peak(std::vector<float>(100, kNaN)).token, -1);
  EXPECT_EQ(logit_peak({}).token, -1);
}

TEST(LogitRowTest, ExponentialsAgreeWithTheLibrarys) {
  for (const size_t count : {1, 2, 3, 5, 64, 67, 49152}) {
    std::vector<float> logits = random_logits(count, 3, 20);
    const float peak = logit_peak(logits).logit;
    std::vector<float> weights(count);
    const double sum = exp_logits(logits, peak, 0.7f, weights.data());
    EXPECT_EQ(exp_logits(logits, peak, 0.7f, nullptr), sum);
    double expected_sum = 0, worst = 0;
    for (size_t index = 0; index < count; ++index) {
      const float x = (logits[index] - peak) * 0.7f;
      const double expected = std::exp(static_cast<double>(x));
      expected_sum += expected;
      if (x > -87) {
        worst = std::max(worst, std::abs(weights[index] / expected - 1));
      } else {
        EXPECT_EQ(weights[index], 0);
      }
    }
    EXPECT_LT(worst, 2e-7);
    EXPECT_NEAR(sum / expected_sum, 1, 1e-6);
  }
}

TEST(LogitRowTest, ExponentialsOfNonsenseAreZero) {
  const std::vector<float> logits = {0, kNaN, -kInfinity, -1e30f, -86.9f, kNaN, 0};
  std::vector<float> weights(logits.size(), 7);
  EXPECT_NEAR(exp_logits(logits, 0, 1, weights.data()), 2, 1e-6);
  EXPECT_EQ(weights[0], 1);
  for (const size_t index : {1, 2, 3, 5}) EXPECT_EQ(weights[index], 0);
  EXPECT_GT(weights[4], 0);
}

TEST(LogitRowTest, TopLogitsAreTheSortedHead) {
  std::mt19937 random(9);
  for (int round = 0; round < 200; ++round) {
    std::vector<float> logits = random_logits(1 + random() % 3000, static_cast<unsigned>(round));
    if (round % 2 == 0) {
      for (float& logit : logits) logit = std::round(logit);  // many equals
    }
    if (round % 3 == 0) logits[random() % logits.size()] = kNaN;
    if (round % 5 == 0) std::sort(logits.begin(), logits.end(), [](float a, float b) { return a < b; });
    std::vector<std::pair<TokenId, float>> expected, found;
    for (size_t index = 0; index < logits.size(); ++index) {
      if (logits[index] == logits[index]) expected.emplace_back(static_cast<TokenId>(index), logits[index]);
    }
    std::sort(expected.begin(), expected.end(), [](const auto& left, const auto& right) {
      return left.second != right.second ? left.second > right.second : left.first < right.first;
    });
    const auto count = static_cast<int32_t>(random() % 100);
    expected.resize(std::min(expected.size(), static_cast<size_t>(count)));
    top_logits(logits, count, found);
    EXPECT_EQ(found, expected);
  }
}

}  // namespace
}  // namespace warmpath

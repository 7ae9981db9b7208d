#include "engine/golden_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace warmpath {

namespace {

constexpr float kClearGap = 2e-3f;

void compare(std::span<const float> logits, const GoldenPosition& expected, TokenId next,
             GoldenDifference& difference) {
  const float top = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += static_cast<double>(std::exp(logit - top));
  const double log_sum = static_cast<double>(top) + std::log(sum);
  const auto log_prob = [&](TokenId token) {
    return static_cast<double>(logits[static_cast<size_t>(token)]) - log_sum;
  };
  double top_mass = 0;
  for (size_t rank = 0; rank < expected.top.size(); ++rank) {
    const double engine = log_prob(expected.top[rank]);
    const double reference = expected.top_log_probs[rank];
    difference.largest = std::max(difference.largest, std::abs(engine - reference));
    difference.kl_sum += std::exp(reference) * (reference - engine);
    top_mass += std::exp(engine);
  }
  const double tail = std::max(1 - top_mass, 1e-12);
  if (expected.tail > 0) difference.kl_sum += expected.tail * std::log(expected.tail / tail);
  ++difference.positions;
  if (logits[static_cast<size_t>(expected.top[0])] < top) {
    ++difference.other_top;
    if (expected.top_log_probs[0] - expected.top_log_probs[1] > kClearGap) ++difference.other_clear_top;
  }
  if (next >= 0) {
    difference.reference_nll -= static_cast<double>(expected.actual_log_prob);
    difference.engine_nll -= log_prob(next);
    ++difference.predicted;
  }
}

}  // namespace

std::string GoldenDifference::text() const {
  return fmt::format(
      "{} positions: largest log-prob difference {:.2e}, mean KL {:.2e} nats, another top token at {} ({} of them "
      "clear), perplexity {:.4f}, reference {:.4f}",
      positions, largest, mean_kl(), other_top, other_clear_top, std::exp(engine_nll / static_cast<double>(predicted)),
      std::exp(reference_nll / static_cast<double>(predicted)));
}

std::vector<BlockId> GoldenRun::blocks_of(size_t prompt) const {
  std::vector<BlockId> blocks(static_cast<size_t>(blocks_per_prompt_));
  for (size_t index = 0; index < blocks.size(); ++index) {
    blocks[index] = static_cast<BlockId>(index * golden_.prompts.size() + prompt);
  }
  return blocks;
}

Result<GoldenDifference> GoldenRun::compare_prompts() {
  GoldenDifference difference;
  const auto width = static_cast<size_t>(backend_.vocabulary());
  const auto chunk = static_cast<size_t>(step_tokens_);
  for (size_t index = 0; index < golden_.prompts.size(); ++index) {
    const GoldenPrompt& prompt = golden_.prompts[index];
    for (size_t begin = 0; begin < prompt.tokens.size(); begin += chunk) {
      const size_t end = std::min(begin + chunk, prompt.tokens.size());
      SequenceStep step;
      step.tokens.assign(prompt.tokens.begin() + static_cast<std::ptrdiff_t>(begin),
                         prompt.tokens.begin() + static_cast<std::ptrdiff_t>(end));
      step.position = static_cast<int32_t>(begin);
      step.block_table = blocks_of(index);
      const size_t first = std::clamp(prompt.first, begin, end);
      step.logit_rows = static_cast<int32_t>(end - first);
      const auto handle = backend_.submit({{step}});
      const auto result = handle->wait();
      if (!result.ok()) return result.status();
      for (size_t at = first; at < end; ++at) {
        const TokenId next = at + 1 < prompt.tokens.size() ? prompt.tokens[at + 1] : -1;
        compare(result->logits.subspan((at - first) * width, width), prompt.positions[at - prompt.first], next,
                difference);
      }
    }
  }
  return difference;
}

Result<std::vector<std::vector<TokenId>>> GoldenRun::continue_prompts() {
  const size_t count = golden_.prompts.size();
  const auto width = static_cast<size_t>(backend_.vocabulary());
  std::vector<std::vector<TokenId>> outputs(count);
  for (size_t round = 0; round < golden_.prompts[0].continuation.size(); ++round) {
    StepPlan plan;
    for (size_t index = 0; index < count; ++index) {
      const GoldenPrompt& prompt = golden_.prompts[index];
      // The first round computes the prompt's last token again: the same KV, the same bits.
      SequenceStep& step = plan.sequences.emplace_back();
      step.tokens = {round == 0 ? prompt.tokens.back() : outputs[index].back()};
      step.position = static_cast<int32_t>(prompt.tokens.size() - 1 + round);
      step.block_table = blocks_of(index);
      step.logit_rows = 1;
    }
    const auto handle = backend_.submit(std::move(plan));
    const auto result = handle->wait();
    if (!result.ok()) return result.status();
    for (size_t index = 0; index < count; ++index) {
      const auto row = result->logits.subspan(index * width, width);
      outputs[index].push_back(static_cast<TokenId>(std::max_element(row.begin(), row.end()) - row.begin()));
    }
  }
  return outputs;
}

}  // namespace warmpath

// RandomSchedule: requests that arrive, share prefixes, differ in priority and n, and are cancelled at random steps;
// and a comparison of what they get in a crowd with what each gets alone. For tests, over any backend.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/clock.h"
#include "engine/engine_core.h"
#include "engine/recording_sink.h"

namespace warmpath {

class RandomSchedule {
 public:
  struct Options {
    int32_t requests = 8;
    int32_t vocabulary = 300;      // prompt tokens below this
    int32_t longest_prompt = 120;  // at least 2
    int32_t most_tokens = 40;
    int32_t most_choices = 4;
    int32_t span_steps = 40;  // arrivals are spread over so many steps
    double cancelled = 0.15;  // of the requests
  };

  RandomSchedule(uint32_t seed, const Options& options) : random_(seed) {
    // A few stems that prompts start with, so that prefixes are shared at all lengths.
    std::vector<std::vector<TokenId>> stems(3);
    for (auto& stem : stems) stem = random_tokens(options.longest_prompt, options.vocabulary);
    for (int32_t index = 0; index < options.requests; ++index) {
      Entry& entry = entries_.emplace_back();
      GenerateRequest& request = entry.request;
      request.request_id = std::to_string(index);
      const auto& stem = stems[below(3)];
      const int32_t length = 1 + below(options.longest_prompt);
      request.prompt.assign(stem.begin(), stem.begin() + below(length + 1));
      const auto own = random_tokens(length - static_cast<int32_t>(request.prompt.size()), options.vocabulary);
      request.prompt.insert(request.prompt.end(), own.begin(), own.end());
      request.priority = below(3) - 1;
      SamplingParams& sampling = request.sampling;
      sampling.max_tokens = 1 + below(options.most_tokens);
      sampling.seed = random_();
      sampling.temperature = below(3) == 0 ? 0.0f : 0.5f + 0.1f * static_cast<float>(below(10));
      if (below(3) == 0) sampling.top_p = 0.8f;
      if (below(4) == 0) sampling.top_k = 1 + below(40);
      if (below(4) == 0) sampling.frequency_penalty = 0.7f;
      if (below(4) == 0) sampling.repetition_penalty = 1.2f;
      if (below(3) == 0) sampling.n = 1 + below(options.most_choices);
      if (below(4) == 0) sampling.min_tokens = below(sampling.max_tokens + 1);
      entry.arrival_step = below(options.span_steps);
      if (below(1000) < options.cancelled * 1000) entry.cancel_step = entry.arrival_step + below(options.span_steps);
    }
    std::stable_sort(entries_.begin(), entries_.end(),
                     [](const Entry& left, const Entry& right) { return left.arrival_step < right.arrival_step; });
  }

  // All requests, as they come; every invariant is checked after every step.
  void run(EngineCore& core) {
    for (int32_t step = 0;; ++step) {
      bool all_arrived = true;
      for (Entry& entry : entries_) {
        if (entry.arrival_step == step) entry.sink = start(core, entry.request);
        if (entry.cancel_step == step) core.cancel(entry.request.request_id, {StatusCode::kCancelled, "by the test"});
        all_arrived &= entry.arrival_step <= step;
      }
      const bool worked = core.step();
      core.check_integrity();
      if (!worked && all_arrived) break;
    }
    EXPECT_EQ(core.stats().used_blocks, 0);
    EXPECT_EQ(core.stats().queued, 0);
    EXPECT_EQ(core.stats().queued_tokens, 0);
  }

  // Each request on a `make_alone()` of its own (a fresh EngineCore with its backend), one after the other; expects the
  // same answers, token by token. Returns how many tokens were compared.
  template <typename MakeAlone>
  int64_t compare_with_alone(MakeAlone make_alone) {
    int64_t compared = 0;
    for (const Entry& entry : entries_) {
      const std::unique_ptr<EngineCore> alone = make_alone();
      const auto sink = start(*alone, entry.request);
      while (alone->step()) continue;
      const bool cancelled = !entry.sink->done->ok();
      EXPECT_TRUE(!cancelled || entry.cancel_step >= 0);
      for (size_t choice = 0; choice < sink->tokens.size(); ++choice) {
        std::vector<TokenId> expected = sink->tokens[choice];
        const std::vector<TokenId>& found = entry.sink->tokens[choice];
        if (cancelled && found.size() < expected.size()) expected.resize(found.size());
        EXPECT_EQ(found, expected) << "request " << entry.request.request_id << " choice " << choice;
        compared += static_cast<int64_t>(found.size());
      }
    }
    return compared;
  }

 private:
  struct Entry {
    GenerateRequest request;
    int32_t arrival_step = 0;
    int32_t cancel_step = -1;
    std::shared_ptr<RecordingSink> sink;
  };

  int32_t below(int32_t limit) { return static_cast<int32_t>(random_() % static_cast<uint32_t>(limit)); }
  std::vector<TokenId> random_tokens(int32_t count, int32_t vocabulary) {
    std::vector<TokenId> tokens(static_cast<size_t>(std::max(count, 0)));
    for (TokenId& token : tokens) token = below(vocabulary);
    return tokens;
  }
  std::shared_ptr<RecordingSink> start(EngineCore& core, const GenerateRequest& request) {
    auto sink = std::make_shared<RecordingSink>(request.sampling.n);
    auto accepted = core.accept(request, sink, ++number_);
    EXPECT_TRUE(accepted.ok()) << accepted.status().to_string();
    if (accepted.ok()) core.start(std::move(*accepted));
    return sink;
  }

  std::mt19937 random_;
  std::vector<Entry> entries_;
  uint64_t number_ = 0;
};

}  // namespace warmpath

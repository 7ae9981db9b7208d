// TestEngine: an EngineCore on a TestBackend with a clock that tests drive, and the answer that it must give. For
// tests.
#pragma once

#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "engine/engine_core.h"
#include "engine/recording_sink.h"
#include "engine/test_backend.h"
#include "text/vocabulary.h"

namespace warmpath {

inline constexpr TokenId kTestEnd = 319;  // the test models' end token

inline EngineOptions test_options() {
  EngineOptions options;
  options.fingerprint = {11, 22};
  options.end_tokens = {kTestEnd};
  return options;
}

// `count` tokens that differ from those of other `salt`s from the first one on.
inline std::vector<TokenId> test_prompt(int count, int salt = 0) {
  std::vector<TokenId> tokens(static_cast<size_t>(count));
  for (int index = 0; index < count; ++index) tokens[static_cast<size_t>(index)] = (index * 7 + salt * 31 + 3) % 300;
  return tokens;
}

inline GenerateRequest test_request(std::string id, std::vector<TokenId> prompt, int32_t max_tokens,
                                    float temperature = 0) {
  GenerateRequest request;
  request.request_id = std::move(id);
  request.prompt = std::move(prompt);
  request.sampling.max_tokens = max_tokens;
  request.sampling.temperature = temperature;
  request.sampling.seed = 42;
  return request;
}

struct TestEngine {
  explicit TestEngine(TestBackend::Options backend_options = {}, EngineOptions options = test_options())
      : backend(backend_options),
        vocabulary(synthetic_vocabulary()),
        core(std::make_unique<EngineCore>(backend, vocabulary, std::move(options), clock, 77)) {}

  // REQUIRES an acceptable request.
  std::shared_ptr<RecordingSink> start(GenerateRequest request) {
    auto sink = std::make_shared<RecordingSink>(request.sampling.n);
    const Grammar grammar = request.grammar;
    auto accepted = core->accept(std::move(request), sink, ++number);
    EXPECT_TRUE(accepted.ok()) << accepted.status().to_string();
    if (!accepted.ok()) return sink;
    if (!grammar.empty()) {
      if (!compiler) compiler = *GrammarCompiler::create(core->text(), backend.vocabulary(), {kTestEnd});
      const auto compiled = compiler->compile(grammar);
      EXPECT_TRUE(compiled.ok()) << compiled.status().to_string();
      if (!compiled.ok()) return sink;
      (*accepted)->constrain(*compiled, core->text());
    }
    core->start(std::move(*accepted));
    return sink;
  }
  bool step() {
    clock.advance_ns(1'000'000);
    const bool worked = core->step();
    core->check_integrity();
    return worked;
  }
  void run() {
    while (step()) continue;
  }

  // What choice `choice` of `request` must be: the history grows token by token, without engine, blocks or batch.
  std::vector<TokenId> reference(const GenerateRequest& request, int32_t choice = 0) const {
    const int32_t size = backend.vocabulary();
    Sampler sampler(size);
    TokenCounts counts(request.sampling, request.prompt);
    std::vector<TokenId> history = request.prompt, output;
    while (static_cast<int32_t>(output.size()) < request.sampling.max_tokens) {
      std::vector<TokenId> banned;
      if (static_cast<int32_t>(output.size()) < request.sampling.min_tokens) banned = {kTestEnd};
      const std::vector<float> logits = TestBackend::reference_logits(history, size);
      const auto sampled = sampler.sample(logits, request.sampling, counts, banned,
                                          {*request.sampling.seed, choice, static_cast<int64_t>(history.size())});
      if (sampled->token == kTestEnd) break;
      counts.add(sampled->token);
      output.push_back(sampled->token);
      history.push_back(sampled->token);
    }
    return output;
  }

  ManualClock clock;
  TestBackend backend;
  const Vocabulary vocabulary;
  std::unique_ptr<EngineCore> core;
  std::unique_ptr<GrammarCompiler> compiler;  // made when a request has a grammar
  uint64_t number = 0;
};

}  // namespace warmpath

// Sampler: one row of logits in, one token out.
//
// The order of operations, each as Hugging Face transformers defines and orders it (vLLM's differs only in adding the
// bias before the penalties, and llama.cpp's in applying the temperature last):
//
//   repetition, frequency and presence penalties -> logit bias -> banned tokens, mask -> temperature -> top_k -> top_p
//   -> min_p
//
//   repetition  x > 0 ? x / r : x * r         for tokens of the prompt and the output (Keskar et al. 2019, CTRL)
//   frequency   x - f * times generated       presence   x - p when generated at all (the OpenAI API's definition)
//   top_k       the k likeliest               top_p      the likeliest whose probabilities, after top_k, first reach p
//   min_p       those at least min_p times as likely as the likeliest
//   ties        the lower token id counts as likelier
//
// Temperature 0 is the likeliest token after penalties, bias, bans and mask.
// Randomness is counter-based: one number per (seed, choice, position), so that neither the batch, a preemption nor a
// resume elsewhere changes an answer. Log-probabilities are those of the raw logits, of what the mask allows.
//
// Thread safety: a Sampler has scratch memory: one thread.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/token.h"
#include "proto/sampling.h"

namespace warmpath {

// Which tokens occurred, for penalties. Empty, and free, when the parameters ask for none.
class TokenCounts {
 public:
  TokenCounts(const SamplingParams& params, std::span<const TokenId> prompt);
  void add(TokenId generated);

 private:
  friend class Sampler;
  struct Count {
    int32_t generated = 0;
    bool in_prompt = false;
  };
  bool wanted_;
  std::unordered_map<TokenId, Count> counts_;
};

// Names one draw.
struct SampleKey {
  uint64_t seed;
  int32_t choice;
  int64_t position;  // of the token to be drawn, in prompt + output
};

struct SampledToken {
  TokenId token = -1;
  float logprob = 0;  // proto/generate.h: TokenOutput
  std::vector<std::pair<TokenId, float>> top_logprobs;
};

class Sampler {
 public:
  explicit Sampler(int32_t vocabulary) : vocabulary_(vocabulary) {}

  // An error only when no token is left with a logit above minus infinity.
  // `mask`: bit t % 32 of word t / 32 allows token t (engine/grammar.h); empty: everything is allowed.
  // REQUIRES logits.size() == vocabulary, params validated, banned ids within the vocabulary.
  Result<SampledToken> sample(std::span<const float> logits, const SamplingParams& params, const TokenCounts& counts,
                              std::span<const TokenId> banned, SampleKey key, std::span<const uint32_t> mask = {});

 private:
  using Candidate = std::pair<TokenId, float>;  // token, logit

  std::span<const float> adjust(std::span<const float> logits, const SamplingParams& params, const TokenCounts& counts,
                                std::span<const TokenId> banned, std::span<const uint32_t> mask);
  TokenId draw(std::span<const float> logits, TokenId peak_token, float peak, const SamplingParams& params, double u);
  TokenId draw_from_all(std::span<const float> logits, TokenId peak_token, float peak, float scale, float min_p,
                        double u);
  void nucleus(std::span<const float> logits, float peak, float scale, float top_p);
  void describe(std::span<const float> logits, int32_t top_logprobs, SampledToken& sampled);

  const int32_t vocabulary_;
  std::vector<float> adjusted_;
  std::vector<float> masked_;  // the raw logits of what the mask allows
  std::vector<float> weights_;
  std::vector<Candidate> candidates_;  // likeliest first
};

// The number in [0, 1) that belongs to `key`.
double uniform(SampleKey key);

}  // namespace warmpath

// Generation: one accepted request while the engine works on it: its choices, when each of them ends, what its sink is
// told, and the times that the cost model learns from.
//
// Thread safety: none; created on the caller's thread, then owned by the engine's loop thread.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "engine/grammar.h"
#include "engine/request_sink.h"
#include "engine/sampler.h"
#include "engine/sequence.h"
#include "engine/token_text.h"
#include "proto/generate.h"
#include "text/stop_matcher.h"

namespace warmpath {

class Generation;

// One answer of a request's n: a sequence, and what choosing its next token needs.
class Choice final : public Sequence {
 public:
  Choice(Generation& owner, const Prompt& prompt, uint64_t arrival, int32_t index,
         std::shared_ptr<const StopStrings> stop_strings);

  Generation& generation;
  TokenCounts counts;
  StopMatcher stop;                         // used only when the request has stop strings
  std::unique_ptr<GrammarMatcher> grammar;  // null: the answer may be anything
  bool finished = false;
};

class Generation {
 public:
  struct Limits {
    int32_t length;                       // prompt + output tokens that fit
    std::span<const TokenId> end_tokens;  // the model's; must outlive the generation
  };

  // REQUIRES a request that engine_core.h's accept() has checked. `seed` is used when the request names none.
  Generation(GenerateRequest request, std::shared_ptr<RequestSink> sink, Hash128 root, uint64_t arrival, uint64_t seed,
             std::shared_ptr<const StopStrings> stop_strings, Limits limits, const Clock& clock);

  const GenerateRequest& request() const { return request_; }
  RequestSink& sink() { return *sink_; }
  std::vector<std::unique_ptr<Choice>>& choices() { return choices_; }
  const Prompt& prompt() const { return prompt_; }
  uint64_t seed() const { return seed_; }
  bool started() const { return scheduled_ns_ != 0; }
  bool done() const { return unfinished_ == 0; }
  // When the request is to be dropped; 0 = never.
  MonotonicNs deadline_ns() const { return deadline_ns_; }

  // The request's grammar, compiled. Before start().
  void constrain(const std::shared_ptr<const CompiledGrammar>& grammar, const TokenText& text);

  // What may not be sampled as the next token of `choice`.
  std::span<const TokenId> banned(const Choice& choice) const;

  // Looks for an end in the output that the request brought along (a resume), and sets `failure` if that is not what
  // the grammar allows. Returns whether the choice is finished.
  bool absorb_output_prefix(Choice& choice, const TokenText& text);
  void on_scheduled(MonotonicNs now);
  // `tokens` of `choice`'s prompt were computed; `decode` when it was past its prompt.
  void on_computed(int32_t tokens, bool decode);
  // Takes the next token of `choice` and decides whether it is the last.
  void on_token(Choice& choice, SampledToken sampled, const TokenText& text, MonotonicNs now);
  // Sends what this step made ready, and the timings when all choices are finished. `batch` = sequences in the step.
  void send(int32_t batch);

  // Notes of the engine core about the step being processed.
  bool touched = false;
  Status failure;  // not ok: the request is to be ended

 private:
  void finish(Choice& choice, FinishReason reason, int32_t stop_string = -1, TokenId stop_token = -1);
  bool ends(TokenId token) const;
  bool out_of_room(const Choice& choice) const;
  int32_t matched_stop(const Choice& choice) const;
  RequestTimings timings() const;

  const GenerateRequest request_;
  const std::shared_ptr<RequestSink> sink_;
  const Prompt prompt_;
  const uint64_t seed_;
  const int32_t length_limit_;
  std::vector<TokenId> stop_tokens_;  // sorted: the request's, and the model's unless ignore_eos
  std::vector<std::unique_ptr<Choice>> choices_;
  int32_t unfinished_;

  GenerateUpdate update_;
  bool start_sent_ = false;
  bool decoded_in_step_ = false;

  const MonotonicNs arrival_ns_;
  const MonotonicNs deadline_ns_;
  MonotonicNs scheduled_ns_ = 0;
  MonotonicNs first_token_ns_ = 0;
  MonotonicNs last_token_ns_ = 0;
  int32_t prefill_tokens_ = 0;
  int32_t decode_steps_ = 0;
  int64_t decode_batches_ = 0;
};

}  // namespace warmpath

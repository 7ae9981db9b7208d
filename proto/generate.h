// The Generate contract as plain values: what the gateway asks of an engine, and what comes back.
// The engine, the gateway's upstreams and the mock replica share these; proto/codec.h maps them to protobuf.
// Thread safety: plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/token.h"
#include "proto/grammar.h"
#include "proto/sampling.h"

namespace warmpath {

struct GenerateRequest {
  std::string request_id;       // unique per replica while it runs; echoed in logs
  std::vector<TokenId> prompt;  // never empty
  std::vector<TokenId>
      output_prefix;  // already generated elsewhere (resume): counted in max_tokens, penalties, stop strings
  SamplingParams sampling;
  Grammar grammar;        // what the answer must look like; empty = anything
  std::string salt;       // the tenant's; part of the chain root
  int32_t priority = 0;   // higher runs first; ties by arrival
  double deadline_s = 0;  // seconds from arrival after which the request is dropped; 0 = none
};

enum class FinishReason {
  kStop,       // an end token, a stop token or a stop string
  kLength,     // max_tokens or the context is used up
  kCancelled,  // the caller left
  kDeadline,
  kError,
};
std::string_view finish_reason_name(FinishReason reason);

// One generated token of one choice.
struct TokenOutput {
  int32_t choice = 0;
  TokenId token = 0;
  // Set when top_logprobs >= 0: natural log of the softmax at temperature 1 before penalties, bias and truncation; of
  // the tokens that the grammar allows, where there is one.
  float logprob = 0;
  std::vector<std::pair<TokenId, float>> top_logprobs;  // likeliest first
};

// Sent once, when the first token of the request exists (or at its end when there is none).
struct StartInfo {
  int32_t cached_device_tokens = 0;  // prompt tokens whose KV was found as whole blocks, by tier
  int32_t cached_host_tokens = 0;
  int32_t cached_disk_tokens = 0;
  int32_t tail_tokens = 0;  // prompt tokens after those, copied from a block that only begins alike
  double queue_s = 0;       // arrival to first scheduled step
  double prefill_s = 0;     // first scheduled step to the last prompt token's step end
  int32_t cached_tokens() const { return cached_device_tokens + cached_host_tokens + cached_disk_tokens; }
};

// Sent once per choice.
struct ChoiceFinish {
  int32_t choice = 0;
  FinishReason reason = FinishReason::kStop;
  int32_t stop_string = -1;       // index into SamplingParams::stop that matched, or -1
  TokenId stop_token = -1;        // the end or stop token that matched, or -1
  int32_t completion_tokens = 0;  // including the end token
};

// What the cost model learns from, measured by the engine; sent with the last message of a request.
struct RequestTimings {
  double queue_s = 0;
  double prefill_s = 0;
  double decode_s = 0;         // first token to last token
  int32_t prefill_tokens = 0;  // computed, not cached
  int32_t decode_steps = 0;
  double mean_decode_batch = 0;  // sequences per decode step while this one ran
  int32_t preemptions = 0;
};

// A message of the output stream: whatever became ready together.
struct GenerateUpdate {
  std::optional<StartInfo> start;
  std::vector<TokenOutput> tokens;
  std::vector<ChoiceFinish> finished;
  std::optional<RequestTimings> timings;  // present exactly on the last message of a request that ended well
};

}  // namespace warmpath

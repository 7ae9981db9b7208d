// What a policy sees: the request, and one Candidate per replica that serves its model. The router fills both; a policy
// never looks anywhere else, so the simulator and the tests can hand in whatever they like.
// Thread safety: plain values.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "base/hash128.h"
#include "base/token.h"
#include "policies/rates.h"
#include "radix_index/index_query.h"
#include "radix_index/trust.h"

namespace warmpath {

using Labels = std::map<std::string, std::string>;

struct RequestView {
  int64_t prompt_tokens = 0;
  // Tokens before the first user message (system prompt and tools): what many sessions may share. 0 when unknown.
  int64_t base_tokens = 0;
  // Names that base: the chain identity of its last whole block. Zero when there is none.
  Hash128 base_key;
  // Names the session: a hash of (tenant, session id, thread id) when the client sends them, else zero.
  Hash128 session_key;
  // Names the session by its content: the chain identity of the first block past the base (content_key_of). Zero when
  // the prompt has none.
  Hash128 content_key;
  // Names the prompt's head: the chain identity at 256 tokens (head_key_of), what hashing routers go by. Zero when
  // unknown.
  Hash128 head_key;
  // Output tokens to expect: the smaller of max_tokens and what this model's answers take on average.
  double expected_output_tokens = 200;

  // Whose it is and how it came, for rules (policy_rules.h). The views live as long as the decision takes.
  std::string_view tenant;
  std::string_view model;  // as the client wrote it
  // The value of a header field; empty when it has none. Null: nothing is known of headers.
  std::function<std::string_view(std::string_view name)> header;

  const Hash128& session() const { return session_key.is_zero() ? content_key : session_key; }
};

// The identity of the first block that lies wholly past the base: equal for every turn of one session, different
// between sessions that share the base. For prompts shorter than that: the last block's; zero for an empty chain.
Hash128 content_key_of(std::span<const Hash128> chain, int64_t base_tokens);
// The identity of the block that ends at token 256, or of a shorter prompt's last; zero for an empty chain.
Hash128 head_key_of(std::span<const Hash128> chain);
// The identity of the last block that lies wholly inside the base; zero when there is none.
Hash128 base_key_of(std::span<const Hash128> chain, int64_t base_tokens);

struct Candidate {
  ReplicaId replica = 0;  // the caller's number for it; unique among the candidates
  bool healthy = true;    // answers, and its circuit is closed
  bool draining = false;  // finishes what it has
  Trust trust = Trust::kPredicted;

  // Load, as the gateway's own books and the replica's last report have it. Requests of this gateway count from the
  // moment they are routed.
  int32_t running = 0;                 // sequences that hold a slot
  int32_t queued = 0;                  // sent or waiting, without a slot yet
  int32_t max_running = 0;             // slots; 0 when unknown
  int64_t queued_uncached_tokens = 0;  // prompt tokens ahead of a new request that must still be computed
  // The same in seconds, where the gateway has predicted them (below 0: it has not), but for the tokens that it only
  // knows from the replica's report: other gateways'.
  double queued_prefill_s = -1;
  int64_t unpredicted_tokens = 0;
  int64_t resident_tokens = 0;  // KV held, cached blocks included
  int64_t active_tokens = 0;    // of those, what running sequences use now
  int64_t capacity_tokens = 0;  // KV capacity on the device; 0 when unknown

  // Leading prompt tokens it holds, by nearest tier, and those only expected (index_query.h). At most prompt_tokens -
  // 1: the last prompt token is always computed.
  int64_t device_tokens = 0;
  int64_t host_tokens = 0;
  int64_t disk_tokens = 0;
  int64_t placed_tokens = 0;

  Rates rates;                     // learnt (rate_model.h)
  const Labels* labels = nullptr;  // of its endpoint; null: none

  int64_t cached_tokens() const { return device_tokens + host_tokens + disk_tokens + placed_tokens; }
  int32_t requests() const { return running + queued; }
};

// Fills the four token counts of `candidate` from a lookup. `match` may be null: nothing is held.
void set_cached_tokens(Candidate& candidate, const IndexMatch* match, int64_t prompt_tokens);

}  // namespace warmpath

// Policy: picks the replica for a request. One object serves one model for the gateway's lifetime.
//
// Thread safety: decide() and forget() may be called from any thread; state that outlives a call (a counter, a session
// map) guards itself. Rng is the caller's own, one per thread.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "policies/candidate.h"
#include "policies/rng.h"

namespace warmpath {

// What a candidate would cost, part by part, in seconds. Policies that do not reckon in seconds leave the parts at 0
// and put what they compare into `total` (requests, for least_requests); the receipt names the policy.
struct CandidateCost {
  ReplicaId replica = 0;
  bool eligible = false;  // healthy and not draining
  double queue_s = 0;     // until its turn comes
  double prefill_s = 0;   // its own uncached tokens
  double fetch_s = 0;     // KV brought back from host and disk
  double price_s = 0;     // what others wait because of its prefill
  double decode_s = 0;    // its own decoding beside those that run, and what it slows them down
  // Taken off (predicted_costs.h):
  double base_credit_s = 0;      // the base, as far as it should not tie a new session to a replica
  double patience_credit_s = 0;  // of the queue, as far as a long prompt should leave the shorter ones to others
  double total = 0;
};

// What to do with the request. Holding a new session, queueing and pulling a prefix from a peer join this enum when a
// policy answers them.
enum class Verdict : uint8_t {
  kRoute,
  kNobody,  // no candidate is healthy and free to take it
};

struct Decision {
  Verdict verdict = Verdict::kNobody;
  size_t candidate = 0;              // kRoute: index into the candidates
  std::string_view reason;           // one word for the receipt: "cost", "tie", "sticky", "turn", "chance", ...
  std::vector<CandidateCost> costs;  // one per candidate, in their order
  std::string policy;                // who decided, where rules choose between several; else empty
};

class Policy {
 public:
  virtual ~Policy() = default;
  virtual std::string_view name() const = 0;
  virtual Decision decide(const RequestView& request, std::span<const Candidate> candidates, Rng& rng,
                          MonotonicNs now) = 0;
  // The replica is gone for good: drop whatever points at it.
  virtual void forget(ReplicaId) {}
};

}  // namespace warmpath

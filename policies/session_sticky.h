// session_sticky: every turn of a session goes where its first one went. The session is named by the client's header,
// else by the prompt's content past the base (candidate.h). A new session, and one whose replica is gone, goes to the
// replica with the fewest requests; ties go to the fewest sessions bound, then to chance.
//
// Known failures: it sends turns to a replica that has long evicted them, waits behind a hot replica while others are
// idle, and never moves a session back to balance. Thread safety: as Policy says.
#pragma once

#include "policies/policy.h"
#include "policies/policy_config.h"
#include "policies/session_map.h"

namespace warmpath {

class SessionStickyPolicy final : public Policy {
 public:
  explicit SessionStickyPolicy(const SessionStickyOptions& options)
      : sessions_(static_cast<size_t>(options.max_sessions), options.idle_s) {}
  std::string_view name() const override { return "session_sticky"; }
  Decision decide(const RequestView& request, std::span<const Candidate> candidates, Rng& rng,
                  MonotonicNs now) override;
  void forget(ReplicaId replica) override { sessions_.forget(replica); }

 private:
  SessionMap sessions_;
};

}  // namespace warmpath

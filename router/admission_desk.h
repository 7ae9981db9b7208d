// AdmissionDesk: where the turns of one model wait until SessionAdmission (policies/) lets their sessions run.
//
// Every prompt comes here before it is routed and says when it has ended. Nobody is called with a lock held; sessions
// fall silent without a word, so those that wait call look() now and then.
// Thread safety: any thread. `wake` runs on the thread that found the room; it must only post.
#pragma once

#include <functional>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "policies/session_admission.h"
#include "router/config.h"

namespace warmpath {

class AdmissionDesk {
 public:
  using Ticket = SessionAdmission::Ticket;

  struct Counts {
    size_t live_sessions = 0;
    int64_t live_tokens = 0;
    size_t waiting = 0;
    uint64_t pauses = 0;
    double over_commit = 1;
  };

  AdmissionDesk(const AdmissionConfig& config, const Clock& clock);

  bool enabled() const { return enabled_; }
  SessionAdmission::Entry arrive(const AdmissionTurn& turn, SessionAdmission::Capacities capacities,
                                 std::function<void()> wake);
  void look();
  // It waits no longer, unless it was woken: then false, and the session runs.
  bool leave(Ticket ticket);
  void ended(const AdmissionTurn& turn, int64_t cached, int64_t tokens);

  bool has_room(Hash128 session, ReplicaId replica) const;
  void routed(Hash128 session, ReplicaId replica);
  double retry_after_s() const;
  Counts counts() const;

 private:
  void admit_and_wake(std::unique_lock<std::mutex> lock);

  const bool enabled_;
  const Clock& clock_;
  mutable std::mutex mutex_;
  SessionAdmission admission_;
  std::vector<AdmissionCapacity> capacities_;  // as the latest turn told
  std::unordered_map<Ticket, std::function<void()>> waiting_;
};

}  // namespace warmpath

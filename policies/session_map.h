// SessionMap: which replica a session was last sent to. Bounded: the least recently used session goes when it is full.
// Thread safety: every method may be called from any thread.
#pragma once

#include <cstdint>
#include <list>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "base/clock.h"
#include "base/hash128.h"
#include "radix_index/index_query.h"

namespace warmpath {

class SessionMap {
 public:
  // REQUIRES max_sessions > 0.
  SessionMap(size_t max_sessions, double idle_s) : max_sessions_(max_sessions), idle_s_(idle_s) {}

  std::optional<ReplicaId> find(Hash128 session, MonotonicNs now) const;
  void assign(Hash128 session, ReplicaId replica, MonotonicNs now);
  // Sessions that are bound to `replica`.
  size_t bound_to(ReplicaId replica) const;
  void forget(ReplicaId replica);
  size_t size() const;

 private:
  struct Entry {
    Hash128 session;
    ReplicaId replica;
    MonotonicNs used_ns;
  };

  bool is_idle(const Entry& entry, MonotonicNs now) const {
    return static_cast<double>(now - entry.used_ns) * 1e-9 > idle_s_;
  }
  void erase(std::list<Entry>::iterator entry);

  const size_t max_sessions_;
  const double idle_s_;
  mutable std::mutex mutex_;
  std::list<Entry> entries_;  // most recently used first
  std::unordered_map<Hash128, std::list<Entry>::iterator> by_session_;
  std::unordered_map<ReplicaId, size_t> bound_;
};

}  // namespace warmpath

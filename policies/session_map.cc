#include "policies/session_map.h"

namespace warmpath {

std::optional<ReplicaId> SessionMap::find(Hash128 session, MonotonicNs now) const {
  const std::lock_guard lock(mutex_);
  const auto found = by_session_.find(session);
  if (found == by_session_.end() || is_idle(*found->second, now)) return std::nullopt;
  return found->second->replica;
}

void SessionMap::assign(Hash128 session, ReplicaId replica, MonotonicNs now) {
  const std::lock_guard lock(mutex_);
  if (const auto found = by_session_.find(session); found != by_session_.end()) erase(found->second);
  while (!entries_.empty() && (entries_.size() >= max_sessions_ || is_idle(entries_.back(), now))) {
    erase(std::prev(entries_.end()));
  }
  entries_.push_front({session, replica, now});
  by_session_[session] = entries_.begin();
  ++bound_[replica];
}

size_t SessionMap::bound_to(ReplicaId replica) const {
  const std::lock_guard lock(mutex_);
  const auto found = bound_.find(replica);
  return found == bound_.end() ? 0 : found->second;
}

void SessionMap::forget(ReplicaId replica) {
  const std::lock_guard lock(mutex_);
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const auto next = std::next(entry);
    if (entry->replica == replica) erase(entry);
    entry = next;
  }
}

size_t SessionMap::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

void SessionMap::erase(std::list<Entry>::iterator entry) {
  if (--bound_[entry->replica] == 0) bound_.erase(entry->replica);
  by_session_.erase(entry->session);
  entries_.erase(entry);
}

}  // namespace warmpath

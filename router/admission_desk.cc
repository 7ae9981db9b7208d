#include "router/admission_desk.h"

#include <utility>

namespace warmpath {

namespace {

SessionAdmissionOptions options_of(const AdmissionConfig& config) {
  SessionAdmissionOptions options;
  options.idle_s = config.idle_s;
  options.longest_wait_s = config.new_session_wait_s;
  options.max_waiting = config.max_waiting;
  return options;
}

}  // namespace

AdmissionDesk::AdmissionDesk(const AdmissionConfig& config, const Clock& clock)
    : enabled_(config.enabled), clock_(clock), admission_(options_of(config)) {}

SessionAdmission::Entry AdmissionDesk::arrive(const AdmissionTurn& turn, SessionAdmission::Capacities capacities,
                                              std::function<void()> wake) {
  const std::lock_guard lock(mutex_);
  capacities_.assign(capacities.begin(), capacities.end());
  const SessionAdmission::Entry entry = admission_.arrive(turn, capacities_, clock_.now_ns());
  if (entry.verdict == SessionAdmission::Verdict::kWait) waiting_.emplace(entry.ticket, std::move(wake));
  return entry;
}

void AdmissionDesk::look() { admit_and_wake(std::unique_lock(mutex_)); }

void AdmissionDesk::admit_and_wake(std::unique_lock<std::mutex> lock) {
  std::vector<std::function<void()>> woken;
  for (const Ticket ticket : admission_.admit(capacities_, clock_.now_ns())) {
    const auto found = waiting_.find(ticket);
    woken.push_back(std::move(found->second));
    waiting_.erase(found);
  }
  lock.unlock();
  for (const auto& wake : woken) wake();
}

bool AdmissionDesk::leave(Ticket ticket) {
  std::unique_lock lock(mutex_);
  if (waiting_.erase(ticket) == 0) return false;
  admission_.leave(ticket);
  admit_and_wake(std::move(lock));  // it may have stood in front of one that fits
  return true;
}

void AdmissionDesk::ended(const AdmissionTurn& turn, int64_t cached, int64_t tokens) {
  std::unique_lock lock(mutex_);
  admission_.ended(turn, cached, tokens, clock_.now_ns());
  admit_and_wake(std::move(lock));
}

bool AdmissionDesk::has_room(Hash128 session, ReplicaId replica) const {
  const std::lock_guard lock(mutex_);
  return admission_.has_room(session, replica);
}

void AdmissionDesk::routed(Hash128 session, ReplicaId replica) {
  const std::lock_guard lock(mutex_);
  admission_.routed(session, replica);
}

double AdmissionDesk::retry_after_s() const {
  const std::lock_guard lock(mutex_);
  return admission_.retry_after_s();
}

AdmissionDesk::Counts AdmissionDesk::counts() const {
  const std::lock_guard lock(mutex_);
  return {admission_.live_sessions(), admission_.live_tokens(), admission_.waiting(), admission_.pauses(),
          admission_.over_commit().factor()};
}

}  // namespace warmpath

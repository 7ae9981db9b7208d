#include "policies/session_admission.h"

#include <algorithm>

namespace warmpath {

namespace {

constexpr double kPauseAbove = 1.1;  // of the room: what fits does not pause and start again all the time
constexpr double kRememberedS = 4 * 3600;
constexpr size_t kMostRemembered = 100'000;

double seconds_between(MonotonicNs from, MonotonicNs to) { return static_cast<double>(to - from) * 1e-9; }

}  // namespace

int64_t SessionAdmission::own_tokens(int64_t tokens, const AdmissionTurn& turn) {
  return std::max<int64_t>(tokens - turn.base_tokens, turn.block_tokens);
}

int64_t SessionAdmission::footprint(int64_t tokens) const {
  return std::max(tokens, static_cast<int64_t>(mean_grown_));
}

bool SessionAdmission::fits(int64_t footprint, ReplicaId replica, int64_t capacity) const {
  const auto found = replica_tokens_.find(replica);
  const int64_t there = found == replica_tokens_.end() ? 0 : found->second;
  // Whatever its size, it may have a replica to itself.
  return there == 0 || static_cast<double>(there + footprint) <= over_commit_.factor() * static_cast<double>(capacity);
}

bool SessionAdmission::fits_somewhere(int64_t footprint) const {
  return capacities_.empty() || std::any_of(capacities_.begin(), capacities_.end(), [&](const auto& capacity) {
           return fits(footprint, capacity.first, capacity.second);
         });
}

bool SessionAdmission::has_room(Hash128 session, ReplicaId replica) const {
  const auto found = live_.find(session);
  if (found == live_.end() || !found->second.needs_room || found->second.replica == replica) return true;
  const auto capacity = capacities_.find(replica);
  return capacity != capacities_.end() && fits(found->second.footprint, replica, capacity->second);
}

void SessionAdmission::routed(Hash128 session, ReplicaId replica) {
  const auto found = live_.find(session);
  if (found == live_.end()) return;
  replica_tokens_[found->second.replica] -= found->second.footprint;
  replica_tokens_[replica] += found->second.footprint;
  found->second.replica = replica;
  found->second.needs_room = false;
}

ReplicaId SessionAdmission::roomiest(int64_t footprint) const {
  ReplicaId found = kNowhere;
  double most = 0;
  for (const auto& [replica, capacity] : capacities_) {
    if (!fits(footprint, replica, capacity)) continue;
    const auto there = replica_tokens_.find(replica);
    const double room =
        static_cast<double>(capacity) - static_cast<double>(there == replica_tokens_.end() ? 0 : there->second);
    if (found != kNowhere && room <= most) continue;
    found = replica;
    most = room;
  }
  return found;
}

bool SessionAdmission::must_pause(const Live& live) const {
  const auto capacity = capacities_.find(live.replica);
  const auto there = replica_tokens_.find(live.replica);
  if (live.running > 0 || capacity == capacities_.end() || there == replica_tokens_.end()) return false;
  const double room = over_commit_.factor() * static_cast<double>(capacity->second);
  if (static_cast<double>(there->second) <= kPauseAbove * room) return false;
  int64_t older = 0;
  for (const auto& [session, other] : live_) {
    if (other.replica == live.replica && other.age < live.age) older += other.footprint;
  }
  return older > 0 && static_cast<double>(older + live.footprint) > room;
}

SessionAdmission::Entry SessionAdmission::arrive(const AdmissionTurn& turn, Capacities capacities, MonotonicNs now) {
  learn(capacities);
  drop_silent(now);
  const int64_t tokens = own_tokens(turn.prompt_tokens, turn);
  auto live = live_.find(turn.session);
  if (live != live_.end() && must_pause(live->second)) {
    drop(live, now);
    live = live_.end();
    ++pauses_;
  }
  const bool is_cached = (turn.cached_tokens - turn.base_tokens) * 2 > tokens;
  if (live == live_.end() && !is_cached && (!queues_.empty() || !fits_somewhere(footprint(tokens)))) {
    return wait(turn, tokens, now);
  }
  const auto known = ages_.find(turn.session);
  start(turn.session, turn.tenant, tokens, known != ages_.end() ? known->second : ++last_age_, !is_cached);
  return {};
}

SessionAdmission::Entry SessionAdmission::wait(const AdmissionTurn& turn, int64_t tokens, MonotonicNs now) {
  if (where_.size() >= static_cast<size_t>(std::max(options_.max_waiting, 0))) return {Verdict::kFull, 0};
  const auto known = ages_.find(turn.session);
  const bool is_new = known == ages_.end();
  const Waiting waiting{++last_ticket_, turn.session, tokens, now, is_new ? ++last_age_ : known->second, is_new};
  Queue& queue = queues_[std::string(turn.tenant)];
  queue.insert(std::find_if(queue.begin(), queue.end(), [&](const Waiting& other) { return other.age > waiting.age; }),
               waiting);
  where_.emplace(waiting.ticket, turn.tenant);
  return {Verdict::kWait, waiting.ticket};
}

void SessionAdmission::start(Hash128 session, std::string_view tenant, int64_t tokens, uint64_t age, bool needs_room) {
  const auto [at, is_new] = live_.try_emplace(session);
  Live& live = at->second;
  if (is_new) {
    live.tenant = tenant;
    live.age = age;
    if (needs_room) live.replica = roomiest(footprint(tokens));
    live.needs_room = live.replica != kNowhere;
  } else if (live.running == 0) {
    silent_.erase({live.silent_since, session});
  }
  ++live.running;
  // Its place grows with its prompt at once, not when the turn has ended.
  count(live, std::max(live.tokens, tokens));
}

void SessionAdmission::count(Live& live, int64_t tokens) {
  const int64_t counted = footprint(tokens);
  live_tokens_ += counted - live.footprint;
  tenant_tokens_[live.tenant] += counted - live.footprint;
  replica_tokens_[live.replica] += counted - live.footprint;
  live.tokens = tokens;
  live.footprint = counted;
}

std::vector<SessionAdmission::Ticket> SessionAdmission::admit(Capacities capacities, MonotonicNs now) {
  learn(capacities);
  drop_silent(now);
  over_commit_.adjust(!queues_.empty(), now);
  std::vector<Ticket> admitted;
  const auto let_go = [&](const std::string& tenant, const Waiting& waiting) {
    leave(waiting.ticket);
    start(waiting.session, tenant, waiting.tokens, waiting.age, true);
    admitted.push_back(waiting.ticket);
    if (admitted_ns_ != 0) mean_gap_s_ += (seconds_between(admitted_ns_, now) - mean_gap_s_) * 0.1;
    admitted_ns_ = now;
  };
  std::vector<std::pair<std::string, Waiting>> overdue;
  for (const auto& [tenant, queue] : queues_) {
    for (const Waiting& waiting : queue) {
      if (waiting.is_new && seconds_between(waiting.since, now) >= options_.longest_wait_s) {
        overdue.emplace_back(tenant, waiting);
      }
    }
  }
  for (const auto& [tenant, waiting] : overdue) let_go(tenant, waiting);
  while (!queues_.empty()) {
    const auto tokens_of = [this](const std::string& tenant) {
      const auto found = tenant_tokens_.find(tenant);
      return found == tenant_tokens_.end() ? 0 : found->second;
    };
    const auto next = std::min_element(queues_.begin(), queues_.end(), [&](const auto& a, const auto& b) {
      const int64_t a_tokens = tokens_of(a.first);
      const int64_t b_tokens = tokens_of(b.first);
      return a_tokens != b_tokens ? a_tokens < b_tokens : a.second.front().age < b.second.front().age;
    });
    const Waiting first = next->second.front();
    if (!fits_somewhere(footprint(first.tokens))) break;
    let_go(std::string(next->first), first);
  }
  return admitted;
}

void SessionAdmission::leave(Ticket ticket) {
  const auto found = where_.find(ticket);
  if (found == where_.end()) return;
  const auto queue = queues_.find(found->second);
  std::erase_if(queue->second, [ticket](const Waiting& waiting) { return waiting.ticket == ticket; });
  if (queue->second.empty()) queues_.erase(queue);
  where_.erase(found);
}

void SessionAdmission::ended(const AdmissionTurn& turn, int64_t cached, int64_t tokens, MonotonicNs now) {
  const auto found = live_.find(turn.session);
  if (found == live_.end() || found->second.running == 0) return;
  Live& live = found->second;
  if (tokens >= 0) {
    if (live.blocks > 0 && live.blocks <= turn.chain.size() && turn.chain[live.blocks - 1] == live.last_block) {
      over_commit_.came_back(static_cast<double>(live.blocks) * static_cast<double>(turn.block_tokens),
                             static_cast<double>(cached));
    }
    live.blocks = turn.chain.size();
    live.last_block = turn.chain.empty() ? Hash128{} : turn.chain.back();
    count(live, own_tokens(tokens, turn));
  }
  if (--live.running > 0) return;
  live.silent_since = now;
  silent_.insert({now, turn.session});
}

void SessionAdmission::learn(Capacities capacities) {
  capacities_.clear();
  for (const AdmissionCapacity& capacity : capacities) {
    if (capacity.tokens > 0) capacities_.emplace(capacity.replica, capacity.tokens);
  }
}

void SessionAdmission::drop_silent(MonotonicNs now) {
  while (!silent_.empty() && seconds_between(silent_.begin()->first, now) >= options_.idle_s) {
    drop(live_.find(silent_.begin()->second), now);
  }
  while (!forgetting_.empty() &&
         (forgetting_.size() > kMostRemembered || seconds_between(forgetting_.front().first, now) > kRememberedS)) {
    ages_.erase(forgetting_.front().second);
    forgetting_.pop_front();
  }
}

void SessionAdmission::drop(std::unordered_map<Hash128, Live>::iterator at, MonotonicNs now) {
  Live& live = at->second;
  silent_.erase({live.silent_since, at->first});
  mean_grown_ += (static_cast<double>(live.tokens) - mean_grown_) * 0.05;
  live_tokens_ -= live.footprint;
  if (const auto tenant = tenant_tokens_.find(live.tenant); (tenant->second -= live.footprint) == 0) {
    tenant_tokens_.erase(tenant);
  }
  if (const auto there = replica_tokens_.find(live.replica); (there->second -= live.footprint) == 0) {
    replica_tokens_.erase(there);
  }
  if (ages_.emplace(at->first, live.age).second) forgetting_.emplace_back(now, at->first);
  live_.erase(at);
}

double SessionAdmission::retry_after_s() const {
  return std::clamp(mean_gap_s_ * static_cast<double>(where_.size() + 1), 1.0, 60.0);
}

Status SessionAdmission::check_integrity() const {
  int64_t tokens = 0;
  size_t silent = 0;
  std::map<std::string, int64_t, std::less<>> tenants;
  std::unordered_map<ReplicaId, int64_t> replicas;
  for (const auto& [session, live] : live_) {
    tokens += live.footprint;
    tenants[live.tenant] += live.footprint;
    replicas[live.replica] += live.footprint;
    if (live.running > 0) continue;
    ++silent;
    if (!silent_.contains({live.silent_since, session})) return internal_error("a silent session is not known as one");
  }
  if (tokens != live_tokens_) return internal_error("the live footprint is not the sum over the sessions");
  if (tenants != tenant_tokens_) return internal_error("the tenants' footprints are not their sessions'");
  for (const auto& [replica, there] : replica_tokens_) {
    const auto counted = replicas.find(replica);
    if (there != (counted == replicas.end() ? 0 : counted->second)) {
      return internal_error("a replica's footprint is not its sessions'");
    }
  }
  if (silent != silent_.size()) return internal_error("a session that is not live counts as silent");
  size_t waiting = 0;
  for (const auto& [tenant, queue] : queues_) {
    if (queue.empty()) return internal_error("a queue is empty");
    for (const Waiting& one : queue) {
      const auto where = where_.find(one.ticket);
      if (where == where_.end() || where->second != tenant) return internal_error("a ticket is in the wrong queue");
      ++waiting;
    }
  }
  if (waiting != where_.size()) return internal_error("a ticket is in no queue");
  return {};
}

}  // namespace warmpath

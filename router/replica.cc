#include "router/replica.h"

#include <algorithm>

namespace warmpath {

std::string_view replica_state_name(ReplicaState state) {
  switch (state) {
    case ReplicaState::kConnecting:
      return "connecting";
    case ReplicaState::kReady:
      return "ready";
    case ReplicaState::kDown:
      return "down";
    case ReplicaState::kIncompatible:
      return "incompatible";
  }
  return "unknown";
}

Replica::Replica(std::string name, std::string model, std::shared_ptr<Upstream> upstream, ReplicaId index_id,
                 const Clock& clock)
    : name_(std::move(name)),
      model_(std::move(model)),
      upstream_(std::move(upstream)),
      clock_(clock),
      index_id_(index_id) {}

void Replica::book_sent(LoadShare& share) {
  const std::lock_guard lock(mutex_);
  own_.queued += share.sequences;
  own_.queued_tokens += share.uncached_tokens;
  share.ticket = prefills_.sent(share.prefill_s, clock_.now_ns());
}

void Replica::book_started(LoadShare& share) {
  if (share.started) return;
  share.started = true;
  const std::lock_guard lock(mutex_);
  own_.queued -= share.sequences;
  own_.queued_tokens -= share.uncached_tokens;
  prefills_.ended(share.ticket, clock_.now_ns());
  own_.running += share.sequences;
}

void Replica::book_finished(const LoadShare& share) {
  const std::lock_guard lock(mutex_);
  if (share.started) {
    own_.running -= share.sequences;
  } else {
    own_.queued -= share.sequences;
    own_.queued_tokens -= share.uncached_tokens;
    prefills_.ended(share.ticket, clock_.now_ns());
  }
}

void Replica::set_labels(const Labels& labels) {
  const std::lock_guard lock(mutex_);
  if (labels_.empty() ? !labels.empty() : labels_.back() != labels) labels_.push_back(labels);
}

void Replica::fill(Candidate& candidate) const {
  candidate.replica = index_id();
  candidate.trust = trust();
  const std::lock_guard lock(mutex_);
  candidate.healthy = state_ == ReplicaState::kReady;
  candidate.draining = stats_.draining;
  candidate.running = own_.running + others_.running;
  candidate.queued = own_.queued + others_.queued;
  candidate.queued_uncached_tokens = own_.queued_tokens + others_.queued_tokens;
  candidate.queued_prefill_s = prefills_.remaining_s(clock_.now_ns());
  candidate.unpredicted_tokens = others_.queued_tokens;
  candidate.labels = labels_.empty() ? nullptr : &labels_.back();
  candidate.max_running = description_.max_running;
  candidate.capacity_tokens = description_.device_blocks * description_.block_tokens;
  candidate.resident_tokens = (stats_.used_blocks + stats_.cached_blocks) * description_.block_tokens;
  candidate.active_tokens = stats_.used_blocks * description_.block_tokens;
}

bool Replica::usable() const {
  const std::lock_guard lock(mutex_);
  return state_ == ReplicaState::kReady && !stats_.draining;
}

ReplicaState Replica::state() const {
  const std::lock_guard lock(mutex_);
  return state_;
}

ReplicaDescription Replica::description() const {
  const std::lock_guard lock(mutex_);
  return description_;
}

ReplicaStats Replica::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

std::string Replica::trouble() const {
  const std::lock_guard lock(mutex_);
  return trouble_;
}

void Replica::set_state(ReplicaState state, std::string trouble) {
  const std::lock_guard lock(mutex_);
  state_ = state;
  trouble_ = std::move(trouble);
}

void Replica::set_ready(const ReplicaDescription& description) {
  const std::lock_guard lock(mutex_);
  if (description_.boot_epoch != description.boot_epoch) {
    stats_ = {};
    others_ = {};
  }
  description_ = description;
  state_ = ReplicaState::kReady;
  trouble_.clear();
}

void Replica::set_stats(const ReplicaStats& stats) {
  const std::lock_guard lock(mutex_);
  stats_ = stats;
  // Running and queued are compared together: one of ours may have got its slot without having told us yet.
  const int32_t beyond = std::max(0, stats.running + stats.queued - own_.running - own_.queued);
  others_.running = std::min(beyond, stats.running);
  others_.queued = beyond - others_.running;
  others_.queued_tokens = beyond == 0 ? 0 : std::max<int64_t>(0, stats.queued_tokens - own_.queued_tokens);
}

}  // namespace warmpath

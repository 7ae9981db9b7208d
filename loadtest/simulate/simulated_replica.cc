#include "loadtest/simulate/simulated_replica.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace warmpath {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
// Two events this near are one: rounding must not make a sequence wait for a step of 1e-16 s.
constexpr double kSameWork = 1e-6;

}  // namespace

SimulatedReplica::SimulatedReplica(const ReplicaProfile& profile, int block_tokens, BlockCache* shared_cache)
    : profile_(profile),
      block_tokens_(block_tokens),
      own_cache_(profile.kv_blocks, profile.host_blocks),
      shared_cache_(shared_cache) {
  if (shared_cache != nullptr) profile_.running_kv = false;
}

int64_t SimulatedReplica::matched_tokens(const std::vector<uint32_t>& blocks, int64_t input_tokens) const {
  int64_t matched = 0;
  for (const uint32_t block : blocks) {
    if (!cache().on_device(block) && !cache().on_host(block)) break;
    ++matched;
  }
  return std::min(matched * block_tokens_, std::max<int64_t>(input_tokens - 1, 0));
}

void SimulatedReplica::submit(SimulatedJob job, double now_s) {
  move_to(now_s);
  job.submitted_s = now_s;
  const auto cached = static_cast<double>(matched_tokens(job.blocks, job.input_tokens));
  job.work = profile_.work(static_cast<double>(job.input_tokens) - cached, cached);
  queued_work_ += job.work;
  context_tokens_ += job.input_tokens;
  queue_.push_back(std::move(job));
}

double SimulatedReplica::backlog() const { return queued_work_ + (prefilling_ ? work_left_ : 0); }

double SimulatedReplica::next_event_s() const {
  double next = kNever;
  if (prefilling_) {
    next = last_s_ + std::max(work_left_, 0.0) / profile_.prefill_rate(decoding_.size());
  } else if (!queue_.empty() && !head_waits_ && running() < static_cast<size_t>(profile_.max_running)) {
    return last_s_;
  }
  if (!decoding_.empty()) {
    const double step_s = profile_.decode_step(prefilling_, decoding_.size());
    next = std::min(next, last_s_ + std::max(decoding_.top().finish_v - v_, 0.0) * step_s);
  }
  return next;
}

void SimulatedReplica::move_to(double now_s) {
  if (now_s <= last_s_) return;
  const double steps = (now_s - last_s_) / profile_.decode_step(prefilling_, decoding_.size());
  if (prefilling_) {
    const double work = (now_s - last_s_) * profile_.prefill_rate(decoding_.size());
    work_left_ -= work;
    work_done_ += work;
  }
  v_ += steps;
  batch_v_ += steps * static_cast<double>(decoding_.size());
  last_s_ = now_s;
}

void SimulatedReplica::advance(double now_s, std::vector<SimulatedProgress>& progress) {
  move_to(now_s);
  while (!decoding_.empty() && decoding_.top().finish_v <= v_ + kSameWork) end_decode(progress);
  if (prefilling_ && work_left_ <= kSameWork * profile_.prefill_chunk) end_prefill(now_s, progress);
  if (!prefilling_) start_prefill(now_s, progress);
}

void SimulatedReplica::start_prefill(double now_s, std::vector<SimulatedProgress>& progress) {
  while (!queue_.empty() && running() < static_cast<size_t>(profile_.max_running)) {
    SimulatedJob& job = queue_.front();
    const int64_t needed = blocks_for(job.input_tokens + job.output_tokens);
    if (profile_.running_kv && needed > profile_.kv_blocks) {
      queued_work_ -= job.work;
      context_tokens_ -= job.input_tokens;
      progress.push_back({job.turn, SimulatedProgress::Kind::kRefused, std::move(job)});
      queue_.pop_front();
      continue;
    }
    int64_t device = 0;
    int64_t host = 0;
    int64_t pinned = 0;  // by others: needs no room of its own
    for (const uint32_t block : job.blocks) {
      const bool on_device = blocks().on_device(block);
      if (on_device && host == 0) {
        ++device;
      } else if (on_device || blocks().on_host(block)) {
        ++host;
      } else {
        break;
      }
      pinned += on_device && blocks().is_pinned(block);
    }
    head_waits_ = profile_.running_kv && !blocks().has_room(needed - pinned);
    if (head_waits_) return;
    head_ = std::move(job);
    queue_.pop_front();
    queued_work_ = queue_.empty() ? 0 : queued_work_ - head_.work;
    const int64_t most = std::max<int64_t>(head_.input_tokens - 1, 0);
    head_.device_tokens = std::min(device * block_tokens_, most);
    head_.host_tokens = std::min((device + host) * block_tokens_, most) - head_.device_tokens;
    head_.matched_blocks = static_cast<size_t>(device + host);
    for (size_t n = head_.matched_blocks; n-- > 0;) blocks().use(head_.blocks[n], changes_);
    if (profile_.running_kv) {
      for (size_t n = 0; n < head_.matched_blocks; ++n) blocks().pin(head_.blocks[n]);
      blocks().reserve(needed - static_cast<int64_t>(head_.matched_blocks), changes_);
    }
    const auto cached = static_cast<double>(head_.device_tokens + head_.host_tokens);
    head_.work = profile_.work(static_cast<double>(head_.input_tokens) - cached, cached);
    work_left_ = head_.work +
                 static_cast<double>(head_.host_tokens) / profile_.host_tokens_per_s * profile_.prefill_tokens_per_s;
    head_.started_s = now_s;
    prefilling_ = true;
    return;
  }
}

void SimulatedReplica::end_prefill(double now_s, std::vector<SimulatedProgress>& progress) {
  prefilling_ = false;
  SimulatedJob job = std::move(head_);
  job.prefilled_s = now_s;
  if (profile_.running_kv) {
    for (size_t n = job.blocks.size(); n-- > job.matched_blocks;) {
      blocks().release(1);
      blocks().use(job.blocks[n], changes_);
      blocks().pin(job.blocks[n]);
    }
  } else {
    // Tail first, so that the tail is evicted before the head.
    for (size_t n = job.blocks.size(); n-- > 0;) blocks().use(job.blocks[n], changes_);
  }
  SimulatedProgress first{job.turn, SimulatedProgress::Kind::kFirstToken, {}};
  first.job.turn = job.turn;
  first.job.device_tokens = job.device_tokens;
  first.job.host_tokens = job.host_tokens;
  first.job.submitted_s = job.submitted_s;
  first.job.started_s = job.started_s;
  first.job.prefilled_s = job.prefilled_s;
  progress.push_back(std::move(first));
  if (job.output_tokens <= 1) {
    finish(std::move(job), progress);
  } else {
    const double finish_v = v_ + static_cast<double>(job.output_tokens - 1);
    decoding_.push({finish_v, batch_v_, std::move(job)});
  }
}

void SimulatedReplica::end_decode(std::vector<SimulatedProgress>& progress) {
  const Decode& top = decoding_.top();
  SimulatedJob job = std::move(const_cast<Decode&>(top).job);  // popped at once: the order rests on finish_v alone
  job.decode_batch = (batch_v_ - top.batch_v) / std::max(static_cast<double>(job.output_tokens - 1), 1.0);
  decoding_.pop();
  finish(std::move(job), progress);
}

void SimulatedReplica::finish(SimulatedJob job, std::vector<SimulatedProgress>& progress) {
  context_tokens_ -= job.input_tokens;
  head_waits_ = false;
  if (profile_.running_kv) {
    blocks().release(blocks_for(job.input_tokens + job.output_tokens) - static_cast<int64_t>(job.blocks.size()));
    if (profile_.keep_generated) {
      for (size_t n = job.generated.size(); n-- > 0;) blocks().use(job.generated[n], changes_);
    }
    for (size_t n = job.blocks.size(); n-- > 0;) blocks().unpin(job.blocks[n]);
  } else if (profile_.keep_generated) {
    for (size_t n = job.generated.size(); n-- > 0;) blocks().use(job.generated[n], changes_);
  }
  progress.push_back({job.turn, SimulatedProgress::Kind::kFinished, std::move(job)});
}

std::vector<SimulatedJob> SimulatedReplica::restart(double now_s) {
  move_to(now_s);
  std::vector<SimulatedJob> lost;
  if (prefilling_) lost.push_back(std::move(head_));
  for (SimulatedJob& job : queue_) lost.push_back(std::move(job));
  while (!decoding_.empty()) {
    lost.push_back(decoding_.top().job);
    decoding_.pop();
  }
  queue_.clear();
  prefilling_ = false;
  head_waits_ = false;
  queued_work_ = 0;
  context_tokens_ = 0;
  own_cache_.clear();
  changes_.clear();
  return lost;
}

BlockCache::Changes SimulatedReplica::take_changes() { return std::exchange(changes_, {}); }

}  // namespace warmpath

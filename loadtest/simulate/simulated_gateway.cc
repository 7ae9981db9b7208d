#include "loadtest/simulate/simulated_gateway.h"

#include <algorithm>

#include "base/check.h"

namespace warmpath {

namespace {

MonotonicNs to_ns(double seconds) { return static_cast<MonotonicNs>(seconds * 1e9) + 1; }

}  // namespace

BlockNames::BlockNames(const Trace& trace)
    : root_(hash128("root")), names_(trace.distinct_blocks), parents_(trace.distinct_blocks, UINT32_MAX) {
  for (uint32_t n = 0; n < trace.distinct_blocks; ++n) names_[n] = hash128(&n, sizeof n);
  std::vector<uint32_t> ids;
  for (const TraceTurn& turn : trace.turns) {
    ids.clear();
    append_blocks(turn, ids);
    for (size_t n = 1; n < ids.size(); ++n) parents_[ids[n]] = ids[n - 1];
  }
}

SimulatedGateway::SimulatedGateway(Options options, std::unique_ptr<Policy> policy, const BlockNames& names,
                                   size_t replicas, uint64_t seed)
    : options_(options), policy_(std::move(policy)), names_(names), rng_(seed), books_(replicas), sent_(replicas) {
  if (options_.admission) admission_.emplace(*options_.admission);
  for (size_t n = 0; n < replicas; ++n) {
    const Result<ReplicaId> id = index_.add_replica();
    WARMPATH_CHECK(id.ok(), "the index takes this many replicas");
    ids_.push_back(*id);
    if (!options_.events) continue;
    index_.apply(*id, {1, 0, KvEventBatch::Kind::kSnapshotBegin, {}}, 1);
    index_.apply(*id, {1, 0, KvEventBatch::Kind::kSnapshotEnd, {}}, 1);
  }
}

AdmissionTurn SimulatedGateway::admission_turn(const TraceTurn& turn, std::span<const uint32_t> blocks) {
  chain_.clear();
  for (const uint32_t block : blocks) chain_.push_back(names_.of(block));
  AdmissionTurn asks;
  // The content tells a sub-agent from its parent.
  asks.session = view_of(turn, blocks).content_key;
  asks.prompt_tokens = turn.input_tokens;
  asks.base_tokens = turn.base_tokens;
  asks.chain = chain_;
  index_.query(chain_, 0, matches_);
  for (const IndexMatch& match : matches_.matches) {
    asks.cached_tokens = std::max(asks.cached_tokens, int64_t{match.held_blocks()} * options_.block_tokens);
  }
  asks.block_tokens = options_.block_tokens;
  return asks;
}

std::vector<AdmissionCapacity> SimulatedGateway::capacities(const std::vector<SimulatedReplica>& fleet) const {
  std::vector<AdmissionCapacity> all;
  for (size_t n = 0; n < fleet.size(); ++n) {
    all.push_back({ids_[n], fleet[n].profile().kv_blocks * options_.block_tokens});
  }
  return all;
}

bool SimulatedGateway::enter(uint32_t turn_number, const TraceTurn& turn, std::span<const uint32_t> blocks,
                             const std::vector<SimulatedReplica>& fleet, double now_s) {
  if (!admission_) return true;
  const auto entry = admission_->arrive(admission_turn(turn, blocks), capacities(fleet), to_ns(now_s));
  if (entry.verdict == SessionAdmission::Verdict::kGo) return true;
  waiting_.emplace(entry.ticket, turn_number);
  return false;
}

std::vector<uint32_t> SimulatedGateway::admitted(const std::vector<SimulatedReplica>& fleet, double now_s) {
  std::vector<uint32_t> turns;
  if (!admission_) return turns;
  for (const auto ticket : admission_->admit(capacities(fleet), to_ns(now_s))) {
    turns.push_back(waiting_.at(ticket));
    waiting_.erase(ticket);
  }
  return turns;
}

void SimulatedGateway::leave(const TraceTurn& turn, std::span<const uint32_t> blocks, int64_t cached_tokens,
                             double now_s) {
  if (!admission_) return;
  admission_->ended(admission_turn(turn, blocks), cached_tokens,
                    cached_tokens < 0 ? -1 : turn.input_tokens + turn.output_tokens, to_ns(now_s));
}

RequestView SimulatedGateway::view_of(const TraceTurn& turn, std::span<const uint32_t> blocks) const {
  RequestView view;
  view.prompt_tokens = turn.input_tokens;
  view.base_tokens = turn.base_tokens;
  view.expected_output_tokens = mean_output_;
  if (options_.session_ids) view.session_key = hash128(&turn.session, sizeof turn.session);
  if (blocks.empty()) return view;
  const int64_t base_blocks = turn.base_tokens / options_.block_tokens;
  const auto last = static_cast<int64_t>(blocks.size()) - 1;
  if (base_blocks > 0) view.base_key = names_.of(blocks[static_cast<size_t>(std::min(base_blocks - 1, last))]);
  view.content_key = names_.of(blocks[static_cast<size_t>(std::min(base_blocks, last))]);
  const int64_t head_blocks = std::max<int64_t>(256 / options_.block_tokens, 1);
  view.head_key = names_.of(blocks[static_cast<size_t>(std::min(head_blocks - 1, last))]);
  return view;
}

Candidate SimulatedGateway::candidate_of(size_t replica, const RequestView& request, std::span<const uint32_t> blocks,
                                         const SimulatedReplica& state, MonotonicNs now) const {
  Candidate candidate;
  candidate.replica = ids_[replica];
  candidate.trust = options_.events ? Trust::kExact : Trust::kPredicted;
  const Book& book = books_[replica];
  if (options_.load == LoadView::kExact) {
    candidate.running = static_cast<int32_t>(state.decoding());
    candidate.queued = static_cast<int32_t>(state.queued() + state.running() - state.decoding());
    candidate.queued_uncached_tokens = static_cast<int64_t>(state.backlog());
  } else {
    candidate.running = book.running + book.others_running;
    candidate.queued = book.queued + book.others_queued;
    candidate.queued_uncached_tokens = book.queued_tokens + book.others_tokens;
    candidate.queued_prefill_s = book.prefills.remaining_s(now);
    candidate.unpredicted_tokens = book.others_tokens;
  }
  if (!options_.labels.empty()) candidate.labels = &options_.labels[replica % options_.labels.size()];
  candidate.max_running = state.profile().max_running;
  const BlockCache& cache = state.cache();
  candidate.capacity_tokens = state.profile().kv_blocks * options_.block_tokens;
  candidate.resident_tokens = (cache.device_blocks() + cache.reserved_blocks()) * options_.block_tokens;
  candidate.active_tokens = state.profile().running_kv
                                ? (cache.pinned_blocks() + cache.reserved_blocks()) * options_.block_tokens
                                : state.context_tokens();
  candidate.rates = rates_.rates_of(candidate.replica, now);

  int64_t left = std::max<int64_t>(request.prompt_tokens - 1, 0);
  const auto take = [&](int64_t count) {
    const int64_t tokens = std::min(left, count * options_.block_tokens);
    left -= tokens;
    return tokens;
  };
  if (options_.pooled) {
    int64_t held = 0;
    for (const uint32_t block : blocks) {
      if (!cache.on_device(block)) break;
      ++held;
    }
    candidate.device_tokens = take(held);
  } else if (const IndexMatch* match = matches_.find(candidate.replica); match != nullptr) {
    candidate.device_tokens = take(match->blocks[static_cast<size_t>(Tier::kDevice)]);
    candidate.host_tokens = take(match->blocks[static_cast<size_t>(Tier::kHost)]);
    candidate.disk_tokens = take(match->blocks[static_cast<size_t>(Tier::kDisk)]);
    candidate.placed_tokens = take(match->placed_blocks);
  }
  return candidate;
}

RoutedTurn SimulatedGateway::route(uint32_t turn_number, const TraceTurn& turn, std::span<const uint32_t> blocks,
                                   const std::vector<SimulatedReplica>& fleet, double now_s) {
  const MonotonicNs now = to_ns(now_s);
  chain_.clear();
  for (const uint32_t block : blocks) chain_.push_back(names_.of(block));
  index_.query(chain_, now, matches_);
  const RequestView view = view_of(turn, blocks);
  candidates_.clear();
  for (size_t n = 0; n < fleet.size(); ++n) {
    candidates_.push_back(candidate_of(n, view, blocks, fleet[n], now));
    if (admission_ && !admission_->has_room(view.content_key, ids_[n])) candidates_.back().healthy = false;
  }
  const Decision decision = policy_->decide(view, candidates_, rng_, now);
  if (decision.verdict != Verdict::kRoute) return {};
  const Candidate& chosen = candidates_[decision.candidate];
  if (admission_) admission_->routed(view.content_key, chosen.replica);
  if (options_.placement_s > 0 && !options_.pooled) index_.place(chosen.replica, chain_, now, options_.placement_s);
  const int64_t uncached = turn.input_tokens - chosen.cached_tokens();
  Book& book = books_[decision.candidate];
  ++book.queued;
  book.queued_tokens += uncached;
  const double prefill_s =
      chosen.rates.prefill_s(static_cast<double>(uncached), static_cast<double>(chosen.cached_tokens()));
  sent_[decision.candidate].push_back({turn_number, uncached, book.prefills.sent(prefill_s, now), false});
  return {decision.candidate, true, chosen.cached_tokens(), decision.reason};
}

SimulatedGateway::Sent* SimulatedGateway::find(size_t replica, uint32_t turn_number) {
  for (Sent& sent : sent_[replica]) {
    if (sent.turn == turn_number) return &sent;
  }
  return nullptr;
}

void SimulatedGateway::on_first_token(size_t replica, uint32_t turn_number, double now_s) {
  Sent* sent = find(replica, turn_number);
  if (sent == nullptr || sent->started) return;
  sent->started = true;
  Book& book = books_[replica];
  --book.queued;
  ++book.running;
  book.queued_tokens -= sent->uncached;
  book.prefills.ended(sent->ticket, to_ns(now_s));
}

void SimulatedGateway::take_off(size_t replica, const Sent& sent, MonotonicNs now) {
  Book& book = books_[replica];
  if (sent.started) {
    --book.running;
  } else {
    --book.queued;
    book.queued_tokens -= sent.uncached;
    book.prefills.ended(sent.ticket, now);
  }
  std::erase_if(sent_[replica], [turn = sent.turn](const Sent& other) { return other.turn == turn; });
}

void SimulatedGateway::on_lost(size_t replica, uint32_t turn_number, double now_s) {
  if (const Sent* sent = find(replica, turn_number)) take_off(replica, Sent(*sent), to_ns(now_s));
}

void SimulatedGateway::on_finished(size_t replica, const SimulatedJob& job, double ended_s) {
  on_lost(replica, job.turn, ended_s);
  RequestTimings timings;
  timings.queue_s = job.started_s - job.submitted_s;
  timings.prefill_s = job.prefilled_s - job.started_s;
  timings.decode_s = ended_s - job.prefilled_s;
  timings.prefill_tokens = static_cast<int32_t>(job.input_tokens - job.device_tokens - job.host_tokens);
  timings.decode_steps = static_cast<int32_t>(std::max<int64_t>(job.output_tokens - 1, 0));
  timings.mean_decode_batch = static_cast<float>(job.decode_batch);
  rates_.observe(ids_[replica], timings, job.device_tokens + job.host_tokens, to_ns(ended_s));
  mean_output_ += (static_cast<double>(job.output_tokens) - mean_output_) * 0.01;
}

bool SimulatedGateway::on_events(size_t replica, const KvEventBatch& batch, double now_s) {
  return index_.apply(ids_[replica], batch, to_ns(now_s)).action == FeedAction::kResubscribe;
}

void SimulatedGateway::on_report(size_t replica, const SimulatedReplica& state) {
  Book& book = books_[replica];
  const auto running = static_cast<int32_t>(state.running());
  const auto queued = static_cast<int32_t>(state.queued());
  const int32_t beyond = std::max(0, running + queued - book.running - book.queued);
  book.others_running = std::min(beyond, running);
  book.others_queued = beyond - book.others_running;
  book.others_tokens =
      beyond == 0 ? 0 : std::max<int64_t>(0, static_cast<int64_t>(state.backlog()) - book.queued_tokens);
}

void SimulatedGateway::maintain(double now_s) { index_.maintain(to_ns(now_s), 4096); }

}  // namespace warmpath

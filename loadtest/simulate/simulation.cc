#include "loadtest/simulate/simulation.h"

#include <algorithm>
#include <cmath>
#include <queue>

#include "base/check.h"
#include "loadtest/trace/arrivals.h"

namespace warmpath {

namespace {

// Separate streams of chance, so that changing one thing changes nothing else.
constexpr uint64_t kLossStream = 0x6c;
constexpr uint64_t kPolicyStream = 0x70;

Rng stream(uint64_t seed, uint64_t name, uint64_t number = 0) {
  Rng mix(seed * 0x100000001b3ull + name * 0x10001ull + number);
  return Rng(mix.next());
}

class Simulation {
 public:
  Simulation(const Trace& trace, const SimulationOptions& options);
  Outcome run();

 private:
  struct Event {
    double at_s;
    uint64_t order;
    enum class Kind : uint8_t { kArrival, kReplica, kDelivery, kReport, kRestart, kAdmission } kind;
    uint32_t a = 0;                             // turn, replica or gateway
    uint64_t b = 0;                             // generation, or index of a message
    bool operator<(const Event& other) const {  // the soonest on top
      return at_s != other.at_s ? at_s > other.at_s : order > other.order;
    }
  };
  struct Message {
    size_t replica = 0;
    KvEventBatch batch;
    int readers = 0;
  };
  struct Stream {
    uint64_t from = 0;  // the sequence its snapshot was of
  };

  void push(double at_s, Event::Kind kind, uint32_t a, uint64_t b = 0) { events_.push({at_s, ++order_, kind, a, b}); }
  void schedule_arrivals();
  void arrive(uint32_t turn_number, double now_s);
  void send(uint32_t turn_number, double now_s);
  void leave(uint32_t turn_number, int64_t cached_tokens, double now_s);
  void admit(uint32_t gateway, double now_s);
  void wake(size_t replica);
  void advance(size_t replica, double now_s);
  void end_turn(uint32_t turn_number, double now_s);
  void announce(size_t replica, double now_s);
  void deliver(uint32_t gateway, size_t message, double now_s);
  void subscribe(uint32_t gateway, size_t replica, double now_s);
  std::vector<KvEventBatch> snapshot(size_t replica) const;
  void restart(double now_s);
  std::vector<uint32_t> generated_blocks(const TraceTurn& turn, std::span<const uint32_t> blocks) const;

  const Trace& trace_;
  const SimulationOptions& options_;
  const BlockNames names_;
  std::unique_ptr<BlockCache> pool_;
  std::vector<SimulatedReplica> fleet_;
  std::vector<std::unique_ptr<SimulatedGateway>> gateways_;
  std::vector<TurnRecord> records_;
  std::vector<uint32_t> gateway_of_;                 // turn
  std::vector<std::vector<int32_t>> threads_after_;  // turn → first turns of the threads it starts
  std::priority_queue<Event> events_;
  uint64_t order_ = 0;
  std::vector<uint64_t> generation_;  // replica
  std::vector<uint64_t> sequence_;    // replica, of its events
  std::vector<uint64_t> boot_;        // replica
  std::vector<Message> messages_;     // on their way
  std::vector<size_t> free_messages_;
  std::vector<Stream> streams_;  // gateway * replicas + replica
  Rng loss_;
  size_t unfinished_ = 0;
  size_t next_restart_ = 0;
  double last_maintenance_s_ = 0;
  uint64_t arrivals_ = 0;
  std::vector<SimulatedProgress> progress_;
};

Simulation::Simulation(const Trace& trace, const SimulationOptions& options)
    : trace_(trace),
      options_(options),
      names_(trace),
      records_(trace.turns.size()),
      gateway_of_(trace.turns.size()),
      threads_after_(trace.threads.empty() ? 0 : trace.turns.size()),
      generation_(options.replicas),
      sequence_(options.replicas),
      boot_(options.replicas, 1),
      streams_(options.gateways * options.replicas),
      loss_(stream(options.seed, kLossStream)) {
  const auto replicas = static_cast<int64_t>(options.replicas);
  if (options.pooled) {
    pool_ = std::make_unique<BlockCache>(options.profile.kv_blocks * replicas, options.profile.host_blocks * replicas);
  }
  for (size_t n = 0; n < options.replicas; ++n) {
    ReplicaProfile profile = options.profile;
    if (n < options.paces.size()) profile.pace = options.paces[n];
    fleet_.emplace_back(profile, trace.block_tokens, pool_.get());
  }
  for (size_t n = 0; n < options.gateways; ++n) {
    gateways_.push_back(std::make_unique<SimulatedGateway>(
        SimulatedGateway::Options{.load = options.load,
                                  .session_ids = options.session_ids,
                                  .events = options.events && !options.pooled,
                                  .placement_s = options.placement_s,
                                  .block_tokens = trace.block_tokens,
                                  .pooled = options.pooled,
                                  .labels = options.labels,
                                  .admission = options.admission},
        options.policy(), names_, options.replicas, stream(options.seed, kPolicyStream, n).next()));
  }
}

void Simulation::schedule_arrivals() {
  std::vector<bool> seen(trace_.sessions);
  for (size_t n = 0; n < trace_.turns.size(); ++n) {
    const TraceTurn& turn = trace_.turns[n];
    records_[n].session = turn.session;
    records_[n].input_tokens = turn.input_tokens;
    records_[n].output_tokens = turn.output_tokens;
    records_[n].first_of_session = !seen[turn.session];
    seen[turn.session] = true;
  }
  unfinished_ = trace_.turns.size();
  for (const TraceThread& thread : trace_.threads) {
    if (thread.after >= 0) threads_after_[static_cast<size_t>(thread.after)].push_back(thread.first);
  }
  ArrivalOptions arrivals{options_.rate_scale, options_.jitter_s, options_.session_rate, options_.seed};
  if (options_.rho > 0) arrivals.rate_scale = arrivals.session_rate = rate_for_rho(trace_, options_);
  for (const Arrival& arrival : plan_arrivals(trace_, arrivals))
    push(arrival.at_s, Event::Kind::kArrival, arrival.turn);
}

Outcome Simulation::run() {
  schedule_arrivals();
  const double report_s = options_.report_every_s;
  constexpr double kAdmitEveryS = 1;  // sessions fall silent unheard
  if (options_.admission) push(kAdmitEveryS, Event::Kind::kAdmission, 0);
  if (gateways_.size() > 1 && report_s > 0) push(report_s, Event::Kind::kReport, 0);
  if (options_.restart_every_s > 0) push(options_.restart_every_s, Event::Kind::kRestart, 0);
  while (unfinished_ > 0 && !events_.empty()) {
    const Event event = events_.top();
    events_.pop();
    switch (event.kind) {
      case Event::Kind::kArrival:
        arrive(event.a, event.at_s);
        break;
      case Event::Kind::kReplica:
        if (event.b == generation_[event.a]) advance(event.a, event.at_s);
        break;
      case Event::Kind::kDelivery:
        deliver(event.a, event.b, event.at_s);
        break;
      case Event::Kind::kReport:
        for (const auto& gateway : gateways_) {
          for (size_t n = 0; n < fleet_.size(); ++n) gateway->on_report(n, fleet_[n]);
        }
        push(event.at_s + report_s, Event::Kind::kReport, 0);
        break;
      case Event::Kind::kAdmission:
        for (uint32_t n = 0; n < gateways_.size(); ++n) admit(n, event.at_s);
        push(event.at_s + kAdmitEveryS, Event::Kind::kAdmission, 0);
        break;
      case Event::Kind::kRestart:
        restart(event.at_s);
        push(event.at_s + options_.restart_every_s, Event::Kind::kRestart, 0);
        break;
    }
    if (event.at_s - last_maintenance_s_ >= 1) {
      last_maintenance_s_ = event.at_s;
      for (const auto& gateway : gateways_) gateway->maintain(event.at_s);
    }
  }
  Outcome outcome = measure(records_, options_.slo);
  const TraceFacts facts = trace_facts(trace_);
  outcome.ideal_hit_ratio =
      static_cast<double>(facts.ideal_tokens) / static_cast<double>(std::max<int64_t>(facts.input_tokens, 1));
  double most = 0;
  double sum = 0;
  for (const SimulatedReplica& replica : fleet_) {
    most = std::max(most, replica.work_done());
    sum += replica.work_done();
  }
  outcome.imbalance = sum > 0 ? most / (sum / static_cast<double>(fleet_.size())) : 0;
  return outcome;
}

void Simulation::arrive(uint32_t turn_number, double now_s) {
  records_[turn_number].arrival_s = now_s;
  // Load balancers in front of gateways know no sessions.
  gateway_of_[turn_number] = static_cast<uint32_t>(arrivals_++ % gateways_.size());
  if (options_.admission) {
    std::vector<uint32_t> blocks;
    append_blocks(trace_.turns[turn_number], blocks);
    SimulatedGateway& gateway = *gateways_[gateway_of_[turn_number]];
    if (!gateway.enter(turn_number, trace_.turns[turn_number], blocks, fleet_, now_s)) return;
  }
  send(turn_number, now_s);
}

void Simulation::leave(uint32_t turn_number, int64_t cached_tokens, double now_s) {
  if (!options_.admission) return;
  std::vector<uint32_t> blocks;
  append_blocks(trace_.turns[turn_number], blocks);
  gateways_[gateway_of_[turn_number]]->leave(trace_.turns[turn_number], blocks, cached_tokens, now_s);
  admit(gateway_of_[turn_number], now_s);
}

void Simulation::admit(uint32_t gateway, double now_s) {
  for (const uint32_t turn : gateways_[gateway]->admitted(fleet_, now_s)) send(turn, now_s);
}

void Simulation::send(uint32_t turn_number, double now_s) {
  const TraceTurn& turn = trace_.turns[turn_number];
  SimulatedJob job;
  job.turn = turn_number;
  job.input_tokens = turn.input_tokens;
  job.output_tokens = std::max<int64_t>(turn.output_tokens, 1);
  append_blocks(turn, job.blocks);
  if (options_.profile.keep_generated) job.generated = generated_blocks(turn, job.blocks);
  const RoutedTurn routed = gateways_[gateway_of_[turn_number]]->route(turn_number, turn, job.blocks, fleet_, now_s);
  if (!routed.routed) {
    leave(turn_number, -1, now_s);
    end_turn(turn_number, now_s);
    return;
  }
  records_[turn_number].replica = static_cast<int32_t>(routed.replica);
  fleet_[routed.replica].submit(std::move(job), now_s);
  wake(routed.replica);
}

// What the next prompt of the session takes over from this turn's answer.
std::vector<uint32_t> Simulation::generated_blocks(const TraceTurn& turn, std::span<const uint32_t> blocks) const {
  if (turn.next < 0) return {};
  std::vector<uint32_t> next;
  append_blocks(trace_.turns[static_cast<size_t>(turn.next)], next);
  const auto whole = static_cast<size_t>(turn.input_tokens / trace_.block_tokens);
  const auto reached = static_cast<size_t>((turn.input_tokens + turn.output_tokens) / trace_.block_tokens);
  const size_t own = std::min(whole, blocks.size());
  if (next.size() < own ||
      !std::equal(blocks.begin(), blocks.begin() + static_cast<std::ptrdiff_t>(own), next.begin())) {
    return {};
  }
  const size_t end = std::min(reached, next.size());
  if (end <= own) return {};
  return {next.begin() + static_cast<std::ptrdiff_t>(own), next.begin() + static_cast<std::ptrdiff_t>(end)};
}

void Simulation::wake(size_t replica) {
  const double next_s = fleet_[replica].next_event_s();
  ++generation_[replica];
  if (std::isfinite(next_s)) push(next_s, Event::Kind::kReplica, static_cast<uint32_t>(replica), generation_[replica]);
}

void Simulation::advance(size_t replica, double now_s) {
  progress_.clear();
  fleet_[replica].advance(now_s, progress_);
  const double delay_s = options_.profile.first_token_s * fleet_[replica].profile().pace;
  announce(replica, now_s);
  for (SimulatedProgress& step : progress_) {
    TurnRecord& record = records_[step.turn];
    SimulatedGateway& gateway = *gateways_[gateway_of_[step.turn]];
    switch (step.kind) {
      case SimulatedProgress::Kind::kFirstToken:
        record.first_token_s = now_s + delay_s;
        record.cached_tokens = step.job.device_tokens + step.job.host_tokens;
        gateway.on_first_token(replica, step.turn, now_s);
        break;
      case SimulatedProgress::Kind::kFinished:
        record.answered = true;
        gateway.on_finished(replica, step.job, now_s);
        leave(step.turn, record.cached_tokens, now_s);
        end_turn(step.turn, now_s + delay_s);
        break;
      case SimulatedProgress::Kind::kRefused:
        gateway.on_lost(replica, step.turn, now_s);
        leave(step.turn, -1, now_s);
        end_turn(step.turn, now_s);
        break;
    }
  }
  wake(replica);
}

void Simulation::end_turn(uint32_t turn_number, double now_s) {
  records_[turn_number].end_s = now_s;
  --unfinished_;
  if (trace_.timed) return;
  const auto follow = [&](int32_t next) {
    push(now_s + trace_.turns[static_cast<size_t>(next)].think_s, Event::Kind::kArrival, static_cast<uint32_t>(next));
  };
  if (trace_.turns[turn_number].next >= 0) follow(trace_.turns[turn_number].next);
  for (const int32_t first : threads_after_[turn_number]) follow(first);
}

void Simulation::announce(size_t replica, double now_s) {
  BlockCache::Changes changes = fleet_[replica].take_changes();
  if (!options_.events || options_.pooled || changes.empty()) return;
  KvEventBatch batch{boot_[replica], ++sequence_[replica], KvEventBatch::Kind::kLive, {}};
  const auto store = [&](std::vector<uint32_t>& blocks, Tier tier) {
    // Children come first, because they are used first; a chain is told from its front.
    std::reverse(blocks.begin(), blocks.end());
    uint32_t before = UINT32_MAX;
    BlocksStored* run = nullptr;
    for (const uint32_t block : blocks) {
      if (run == nullptr || !names_.follows(block, before)) {
        run = &std::get<BlocksStored>(batch.events.emplace_back(BlocksStored{tier, names_.parent_of(block), {}}));
      }
      run->blocks.push_back(names_.of(block));
      before = block;
    }
  };
  const auto remove = [&](const std::vector<uint32_t>& blocks, Tier tier) {
    if (blocks.empty()) return;
    BlocksRemoved removed{tier, {}};
    for (const uint32_t block : blocks) removed.blocks.push_back(names_.of(block));
    batch.events.push_back(std::move(removed));
  };
  store(changes.stored, Tier::kDevice);
  store(changes.host_stored, Tier::kHost);
  remove(changes.removed, Tier::kDevice);
  remove(changes.host_removed, Tier::kHost);

  std::vector<uint32_t> readers;
  for (uint32_t n = 0; n < gateways_.size(); ++n) {
    if (options_.event_loss <= 0 || loss_.uniform() >= options_.event_loss) readers.push_back(n);
  }
  if (readers.empty()) return;
  size_t message = messages_.size();
  if (free_messages_.empty()) {
    messages_.emplace_back();
  } else {
    message = free_messages_.back();
    free_messages_.pop_back();
  }
  messages_[message].replica = replica;
  messages_[message].batch = std::move(batch);
  messages_[message].readers = static_cast<int>(readers.size());
  for (const uint32_t reader : readers) {
    if (options_.event_delay_s > 0) {
      push(now_s + options_.event_delay_s, Event::Kind::kDelivery, reader, message);
    } else {
      deliver(reader, message, now_s);
    }
  }
}

void Simulation::deliver(uint32_t gateway, size_t message, double now_s) {
  const size_t replica = messages_[message].replica;
  const KvEventBatch& batch = messages_[message].batch;
  // What was under way when the gateway subscribed anew belongs to a stream that is closed.
  Stream& stream = streams_[gateway * fleet_.size() + replica];
  bool resubscribe = false;
  if (batch.boot_epoch == boot_[replica] && batch.sequence > stream.from) {
    resubscribe = gateways_[gateway]->on_events(replica, batch, now_s);
  }
  if (--messages_[message].readers == 0) free_messages_.push_back(message);
  if (resubscribe) subscribe(gateway, replica, now_s);
}

void Simulation::subscribe(uint32_t gateway, size_t replica, double now_s) {
  streams_[gateway * fleet_.size() + replica].from = sequence_[replica];
  for (const KvEventBatch& batch : snapshot(replica)) gateways_[gateway]->on_events(replica, batch, now_s);
}

std::vector<KvEventBatch> Simulation::snapshot(size_t replica) const {
  const uint64_t boot = boot_[replica];
  const uint64_t sequence = sequence_[replica];
  std::vector<KvEventBatch> batches{{boot, sequence, KvEventBatch::Kind::kSnapshotBegin, {}}};
  KvEventBatch part{boot, sequence, KvEventBatch::Kind::kSnapshotPart, {}};
  const BlockCache& cache = fleet_[replica].cache();
  const auto add = [&](Tier tier) {
    return [&part, tier, this](uint32_t block) {
      part.events.emplace_back(BlocksStored{tier, names_.parent_of(block), {names_.of(block)}});
    };
  };
  cache.each_device_block(add(Tier::kDevice));
  cache.each_host_block(add(Tier::kHost));
  batches.push_back(std::move(part));
  batches.push_back({boot, sequence, KvEventBatch::Kind::kSnapshotEnd, {}});
  return batches;
}

void Simulation::restart(double now_s) {
  const size_t replica = next_restart_++ % fleet_.size();
  const std::vector<SimulatedJob> lost = fleet_[replica].restart(now_s);
  ++boot_[replica];
  sequence_[replica] = 0;
  if (options_.events && !options_.pooled) {
    for (uint32_t n = 0; n < gateways_.size(); ++n) subscribe(n, replica, now_s);
  }
  wake(replica);
  for (const SimulatedJob& job : lost) gateways_[gateway_of_[job.turn]]->on_lost(replica, job.turn, now_s);
  for (const SimulatedJob& job : lost) send(job.turn, now_s);  // failed over; the clock runs on
}

}  // namespace

double rate_for_rho(const Trace& trace, const SimulationOptions& options) {
  const ReplicaProfile& profile = options.profile;
  double capacity = 0;  // tokens of work a second
  for (size_t n = 0; n < options.replicas; ++n) {
    capacity += profile.solo_rate() / (n < options.paces.size() ? options.paces[n] : 1);
  }
  double work = 0;
  if (trace.timed) {
    for (const TraceTurn& turn : trace.turns) work += profile.work(static_cast<double>(turn.input_tokens), 0);
    return options.rho * capacity / (work / std::max(trace.seconds(), 1e-9));
  }
  const TraceFacts facts = trace_facts(trace);
  for (size_t n = 0; n < trace.turns.size(); ++n) {
    const auto cached = static_cast<double>(facts.ideal_cached[n]);
    work += profile.work(static_cast<double>(trace.turns[n].input_tokens) - cached, cached);
  }
  return options.rho * capacity / (work / std::max(trace.sessions, 1u));
}

Outcome simulate(const Trace& trace, const SimulationOptions& options) {
  WARMPATH_CHECK(options.replicas > 0 && options.gateways > 0, "a simulation needs a replica and a gateway");
  WARMPATH_CHECK(trace.block_tokens > 0, "the trace has no block size");
  return Simulation(trace, options).run();
}

}  // namespace warmpath

#include "router/replica_monitor.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"

namespace warmpath {

// Passes events on to the queue, in order, with the number of the subscription they belong to.
class ReplicaMonitor::EventFeed final : public KvEventListener {
 public:
  EventFeed(std::weak_ptr<ReplicaMonitor> monitor, std::shared_ptr<TaskQueue> queue, uint64_t subscription)
      : monitor_(std::move(monitor)), queue_(std::move(queue)), subscription_(subscription) {}

  void on_batch(KvEventBatch batch) override {
    queue_->post([monitor = monitor_, subscription = subscription_, batch = std::move(batch)] {
      if (const auto self = monitor.lock()) self->on_batch(subscription, batch);
    });
  }
  void on_closed(Status status) override {
    queue_->post([monitor = monitor_, subscription = subscription_, status = std::move(status)] {
      if (const auto self = monitor.lock()) self->on_feed_closed(subscription, status);
    });
  }

 private:
  const std::weak_ptr<ReplicaMonitor> monitor_;
  const std::shared_ptr<TaskQueue> queue_;
  const uint64_t subscription_;
};

ReplicaMonitor::ReplicaMonitor(std::shared_ptr<Replica> replica, std::shared_ptr<ServedModel> model,
                               std::shared_ptr<SharedIndex> index, std::shared_ptr<TaskQueue> queue, const Clock& clock,
                               MonitorTiming timing)
    : replica_(std::move(replica)),
      model_(std::move(model)),
      index_(std::move(index)),
      queue_(std::move(queue)),
      clock_(clock),
      timing_(timing),
      retry_s_(timing.first_retry_s),
      event_retry_s_(timing.first_retry_s) {}

template <typename Step>
void ReplicaMonitor::later(double delay_s, Step step) {
  auto task = [monitor = weak_from_this(), step = std::move(step)] {
    const auto self = monitor.lock();
    if (self && !self->stopped_) step(*self);
  };
  if (delay_s > 0) {
    queue_->post_after(delay_s, std::move(task));
  } else {
    queue_->post(std::move(task));
  }
}

// A callback for the upstream: carries its result over to the queue.
template <typename Step>
auto ReplicaMonitor::on_queue(std::weak_ptr<ReplicaMonitor> monitor, std::shared_ptr<TaskQueue> queue, Step step) {
  return [monitor = std::move(monitor), queue = std::move(queue), step = std::move(step)](auto result) {
    queue->post([monitor, step, result = std::move(result)]() mutable {
      const auto self = monitor.lock();
      if (self && !self->stopped_) step(*self, std::move(result));
    });
  };
}

void ReplicaMonitor::start() {
  later(0, [](ReplicaMonitor& self) { self.describe(); });
}

void ReplicaMonitor::check_now() {
  later(0, [](ReplicaMonitor& self) {
    self.retry_s_ = self.timing_.first_retry_s;
    self.describe();
  });
}

void ReplicaMonitor::stop() {
  queue_->post([self = shared_from_this()] {
    if (self->stopped_) return;
    self->stopped_ = true;
    self->replica_->set_state(ReplicaState::kDown, "no longer configured");
    ++self->subscription_;
    if (self->events_) self->events_->cancel();
    self->events_ = nullptr;
    const ReplicaId id = self->replica_->index_id();
    self->index_->write([&](RadixIndex& index) { index.remove_replica(id); });
    self->model_->forget(id);
  });
}

void ReplicaMonitor::describe() {
  const uint64_t attempt = ++attempt_;
  replica_->upstream().describe(
      timing_.describe_timeout_s,
      on_queue(weak_from_this(), queue_, [attempt](ReplicaMonitor& self, Result<ReplicaDescription> described) {
        self.on_described(attempt, std::move(described));
      }));
}

void ReplicaMonitor::on_described(uint64_t attempt, Result<ReplicaDescription> described) {
  if (attempt != attempt_) return;
  if (!described.ok()) {
    become_unusable(ReplicaState::kDown, described.status().message());
    return;
  }
  if (described->protocol_major != kProtocolMajor) {
    become_unusable(
        ReplicaState::kIncompatible,
        fmt::format("{} speaks protocol {}.{}; this gateway speaks {}.{}: update the older one", described->software,
                    described->protocol_major, described->protocol_minor, kProtocolMajor, kProtocolMinor));
    return;
  }
  if (described->block_tokens != kBlockTokens) {
    become_unusable(ReplicaState::kIncompatible, fmt::format("its blocks have {} tokens; this gateway's have {}",
                                                             described->block_tokens, kBlockTokens));
    return;
  }
  if (boot_epoch_ != 0 && described->boot_epoch != boot_epoch_) {
    log_info("replica_restarted", {{"replica", replica_->name()}, {"model", model_->name()}});
    forget_cache();
  }
  // What a snapshot brought back is of this life, or void.
  Trust trust{};
  const bool same_life = index_->write([&](RadixIndex& index) {
    const bool same = index.confirm_epoch(replica_->index_id(), described->boot_epoch);
    trust = index.replica_view(replica_->index_id()).trust;
    return same;
  });
  replica_->set_trust(trust);
  if (!same_life) {
    log_info("replica_restarted",
             {{"replica", replica_->name()}, {"model", model_->name()}, {"since", "the snapshot"}});
  }
  const auto identity = model_->identity();
  if (identity && identity->description.fingerprint == described->fingerprint &&
      identity->description.tokenizer_hash == described->tokenizer_hash) {
    become_ready(*described);
    return;
  }
  const ReplicaList all = model_->replicas();
  const bool others_usable = std::any_of(all.begin(), all.end(), [&](const std::shared_ptr<Replica>& other) {
    return other != replica_ && other->usable();
  });
  if (identity && others_usable) {
    become_unusable(
        ReplicaState::kIncompatible,
        fmt::format("it serves other weights or another tokenizer than the usable replicas of {}", model_->name()));
    return;
  }
  fetch_identity(attempt, *described);
}

void ReplicaMonitor::fetch_identity(uint64_t attempt, const ReplicaDescription& description) {
  replica_->upstream().fetch_tokenizer(
      timing_.describe_timeout_s * 2,
      on_queue(weak_from_this(), queue_, [attempt, description](ReplicaMonitor& self, Result<std::string> file) {
        if (attempt != self.attempt_) return;
        if (!file.ok()) {
          self.become_unusable(ReplicaState::kDown, "its tokenizer: " + file.status().message());
          return;
        }
        const ModelConfig config = self.model_->config();
        auto identity = make_identity(description, *file, config);
        if (!identity.ok()) {
          self.become_unusable(ReplicaState::kIncompatible, "its tokenizer: " + identity.status().message());
          return;
        }
        self.model_->set_identity(*identity);
        self.become_ready(description);
      }));
}

void ReplicaMonitor::become_ready(const ReplicaDescription& description) {
  const bool was_ready = ready_;
  ready_ = true;
  boot_epoch_ = description.boot_epoch;
  retry_s_ = timing_.first_retry_s;
  replica_->set_ready(description);
  if (!was_ready) {
    log_info("replica_ready", {{"replica", replica_->name()},
                               {"model", model_->name()},
                               {"software", description.software},
                               {"device", description.device},
                               {"context_tokens", description.context_tokens},
                               {"device_blocks", description.device_blocks}});
    if (description.synthetic) {
      log_warn("replica_is_synthetic", {{"replica", replica_->name()}, {"model", model_->name()}});
    }
  }
  if (!events_) subscribe();
  if (!polling_) poll_stats();
}

void ReplicaMonitor::become_unusable(ReplicaState state, std::string why) {
  if (ready_ || replica_->state() != state || replica_->trouble() != why) {
    log_warn(
        "replica_unusable",
        {{"replica", replica_->name()}, {"model", model_->name()}, {"state", replica_state_name(state)}, {"why", why}});
  }
  ready_ = false;
  replica_->set_state(state, std::move(why));
  drop_feed();
  const double pause = retry_s_;
  retry_s_ = std::min(retry_s_ * 2, timing_.longest_retry_s);
  later(pause, [attempt = attempt_](ReplicaMonitor& self) {
    if (attempt == self.attempt_) self.describe();
  });
}

void ReplicaMonitor::subscribe() {
  const uint64_t subscription = ++subscription_;
  events_ = replica_->upstream().subscribe(std::make_shared<EventFeed>(weak_from_this(), queue_, subscription));
}

void ReplicaMonitor::on_batch(uint64_t subscription, const KvEventBatch& batch) {
  if (subscription != subscription_ || stopped_) return;
  if (batch.boot_epoch != boot_epoch_) {
    // Another process answers there. What the old one held is gone; describe() tells who the new one is.
    drop_feed();
    describe();
    return;
  }
  const ReplicaId id = replica_->index_id();
  const MonotonicNs now = clock_.now_ns();
  replica_->removals().note(batch);
  Trust trust{};
  const FeedOutcome outcome = index_->write([&](RadixIndex& index) {
    FeedOutcome applied = index.apply(id, batch, now);
    trust = index.replica_view(id).trust;
    return applied;
  });
  replica_->set_trust(trust);
  if (outcome.trust_changed) {
    if (trust == Trust::kExact) {
      event_retry_s_ = timing_.first_retry_s;
      log_info("replica_index_exact", {{"replica", replica_->name()}, {"model", model_->name()}});
    } else {
      log_warn("replica_index_degraded",
               {{"replica", replica_->name()}, {"model", model_->name()}, {"why", outcome.reason}});
    }
  }
  if (outcome.action == FeedAction::kResubscribe) {
    drop_feed();
    later(event_retry_s_, [](ReplicaMonitor& self) {
      if (self.ready_ && !self.events_) self.subscribe();
    });
    event_retry_s_ = std::min(event_retry_s_ * 2, timing_.longest_event_retry_s);
  }
}

void ReplicaMonitor::on_feed_closed(uint64_t subscription, const Status& status) {
  if (subscription != subscription_ || stopped_) return;
  drop_feed();
  if (status.code() == StatusCode::kUnimplemented) return;  // a replica without events stays `predicted`
  log_warn("replica_events_lost",
           {{"replica", replica_->name()}, {"model", model_->name()}, {"why", status.message()}});
  later(event_retry_s_, [](ReplicaMonitor& self) {
    if (self.ready_ && !self.events_) self.subscribe();
  });
  event_retry_s_ = std::min(event_retry_s_ * 2, timing_.longest_event_retry_s);
}

void ReplicaMonitor::drop_feed() {
  if (!events_) return;
  ++subscription_;
  events_->cancel();
  events_ = nullptr;
  const ReplicaId id = replica_->index_id();
  const Trust trust = index_->write([&](RadixIndex& index) {
    index.feed_lost(id);
    return index.replica_view(id).trust;
  });
  replica_->set_trust(trust);
}

void ReplicaMonitor::poll_stats() {
  polling_ = true;
  replica_->upstream().stats(timing_.describe_timeout_s,
                             on_queue(weak_from_this(), queue_, [](ReplicaMonitor& self, Result<ReplicaStats> stats) {
                               self.on_stats(std::move(stats));
                             }));
}

void ReplicaMonitor::on_stats(Result<ReplicaStats> stats) {
  polling_ = false;
  if (!ready_) return;
  if (!stats.ok()) {
    ++attempt_;
    become_unusable(ReplicaState::kDown, stats.status().message());
    return;
  }
  if (stats->boot_epoch != boot_epoch_) {
    describe();
  } else {
    const bool was_draining = replica_->stats().draining;
    replica_->set_stats(*stats);
    if (stats->draining && !was_draining) {
      log_info("replica_draining", {{"replica", replica_->name()}, {"model", model_->name()}});
    }
  }
  later(timing_.stats_every_s, [](ReplicaMonitor& self) {
    if (self.ready_ && !self.polling_) self.poll_stats();
  });
}

void ReplicaMonitor::forget_cache() {
  drop_feed();
  const ReplicaId old = replica_->index_id();
  const Result<ReplicaId> fresh = index_->write([&](RadixIndex& index) {
    index.remove_replica(old);
    return index.add_replica();
  });
  // One was just removed, so there is room for one.
  if (fresh.ok()) replica_->set_index_id(*fresh);
  replica_->set_trust(Trust::kPredicted);
  model_->forget(old);
}

}  // namespace warmpath

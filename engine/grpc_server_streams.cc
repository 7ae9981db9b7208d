#include "engine/grpc_server_streams.h"

#include <fmt/format.h>

#include <iterator>

#include "base/log.h"
#include "engine/grpc_server.h"
#include "proto/codec.h"
#include "proto/wire_status.h"

namespace warmpath {

grpc::Status to_grpc(const Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return {static_cast<grpc::StatusCode>(wire_code(status.code())), status.message()};
}

// ---- Generate ----

GenerateStream* GenerateStream::start(Engine& engine, GenerateRequest request) {
  std::shared_ptr<GenerateStream> stream(new GenerateStream(engine, request.request_id));
  stream->self_ = stream;
  const Status taken = engine.submit(std::move(request), stream);
  // A refused request has no on_done.
  if (!taken.ok()) stream->on_done(taken);
  return stream.get();
}

void GenerateStream::on_update(GenerateUpdate update) {
  Action action = Action::kNothing;
  size_t behind;
  {
    const std::lock_guard lock(mutex_);
    if (stopped_ || end_) return;
    for (const TokenOutput& output : update.tokens) pending_tokens_ += 1 + output.top_logprobs.size();
    behind = pending_tokens_;
    if (!has_pending_) {
      pending_ = std::move(update);
      has_pending_ = true;
    } else {
      if (update.start) pending_.start = update.start;
      if (update.timings) pending_.timings = update.timings;
      std::move(update.tokens.begin(), update.tokens.end(), std::back_inserter(pending_.tokens));
      std::move(update.finished.begin(), update.finished.end(), std::back_inserter(pending_.finished));
    }
    if (behind <= kMaxPendingTokens) action = next_action();
  }
  if (behind > kMaxPendingTokens) {
    log_warn("slow_reader", {{"request", request_id_}, {"tokens_behind", behind}});
    stop(resource_exhausted(
        fmt::format("the reader of this request is more than {} tokens behind; read faster", kMaxPendingTokens)));
    return;
  }
  perform(action);
}

void GenerateStream::on_done(Status status) {
  Action action;
  {
    const std::lock_guard lock(mutex_);
    if (end_) return;
    end_ = std::move(status);
    action = next_action();
  }
  perform(action);
}

GenerateStream::Action GenerateStream::next_action() {
  if (writing_ || finished_) return Action::kNothing;
  if (stopped_) {
    if (!end_) return Action::kNothing;
    finished_ = true;
    return Action::kFinish;
  }
  if (has_pending_) {
    // The message with `timings` waits for the engine's on_done, which follows at once: one write instead of two.
    if (pending_.timings && !end_) return Action::kNothing;
    writing_ = true;
    message_.Clear();
    encode(pending_, message_);
    pending_ = {};
    has_pending_ = false;
    pending_tokens_ = 0;
    if (!end_) return Action::kWrite;
    finished_ = true;
    return Action::kWriteAndFinish;
  }
  if (!end_) return Action::kNothing;
  finished_ = true;
  return Action::kFinish;
}

void GenerateStream::perform(Action action) {
  switch (action) {
    case Action::kNothing:
      return;
    case Action::kWrite:
      StartWrite(&message_);
      return;
    case Action::kWriteAndFinish:
      StartWriteAndFinish(&message_, grpc::WriteOptions(), to_grpc(*end_));
      return;
    case Action::kFinish:
      Finish(to_grpc(stopped_ ? *stopped_ : *end_));
      return;
  }
}

void GenerateStream::OnWriteDone(bool ok) {
  if (!ok) {
    // The connection broke. OnCancel comes too, but nothing says when.
    {
      const std::lock_guard lock(mutex_);
      writing_ = false;
    }
    stop({StatusCode::kCancelled, "the caller is gone"});
    return;
  }
  Action action;
  {
    const std::lock_guard lock(mutex_);
    writing_ = false;
    action = next_action();
  }
  perform(action);
}

void GenerateStream::OnCancel() { stop({StatusCode::kCancelled, "the caller cancelled the request"}); }

void GenerateStream::stop(Status reason) {
  Action action;
  bool running;
  {
    const std::lock_guard lock(mutex_);
    if (!stopped_) stopped_ = std::move(reason);
    pending_ = {};
    has_pending_ = false;
    pending_tokens_ = 0;
    running = !end_;
    action = next_action();
  }
  perform(action);
  if (running) engine_.cancel(request_id_);
}

// ---- SubscribeKvEvents ----

namespace {

struct IdentityCount {
  size_t operator()(const BlocksStored& event) const { return event.blocks.size(); }
  size_t operator()(const BlocksRemoved& event) const { return event.blocks.size(); }
  size_t operator()(const EvictSoon& event) const { return event.blocks.size(); }
  size_t operator()(const BlocksCleared&) const { return 1; }
  size_t operator()(const Heartbeat&) const { return 1; }
};

// Of live batches only: a snapshot is bounded by the replica's capacity.
size_t live_identities(const KvEventBatch& batch) {
  if (batch.kind != KvEventBatch::Kind::kLive) return 0;
  size_t count = 1;
  for (const KvEvent& event : batch.events) count += std::visit(IdentityCount(), event);
  return count;
}

}  // namespace

KvEventStream* KvEventStream::start(Engine& engine) {
  auto* stream = new KvEventStream(engine);
  stream->subscription_ = engine.subscribe([stream](const KvEventBatch& batch) { stream->on_batch(batch); });
  return stream;
}

void KvEventStream::on_batch(const KvEventBatch& batch) {
  size_t behind;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    pending_identities_ += live_identities(batch);
    behind = pending_identities_;
    pending_.push_back(batch);
    if (behind <= kMaxPendingIdentities) {
      if (writing_) return;
      encode_front();
    }
  }
  if (behind > kMaxPendingIdentities) {
    log_warn("slow_subscriber", {{"identities_behind", behind}});
    close({StatusCode::kDataLoss, fmt::format("the subscriber is more than {} block identities behind; subscribe again "
                                              "to get a snapshot",
                                              kMaxPendingIdentities)});
    return;
  }
  StartWrite(&message_);
}

void KvEventStream::encode_front() {
  writing_ = true;
  message_.Clear();
  encode(pending_.front(), message_);
  pending_identities_ -= live_identities(pending_.front());
  pending_.pop_front();
}

void KvEventStream::OnWriteDone(bool ok) {
  if (!ok) return close({StatusCode::kCancelled, "the subscriber is gone"});
  {
    const std::lock_guard lock(mutex_);
    writing_ = false;
    if (closed_ || pending_.empty()) return;
    encode_front();
  }
  StartWrite(&message_);
}

void KvEventStream::OnCancel() { close({StatusCode::kCancelled, "the subscriber left"}); }

void KvEventStream::OnDone() {
  engine_.unsubscribe(subscription_);
  delete this;
}

void KvEventStream::close(const Status& status) {
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    closed_ = true;
    pending_.clear();
  }
  // A write may still be under way: gRPC sends the status after it.
  Finish(to_grpc(status));
}

}  // namespace warmpath

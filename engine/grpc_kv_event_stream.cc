#include "engine/grpc_kv_event_stream.h"

#include <fmt/format.h>

#include "base/log.h"
#include "engine/grpc_server.h"
#include "engine/grpc_status.h"
#include "proto/codec.h"

namespace warmpath {

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

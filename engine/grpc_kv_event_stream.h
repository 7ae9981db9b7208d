// KvEventStream: SubscribeKvEvents of the gRPC server. Each object owns itself until gRPC is done with the call.
// Thread safety: the sink is called on the engine's thread, reactions on gRPC's; a lock joins them. It is not held
// while calling gRPC or the engine, because either may call back on the same thread.
#pragma once

#include <grpcpp/support/server_callback.h>

#include <deque>
#include <mutex>

#include "engine/engine.h"
#include "proto/engine.pb.h"

namespace warmpath {

class KvEventStream final : public grpc::ServerWriteReactor<v1::KvEventBatch> {
 public:
  static KvEventStream* start(Engine& engine);

 private:
  explicit KvEventStream(Engine& engine) : engine_(engine) {}

  void on_batch(const KvEventBatch& batch);
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;
  void close(const Status& status);
  void encode_front();

  Engine& engine_;
  int64_t subscription_ = 0;

  std::mutex mutex_;
  std::deque<KvEventBatch> pending_;
  size_t pending_identities_ = 0;  // of live batches: a snapshot is bounded by the replica's capacity
  bool writing_ = false;
  bool closed_ = false;
  v1::KvEventBatch message_;
};

}  // namespace warmpath

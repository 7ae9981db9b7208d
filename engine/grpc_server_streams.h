// The two output streams of the gRPC server. Each object owns itself until gRPC is done with the call.
// Thread safety: sinks are called on the engine's thread, reactions on gRPC's; a lock inside each stream joins them. No
// lock is held while calling gRPC or the engine, because either may call back on the same thread.
#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <deque>
#include <memory>
#include <mutex>
#include <optional>

#include "engine/engine.h"
#include "proto/engine.pb.h"

namespace warmpath {

grpc::Status to_grpc(const Status& status);

// Generate: RequestSink -> messages.
class GenerateStream final : public RequestSink,
                             public grpc::ServerWriteReactor<v1::GenerateUpdate>,
                             public std::enable_shared_from_this<GenerateStream> {
 public:
  // Submits the request; refusals finish the call. Returns the reactor, which gRPC keeps until OnDone.
  static GenerateStream* start(Engine& engine, GenerateRequest request);

  void on_update(GenerateUpdate update) override;
  void on_done(Status status) override;

 private:
  GenerateStream(Engine& engine, std::string request_id) : engine_(engine), request_id_(std::move(request_id)) {}

  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override { self_.reset(); }

  // What is to be done next, decided under the lock and done without it.
  enum class Action { kNothing, kWrite, kWriteAndFinish, kFinish };
  Action next_action();
  void perform(Action action);
  void stop(Status reason);

  Engine& engine_;
  const std::string request_id_;
  std::shared_ptr<GenerateStream> self_;  // until OnDone

  std::mutex mutex_;
  GenerateUpdate pending_;  // what became ready since the last write
  bool has_pending_ = false;
  size_t pending_tokens_ = 0;
  bool writing_ = false;
  bool finished_ = false;          // Finish was called
  std::optional<Status> stopped_;  // output is dropped from here on; why
  std::optional<Status> end_;      // the engine is done
  v1::GenerateUpdate message_;     // belongs to the write under way
};

// SubscribeKvEvents: KvEventSink -> messages.
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

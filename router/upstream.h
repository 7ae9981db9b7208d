// Upstream: one endpoint as the router sees it, free of gRPC and Beast types. Implementations: router/grpc_upstream.h
// (the in-tree engine), and later HTTP servers; tests use their own.
//
// Thread safety: every Upstream method may be called from any thread. Listeners are called from the upstream's threads,
// one call at a time per listener; they must not block (the router posts to the exchange's I/O thread).
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/status.h"
#include "proto/describe.h"
#include "proto/generate.h"
#include "proto/kv_event.h"

namespace warmpath {

class GenerateListener {
 public:
  virtual ~GenerateListener() = default;
  virtual void on_update(GenerateUpdate update) = 0;
  // The last call. Ok only after the update that carried `timings`. kUnavailable = the endpoint is gone or refused the
  // connection: safe to try elsewhere while nothing has reached the client.
  virtual void on_done(Status status) = 0;
};

// A running call. Destroying it does not cancel; on_done still comes.
class UpstreamCall {
 public:
  virtual ~UpstreamCall() = default;
  virtual void cancel() = 0;  // idempotent; on_done(kCancelled) follows
};

class KvEventListener {
 public:
  virtual ~KvEventListener() = default;
  virtual void on_batch(KvEventBatch batch) = 0;
  virtual void on_closed(Status status) = 0;  // the last call; subscribe again to continue
};

class Upstream {
 public:
  virtual ~Upstream() = default;

  virtual const std::string& address() const = 0;

  // `done` is called exactly once, from the upstream's threads.
  virtual void describe(double timeout_s, std::function<void(Result<ReplicaDescription>)> done) = 0;
  virtual void stats(double timeout_s, std::function<void(Result<ReplicaStats>)> done) = 0;
  // The tokenizer and chat template: a GGUF file without tensors.
  virtual void fetch_tokenizer(double timeout_s, std::function<void(Result<std::string>)> done) = 0;

  virtual std::shared_ptr<UpstreamCall> generate(const GenerateRequest& request,
                                                 std::shared_ptr<GenerateListener> listener) = 0;
  virtual std::shared_ptr<UpstreamCall> subscribe(std::shared_ptr<KvEventListener> listener) = 0;
};

}  // namespace warmpath

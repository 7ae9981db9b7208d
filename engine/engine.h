// Engine: one model, its KV blocks, its scheduler; a loop of three verbs on a thread of its own.
// Thread safety: every method may be called from any thread.
#pragma once

#include <functional>
#include <memory>

#include "base/clock.h"
#include "base/hash128.h"
#include "base/status.h"
#include "engine/backend.h"
#include "engine/request_sink.h"
#include "proto/describe.h"
#include "proto/generate.h"
#include "proto/kv_event.h"

namespace warmpath {

struct Vocabulary;  // text/vocabulary.h

struct EngineOptions {
  Hash128 fingerprint;              // root of the block identities
  std::vector<TokenId> end_tokens;  // the model's own
  int32_t max_running = 32;         // sequences in a step
  int32_t max_queued = 256;         // requests beyond get resource_exhausted
  int32_t step_tokens = 512;  // token budget of one step: bounds how long a decode waits for a neighbour's prefill
  bool prefix_cache = true;
};

// Receives every batch, in sequence order, on the engine's loop thread; must not block.
using KvEventSink = std::function<void(const KvEventBatch&)>;

class Engine {
 public:
  // `vocabulary` gives token texts for stop strings; both must outlive the engine. `clock` likewise.
  static std::unique_ptr<Engine> create(Backend& backend, const Vocabulary& vocabulary, EngineOptions options,
                                        const Clock& clock);
  virtual ~Engine() = default;  // cancels what runs

  // Refuses (invalid_argument, context_length_exceeded, resource_exhausted, unavailable while draining) or takes the
  // request; when taken, `sink` gets on_done exactly once. Output starts in a later step.
  virtual Status submit(GenerateRequest request, std::shared_ptr<RequestSink> sink) = 0;
  // The slot and blocks are free within one step; the sink gets on_done(kCancelled). Unknown ids are ignored.
  virtual void cancel(const std::string& request_id) = 0;

  // The sink first gets a snapshot of what is resident, then every later batch. Returns an id for unsubscribe().
  virtual int64_t subscribe(KvEventSink sink) = 0;
  virtual void unsubscribe(int64_t id) = 0;  // after return the sink is not called again

  // Keep these identities for ttl_s, or let them go first; returns how many are resident.
  virtual int32_t pin(std::span<const Hash128> blocks, double ttl_s) = 0;
  virtual int32_t release(std::span<const Hash128> blocks) = 0;

  virtual void drain() = 0;  // no new requests from now on
  virtual ReplicaStats stats() const = 0;
  virtual uint64_t boot_epoch() const = 0;
};

}  // namespace warmpath

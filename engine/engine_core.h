// EngineCore: the engine without its thread. A step is schedule -> run -> postprocess.
//
// Thread safety: accept() is const and may be called from any thread; everything else belongs to one thread. Sinks are
// called inside start(), cancel(), step() and stop(). Deterministic for a given backend, clock and order of calls.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "engine/backend.h"
#include "engine/block_pool.h"
#include "engine/engine.h"
#include "engine/generation.h"
#include "engine/kv_journal.h"
#include "engine/scheduler.h"
#include "engine/token_text.h"

namespace warmpath {

class EngineCore {
 public:
  EngineCore(Backend& backend, const Vocabulary& vocabulary, EngineOptions options, const Clock& clock,
             uint64_t boot_epoch);
  ~EngineCore();  // as stop()

  // Checks a request against the model and the limits; messages name the field and both numbers.
  Status check(const GenerateRequest& request) const;
  // check(), and all work that needs no engine state (hashing the prompt, compiling stop strings). `number` is unique
  // and orders arrivals.
  Result<std::shared_ptr<Generation>> accept(GenerateRequest request, std::shared_ptr<RequestSink> sink,
                                             uint64_t number) const;

  // REQUIRES constrain() to have been called where the request has a grammar.
  void start(std::shared_ptr<Generation> generation);
  void cancel(const std::string& request_id, const Status& why);
  // Schedules a step and submits it to the backend; false when there is nothing to do.
  bool begin_step();
  // Waits for it, chooses the next tokens, tells the sinks. Between the two, only stats() may be called.
  void finish_step();
  // Both; false when there was nothing to do.
  bool step();
  // Cancels everything.
  void stop(const Status& why);

  bool idle() const { return generations_.empty(); }
  size_t active() const { return generations_.size(); }  // started and not ended
  // Requests that never had a slot.
  int32_t queued() const { return queued_; }
  ReplicaStats stats() const;
  const TokenText& text() const { return text_; }
  BlockPool& pool() { return pool_; }
  KvJournal& journal() { return journal_; }
  void check_integrity() const { scheduler_.check_integrity(); }

 private:
  void drop_expired(MonotonicNs now);
  void begin_chunk(const Scheduler::Chunk& chunk, MonotonicNs now);
  void postprocess(std::span<const Scheduler::Chunk> chunks, std::span<const float> logits);
  void fail_step(std::span<const Scheduler::Chunk> chunks, const Status& status);
  void touch(Generation& generation);
  void finish_touched(int32_t batch);
  void end(Generation& generation, const Status& status);

  Backend& backend_;
  const EngineOptions options_;
  const Clock& clock_;
  const uint64_t boot_epoch_;
  const int32_t length_limit_;  // tokens of one sequence: the context, or the whole KV if that is smaller
  const TokenText text_;
  KvJournal journal_;
  BlockPool pool_;
  Scheduler scheduler_;
  Sampler sampler_;
  std::unordered_map<std::string, std::shared_ptr<Generation>> generations_;  // by request id
  std::unique_ptr<StepHandle> in_flight_;
  std::vector<Generation*> touched_;   // by this step, each once
  std::vector<Generation*> to_flush_;  // within finish_touched()
  MonotonicNs next_deadline_ = 0;      // 0 = none
  int32_t queued_ = 0;
  ReplicaStats counters_;
};

}  // namespace warmpath

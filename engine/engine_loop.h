// EngineLoop: the Engine of engine/engine.h: an EngineCore on a thread of its own.
//
// Calls from other threads become tasks that the loop runs between two steps, so the core needs no locks. What submit()
// must know at once (ids in use, queue length, draining) lies under `mutex_`. An idle engine sleeps; with subscribers
// it wakes once a second for a heartbeat.
//
// Thread safety: as engine/engine.h says.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "engine/engine.h"
#include "engine/engine_core.h"
#include "engine/grammar_store.h"

namespace warmpath {

class EngineLoop final : public Engine {
 public:
  EngineLoop(Backend& backend, const Vocabulary& vocabulary, EngineOptions options, const Clock& clock);
  ~EngineLoop() override;

  Status submit(GenerateRequest request, std::shared_ptr<RequestSink> sink) override;
  void cancel(const std::string& request_id) override;
  int64_t subscribe(KvEventSink sink) override;
  void unsubscribe(int64_t id) override;
  int32_t pin(std::span<const Hash128> blocks, double ttl_s) override;
  int32_t release(std::span<const Hash128> blocks) override;
  void drain() override;
  ReplicaStats stats() const override;
  uint64_t boot_epoch() const override { return boot_epoch_; }

 private:
  using Task = std::function<void()>;
  struct Subscriber {
    int64_t id;
    KvEventSink sink;
    bool gone = false;  // unsubscribed, perhaps from inside its own call
  };

  void run();
  void wait_for_work();
  void post(Task task);
  // Runs `task` on the loop's thread and returns when it is done.
  void run_on_loop(Task task);
  void publish_events();
  void heartbeat_if_due();
  void publish_stats();
  Status refuse_locked(const std::string& request_id) const;
  // The request's grammar is ready, or refused.
  void on_grammar(const std::shared_ptr<Generation>& generation, const GrammarStore::Compiled& compiled);
  // The request that waits for its grammar, which it does no more; null: none (or another than `only`) does.
  std::shared_ptr<Generation> stop_compiling(const std::string& request_id, const Generation* only = nullptr);

  const uint64_t boot_epoch_;
  const int32_t max_queued_;
  const Clock& clock_;
  EngineCore core_;                      // the loop thread's, but for accept()
  std::vector<Subscriber> subscribers_;  // the loop thread's
  MonotonicNs last_heartbeat_ = 0;       // the loop thread's
  bool was_idle_ = true;                 // the loop thread's
  std::vector<Task> tasks_;              // the loop thread's: the inbox being run

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Task> inbox_;
  std::unordered_set<std::string> active_ids_;                              // taken and not done
  std::unordered_map<std::string, std::shared_ptr<Generation>> compiling_;  // of those: their grammar is not ready
  ReplicaStats stats_;  // after the last step; `queued` also counts the inbox
  uint64_t next_number_ = 0;
  int64_t next_subscriber_ = 0;
  bool draining_ = false;
  bool stopping_ = false;

  std::unique_ptr<GrammarStore> grammars_;
  std::thread thread_;  // last: starts when all else is built
};

}  // namespace warmpath

// MockEngine: an Engine that computes nothing: what it answers comes from a script, when it answers from a timing
// model, and which blocks it holds from the same block pool and event journal that the real engine uses.
//
// Why not the real engine over a backend that sleeps: a fleet of hundreds must fit one process and one core, and a
// gateway's bench needs 10,000 answers a second from one replica; a step loop thread and a row of 49,152 logits per
// token cost more than everything else together.
//
// Timing model. Prefills run one after the other at `prefill_tokens_per_s` (uncached prompt tokens only); the first
// token comes at the end of the prefill, each further one `decode_step_s` later, however many run. 0 = at once.
// Requests beyond `max_running`, or without room in the KV cache, wait in order of arrival.
//
// Not modelled: stop strings (a script's reply is what it is), sampling, preemption; choices beyond the first repeat
// it. KV events leave at most every 2 ms, as those of an engine's steps would; heartbeats once a second.
//
// Thread safety: as Engine. Output is delivered on the caller's thread when it is ready inside submit(), else on the
// timer's thread.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/block_pool.h"
#include "engine/engine.h"
#include "engine/kv_journal.h"
#include "loadtest/mock_script.h"
#include "loadtest/mock_timer.h"
#include "text/tokenizer.h"

namespace warmpath {

struct MockEngineOptions {
  Hash128 fingerprint;  // root of the block identities; replicas of one model share it
  std::shared_ptr<const Tokenizer> tokenizer;
  std::shared_ptr<const MockScript> script;  // may be null
  int32_t context_tokens = 32'768;
  int64_t kv_blocks = 8'192;
  int32_t max_running = 64;
  int32_t max_queued = 4'096;
  double prefill_tokens_per_s = 0;  // 0 = at once
  double decode_step_s = 0;         // 0 = the whole answer at once
};

class MockEngine final : public Engine {
 public:
  // `timer` must have been stopped before the engine goes.
  MockEngine(MockEngineOptions options, MockTimer& timer);
  ~MockEngine() override;

  Status submit(GenerateRequest request, std::shared_ptr<RequestSink> sink) override;
  // For callers that have the prompt's text: the script's `when` is looked for there, not in the decoded tokens.
  Status submit(GenerateRequest request, std::shared_ptr<RequestSink> sink, std::string_view prompt_text);
  void cancel(const std::string& request_id) override;
  int64_t subscribe(KvEventSink sink) override;
  void unsubscribe(int64_t id) override;
  int32_t pin(std::span<const Hash128> blocks, double ttl_s) override;
  int32_t release(std::span<const Hash128> blocks) override;
  void drain() override;
  ReplicaStats stats() const override;
  uint64_t boot_epoch() const override { return boot_epoch_; }

  const MockEngineOptions& options() const { return options_; }
  void check_integrity() const;

 private:
  struct Work;
  // Calls to sinks, made when the lock is free.
  struct Delivery {
    std::shared_ptr<RequestSink> sink;
    std::optional<GenerateUpdate> update;
    std::optional<Status> done;
  };
  using Deliveries = std::vector<Delivery>;

  Status check(const GenerateRequest& request) const;
  std::shared_ptr<Work> plan(GenerateRequest request, std::shared_ptr<RequestSink> sink, const MockReply* script) const;

  // All with the lock held.
  void start_waiting(Deliveries& out);
  bool start(const std::shared_ptr<Work>& work, Deliveries& out);
  void advance(const std::shared_ptr<Work>& work, Deliveries& out);
  void say(Work& work, size_t tokens, GenerateUpdate& update);
  void fail_as_scripted(const std::shared_ptr<Work>& work, Deliveries& out);
  void finish(Work& work, GenerateUpdate& update);
  void end(const std::shared_ptr<Work>& work, Status status, Deliveries& out);
  void commit_blocks(Work& work, size_t computed_tokens);
  void publish_later();
  void publish();
  void schedule(MonotonicNs time, const std::shared_ptr<Work>& work);
  void schedule_heartbeat();

  static void deliver(Deliveries& deliveries);

  const MockEngineOptions options_;
  MockTimer& timer_;
  const uint64_t boot_epoch_;
  std::vector<TokenId> fixed_reply_;

  mutable std::mutex mutex_;
  KvJournal journal_;
  BlockPool pool_;
  std::unordered_map<std::string, std::shared_ptr<Work>> works_;  // by request id: running and waiting
  std::deque<std::shared_ptr<Work>> waiting_;                     // ended ones are skipped
  int32_t running_ = 0;
  MonotonicNs prefill_free_ = 0;  // when the last prefill that was begun ends
  std::vector<std::pair<int64_t, KvEventSink>> subscribers_;
  int64_t last_subscriber_ = 0;
  bool publish_scheduled_ = false;
  bool heartbeat_scheduled_ = false;
  bool draining_ = false;
  ReplicaStats counters_;
};

}  // namespace warmpath

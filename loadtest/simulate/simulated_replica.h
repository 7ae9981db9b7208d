// SimulatedReplica: one engine, as far as routing can tell: a queue, chunked prefill whose cost grows with the context,
// continuous decode, and a cache of KV blocks. Simulated seconds, never measured ones.
//
//   work of a prompt, in tokens    new * (1 + (cached + new / 2) / context_tokens)          new = uncached tokens
//   one step, in seconds           step_s + sequence_s * B + (prefill_chunk / prefill_tokens_per_s if prefilling)
//
// B sequences decode; per step each gains a token and the head of the first-come-first-served prefill queue loses up to
// prefill_chunk tokens of work, fluid between events. So prefills slow decodes, and decodes slow prefills. The match is
// counted when the prefill starts. Fetching a host block costs work worth its transfer time.
//
// With running_kv, a request needs room for its prompt and its answer from its prefill on (it waits for that at the
// queue's head), and its blocks cannot be evicted meanwhile. With keep_generated, the blocks that the session's next
// prompt takes over from this answer are cached when it ends. Without both, and without slots, this is the model of
// published studies of routing policies, against which it is tested.
//
// Thread safety: none. Times are simulated seconds; advance() must be called in order of time.
#pragma once

#include <cstdint>
#include <deque>
#include <queue>
#include <vector>

#include "loadtest/simulate/block_cache.h"

namespace warmpath {

// The defaults resemble a 32 B model in BF16 on two H100s.
struct ReplicaProfile {
  double prefill_chunk = 2048;
  double prefill_tokens_per_s = 12'000;
  double context_tokens = 30'000;
  double step_s = 0.012;
  double sequence_s = 0.0005;
  double first_token_s = 0.010;  // from the end of the prefill
  int64_t kv_blocks = 1000;
  int64_t host_blocks = 0;
  double host_tokens_per_s = 240'000;
  int32_t max_running = 256;  // prefilling and decoding
  bool running_kv = true;
  bool keep_generated = true;
  // Off: prefills and decodes do not slow each other down, and a prefill has the whole prefill_tokens_per_s (what mock
  // replicas do).
  bool interference = true;
  double pace = 1;  // 4: everything takes four times as long

  double step(bool prefilling, size_t decoding) const {
    return pace * (step_s + sequence_s * static_cast<double>(decoding) +
                   (prefilling ? prefill_chunk / prefill_tokens_per_s : 0));
  }
  double work(double uncached, double cached) const {
    return uncached * (1 + (cached + uncached / 2) / context_tokens);
  }
  // Tokens of work a second, beside so many decoding sequences.
  double prefill_rate(size_t decoding) const {
    return interference ? prefill_chunk / step(true, decoding) : prefill_tokens_per_s / pace;
  }
  double decode_step(bool prefilling, size_t decoding) const { return step(prefilling && interference, decoding); }
  double solo_rate() const { return prefill_rate(0); }
};

struct SimulatedJob {
  uint32_t turn = 0;  // the caller's number
  int64_t input_tokens = 0;
  int64_t output_tokens = 0;
  std::vector<uint32_t> blocks;     // of the prompt
  std::vector<uint32_t> generated;  // blocks of the answer that a later prompt will take over

  // Filled by the replica.
  int64_t device_tokens = 0;  // found at the start of the prefill
  int64_t host_tokens = 0;
  size_t matched_blocks = 0;  // found, in either tier
  double work = 0;            // estimated on arrival, true from the start of the prefill
  double submitted_s = 0;
  double started_s = 0;
  double prefilled_s = 0;
  double decode_batch = 0;  // mean over its decode steps
};

// What happened in an advance().
struct SimulatedProgress {
  uint32_t turn = 0;
  enum class Kind : uint8_t { kFirstToken, kFinished, kRefused } kind = Kind::kFirstToken;
  SimulatedJob job;  // blocks moved out only with kFinished and kRefused
};

class SimulatedReplica {
 public:
  // With `shared_cache`, blocks live there instead (the bound that a pooled cache would be); then running_kv is off.
  SimulatedReplica(const ReplicaProfile& profile, int block_tokens, BlockCache* shared_cache = nullptr);

  void submit(SimulatedJob job, double now_s);
  // When advance() has something to do; infinity when idle.
  double next_event_s() const;
  void advance(double now_s, std::vector<SimulatedProgress>& progress);
  // Loses its cache and everything it was doing; returns the unfinished jobs.
  std::vector<SimulatedJob> restart(double now_s);

  // What changed in the cache since the last call.
  BlockCache::Changes take_changes();
  const BlockCache& cache() const { return shared_cache_ == nullptr ? own_cache_ : *shared_cache_; }

  const ReplicaProfile& profile() const { return profile_; }
  size_t decoding() const { return decoding_.size(); }
  size_t queued() const { return queue_.size(); }  // without a slot
  size_t running() const { return decoding_.size() + (prefilling_ ? 1 : 0); }
  double backlog() const;                                     // work queued and left of the head
  int64_t context_tokens() const { return context_tokens_; }  // prompts of all requests here
  int64_t matched_tokens(const std::vector<uint32_t>& blocks, int64_t input_tokens) const;
  double work_done() const { return work_done_; }

 private:
  struct Decode {
    double finish_v;  // tokens of progress at which it is done
    double batch_v;   // batch_v_ when it began
    SimulatedJob job;
    bool operator<(const Decode& other) const { return finish_v > other.finish_v; }  // the soonest on top
  };

  BlockCache& blocks() { return shared_cache_ == nullptr ? own_cache_ : *shared_cache_; }
  void move_to(double now_s);
  void start_prefill(double now_s, std::vector<SimulatedProgress>& progress);
  void end_prefill(double now_s, std::vector<SimulatedProgress>& progress);
  void end_decode(std::vector<SimulatedProgress>& progress);
  int64_t blocks_for(int64_t tokens) const { return (tokens + block_tokens_ - 1) / block_tokens_; }
  void finish(SimulatedJob job, std::vector<SimulatedProgress>& progress);

  ReplicaProfile profile_;
  const int block_tokens_;
  BlockCache own_cache_;
  BlockCache* shared_cache_;
  BlockCache::Changes changes_;
  std::deque<SimulatedJob> queue_;
  double queued_work_ = 0;
  bool prefilling_ = false;
  SimulatedJob head_;
  double work_left_ = 0;
  std::priority_queue<Decode> decoding_;
  bool head_waits_ = false;  // the queue's first has no room
  double v_ = 0;             // tokens every decoding sequence has gained since the start
  double batch_v_ = 0;       // integral of the batch over v_
  double last_s_ = 0;        // up to when work_left_ and v_ are
  int64_t context_tokens_ = 0;
  double work_done_ = 0;
};

}  // namespace warmpath

// Scheduler: decides which sequences compute how many tokens in the next step, and which blocks their KV goes to.
//
// There are no prefill and decode phases: every sequence has tokens whose KV is pending, and a step is a budget of
// tokens to spend on them. scheduler.cc opens with the rules.
//
// One step:  schedule() -> plan() -> (the backend computes) -> commit() or fail().
// Sequences are added, removed and appended to only between steps.
//
// Thread safety: none; the engine's loop thread owns it. Deterministic: no clock, no randomness.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/backend.h"
#include "engine/block_pool.h"
#include "engine/sequence.h"

namespace warmpath {

struct SchedulerOptions {
  int32_t max_running = 32;   // sequences with a slot
  int32_t step_tokens = 512;  // REQUIRES step_tokens >= max_running: a decode never takes the last token of a prefill
};

class Scheduler {
 public:
  struct Chunk {
    Sequence* sequence;
    int32_t tokens;  // the next ones after sequence->computed()
    bool sample;     // the last of them is the sequence's last token: its logits row chooses the next one
  };

  // `pool` must outlive the scheduler.
  Scheduler(BlockPool& pool, SchedulerOptions options);

  // REQUIRES blocks_for(the sequence's final length) <= pool.total().
  void add(Sequence* sequence);
  // Finished or cancelled, in whatever state; its blocks are given back to the cache.
  void remove(Sequence* sequence);

  // The next step's chunks: decodes first. Empty when nothing can be done, which is when nothing was added.
  std::span<const Chunk> schedule();
  std::span<const Chunk> chunks() const { return chunks_; }
  StepPlan plan() const;
  // The step's KV is there: whole blocks become visible to others. The caller then appends what it sampled; chunks()
  // may be read until the next schedule().
  void commit();
  // The step's KV is lost: nothing of what its sequences hold is reused. The caller removes those sequences; the others
  // are preempted, so that none goes on with a block shared with a failed one. chunks() as after commit().
  void fail();

  int32_t running() const { return static_cast<int32_t>(running_.size()); }
  int32_t waiting() const { return static_cast<int32_t>(waiting_.size()); }
  int64_t preemptions() const { return preemptions_; }
  // Prompt tokens still to be computed, by running sequences and (as far as the cache told when they came) waiting
  // ones.
  int64_t queued_tokens() const;

  static int64_t blocks_for(int64_t tokens) { return (tokens + kBlockTokens - 1) / kBlockTokens; }

  // Ends the process when the scheduler's and the pool's books disagree.
  void check_integrity() const;

 private:
  struct Before {
    bool operator()(const Sequence* left, const Sequence* right) const { return left->before(*right); }
  };

  void schedule_running(bool decodes);
  void admit_waiting();
  bool try_admit(Sequence& sequence);
  // Finds what can be copied behind the whole blocks that `sequence` holds, and references it; returns the tokens.
  // `needed` blocks must stay available.
  int32_t begin_copy(Sequence& sequence, int64_t needed);
  void end_copy(Sequence& sequence);
  bool must_wait(Sequence& sequence, int32_t hit_blocks);
  int32_t hit_limit(const Sequence& sequence) const;
  bool grow(Sequence& sequence, int32_t tokens);
  void preempt(Sequence& sequence);
  void give_back(Sequence& sequence);
  void wait(Sequence& sequence);
  void stop_waiting(Sequence& sequence);
  void add_chunk(Sequence& sequence, int32_t tokens);
  int64_t blocks_still_needed() const;

  BlockPool& pool_;
  const SchedulerOptions options_;
  std::vector<Sequence*> running_;  // sorted by Before: the last one is preempted first
  std::set<Sequence*, Before> waiting_;
  // Whole blocks of known tokens that a running sequence is going to compute, and who.
  std::unordered_map<Hash128, Sequence*> in_progress_;
  std::vector<Chunk> chunks_;
  int32_t budget_ = 0;
  bool preempted_in_step_ = false;
  int64_t preemptions_ = 0;
  int64_t waiting_tokens_ = 0;
};

}  // namespace warmpath

#include "engine/scheduler.h"

#include <algorithm>

#include "base/check.h"

namespace warmpath {

// The rules, in the order in which a step is filled:
//
//  1. Running sequences with one pending token (decodes) take one token of the budget each. A neighbour's long prompt
//     therefore delays a decode by at most one step of `step_tokens`.
//  2. Running sequences with more pending tokens (prompts, and what a preemption lost) take chunks of what is left, by
//     priority and arrival. At most `max_running` <= `step_tokens` sequences run, so this is never starved by 1.
//  3. Waiting sequences get a slot, in the same order, while the blocks for all their known tokens are available on top
//     of what the running ones still need. The first that does not fit stops the line, so a long prompt is not
//     overtaken for ever; and in a step that preempted, nobody is admitted.
//
// Prefix reuse happens at admission: the leading whole blocks that the pool finds are referenced, not computed. The
// block with the last token is always computed, since its logits are what the sequence is here for. If the next block
// is being computed by a running sequence right now, the newcomer waits for it instead of computing it again (it holds
// nothing while it waits, and others may pass it). Only running sequences own entries of `in_progress_`, and they lose
// them when they stop running for whatever reason, so no two sequences can wait for each other. The choices of one
// request need no code of their own: they are sequences with the same prompt.
//
// Where the whole blocks end, some block may still begin with the next tokens: a whole one whose other tokens differ (a
// prompt that was edited, or that ends inside of it), or the last, unfilled one of an earlier answer. Its beginning is
// copied into the newcomer's own block in the newcomer's first step, and is referenced until that step is done. Only
// whole blocks have an identity, are announced and counted as cached tokens; what is copied is counted by itself.
//
// When a running sequence needs a block and none is available, the last running one in the order gives up its slot and
// blocks, and waits again at its place in the order. What it computed stays in the cache until it is needed, so a
// resumed sequence mostly recomputes its last partial block. The first sequence in the order can always go on, since it
// fits into the pool alone; so there is always progress.

Scheduler::Scheduler(BlockPool& pool, SchedulerOptions options) : pool_(pool), options_(options) {
  WARMPATH_CHECK(options.max_running >= 1 && options.step_tokens >= options.max_running,
                 "step_tokens must be at least max_running");
}

void Scheduler::add(Sequence* sequence) {
  WARMPATH_CHECK(sequence->state_ == Sequence::State::kNew && sequence->pending() > 0, "add a new sequence once");
  wait(*sequence);
}

void Scheduler::remove(Sequence* sequence) {
  if (sequence->state_ == Sequence::State::kWaiting) {
    stop_waiting(*sequence);
  } else if (sequence->state_ == Sequence::State::kRunning) {
    give_back(*sequence);
    std::erase(running_, sequence);
  }
  sequence->state_ = Sequence::State::kDone;
}

void Scheduler::wait(Sequence& sequence) {
  sequence.state_ = Sequence::State::kWaiting;
  sequence.waits_for_ = Hash128{};
  // An estimate for the load figures only; siblings will find what the first choice computes.
  int32_t hit = 0;
  const int32_t limit = hit_limit(sequence);
  if (sequence.choice() > 0) {
    hit = std::min(limit, static_cast<int32_t>(sequence.prompt().chain.size()));
  } else {
    for (BlockId block = kNoBlock; hit < limit; ++hit) {
      block = pool_.find(block, sequence.content(hit));
      if (block == kNoBlock) break;
    }
  }
  sequence.expected_uncached_ = sequence.length() - hit * kBlockTokens;
  waiting_tokens_ += sequence.expected_uncached_;
  waiting_.insert(&sequence);
}

void Scheduler::stop_waiting(Sequence& sequence) {
  waiting_tokens_ -= sequence.expected_uncached_;
  waiting_.erase(&sequence);
}

void Scheduler::give_back(Sequence& sequence) {
  const int32_t known_blocks = sequence.length() / kBlockTokens;
  for (int32_t index = sequence.computed_ / kBlockTokens; index < known_blocks; ++index) {
    const auto entry = in_progress_.find(sequence.identity(index));
    if (entry != in_progress_.end() && entry->second == &sequence) in_progress_.erase(entry);
  }
  end_copy(sequence);
  pool_.release(sequence.blocks_);
  sequence.blocks_.clear();
  sequence.computed_ = 0;
}

void Scheduler::end_copy(Sequence& sequence) {
  if (sequence.copy_from_ == kNoBlock) return;
  pool_.release({&sequence.copy_from_, 1});
  sequence.copy_from_ = kNoBlock;
}

void Scheduler::preempt(Sequence& sequence) {
  WARMPATH_DCHECK(running_.back() == &sequence, "the last in the order is preempted");
  if (sequence.chunk_ > 0) {
    budget_ += sequence.chunk_;
    sequence.chunk_ = 0;
    std::erase_if(chunks_, [&](const Chunk& chunk) { return chunk.sequence == &sequence; });
  }
  running_.pop_back();
  give_back(sequence);
  ++sequence.preemptions_;
  ++preemptions_;
  preempted_in_step_ = true;
  wait(sequence);
}

bool Scheduler::grow(Sequence& sequence, int32_t tokens) {
  const int64_t needed = blocks_for(sequence.computed_ + tokens) - static_cast<int64_t>(sequence.blocks_.size());
  while (!pool_.acquire(std::max<int64_t>(needed, 0), sequence.blocks_)) {
    Sequence& victim = *running_.back();
    preempt(victim);
    if (&victim == &sequence) return false;
  }
  return true;
}

void Scheduler::add_chunk(Sequence& sequence, int32_t tokens) {
  sequence.chunk_ = tokens;
  budget_ -= tokens;
  chunks_.push_back({&sequence, tokens, tokens == sequence.pending()});
}

void Scheduler::schedule_running(bool decodes) {
  // Preemption takes from the back, so what is before `index` stays.
  for (size_t index = 0; index < running_.size() && budget_ > 0; ++index) {
    Sequence& sequence = *running_[index];
    if ((sequence.pending() == 1) != decodes) continue;
    const int32_t tokens = std::min(sequence.pending(), budget_);
    if (grow(sequence, tokens)) add_chunk(sequence, tokens);
  }
}

int32_t Scheduler::hit_limit(const Sequence& sequence) const { return (sequence.length() - 1) / kBlockTokens; }

int64_t Scheduler::blocks_still_needed() const {
  int64_t needed = 0;
  for (const Sequence* sequence : running_) {
    needed += blocks_for(sequence->length()) - static_cast<int64_t>(sequence->blocks_.size());
  }
  return needed;
}

bool Scheduler::must_wait(Sequence& sequence, int32_t hit_blocks) {
  const int32_t limit = hit_limit(sequence);
  int32_t last = hit_blocks;
  while (last < limit && in_progress_.contains(sequence.identity(last))) ++last;
  if (last == hit_blocks) return false;
  sequence.waits_for_ = sequence.identity(last - 1);
  return true;
}

int32_t Scheduler::begin_copy(Sequence& sequence, int64_t needed) {
  const auto hit = static_cast<int32_t>(sequence.blocks_.size());
  const int32_t known = sequence.length() - 1;  // the last token is computed
  if (hit * kBlockTokens >= known) return 0;
  const BlockId parent = hit == 0 ? kNoBlock : sequence.blocks_.back();
  const BlockPool::Beginning beginning = pool_.find_beginning(parent, sequence.content(hit, known));
  if (beginning.block == kNoBlock) return 0;
  pool_.reference(beginning.block);
  sequence.copy_from_ = beginning.block;
  if (needed > pool_.available()) {  // the one block too many is this one
    end_copy(sequence);
    return 0;
  }
  WARMPATH_DCHECK(beginning.tokens < kBlockTokens, "a whole block is found as such");
  return beginning.tokens;
}

bool Scheduler::try_admit(Sequence& sequence) {
  const int32_t limit = hit_limit(sequence);
  std::vector<BlockId>& blocks = sequence.blocks_;
  while (static_cast<int32_t>(blocks.size()) < limit) {
    const BlockId parent = blocks.empty() ? kNoBlock : blocks.back();
    const BlockId block = pool_.find(parent, sequence.content(static_cast<int32_t>(blocks.size())));
    if (block == kNoBlock) break;
    pool_.reference(block);
    blocks.push_back(block);
  }
  const auto hit = static_cast<int32_t>(blocks.size());
  const bool waits = must_wait(sequence, hit);
  // One block of slack for each running sequence, so that the next decode doesn't preempt the newcomer at once.
  const int64_t needed = blocks_for(sequence.length()) - hit + blocks_still_needed() + running();
  if (waits || needed > pool_.available()) {
    pool_.release(blocks);
    blocks.clear();
    return waits;  // others may pass one that waits for a block, but not one that lacks room
  }
  stop_waiting(sequence);
  sequence.state_ = Sequence::State::kRunning;
  const int32_t tail = begin_copy(sequence, needed);
  sequence.computed_ = hit * kBlockTokens + tail;
  if (sequence.cached_tokens_ < 0) {
    sequence.cached_tokens_ = hit * kBlockTokens;
    sequence.tail_tokens_ = tail;
  }
  for (int32_t index = hit; index < sequence.length() / kBlockTokens; ++index) {
    in_progress_.try_emplace(sequence.identity(index), &sequence);
  }
  running_.insert(std::upper_bound(running_.begin(), running_.end(), &sequence, Before()), &sequence);
  const int32_t tokens = std::min(sequence.pending(), budget_);
  WARMPATH_CHECK(grow(sequence, tokens), "admission has counted the blocks");
  add_chunk(sequence, tokens);
  return true;
}

void Scheduler::admit_waiting() {
  for (auto next = waiting_.begin(); next != waiting_.end() && budget_ > 0 && running() < options_.max_running;) {
    Sequence& sequence = **next++;
    if (!sequence.waits_for_.is_zero()) {
      if (in_progress_.contains(sequence.waits_for_)) continue;
      sequence.waits_for_ = Hash128{};
    }
    if (!try_admit(sequence)) break;
  }
}

std::span<const Scheduler::Chunk> Scheduler::schedule() {
  chunks_.clear();
  budget_ = options_.step_tokens;
  preempted_in_step_ = false;
  schedule_running(/*decodes=*/true);
  schedule_running(/*decodes=*/false);
  if (!preempted_in_step_) admit_waiting();
  return chunks_;
}

StepPlan Scheduler::plan() const {
  StepPlan plan;
  plan.sequences.reserve(chunks_.size());
  for (const Chunk& chunk : chunks_) {
    const Sequence& sequence = *chunk.sequence;
    SequenceStep& step = plan.sequences.emplace_back();
    step.position = sequence.computed_;
    step.tokens.reserve(static_cast<size_t>(chunk.tokens));
    sequence.copy_tokens(step.position, step.position + chunk.tokens, step.tokens);
    step.block_table = sequence.blocks_;
    step.logit_rows = chunk.sample ? 1 : 0;
    step.copy_from = sequence.copy_from_;
  }
  return plan;
}

void Scheduler::commit() {
  for (const Chunk& chunk : chunks_) {
    Sequence& sequence = *chunk.sequence;
    const int32_t first = sequence.computed_ / kBlockTokens;
    sequence.computed_ += chunk.tokens;
    sequence.chunk_ = 0;
    for (int32_t index = first; index * kBlockTokens < sequence.computed_; ++index) {
      const BlockContent content = sequence.content(index, sequence.computed_);
      const BlockId parent = index == 0 ? kNoBlock : sequence.blocks_[static_cast<size_t>(index - 1)];
      pool_.commit(sequence.blocks_[static_cast<size_t>(index)], parent, content);
      if (content.identity.is_zero()) break;
      const auto entry = in_progress_.find(content.identity);
      if (entry != in_progress_.end() && entry->second == &sequence) in_progress_.erase(entry);
    }
    end_copy(sequence);
  }
}

void Scheduler::fail() {
  for (const Chunk& chunk : chunks_) {
    for (const BlockId block : chunk.sequence->blocks_) pool_.forget(block);
    chunk.sequence->chunk_ = 0;
  }
  while (!running_.empty()) preempt(*running_.back());
}

int64_t Scheduler::queued_tokens() const {
  int64_t tokens = waiting_tokens_;
  for (const Sequence* sequence : running_) {
    if (sequence->pending() > 1) tokens += sequence->pending();
  }
  return tokens;
}

}  // namespace warmpath

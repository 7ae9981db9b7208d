// Scheduler::check_integrity(): the scheduler's books, the sequences' and the pool's agree.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/check.h"
#include "engine/scheduler.h"

namespace warmpath {

void Scheduler::check_integrity() const {
  pool_.check_integrity();
  WARMPATH_CHECK(running() <= options_.max_running, "too many sequences run");
  WARMPATH_CHECK(std::is_sorted(running_.begin(), running_.end(), Before()), "running sequences are out of order");
  std::unordered_map<BlockId, int32_t> references;
  std::unordered_set<BlockId> written;
  for (const Sequence* sequence : running_) {
    WARMPATH_CHECK(sequence->state_ == Sequence::State::kRunning, "a sequence's state is wrong");
    WARMPATH_CHECK(blocks_for(sequence->computed_ + sequence->chunk_) <= static_cast<int64_t>(sequence->blocks_.size()),
                   "a running sequence lacks a block");
    const bool copying = sequence->copy_from_ != kNoBlock;
    WARMPATH_CHECK(!copying || (sequence->chunk_ > 0 && sequence->computed_ % kBlockTokens > 0 &&
                                sequence->computed_ % kBlockTokens <= pool_.filled(sequence->copy_from_)),
                   "a copy of more than there is, or outside a step");
    if (copying) ++references[sequence->copy_from_];
    for (size_t index = 0; index < sequence->blocks_.size(); ++index) {
      const BlockId block = sequence->blocks_[index];
      ++references[block];
      const int32_t computed =
          std::clamp(sequence->computed_ - static_cast<int32_t>(index) * kBlockTokens, 0, kBlockTokens);
      if (computed == kBlockTokens) {
        WARMPATH_CHECK(!pool_.identity(block).is_zero(), "a whole block is not committed");
      } else {
        WARMPATH_CHECK(pool_.filled(block) == (copying ? 0 : computed), "a block's content is not what was computed");
        WARMPATH_CHECK(written.insert(block).second, "two sequences write one block");
      }
    }
  }
  for (const Sequence* sequence : running_) {
    for (size_t index = 0; index < sequence->blocks_.size(); ++index) {
      const bool whole = (static_cast<int32_t>(index) + 1) * kBlockTokens <= sequence->computed_;
      WARMPATH_CHECK(!whole || !written.contains(sequence->blocks_[index]), "a block that is read is being written");
    }
  }
  for (const auto& [block, count] : references) {
    WARMPATH_CHECK(pool_.references(block) == count, "a block's references are not its sequences");
  }
  WARMPATH_CHECK(static_cast<int64_t>(references.size()) == pool_.used(), "a block is referenced by nobody");
  int64_t tokens = 0;
  for (const Sequence* sequence : waiting_) {
    WARMPATH_CHECK(sequence->state_ == Sequence::State::kWaiting && sequence->blocks_.empty() &&
                       sequence->computed_ == 0 && sequence->chunk_ == 0 && sequence->copy_from_ == kNoBlock,
                   "a waiting sequence holds something");
    tokens += sequence->expected_uncached_;
  }
  WARMPATH_CHECK(tokens == waiting_tokens_, "the queued tokens are miscounted");
  for (const auto& [identity, sequence] : in_progress_) {
    WARMPATH_CHECK(sequence->state_ == Sequence::State::kRunning, "a block in progress belongs to nobody who runs");
  }
}

}  // namespace warmpath

// RunStore: all runs of the index, found by block identity, with every byte counted. It knows chains and spans, but not
// replicas.
//
// Thread safety: const methods concurrently with each other, nothing beside a writer.
// Invariants: every block of every run is in the table exactly once; no run is empty; bytes() is the sum over the
// parts.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "radix_index/block_run.h"
#include "radix_index/block_table.h"

namespace warmpath {

class RunStore {
 public:
  // The place of a block, or a default BlockPlace.
  BlockPlace find(Hash128 identity) const {
    BlockPlace place;
    table_.find(identity, [&](uint32_t id) {
      const uint32_t offset = run(id).offset_of(identity);
      if (offset == kMaxRunBlocks) return false;
      place = {id, offset};
      return true;
    });
    return place;
  }
  const BlockRun& run(uint32_t id) const { return chunks_[id >> kChunkBits][id & (kChunkRuns - 1)]; }
  bool in_use(uint32_t id) const { return run(id).capacity != 0; }

  // Adds a block that is not there yet, after `parent`: into the same run if `after` (the parent's place, default when
  // it is unknown) is that run's last block and there is room, else into a new run with room for `expected` blocks.
  BlockPlace add_block(Hash128 parent, BlockPlace after, Hash128 identity, uint32_t expected, uint32_t mark);

  // Changes spans only. The run must not lose its last cover of a block: drop_blocks() or settle() follows if it does.
  template <typename Change>
  void edit(uint32_t id, Change change) {
    BlockRun& edited = mutable_run(id);
    bytes_ -= edited.heap_size();
    change(edited);
    bytes_ += edited.heap_size();
  }

  // REQUIRES that nobody covers blocks [begin, end). May split the run, end it, or move what is left of it to its
  // front.
  void drop_blocks(uint32_t id, uint16_t begin, uint16_t end);
  // Drops every block that nobody covers.
  void settle(uint32_t id);
  // If `right` continues `left` and both fit in one run, they become one. True if they did.
  bool join(uint32_t left, uint32_t right);
  // Forgets the run, its blocks and its spans.
  void drop_run(uint32_t id);

  // Run ids are in [0, id_end()); those not in_use() are skipped by callers.
  uint32_t id_end() const { return id_end_; }
  uint32_t run_count() const { return id_end_ - static_cast<uint32_t>(free_ids_.size()); }
  size_t block_count() const { return table_.size(); }
  size_t bytes() const;

  // What touch() takes: the time in tenths of a second, and within the same tenth, runs nearer to the root last longer.
  static uint32_t used_mark(MonotonicNs now, uint32_t depth_in_runs) {
    const auto tenths = static_cast<uint32_t>(now / 100'000'000);
    return tenths << 4 | (15 - (depth_in_runs < 15 ? depth_in_runs : 15));
  }

  Status check_integrity() const;

 private:
  static constexpr uint32_t kChunkBits = 10;
  static constexpr uint32_t kChunkRuns = uint32_t{1} << kChunkBits;

  BlockRun& mutable_run(uint32_t id) { return chunks_[id >> kChunkBits][id & (kChunkRuns - 1)]; }
  uint32_t new_run(Hash128 parent, uint32_t capacity);
  void free_run(uint32_t id);
  void reserve(BlockRun& run, uint32_t capacity);
  // Moves the blocks at and past `at` into a new run.
  void split(uint32_t id, uint16_t at);
  // Gives back the space of blocks that left, once most of the run is gone.
  void compact(uint32_t id);

  BlockTable table_;
  std::vector<std::unique_ptr<BlockRun[]>> chunks_;
  std::vector<uint32_t> free_ids_;
  uint32_t id_end_ = 0;
  size_t bytes_ = 0;  // heap of the runs
};

}  // namespace warmpath

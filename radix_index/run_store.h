// RunStore: all runs of the index, with every byte counted. It knows chains and spans, but not replicas.
//
// Two ways in: by the first block of a run, which is how a lookup follows a chain (any thread), and by any block's
// identity, which is how an event names what it is about (the writer). A lookup never sees a run half changed: every
// change builds a new RunView and publishes it with one store; the old one goes to the ReadEpochs.
//
// Thread safety: find_head(), its prefetches, view() and touch() from any thread inside a read section (enter());
// everything else by the one writer.
// Invariants: every block of every run is in the block table exactly once; no published run is empty; every run is
// found by its first block, and by its parent among the runs that continue it; bytes() is the sum over the parts.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <span>

#include "base/clock.h"
#include "base/status.h"
#include "radix_index/block_run.h"
#include "radix_index/block_table.h"
#include "radix_index/growing_space.h"
#include "radix_index/prefetch.h"
#include "radix_index/read_epochs.h"
#include "radix_index/run_memory.h"
#include "radix_index/run_table.h"

namespace warmpath {

// What an edit changes; the identities are not edited.
struct RunDraft {
  SpanList<HeldSpan> held;
  SpanList<PlacedSpan> placed;
};

class RunStore {
 public:
  struct Found {
    uint32_t run = UINT32_MAX;
    const RunView* view = nullptr;
  };
  struct Stretch {
    uint32_t run = 0;
    uint16_t begin = 0;
    uint16_t end = 0;
  };

  // For about `max_bytes`.
  explicit RunStore(size_t max_bytes);
  ~RunStore();
  RunStore(const RunStore&) = delete;
  RunStore& operator=(const RunStore&) = delete;

  // --- readers ---
  ReadEpochs::Reader enter() const { return epochs_.enter(); }
  // The run that begins with this block; a null view when there is none.
  Found find_head(Hash128 identity) const {
    Found found;
    heads_.find(identity, [&](uint32_t run) {
      const Slot& named = slot(run);
      const RunView* seen = named.view.load(std::memory_order_acquire);
      warmpath::prefetch(named.first_block.load(std::memory_order_relaxed));
      if (seen == nullptr || seen->ids()[seen->begin()] != identity) return false;
      found = {run, seen};
      return true;
    });
    return found;
  }
  // Each of these looks one miss further: a lookup that does something else in between finds all at hand at last.
  WARMPATH_PREFETCHES void prefetch_head(Hash128 identity) const { heads_.prefetch(identity); }
  WARMPATH_PREFETCHES void prefetch_run(Hash128 identity) const {
    heads_.find(identity, [this](uint32_t run) {
      warmpath::prefetch(&slot(run));
      return true;
    });
  }
  WARMPATH_PREFETCHES void prefetch_view(Hash128 identity) const {
    heads_.find(identity, [this](uint32_t run) {
      const Slot& named = slot(run);
      warmpath::prefetch(named.view.load(std::memory_order_relaxed));
      prefetch_lines(named.first_block.load(std::memory_order_relaxed), 16 * sizeof(Hash128), 4);
      return true;
    });
  }
  const RunView* view(uint32_t run) const { return slot(run).view.load(std::memory_order_acquire); }
  void touch(uint32_t run, uint32_t mark) const {
    std::atomic<uint32_t>& last = slot(run).last_used;
    if (last.load(std::memory_order_relaxed) < mark) last.store(mark, std::memory_order_relaxed);
  }

  // --- the writer: looking ---
  // Where a block is, or a default BlockPlace.
  BlockPlace find(Hash128 identity) const {
    BlockPlace place;
    blocks_.find(identity, [&](uint32_t run) {
      const uint32_t offset = offset_of(slot(run), identity);
      if (offset == kMaxRunBlocks) return false;
      place = {run, offset};
      return true;
    });
    return place;
  }
  WARMPATH_PREFETCHES void prefetch(Hash128 identity) const { blocks_.prefetch(identity); }
  // Where `identity` is, whose parent is at `after` (default: the parent is not stored). Cheaper than find().
  BlockPlace find_next(BlockPlace after, Hash128 identity) const;
  bool in_use(uint32_t run) const { return slot(run).ids != nullptr; }
  uint16_t begin(uint32_t run) const { return slot(run).begin; }
  uint16_t end(uint32_t run) const { return slot(run).end; }
  const Hash128* ids(uint32_t run) const { return slot(run).ids; }
  uint32_t last_used(uint32_t run) const { return slot(run).last_used.load(std::memory_order_relaxed); }
  // A run that continues this one, or UINT32_MAX.
  uint32_t child_of(uint32_t run) const;

  // --- the writer: changing ---
  // Adds those of `blocks` that fit, after `parent`: to the run of `after` (the parent's place; default when it is not
  // stored) if that ends there and has room, else to a new run. Stops before a block that is stored already; the
  // stretch is empty if that is the first one. Nobody sees the new blocks before the edit() that must follow.
  Stretch append(Hash128 parent, BlockPlace after, std::span<const Hash128> blocks, uint32_t mark);
  // Changes who holds what. Blocks that nobody covers afterwards are dropped: the run may shrink, fall into several,
  // or vanish.
  template <typename Change>
  void edit(uint32_t run, Change change) {
    if (const RunView* now = view(run)) {
      draft_.held.assign(now->held());
      draft_.placed.assign(now->placed());
    } else {
      draft_.held.clear();
      draft_.placed.clear();
    }
    change(draft_);
    settle(run);
  }
  // Extends the life of a placement without another view; false if it does not cover exactly [begin, end).
  bool renew_placed(uint32_t run, uint16_t key, uint16_t begin, uint16_t end, MonotonicNs expires);
  // If `right` continues `left` and both fit in one run, they become one. True if they did.
  bool join(uint32_t left, uint32_t right);
  // A run begins with this block from now on.
  void split(BlockPlace place);
  // Forgets the run, its blocks and its spans.
  void drop_run(uint32_t run);

  // Runs are numbered [0, id_end()); those not in_use() are skipped by callers.
  uint32_t id_end() const { return id_end_; }
  uint32_t run_count() const { return run_count_; }
  size_t block_count() const { return blocks_.size(); }
  uint64_t held_spans() const { return held_spans_; }
  uint64_t placed_spans() const { return placed_spans_; }
  size_t bytes() const;  // without what only waits for readers to leave: epochs().retired_bytes()
  ReadEpochs& epochs() { return epochs_; }
  const ReadEpochs& epochs() const { return epochs_; }

  // What touch() takes: the time in tenths of a second, and within the same tenth, runs nearer to the root last longer.
  static uint32_t used_mark(MonotonicNs now, uint32_t depth_in_runs) {
    const auto tenths = static_cast<uint32_t>(now / 100'000'000);
    return tenths << 4 | (15 - (depth_in_runs < 15 ? depth_in_runs : 15));
  }

  Status check_integrity() const;

 private:
  static constexpr size_t kPrefetchAhead = 32;

  // A cache line.
  struct alignas(64) Slot {
    std::atomic<const RunView*> view{nullptr};
    Hash128* ids = nullptr;  // capacity + 1 of them; ids[-1] is the parent
    // Where the view's blocks begin, for readers to prefetch: they come together with the view then, not after it.
    std::atomic<const Hash128*> first_block{nullptr};
    mutable std::atomic<uint32_t> last_used{0};
    uint16_t begin = 0;  // these two run ahead of the view while blocks are added
    uint16_t end = 0;
    uint16_t written = 0;  // readers may look at ids[0, written): those are never written again
    uint16_t capacity = 0;
    uint32_t sibling_before = UINT32_MAX;  // runs with the same parent are a list; children_ knows its first
    uint32_t sibling_after = UINT32_MAX;   // of a free id: the next free one
  };
  static_assert(sizeof(Slot) == 64);
  struct Piece {
    uint16_t begin;
    uint16_t end;
  };

  const Slot& slot(uint32_t run) const { return reinterpret_cast<const Slot*>(slots_.data())[run]; }
  Slot& slot(uint32_t run) { return reinterpret_cast<Slot*>(slots_.data())[run]; }
  // kMaxRunBlocks when it is not there. Chains grow and are evicted at their end, so that is looked at first.
  static uint32_t offset_of(const Slot& run, Hash128 identity) {
    if (run.ids[run.end - 1] == identity) return static_cast<uint32_t>(run.end - 1);
    for (uint32_t offset = run.begin; offset < run.end; ++offset) {
      if (run.ids[offset] == identity) return offset;
    }
    return kMaxRunBlocks;
  }
  static size_t ids_bytes(uint32_t capacity) { return (capacity + 1) * sizeof(Hash128); }
  // [0, capacity), with a place for the parent before.
  Hash128* new_ids(uint32_t capacity) { return static_cast<Hash128*>(memory_.allocate(ids_bytes(capacity))) + 1; }
  // Most blocks that the memory for `wanted` has room for.
  static uint32_t capacity_for(uint32_t wanted) {
    const size_t room = RunMemory::piece_bytes(ids_bytes(wanted)) / sizeof(Hash128) - 1;
    return static_cast<uint32_t>(std::min<size_t>(room, kMaxRunBlocks));
  }

  uint32_t new_run(Hash128 parent, uint32_t capacity);
  uint32_t first_child(Hash128 parent) const;
  // Among the children of its parent; and out of there again.
  void file_as_child(uint32_t run, Hash128 parent);
  void unfile_as_child(uint32_t run, Hash128 parent);
  // Takes a run out of every table; its memory goes when no reader is left.
  void free_run(uint32_t run);
  // Another array for the identities, which then begin at offset 0 if `to_front` (draft_'s spans with them).
  void move_ids(uint32_t run, uint32_t capacity, bool to_front);
  // Makes draft_ what readers see.
  void publish(uint32_t run);
  void settle(uint32_t run);
  // draft_ is the run's. The pieces become runs; what is in none of them has left the block table already.
  void cut(uint32_t run, std::span<const Piece> pieces);

  RunMemory memory_;
  GrowingSpace slots_{kMaxRuns * sizeof(Slot)};
  mutable ReadEpochs epochs_{memory_};
  RunTable heads_{memory_, epochs_};
  RunTable children_{memory_, epochs_};
  BlockTable blocks_{memory_};
  uint32_t free_id_ = UINT32_MAX;
  uint32_t id_end_ = 0;
  uint32_t run_count_ = 0;
  uint64_t held_spans_ = 0;
  uint64_t placed_spans_ = 0;
  RunDraft draft_;
  RunDraft part_;  // of draft_, while it is cut
};

}  // namespace warmpath

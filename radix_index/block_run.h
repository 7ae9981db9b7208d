// BlockRun: consecutive blocks of one chain, stored once, with the spans of those who hold them.
//
//   ids   [ . . | b0 b1 b2 b3 ... | . . ]         b(n)'s parent is b(n-1); b0's is parent()
//          0     begin             end   capacity  (at most kMaxRunBlocks)
//
// Offsets count from ids[0] and stay the same while blocks leave at either end. Where chains part, the shared front is
// one run and each continuation another; nothing needs to be split for that, because every block is found by its
// identity. Thread safety: const use from several threads; last_used is updated by readers through touch().
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/hash128.h"
#include "radix_index/heap_bytes.h"
#include "radix_index/span_list.h"

namespace warmpath {

// At most this many blocks per run: a block is found in its run by looking.
inline constexpr uint32_t kMaxRunBlocks = 256;

// A block is ids[offset] of a run.
struct BlockPlace {
  uint32_t run = UINT32_MAX;
  uint32_t offset = 0;

  bool exists() const { return run != UINT32_MAX; }
  bool operator==(const BlockPlace&) const = default;
};

struct BlockRun {
  Hash128 first_parent;  // the identity before ids[0]
  std::unique_ptr<Hash128[]> ids;
  uint16_t begin = 0;
  uint16_t end = 0;
  uint16_t capacity = 0;
  mutable uint32_t last_used = 0;  // coarse; see RunStore::used_mark
  SpanList<HeldSpan> held;
  std::unique_ptr<SpanList<PlacedSpan>> placed;  // null when there are none

  uint32_t size() const { return static_cast<uint32_t>(end - begin); }
  Hash128 parent() const { return begin == 0 ? first_parent : ids[begin - 1]; }

  void touch(uint32_t mark) const {
    std::atomic_ref<uint32_t> last(last_used);
    if (last.load(std::memory_order_relaxed) < mark) last.store(mark, std::memory_order_relaxed);
  }

  bool covers(uint16_t offset) const { return held.covers(offset) || (placed && placed->covers(offset)); }

  // Where `identity` is, or kMaxRunBlocks. A lookup from the root always enters a run at its front, and a chain grows
  // at the run's end, so those two are looked at first.
  uint32_t offset_of(Hash128 identity) const {
    if (ids[begin] == identity) return begin;
    if (ids[end - 1] == identity) return static_cast<uint32_t>(end - 1);
    for (uint32_t offset = begin; offset < end; ++offset) {
      if (ids[offset].lo == identity.lo && ids[offset].hi == identity.hi) return offset;
    }
    return kMaxRunBlocks;
  }

  // Beyond the run object itself.
  size_t heap_size() const {
    size_t bytes = heap_bytes(capacity * sizeof(Hash128)) + heap_bytes(held.heap_size());
    if (placed) bytes += heap_bytes(sizeof *placed) + heap_bytes(placed->heap_size());
    return bytes;
  }
};

}  // namespace warmpath

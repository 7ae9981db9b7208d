// A run: consecutive blocks of one chain, stored once, with the spans of those who hold them.
//
//   ids   [ p | . . | b0 b1 b2 b3 ... | . . ]     b(n)'s parent is b(n-1); b0's is the identity before it
//          -1  0     begin             end   capacity  (at most kMaxRunBlocks)
//
// Offsets count from ids[0] and stay the same while blocks leave at either end. Where chains part, the shared front is
// one run and each continuation another; nothing needs to be split for that, because a lookup finds every run by its
// first block.
//
// Readers see a run as a RunView: one immutable piece of memory, replaced whole. The identities are shared between
// successive views, because the writer only writes behind the end of every view it has published (or into a new array).
// Thread safety: a RunView never changes, except for the expiry of a placement, which is atomic.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>

#include "base/hash128.h"
#include "radix_index/run_memory.h"
#include "radix_index/span_list.h"

namespace warmpath {

// At most this many blocks per run: a block in the middle is found in its run by looking. With their parent's they are
// a page of identities.
inline constexpr uint32_t kMaxRunBlocks = 255;

// A block is ids[offset] of a run.
struct BlockPlace {
  uint32_t run = UINT32_MAX;
  uint32_t offset = 0;

  bool exists() const { return run != UINT32_MAX; }
  bool operator==(const BlockPlace&) const = default;
};

class RunView {
 public:
  // The caller gives bytes() back to `memory` once nobody looks any more.
  static RunView* make(RunMemory& memory, const Hash128* ids, uint16_t begin, uint16_t end,
                       std::span<const HeldSpan> held, std::span<const PlacedSpan> placed) {
    auto* view = new (memory.allocate(bytes_for(held.size(), placed.size())))
        RunView(ids, begin, end, held.size(), placed.size());
    auto* held_out = reinterpret_cast<HeldSpan*>(view + 1);
    for (const HeldSpan& span : held) new (held_out++) HeldSpan(span);
    auto* placed_out = const_cast<PlacedSpan*>(view->placed().data());
    for (const PlacedSpan& span : placed) new (placed_out++) PlacedSpan(span);
    return view;
  }

  const Hash128* ids() const { return ids_; }
  uint16_t begin() const { return static_cast<uint16_t>(begin_); }
  uint16_t end() const { return static_cast<uint16_t>(end_); }
  uint32_t size() const { return static_cast<uint32_t>(end_ - begin_); }
  Hash128 parent() const { return ids_[begin_ - 1]; }

  std::span<const HeldSpan> held() const { return {reinterpret_cast<const HeldSpan*>(this + 1), held_count_}; }
  std::span<const PlacedSpan> placed() const {
    const auto* bytes = reinterpret_cast<const char*>(this + 1);
    return {reinterpret_cast<const PlacedSpan*>(bytes + placed_offset(held_count_)), placed_count_};
  }
  bool covers(uint16_t offset) const {
    for (const HeldSpan& span : held()) {
      if (span.begin <= offset && offset < span.end) return true;
    }
    for (const PlacedSpan& span : placed()) {
      if (span.begin <= offset && offset < span.end) return true;
    }
    return false;
  }

  size_t bytes() const { return bytes_for(held_count_, placed_count_); }

 private:
  RunView(const Hash128* ids, uint16_t begin, uint16_t end, size_t held, size_t placed)
      : ids_(ids), begin_(begin), end_(end), held_count_(held & kMostSpans), placed_count_(placed & kMostSpans) {}

  static size_t placed_offset(size_t held) {
    return (held * sizeof(HeldSpan) + alignof(PlacedSpan) - 1) / alignof(PlacedSpan) * alignof(PlacedSpan);
  }
  static size_t bytes_for(size_t held, size_t placed) {
    return sizeof(RunView) +
           (placed == 0 ? held * sizeof(HeldSpan) : placed_offset(held) + placed * sizeof(PlacedSpan));
  }

  // 4,096 replicas, three tiers, a hole at every second of 256 blocks: 1.6 M spans.
  static constexpr size_t kMostSpans = (size_t{1} << 23) - 1;

  const Hash128* ids_;
  // 16 bytes of header: with one span, or two, a view has 32.
  uint64_t begin_ : 9;
  uint64_t end_ : 9;
  uint64_t held_count_ : 23;
  uint64_t placed_count_ : 23;
};

}  // namespace warmpath

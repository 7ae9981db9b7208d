// RunMemory: the memory that the index is made of, in pieces, with every byte counted.
//
// Why not the heap: millions of pieces that come and go leave holes between the neighbours' pieces there (27 resident
// bytes per holder-block where 18 were in use), and it gives no huge pages. Here pieces of one size stand together in
// slabs of 64 KB of one GrowingSpace:
//
//   [ 1568 B pieces | 32 B pieces | 1568 B pieces | empty | 256 B pieces | ...
//
// Sizes are multiples of 16 B up to 1 KB, above that of a 32nd to a 64th of themselves. A slab whose last piece goes
// may serve any size again; if many slabs stand empty they go back to the system. Pieces above 4 KB come from the heap,
// those of many pages from the system.
// Those of a multiple of 64 B begin on a cache line.
// Thread safety: none; the writer's. Invariants: a piece is given out once; used_bytes() is the sum over the pieces.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "radix_index/growing_space.h"

namespace warmpath {

class RunMemory {
 public:
  // For about `most` bytes of pieces.
  explicit RunMemory(size_t most);
  ~RunMemory();
  RunMemory(const RunMemory&) = delete;
  RunMemory& operator=(const RunMemory&) = delete;

  // Throws std::bad_alloc when there is no more memory.
  void* allocate(size_t bytes);
  void release(void* memory, size_t bytes);
  // What a piece of `bytes` costs.
  static size_t piece_bytes(size_t bytes);

  size_t used_bytes() const { return used_; }
  // Taken from the system, empty and half-empty slabs included.
  size_t taken_bytes() const { return (slab_count_ - bare_count_) * kSlabBytes + outside_; }

 private:
  static constexpr size_t kUnit = 16;
  static constexpr size_t kSlabBytes = size_t{64} << 10;
  static constexpr size_t kMostInSlab = 4096;  // larger pieces stand alone
  static constexpr size_t kMapFrom = size_t{128} << 10;
  static constexpr uint32_t kNone = UINT32_MAX;
  static constexpr size_t kExactUnits = 64;
  static constexpr size_t kClasses = kExactUnits + 1 + 2 * 32;

  struct Slab {
    void* free = nullptr;   // pieces that came back, each beginning with the address of the next
    uint32_t next = kNone;  // in the list of slabs with room of this size, or of empty or bare slabs
    uint32_t before = kNone;
    uint16_t fresh = 0;  // pieces from here on were never given out
    uint16_t used = 0;
    uint16_t pieces = 0;
  };

  static size_t units_of(size_t bytes);
  static size_t class_of(size_t units);
  Slab& slab(uint32_t number) { return reinterpret_cast<Slab*>(slabs_.data())[number]; }
  char* memory_of(uint32_t number) { return space_.data() + number * kSlabBytes; }
  // A slab with room for pieces of this class.
  uint32_t open_slab(size_t size_class, size_t piece);
  void link(uint32_t& first, uint32_t number);
  void unlink(uint32_t& first, uint32_t number);
  bool in_slabs(const void* memory) const {
    const auto* at = static_cast<const char*>(memory);
    return at >= space_.data() && at < space_.data() + slab_count_ * kSlabBytes;
  }

  GrowingSpace space_;
  GrowingSpace slabs_;  // a Slab for each slab of space_
  std::array<uint32_t, kClasses> with_room_;
  uint32_t empty_ = kNone;
  uint32_t bare_ = kNone;  // empty ones whose pages went back
  size_t slab_count_ = 0;
  size_t empty_count_ = 0;
  size_t bare_count_ = 0;
  size_t used_ = 0;
  size_t outside_ = 0;  // in pieces that stand alone
};

}  // namespace warmpath

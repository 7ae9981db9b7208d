// RunTable: from an identity to the runs filed under it, for many readers beside one writer. The index finds every run
// by its first block here (where a lookup's chain goes on), and the runs that continue a block by that block (what
// eviction must take first).
//
// A slot is 64 bits: 32 of the identity, 24 of the run. Open addressing, linear probing; an entry never moves within
// its array, so a reader that looks while others come and go finds what is there throughout. Growing and shrinking
// build another array and publish it.
// Thread safety: find() and prefetch() from any thread inside a read section of the ReadEpochs; the rest by the writer.
// Invariants: capacity is a power of two; entries and erased slots together fill at most 3/4 of it.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/hash128.h"
#include "radix_index/prefetch.h"
#include "radix_index/read_epochs.h"
#include "radix_index/run_memory.h"

namespace warmpath {

class RunTable {
 public:
  RunTable(RunMemory& memory, ReadEpochs& epochs) : memory_(memory), epochs_(epochs) {}
  ~RunTable();
  RunTable(const RunTable&) = delete;
  RunTable& operator=(const RunTable&) = delete;

  // Calls `is_it(run)` for the runs that may be filed under the identity until one says true.
  template <typename IsIt>
  void find(Hash128 identity, IsIt is_it) const {
    const Array* array = array_.load(std::memory_order_acquire);
    if (array == nullptr) return;
    const uint32_t tag = tag_of(identity);
    for (uint32_t at = home_of(tag, array->shift);; at = (at + 1) & array->mask) {
      const uint64_t slot = array->slots()[at].load(std::memory_order_acquire);
      if (slot == kEmpty) return;
      if (static_cast<uint32_t>(slot >> 32) == tag && slot != kErased && is_it(run_of(slot))) return;
    }
  }
  WARMPATH_PREFETCHES void prefetch(Hash128 identity) const {
    if (const Array* array = array_.load(std::memory_order_acquire)) {
      warmpath::prefetch(&array->slots()[home_of(tag_of(identity), array->shift)]);
    }
  }

  void insert(Hash128 identity, uint32_t run);
  // These two REQUIRE that `run` is filed under the identity.
  void replace(Hash128 identity, uint32_t run, uint32_t by);
  void erase(Hash128 identity, uint32_t run);

  size_t size() const { return used_; }
  size_t bytes() const {
    const Array* array = array_.load(std::memory_order_relaxed);
    return array == nullptr ? 0 : RunMemory::piece_bytes(array_bytes(size_t{array->mask} + 1));
  }

 private:
  static constexpr uint64_t kEmpty = 0;
  static constexpr uint64_t kErased = 1;
  static constexpr uint32_t kMinCapacity = 64;

  struct Array {
    uint32_t mask;
    int shift;
    std::atomic<uint64_t>* slots() { return reinterpret_cast<std::atomic<uint64_t>*>(this + 1); }
    const std::atomic<uint64_t>* slots() const { return reinterpret_cast<const std::atomic<uint64_t>*>(this + 1); }
  };

  // Never 0, so that no entry is kEmpty or kErased.
  static uint32_t tag_of(Hash128 identity) {
    const auto tag = static_cast<uint32_t>(identity.lo >> 32);
    return tag == 0 ? 1 : tag;
  }
  static uint32_t home_of(uint32_t tag, int shift) { return tag >> shift; }
  static uint32_t run_of(uint64_t slot) { return static_cast<uint32_t>(slot); }

  static size_t array_bytes(size_t capacity) { return sizeof(Array) + capacity * sizeof(std::atomic<uint64_t>); }
  std::atomic<uint64_t>& slot_of(Hash128 identity, uint32_t run);
  void rebuild(uint32_t capacity);

  RunMemory& memory_;
  ReadEpochs& epochs_;
  std::atomic<Array*> array_{nullptr};
  size_t used_ = 0;
  size_t erased_ = 0;
};

}  // namespace warmpath

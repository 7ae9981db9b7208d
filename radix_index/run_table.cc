#include "radix_index/run_table.h"

#include <algorithm>
#include <new>

#include "base/check.h"

namespace warmpath {

RunTable::~RunTable() {
  Array* last = array_.load(std::memory_order_relaxed);
  if (last != nullptr) memory_.release(last, array_bytes(size_t{last->mask} + 1));
}

void RunTable::insert(Hash128 identity, uint32_t run) {
  const Array* now = array_.load(std::memory_order_relaxed);
  if (now == nullptr || (used_ + erased_ + 1) * 4 > (size_t{now->mask} + 1) * 3) {
    // Half full at most afterwards.
    rebuild(static_cast<uint32_t>(std::bit_ceil(std::max<size_t>(kMinCapacity, (used_ + 1) * 2))));
  }
  Array& array = *array_.load(std::memory_order_relaxed);
  const uint32_t tag = tag_of(identity);
  for (uint32_t at = home_of(tag, array.shift);; at = (at + 1) & array.mask) {
    std::atomic<uint64_t>& slot = array.slots()[at];
    const uint64_t there = slot.load(std::memory_order_relaxed);
    if (there != kEmpty && there != kErased) continue;
    if (there == kErased) --erased_;
    slot.store(uint64_t{tag} << 32 | run, std::memory_order_release);
    ++used_;
    return;
  }
}

std::atomic<uint64_t>& RunTable::slot_of(Hash128 identity, uint32_t run) {
  Array* array = array_.load(std::memory_order_relaxed);
  WARMPATH_CHECK(array != nullptr, "a run that is filed must be in the table");
  const uint32_t tag = tag_of(identity);
  const uint64_t wanted = uint64_t{tag} << 32 | run;
  for (uint32_t at = home_of(tag, array->shift);; at = (at + 1) & array->mask) {
    std::atomic<uint64_t>& slot = array->slots()[at];
    const uint64_t there = slot.load(std::memory_order_relaxed);
    if (there == wanted) return slot;
    WARMPATH_CHECK(there != kEmpty, "a run that is filed must be in the table");
  }
}

void RunTable::replace(Hash128 identity, uint32_t run, uint32_t by) {
  slot_of(identity, run).store(uint64_t{tag_of(identity)} << 32 | by, std::memory_order_release);
}

void RunTable::erase(Hash128 identity, uint32_t run) {
  std::atomic<uint64_t>& slot = slot_of(identity, run);
  Array& array = *array_.load(std::memory_order_relaxed);
  const auto at = static_cast<uint32_t>(&slot - array.slots());
  // Nobody's search has to go past the last of a cluster.
  const bool ends = array.slots()[(at + 1) & array.mask].load(std::memory_order_relaxed) == kEmpty;
  slot.store(ends ? kEmpty : kErased, std::memory_order_release);
  --used_;
  if (!ends) ++erased_;
  const size_t capacity = size_t{array.mask} + 1;
  if (used_ * 8 < capacity && capacity > kMinCapacity) rebuild(static_cast<uint32_t>(capacity / 4));
}

void RunTable::rebuild(uint32_t capacity) {
  capacity = std::max(capacity, kMinCapacity);
  auto* fresh = new (memory_.allocate(array_bytes(capacity))) Array{capacity - 1, 32 - std::countr_zero(capacity)};
  for (uint32_t at = 0; at < capacity; ++at) new (&fresh->slots()[at]) std::atomic<uint64_t>(kEmpty);
  Array* old = array_.load(std::memory_order_relaxed);
  for (uint32_t from = 0; old != nullptr && from <= old->mask; ++from) {
    const uint64_t entry = old->slots()[from].load(std::memory_order_relaxed);
    if (entry == kEmpty || entry == kErased) continue;
    uint32_t at = home_of(static_cast<uint32_t>(entry >> 32), fresh->shift);
    while (fresh->slots()[at].load(std::memory_order_relaxed) != kEmpty) at = (at + 1) & fresh->mask;
    fresh->slots()[at].store(entry, std::memory_order_relaxed);
  }
  array_.store(fresh, std::memory_order_release);
  if (old != nullptr) epochs_.retire(old, array_bytes(size_t{old->mask} + 1));
  erased_ = 0;
}

}  // namespace warmpath

#include "radix_index/run_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

#include "base/check.h"
#include "radix_index/heap_bytes.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(memory, bytes) static_cast<void>(0)
#define ASAN_UNPOISON_MEMORY_REGION(memory, bytes) static_cast<void>(0)
#endif

namespace warmpath {

namespace {

constexpr size_t kPage = 4096;

}  // namespace

RunMemory::RunMemory(size_t most)
    // Twice as much address space: slabs may stand half empty.
    : space_(most * 2 + (size_t{64} << 20)), slabs_(space_.most() / kSlabBytes * sizeof(Slab)) {
  with_room_.fill(kNone);
}

// The addresses may be somebody else's next.
RunMemory::~RunMemory() { ASAN_UNPOISON_MEMORY_REGION(space_.data(), slab_count_ * kSlabBytes); }

size_t RunMemory::units_of(size_t bytes) {
  const size_t units = std::max<size_t>(1, (bytes + kUnit - 1) / kUnit);
  if (units <= kExactUnits) return units;
  const int shift = std::bit_width(units - 1) - 6;
  return ((units - 1) >> shift << shift) + (size_t{1} << shift);
}

size_t RunMemory::class_of(size_t units) {
  if (units <= kExactUnits) return units;
  const int shift = std::bit_width(units - 1) - 6;
  return static_cast<size_t>(shift) * 32 + (units >> shift);
}

size_t RunMemory::piece_bytes(size_t bytes) {
  if (bytes <= kMostInSlab) return units_of(bytes) * kUnit;
  return bytes < kMapFrom ? heap_bytes(bytes) : (bytes + kPage - 1) / kPage * kPage;
}

void* RunMemory::allocate(size_t bytes) {
  const size_t piece = piece_bytes(bytes);
  if (bytes > kMostInSlab) {
    void* alone = nullptr;
    if (bytes < kMapFrom) {
      alone = ::operator new(bytes);
    } else {
      alone = ::mmap(nullptr, piece, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (alone == MAP_FAILED) throw std::bad_alloc();
      if (piece >= GrowingSpace::kHugePage) ::madvise(alone, piece, MADV_HUGEPAGE);
    }
    used_ += piece;
    outside_ += piece;
    return alone;
  }
  const size_t size_class = class_of(piece / kUnit);
  uint32_t number = with_room_[size_class];
  if (number == kNone) number = open_slab(size_class, piece);
  Slab& from = slab(number);
  void* given = from.free;
  if (given != nullptr) {
    ASAN_UNPOISON_MEMORY_REGION(given, piece);
    from.free = *static_cast<void**>(given);
  } else {
    given = memory_of(number) + from.fresh++ * piece;
    ASAN_UNPOISON_MEMORY_REGION(given, piece);
  }
  if (++from.used == from.pieces) unlink(with_room_[size_class], number);
  used_ += piece;
  return given;
}

void RunMemory::release(void* memory, size_t bytes) {
  if (memory == nullptr) return;
  const size_t piece = piece_bytes(bytes);
  used_ -= piece;
  if (bytes > kMostInSlab) {
    outside_ -= piece;
    if (bytes < kMapFrom) {
      ::operator delete(memory);
    } else {
      ::munmap(memory, piece);
    }
    return;
  }
  WARMPATH_DCHECK(in_slabs(memory), "a piece must come from the memory that it goes back to");
  const auto number =
      static_cast<uint32_t>(static_cast<size_t>(static_cast<char*>(memory) - space_.data()) / kSlabBytes);
  Slab& into = slab(number);
  uint32_t& with_room = with_room_[class_of(piece / kUnit)];
  *static_cast<void**>(memory) = std::exchange(into.free, memory);
  ASAN_POISON_MEMORY_REGION(memory, piece);
  if (into.used-- == into.pieces) link(with_room, number);
  if (into.used > 0) return;
  unlink(with_room, number);
  // Some stand ready for what comes next.
  if (empty_count_ < std::max<size_t>(16, slab_count_ / 8)) {
    link(empty_, number);
    ++empty_count_;
  } else {
    space_.give_back(number * kSlabBytes, (number + 1) * kSlabBytes);
    link(bare_, number);
    ++bare_count_;
  }
}

uint32_t RunMemory::open_slab(size_t size_class, size_t piece) {
  uint32_t number = empty_;
  if (number != kNone) {
    unlink(empty_, number);
    --empty_count_;
  } else if (number = bare_; number != kNone) {
    unlink(bare_, number);
    --bare_count_;
  } else {
    number = static_cast<uint32_t>(slab_count_);
    slabs_.grow_to((slab_count_ + 1) * sizeof(Slab));
    space_.grow_to((slab_count_ + 1) * kSlabBytes);
    ++slab_count_;
  }
  Slab& opened = *new (&slab(number)) Slab{};
  opened.pieces = static_cast<uint16_t>(kSlabBytes / piece);
  ASAN_POISON_MEMORY_REGION(memory_of(number), kSlabBytes);
  link(with_room_[size_class], number);
  return number;
}

void RunMemory::link(uint32_t& first, uint32_t number) {
  Slab& linked = slab(number);
  linked.before = kNone;
  linked.next = first;
  if (first != kNone) slab(first).before = number;
  first = number;
}

void RunMemory::unlink(uint32_t& first, uint32_t number) {
  Slab& unlinked = slab(number);
  if (unlinked.next != kNone) slab(unlinked.next).before = unlinked.before;
  if (unlinked.before != kNone) {
    slab(unlinked.before).next = unlinked.next;
  } else {
    first = unlinked.next;
  }
  unlinked.before = unlinked.next = kNone;
}

}  // namespace warmpath

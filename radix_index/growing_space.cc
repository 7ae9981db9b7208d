#include "radix_index/growing_space.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <new>

#include "base/check.h"

namespace warmpath {

namespace {

constexpr size_t kPage = 4096;
constexpr size_t kSmallStep = size_t{64} << 10;

size_t round_up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

GrowingSpace::GrowingSpace(size_t most) : most_(round_up(std::max<size_t>(most, 1), kHugePage)) {
  reserved_bytes_ = most_ + kHugePage;
  // Without permissions it counts as nobody's memory, whatever the kernel thinks of over-commitment.
  reserved_ = ::mmap(nullptr, reserved_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved_ == MAP_FAILED) throw std::bad_alloc();
  data_ = static_cast<char*>(reserved_) +
          (round_up(reinterpret_cast<uintptr_t>(reserved_), kHugePage) - reinterpret_cast<uintptr_t>(reserved_));
}

GrowingSpace::~GrowingSpace() { ::munmap(reserved_, reserved_bytes_); }

void GrowingSpace::grow_to(size_t bytes) {
  if (bytes <= size_) return;
  WARMPATH_CHECK(bytes <= most_, "a space must not grow past what was reserved for it");
  const size_t to = std::min(most_, round_up(bytes, bytes <= kHugeFrom ? kSmallStep : kHugePage));
  if (::mprotect(data_ + size_, to - size_, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
  // Where huge pages are off, or unknown, the small ones do.
  if (to > kHugeFrom) ::madvise(data_ + std::max(size_, kHugeFrom), to - std::max(size_, kHugeFrom), MADV_HUGEPAGE);
  size_ = to;
}

void GrowingSpace::give_back(size_t begin, size_t end) {
  begin = round_up(begin, kPage);
  end = end / kPage * kPage;
  if (begin < end) ::madvise(data_ + begin, end - begin, MADV_DONTNEED);
}

}  // namespace warmpath

#include "kernels/huge_buffer.h"

#include <sys/mman.h>

namespace warmpath {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

}  // namespace

HugeBuffer HugeBuffer::allocate(size_t bytes) {
  HugeBuffer buffer;
  if (bytes == 0 || bytes > (SIZE_MAX >> 1)) return buffer;
  const bool huge = bytes >= kHugePage;
  const size_t mapped = huge ? bytes + kHugePage : bytes;
  void* mapping = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) return buffer;
  auto address = reinterpret_cast<uintptr_t>(mapping);
  if (huge) {
    address = (address + kHugePage - 1) / kHugePage * kHugePage;
    // Advice only: a machine without huge pages is slower, not wrong.
    (void)madvise(reinterpret_cast<void*>(address), bytes, MADV_HUGEPAGE);
  }
  buffer.data_ = reinterpret_cast<uint8_t*>(address);
  buffer.size_ = bytes;
  buffer.mapping_ = mapping;
  buffer.mapping_bytes_ = mapped;
  return buffer;
}

HugeBuffer::~HugeBuffer() {
  if (mapping_ != nullptr) munmap(mapping_, mapping_bytes_);
}

}  // namespace warmpath

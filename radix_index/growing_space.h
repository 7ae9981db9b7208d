// GrowingSpace: an array that grows in place. Address space for the most there can ever be is reserved at once, memory
// is taken as it is used: nothing ever moves, so readers need no second look, and growth leaves no holes in a heap.
//
// Past kHugeFrom the kernel is asked for huge pages: a lookup in a large index touches a dozen places that no cache
// holds, and each of them would otherwise wait for a walk of the page table too.
// Thread safety: data() never changes; grow_to() by one thread, and whoever is told of the new part may use it.
#pragma once

#include <cstddef>

namespace warmpath {

class GrowingSpace {
 public:
  static constexpr size_t kHugePage = size_t{2} << 20;
  static constexpr size_t kHugeFrom = size_t{8} << 20;

  // `most` bytes at most. Throws std::bad_alloc when the address space is refused.
  explicit GrowingSpace(size_t most);
  ~GrowingSpace();
  GrowingSpace(const GrowingSpace&) = delete;
  GrowingSpace& operator=(const GrowingSpace&) = delete;

  char* data() const { return data_; }   // aligned to kHugePage
  size_t size() const { return size_; }  // bytes that may be used; they are zero at first
  size_t most() const { return most_; }
  // Afterwards size() >= bytes. Throws std::bad_alloc when there is no more memory. REQUIRES bytes <= most().
  void grow_to(size_t bytes);
  // [begin, end) gives its whole pages back until it is used again; what was there is lost.
  void give_back(size_t begin, size_t end);

 private:
  void* reserved_ = nullptr;
  size_t reserved_bytes_ = 0;
  char* data_ = nullptr;
  size_t most_ = 0;
  size_t size_ = 0;
};

}  // namespace warmpath

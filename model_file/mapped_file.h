// MappedFile: a whole file, read-only, mapped into memory.
//
// A file that is truncated by someone else while it is mapped raises SIGBUS on access: model files are replaced by
// rename (a new inode), never rewritten in place. Thread safety: immutable after open; may be read from any thread.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/status.h"

namespace warmpath {

class MappedFile {
 public:
  static Result<MappedFile> open(const std::string& path);

  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  // The pages may leave memory; they come back from the file when they are read again.
  void drop_pages() const;

 private:
  MappedFile(const std::byte* data, size_t size) : data_(data), size_(size) {}

  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace warmpath

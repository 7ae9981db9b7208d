// MappedFile: a whole file, read-only, mapped into memory.
//
// A file that is truncated by someone else while it is mapped raises SIGBUS on access: model files are replaced by
// rename (a new inode), never rewritten in place. Thread safety: immutable after open; may be read from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/status.h"

namespace warmpath {

// Which file, in which state: two mappings with equal identities have equal bytes (but for changes within the clock's
// granularity).
struct FileIdentity {
  uint64_t device = 0;
  uint64_t inode = 0;
  uint64_t bytes = 0;
  int64_t content_ns = 0;  // last change of the content, nanoseconds since 1970
  int64_t inode_ns = 0;    // last change of anything, which no program can set back
};

class MappedFile {
 public:
  static Result<MappedFile> open(const std::string& path);

  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  // As it was when the file was opened.
  const FileIdentity& identity() const { return identity_; }
  void set_identity_for_test(const FileIdentity& identity) { identity_ = identity; }
  // The pages may leave memory; they come back from the file when they are read again.
  void drop_pages() const;

 private:
  MappedFile(const std::byte* data, size_t size) : data_(data), size_(size) {}

  const std::byte* data_ = nullptr;
  size_t size_ = 0;
  FileIdentity identity_;
};

}  // namespace warmpath

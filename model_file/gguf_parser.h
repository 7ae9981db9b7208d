// GgufParser: one pass over the bytes of a GGUF file, filling a GgufFile. Internal to model_file/.
// Thread safety: none; one parser per parse.
#pragma once

#include <string>

#include "model_file/gguf_file.h"

namespace warmpath {

class GgufParser {
 public:
  // `file.bytes_` and `file.name_` are set; everything else is filled in.
  explicit GgufParser(GgufFile& file) : file_(file), bytes_(file.bytes_) {}
  Status parse();

 private:
  Status parse_header();
  Status parse_entry();
  Status parse_array(GgufEntry& entry);
  // Steps over `count` values of `type` (an array's elements); `depth` counts nested arrays.
  Status skip_values(GgufType type, uint64_t count, int depth);
  Status parse_tensor();
  Status locate_tensors();

  template <typename T>
  Status read(T& value, std::string_view what);
  Status read_string(std::string_view& value, uint64_t max_bytes, std::string_view what);
  Status read_type(GgufType& type);
  uint64_t remaining() const { return bytes_.size() - at_; }
  // "FILE: key 'K' at byte N: PROBLEM"
  Status fail(std::string_view problem) const { return fail_at(at_, problem); }
  Status fail_at(uint64_t offset, std::string_view problem) const;

  GgufFile& file_;
  std::span<const std::byte> bytes_;
  uint64_t at_ = 0;
  std::string place_ = "header";  // what is being read, for messages
  uint64_t tensor_count_ = 0;
  uint64_t entry_count_ = 0;
  uint64_t alignment_ = 32;  // the specification's default
};

}  // namespace warmpath

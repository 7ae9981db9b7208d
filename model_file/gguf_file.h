// GgufFile: a model file in GGUF v3, read without copying: metadata (hyper-parameters, tokenizer, chat template) and
// the directory of tensors, both views into the mapped file.
//
// The bytes are untrusted: everything the accessors rely on is checked once, when the file is opened (counts, lengths,
// nesting, overflow, alignment, overlap, end of file), and a refusal names the key or tensor and the byte offset.
// Memory used is bounded by a small multiple of the file's size. Thread safety: immutable after open; may be read from
// any thread. Views live as long as the GgufFile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/hash128.h"
#include "base/status.h"
#include "model_file/gguf_types.h"
#include "model_file/mapped_file.h"

namespace warmpath {

// The strings of one array value, in file order: each a 64-bit length and its bytes, walked in place.
class GgufStrings {
 public:
  class Iterator {
   public:
    using value_type = std::string_view;
    using difference_type = std::ptrdiff_t;
    using iterator_category = std::forward_iterator_tag;
    using pointer = const std::string_view*;
    using reference = std::string_view;

    Iterator() = default;
    explicit Iterator(const std::byte* at) : at_(at) {}
    std::string_view operator*() const;
    Iterator& operator++();
    Iterator operator++(int) {
      Iterator before = *this;
      ++*this;
      return before;
    }
    bool operator==(const Iterator&) const = default;

   private:
    const std::byte* at_ = nullptr;
  };

  GgufStrings() = default;
  GgufStrings(std::span<const std::byte> payload, size_t count) : payload_(payload), count_(count) {}
  size_t size() const { return count_; }
  bool empty() const { return count_ == 0; }
  Iterator begin() const { return Iterator(payload_.data()); }
  Iterator end() const { return Iterator(payload_.data() + payload_.size()); }
  // For random access: one view a string (16 B each).
  std::vector<std::string_view> to_views() const { return {begin(), end()}; }

 private:
  std::span<const std::byte> payload_;
  size_t count_ = 0;
};

// One metadata entry. `payload` holds the value (for an array: its elements, without the header), unaligned.
struct GgufEntry {
  std::string_view key;
  GgufType type = GgufType::kUint8;
  GgufType element_type = GgufType::kUint8;  // of an array
  uint64_t count = 1;                        // elements of an array
  std::span<const std::byte> payload;
  uint64_t offset = 0;  // of the payload in the file
};

// One tensor. shape[0] is the contiguous dimension, as ggml orders them: a matrix of `rows` rows and `columns` columns
// has shape {columns, rows}.
struct GgufTensor {
  std::string_view name;
  TensorType type = TensorType::kF32;
  std::vector<uint64_t> shape;  // 0 to 4 dimensions, none of them 0
  uint64_t elements = 0;
  std::span<const std::byte> data;
  uint64_t offset = 0;    // of `data` in the file
  std::string_view file;  // the file that holds it, when it is another than the GgufFile's own

  uint64_t columns() const { return shape.empty() ? 1 : shape[0]; }
  uint64_t rows() const { return elements / columns(); }
};

// Tensors that lie in other files than the one that names the model's keys.
struct ForeignTensors {
  struct Tensor {
    std::string name;
    std::string file;
    TensorType type = TensorType::kF32;
    std::vector<uint64_t> shape;  // as GgufTensor's
    std::span<const std::byte> data;
    uint64_t offset = 0;
  };
  std::vector<Tensor> tensors;
  std::vector<MappedFile> mappings;  // what `data` points into
};

class GgufFile {
 public:
  static Result<GgufFile> open(const std::string& path);
  // `bytes` must outlive the result, or are given to it; `name` stands for the path in messages.
  static Result<GgufFile> parse(std::span<const std::byte> bytes, std::string_view name);
  static Result<GgufFile> parse(std::vector<std::byte>&& bytes, std::string_view name);

  const std::string& name() const { return name_; }
  std::span<const std::byte> bytes() const { return bytes_; }
  // Of everything that the keys and tensors are made of: bytes(), and what was adopted and absorbed. Large files are
  // not read again when their hash is remembered (file_hash.h).
  Hash128 content_hash() const;
  // Mapped pages may leave memory until they are read again: for when the tensors have been copied elsewhere.
  void drop_pages() const;

  // Adds tensors of other files, and the keys of another file. invalid_argument when one is there already. Not while
  // others read this.
  Status adopt(ForeignTensors foreign);
  Status absorb(GgufFile keys);
  // "FILE: tensor 'NAME' at byte N", for messages.
  std::string place(const GgufTensor& tensor) const;
  uint64_t data_offset() const { return data_offset_; }

  const std::vector<GgufEntry>& entries() const { return entries_; }
  const GgufEntry* find_entry(std::string_view key) const;
  bool has(std::string_view key) const { return find_entry(key) != nullptr; }

  const std::vector<GgufTensor>& tensors() const { return tensors_; }
  const GgufTensor* find_tensor(std::string_view name) const;

  // Typed access. Errors: kNotFound when the key is missing, kInvalidArgument when it is of another kind or out of
  // range. get_uint and get_int take any integer type; get_float takes float32, float64 and integers.
  Result<uint64_t> get_uint(std::string_view key) const;
  Result<int64_t> get_int(std::string_view key) const;
  Result<double> get_float(std::string_view key) const;
  Result<bool> get_bool(std::string_view key) const;
  Result<std::string_view> get_string(std::string_view key) const;
  Result<GgufStrings> get_strings(std::string_view key) const;
  Result<std::vector<int64_t>> get_ints(std::string_view key) const;
  Result<std::vector<float>> get_floats(std::string_view key) const;

  // The same, but `fallback` when the key is missing; a wrong kind is still an error.
  Result<uint64_t> get_uint_or(std::string_view key, uint64_t fallback) const;
  Result<double> get_float_or(std::string_view key, double fallback) const;
  Result<bool> get_bool_or(std::string_view key, bool fallback) const;
  Result<std::string_view> get_string_or(std::string_view key, std::string_view fallback) const;

 private:
  friend class GgufParser;
  Result<const GgufEntry*> require(std::string_view key, std::string_view wanted, bool matches(const GgufEntry&)) const;
  Status wrong_kind(const GgufEntry& entry, std::string_view wanted) const;

  // At most one of these holds the bytes; neither when they are the caller's.
  MappedFile mapping_;
  std::vector<std::byte> owned_;
  std::string name_;
  std::span<const std::byte> bytes_;
  uint64_t data_offset_ = 0;
  std::vector<GgufEntry> entries_;
  std::vector<GgufTensor> tensors_;
  std::unordered_map<std::string_view, size_t> entry_index_;
  std::unordered_map<std::string_view, size_t> tensor_index_;
  // What adopt() and absorb() took; at addresses that stay.
  std::vector<std::unique_ptr<const ForeignTensors>> foreign_;
  std::vector<std::unique_ptr<const GgufFile>> absorbed_;
};

// Bytes of a file made fit for a message: non-printable ones as \xNN, at most 64 shown.
std::string printable(std::string_view text);

}  // namespace warmpath

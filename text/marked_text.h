// MarkedText: text that remembers which bytes a template wrote and which came from a message. Only the template's own
// text may spell control tokens, so `<|im_end|>` inside a file that an agent reads stays data.
//
// A MarkedText is a short list of parts; each part views a shared immutable buffer, so concatenating, slicing and
// trimming copy no bytes (small neighbours of one origin are joined, to keep the list short).
// Thread safety: values; buffers are immutable and counted atomically, so copies may live on different threads.
#pragma once

#include <boost/container/small_vector.hpp>
#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <boost/smart_ptr/intrusive_ref_counter.hpp>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace warmpath {

enum class Origin : uint8_t {
  kTemplate,  // the model's files or the operator: may spell control tokens
  kMessage,   // a request: data
};

// Immutable bytes with a reference count.
class SharedBytes : public boost::intrusive_ref_counter<SharedBytes> {
 public:
  explicit SharedBytes(std::string bytes) : bytes_(std::move(bytes)) {}
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

class MarkedText {
 public:
  struct Part {
    boost::intrusive_ptr<const SharedBytes> owner;  // keeps `bytes` alive; null for static text
    std::string_view bytes;
    Origin origin = Origin::kTemplate;
  };

  MarkedText() = default;
  MarkedText(std::string bytes, Origin origin);
  // `bytes` must outlive every copy of the result (literals, text owned by a compiled template).
  static MarkedText from_static(std::string_view bytes, Origin origin);

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::span<const Part> parts() const { return {parts_.data(), parts_.size()}; }

  void append(const MarkedText& other);
  void append(Part part);
  // Appends bytes [offset, offset + count) of `other`, clipped to its end.
  void append(const MarkedText& other, size_t offset, size_t count);
  // Bytes [offset, offset + count), clipped to the end.
  MarkedText substr(size_t offset, size_t count = std::string_view::npos) const;

  // All bytes in one piece: a view of the only part, or of `scratch`, which is overwritten otherwise.
  std::string_view view(std::string& scratch) const;
  std::string to_string() const;
  // kTemplate only when every byte is the template's.
  Origin origin() const;

 private:
  boost::container::small_vector<Part, 1> parts_;
  size_t size_ = 0;
};

bool operator==(const MarkedText& left, const MarkedText& right);  // by bytes; origins do not matter
bool operator==(const MarkedText& left, std::string_view right);

}  // namespace warmpath

#include "text/marked_text.h"

#include <algorithm>
#include <cstring>

namespace warmpath {
namespace {

// Neighbours of one origin up to this size together are joined into one part when texts are concatenated.
constexpr size_t kJoinBytes = 64;

}  // namespace

MarkedText::MarkedText(std::string bytes, Origin origin) {
  if (bytes.empty()) return;
  boost::intrusive_ptr<const SharedBytes> owner(new SharedBytes(std::move(bytes)));
  const std::string_view view = owner->bytes();
  size_ = view.size();
  parts_.push_back({std::move(owner), view, origin});
}

MarkedText MarkedText::from_static(std::string_view bytes, Origin origin) {
  MarkedText text;
  text.append(Part{nullptr, bytes, origin});
  return text;
}

void MarkedText::append(Part part) {
  if (part.bytes.empty()) return;
  size_ += part.bytes.size();
  if (!parts_.empty()) {
    Part& last = parts_.back();
    if (last.owner && last.owner == part.owner && last.origin == part.origin &&
        last.bytes.data() + last.bytes.size() == part.bytes.data()) {
      last.bytes = {last.bytes.data(), last.bytes.size() + part.bytes.size()};
      return;
    }
  }
  parts_.push_back(std::move(part));
}

void MarkedText::append(const MarkedText& other) {
  size_t first = 0;
  if (!parts_.empty() && !other.parts_.empty()) {
    Part& last = parts_.back();
    const Part& next = other.parts_.front();
    if (last.origin == next.origin && last.bytes.size() + next.bytes.size() <= kJoinBytes) {
      std::string joined(last.bytes);
      joined.append(next.bytes);
      size_ += next.bytes.size();
      last.owner = new SharedBytes(std::move(joined));
      last.bytes = last.owner->bytes();
      first = 1;
    }
  }
  // By index: `other` may be this text.
  const size_t count = other.parts_.size();
  for (size_t index = first; index < count; ++index) append(Part(other.parts_[index]));
}

void MarkedText::append(const MarkedText& other, size_t offset, size_t count) {
  for (const Part& part : other.parts_) {
    if (count == 0) break;
    if (offset >= part.bytes.size()) {
      offset -= part.bytes.size();
      continue;
    }
    const std::string_view kept = part.bytes.substr(offset, count);
    offset = 0;
    if (count != std::string_view::npos) count -= kept.size();
    append(Part{part.owner, kept, part.origin});
  }
}

MarkedText MarkedText::substr(size_t offset, size_t count) const {
  MarkedText result;
  result.append(*this, offset, count);
  return result;
}

std::string_view MarkedText::view(std::string& scratch) const {
  if (parts_.empty()) return {};
  if (parts_.size() == 1) return parts_.front().bytes;
  scratch = to_string();
  return scratch;
}

std::string MarkedText::to_string() const {
  std::string bytes;
  bytes.reserve(size_);
  for (const Part& part : parts_) bytes.append(part.bytes);
  return bytes;
}

Origin MarkedText::origin() const {
  const bool message =
      std::any_of(parts_.begin(), parts_.end(), [](const Part& part) { return part.origin == Origin::kMessage; });
  return message ? Origin::kMessage : Origin::kTemplate;
}

bool operator==(const MarkedText& left, const MarkedText& right) {
  if (left.size() != right.size()) return false;
  std::string left_scratch;
  std::string right_scratch;
  return left.view(left_scratch) == right.view(right_scratch);
}

bool operator==(const MarkedText& left, std::string_view right) {
  if (left.size() != right.size()) return false;
  for (const MarkedText::Part& part : left.parts()) {
    if (std::memcmp(part.bytes.data(), right.data(), part.bytes.size()) != 0) return false;
    right.remove_prefix(part.bytes.size());
  }
  return true;
}

}  // namespace warmpath

#include "text/special_matcher.h"

#include <cstring>

namespace warmpath {

void SpecialMatcher::add(std::string_view spelling, TokenId id) {
  if (spelling.empty()) return;
  if (!starts_[static_cast<uint8_t>(spelling[0])]) {
    starts_[static_cast<uint8_t>(spelling[0])] = true;
    ++start_count_;
    only_start_ = spelling[0];
  }
  uint32_t node = 0;
  for (const char byte : spelling) {
    const auto [child, added] = children_.try_emplace(edge(node, byte), static_cast<uint32_t>(id_of_node_.size()));
    if (added) id_of_node_.push_back(-1);
    node = child->second;
    holds_line_break_ = holds_line_break_ || byte == '\n' || byte == '\r';
  }
  if (id_of_node_[node] < 0) id_of_node_[node] = id;
}

std::optional<SpecialMatcher::Match> SpecialMatcher::find(std::string_view text, size_t from) const {
  if (children_.empty()) return std::nullopt;
  for (size_t start = from; start < text.size(); ++start) {
    if (start_count_ == 1) {
      const void* hit = std::memchr(text.data() + start, only_start_, text.size() - start);
      if (hit == nullptr) return std::nullopt;
      start = static_cast<size_t>(static_cast<const char*>(hit) - text.data());
    } else if (!starts_[static_cast<uint8_t>(text[start])]) {
      continue;
    }
    Match longest;
    uint32_t node = 0;
    for (size_t at = start; at < text.size(); ++at) {
      const auto child = children_.find(edge(node, text[at]));
      if (child == children_.end()) break;
      node = child->second;
      if (id_of_node_[node] >= 0) longest = {start, at + 1 - start, id_of_node_[node]};
    }
    if (longest.size > 0) return longest;
  }
  return std::nullopt;
}

}  // namespace warmpath

// SpecialMatcher: finds the spellings of control and user-defined tokens in text, leftmost first and the longest of
// those that start at one place, as Hugging Face tokenizers' added tokens are found. Time: linear in the text times the
// longest spelling in the worst case, in practice one table look-up a byte. Thread safety: immutable after
// construction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/token.h"

namespace warmpath {

class SpecialMatcher {
 public:
  struct Match {
    size_t offset = 0;
    size_t size = 0;
    TokenId id = 0;
  };

  // Ignores empty spellings; of equal ones the first counts.
  void add(std::string_view spelling, TokenId id);
  bool empty() const { return children_.empty(); }
  // Whether some spelling holds a line break.
  bool holds_line_break() const { return holds_line_break_; }

  // The first match at or after `from`.
  std::optional<Match> find(std::string_view text, size_t from) const;

 private:
  static uint64_t edge(uint32_t node, char byte) {
    return static_cast<uint64_t>(node) << 8 | static_cast<uint8_t>(byte);
  }

  std::unordered_map<uint64_t, uint32_t> children_;  // (node, byte) -> node of a trie; node 0 is its root
  std::vector<TokenId> id_of_node_{-1};
  bool starts_[256] = {};
  int start_count_ = 0;
  char only_start_ = 0;
  bool holds_line_break_ = false;
};

}  // namespace warmpath

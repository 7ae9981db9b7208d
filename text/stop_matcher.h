// StopMatcher: ends a text stream at the first of several stop strings, whatever pieces the text arrives in.
//
// The match that ends first wins; of those ending at the same byte, the longest. The stop string itself is never
// emitted, and text that may still turn out to begin one is held back (at most the longest stop string less one byte).
// Both the engine (to stop) and the gateway (to trim) run it. Thread safety: StopStrings is immutable and may be
// shared; a StopMatcher belongs to one stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace warmpath {

// The stop strings of a request as an Aho-Corasick automaton over bytes.
class StopStrings {
 public:
  static constexpr size_t kMaxStrings = 64;
  static constexpr size_t kMaxTotalBytes = 16 << 10;

  // Empty strings are ignored. Errors when the limits above are exceeded.
  static Result<std::shared_ptr<const StopStrings>> create(std::vector<std::string> stops);

  const std::vector<std::string>& strings() const { return strings_; }

 private:
  friend class StopMatcher;
  struct Node {
    uint32_t depth = 0;  // bytes of the longest suffix that begins a stop string
    int32_t match = -1;  // longest stop string ending here
    uint32_t fail = 0;
    std::vector<std::pair<uint8_t, uint32_t>> next;  // sorted by byte
  };
  uint32_t step(uint32_t node, uint8_t byte) const;

  std::vector<std::string> strings_;
  std::vector<Node> nodes_;
  bool starts_[256] = {};  // bytes that begin a stop string
};

class StopMatcher {
 public:
  explicit StopMatcher(std::shared_ptr<const StopStrings> stops) : stops_(std::move(stops)) {}

  // Appends to `out` what is certain to come before any stop string. Returns true when the stream ends here; later
  // pushes are ignored and return true.
  bool push(std::string_view text, std::string& out);
  // The stream ended without a stop string: what was held back is text after all.
  void finish(std::string& out);

  bool stopped() const { return matched_ >= 0; }
  // REQUIRES stopped().
  const std::string& matched() const { return stops_->strings()[static_cast<size_t>(matched_)]; }
  size_t held_bytes() const { return held_.size(); }

 private:
  std::shared_ptr<const StopStrings> stops_;
  std::string held_;
  uint32_t node_ = 0;
  int32_t matched_ = -1;
};

}  // namespace warmpath

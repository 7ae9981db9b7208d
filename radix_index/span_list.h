// SpanList: who holds which part of one run, as maximal spans, while the writer edits it.
//
//   run      0        8        16       24
//   holder 3 [=================)
//   holder 7 [========)        [========)       two spans: blocks 8..15 are a hole
//
// A key is a holder (storage slot and tier) for what is held, or a storage slot for what is only placed; placed spans
// also carry the time they expire at, held ones carry 0 there. The free functions look at a list wherever it lies.
//
// Thread safety: none needed; a list belongs to the writer, readers see the copy inside a RunView.
// Invariants: sorted by (key, begin); spans of one key neither overlap nor touch (placed ones may touch when their
// times differ); none is empty.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/clock.h"

namespace warmpath {

struct HeldSpan {
  uint16_t key = 0;
  uint16_t begin = 0;
  uint16_t end = 0;

  static constexpr MonotonicNs expires() { return 0; }
  void set_expires(MonotonicNs) {}
  bool operator==(const HeldSpan&) const = default;
};

struct PlacedSpan {
  uint16_t key = 0;
  uint16_t begin = 0;
  uint16_t end = 0;
  MonotonicNs expires_ns = 0;  // in a RunView: read and renewed atomically

  MonotonicNs expires() const { return expires_ns; }
  void set_expires(MonotonicNs expires) { expires_ns = expires; }
  bool operator==(const PlacedSpan&) const = default;
};

// Where the first span of the first key >= `key` is.
template <typename Span>
size_t first_span(std::span<const Span> spans, uint16_t key) {
  const auto found = std::lower_bound(spans.begin(), spans.end(), key,
                                      [](const Span& span, uint16_t wanted) { return span.key < wanted; });
  return static_cast<size_t>(found - spans.begin());
}

// The span of `key` that covers `offset`, or null.
template <typename Span>
const Span* find_span(std::span<const Span> spans, uint16_t key, uint16_t offset) {
  for (size_t n = first_span(spans, key); n < spans.size() && spans[n].key == key && spans[n].begin <= offset; ++n) {
    if (offset < spans[n].end) return &spans[n];
  }
  return nullptr;
}

// Sorted, maximal, within [begin, end).
template <typename Span>
bool well_formed(std::span<const Span> spans, uint16_t begin, uint16_t end);

template <typename Span>
class SpanList {
 public:
  std::span<const Span> spans() const { return spans_; }
  bool empty() const { return spans_.empty(); }
  void assign(std::span<const Span> spans) { spans_.assign(spans.begin(), spans.end()); }
  void clear() { spans_.clear(); }

  // Afterwards `key` covers [begin, end), until `expires`; earlier spans of the key lose that part.
  void cover(uint16_t key, uint16_t begin, uint16_t end, MonotonicNs expires = 0);
  // Afterwards `key` covers nothing of [begin, end).
  void uncover(uint16_t key, uint16_t begin, uint16_t end);
  // Drops every span for which `gone` is true.
  template <typename Gone>
  void remove_if(Gone gone) {
    std::erase_if(spans_, gone);
  }

  // Takes over what `from` says about [begin, end), `shift` blocks further on.
  void add_part(std::span<const Span> from, uint16_t begin, uint16_t end, int shift);

 private:
  std::vector<Span> spans_;
};

extern template class SpanList<HeldSpan>;
extern template class SpanList<PlacedSpan>;

}  // namespace warmpath

// SpanList: who holds which part of one run, as maximal spans.
//
//   run      0        8        16       24
//   holder 3 [=================)
//   holder 7 [========)        [========)       two spans: blocks 8..15 are a hole
//
// A key is a holder (storage slot and tier) for what is held, or a storage slot for what is only placed; placed spans
// also carry the time they expire at, held ones carry 0 there.
//
// Thread safety: const methods concurrently with each other.
// Invariants: sorted by (key, begin); spans of one key neither overlap nor touch (placed ones may touch when their
// times differ); none is empty.
#pragma once

#include <cstdint>
#include <functional>
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
  MonotonicNs expires_ns = 0;

  MonotonicNs expires() const { return expires_ns; }
  void set_expires(MonotonicNs expires) { expires_ns = expires; }
  bool operator==(const PlacedSpan&) const = default;
};

template <typename Span>
class SpanList {
 public:
  using Spans = std::vector<Span>;

  const Spans& spans() const { return spans_; }
  bool empty() const { return spans_.empty(); }
  size_t heap_size() const { return spans_.capacity() * sizeof(Span); }

  // The first span of the first key >= `key`.
  typename Spans::const_iterator lower_bound(uint16_t key) const;
  // The span of `key` that covers `offset`, or null.
  const Span* find(uint16_t key, uint16_t offset) const;
  // Some key covers `offset`.
  bool covers(uint16_t offset) const;

  // Afterwards `key` covers [begin, end), until `expires`; earlier spans of the key lose that part.
  void cover(uint16_t key, uint16_t begin, uint16_t end, MonotonicNs expires = 0);
  // Afterwards `key` covers nothing of [begin, end).
  void uncover(uint16_t key, uint16_t begin, uint16_t end);
  // Drops every span for which `gone` is true.
  void remove_if(const std::function<bool(const Span&)>& gone);

  // Moves the parts at or past `at` into `tail`, counted from `at` on.
  void split(uint16_t at, SpanList& tail);
  // Takes over `tail`'s spans, `shift` blocks further on.
  void append(const SpanList& tail, uint16_t shift);
  // All spans `by` blocks nearer to the start. REQUIRES begin >= by for every span.
  void shift_down(uint16_t by);

  // Sorted, maximal, within [begin, end).
  bool well_formed(uint16_t begin, uint16_t end) const;

 private:
  void trim_capacity();

  Spans spans_;
};

extern template class SpanList<HeldSpan>;
extern template class SpanList<PlacedSpan>;

}  // namespace warmpath

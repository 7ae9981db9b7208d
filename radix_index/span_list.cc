#include "radix_index/span_list.h"

namespace warmpath {

template <typename Span>
void SpanList<Span>::cover(uint16_t key, uint16_t begin, uint16_t end, MonotonicNs expires) {
  uncover(key, begin, end);
  auto next = spans_.begin() + static_cast<std::ptrdiff_t>(first_span<Span>(spans_, key));
  while (next != spans_.end() && next->key == key && next->begin < begin) ++next;
  const bool joins_next = next != spans_.end() && next->key == key && next->begin == end && next->expires() == expires;
  const bool joins_last = next != spans_.begin() && std::prev(next)->key == key && std::prev(next)->end == begin &&
                          std::prev(next)->expires() == expires;
  if (joins_last && joins_next) {
    std::prev(next)->end = next->end;
    spans_.erase(next);
  } else if (joins_last) {
    std::prev(next)->end = end;
  } else if (joins_next) {
    next->begin = begin;
  } else {
    Span span;
    span.key = key;
    span.begin = begin;
    span.end = end;
    span.set_expires(expires);
    spans_.insert(next, span);
  }
}

template <typename Span>
void SpanList<Span>::uncover(uint16_t key, uint16_t begin, uint16_t end) {
  auto span = spans_.begin() + static_cast<std::ptrdiff_t>(first_span<Span>(spans_, key));
  while (span != spans_.end() && span->key == key && span->begin < end) {
    if (span->end <= begin) {
      ++span;
    } else if (span->begin < begin && span->end > end) {
      Span right = *span;
      right.begin = end;
      span->end = begin;
      spans_.insert(std::next(span), right);
      return;
    } else if (span->begin < begin) {
      span->end = begin;
      ++span;
    } else if (span->end > end) {
      span->begin = end;
      return;
    } else {
      span = spans_.erase(span);
    }
  }
}

template <typename Span>
void SpanList<Span>::add_part(std::span<const Span> from, uint16_t begin, uint16_t end, int shift) {
  for (const Span& span : from) {
    const uint16_t first = std::max(span.begin, begin);
    const uint16_t last = std::min(span.end, end);
    if (first >= last) continue;
    Span moved = span;
    moved.begin = static_cast<uint16_t>(first + shift);
    moved.end = static_cast<uint16_t>(last + shift);
    if (spans_.empty() || spans_.back().key < moved.key) {
      spans_.push_back(moved);
    } else {
      cover(moved.key, moved.begin, moved.end, moved.expires());
    }
  }
}

template <typename Span>
bool well_formed(std::span<const Span> spans, uint16_t begin, uint16_t end) {
  for (size_t n = 0; n < spans.size(); ++n) {
    const Span& span = spans[n];
    if (span.begin >= span.end || span.begin < begin || span.end > end) return false;
    if (n == 0 || spans[n - 1].key < span.key) continue;
    if (spans[n - 1].key > span.key || spans[n - 1].end > span.begin) return false;
    if (spans[n - 1].end == span.begin && spans[n - 1].expires() == span.expires()) return false;
  }
  return true;
}

template class SpanList<HeldSpan>;
template class SpanList<PlacedSpan>;
template bool well_formed(std::span<const HeldSpan>, uint16_t, uint16_t);
template bool well_formed(std::span<const PlacedSpan>, uint16_t, uint16_t);

}  // namespace warmpath

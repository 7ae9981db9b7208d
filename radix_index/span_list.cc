#include "radix_index/span_list.h"

#include <algorithm>

namespace warmpath {

template <typename Span>
auto SpanList<Span>::lower_bound(uint16_t key) const -> typename Spans::const_iterator {
  return std::lower_bound(spans_.begin(), spans_.end(), key,
                          [](const Span& span, uint16_t wanted) { return span.key < wanted; });
}

template <typename Span>
const Span* SpanList<Span>::find(uint16_t key, uint16_t offset) const {
  for (auto span = lower_bound(key); span != spans_.end() && span->key == key && span->begin <= offset; ++span) {
    if (offset < span->end) return &*span;
  }
  return nullptr;
}

template <typename Span>
bool SpanList<Span>::covers(uint16_t offset) const {
  for (const Span& span : spans_) {
    if (span.begin <= offset && offset < span.end) return true;
  }
  return false;
}

template <typename Span>
void SpanList<Span>::cover(uint16_t key, uint16_t begin, uint16_t end, MonotonicNs expires) {
  uncover(key, begin, end);
  auto next = spans_.begin() + (lower_bound(key) - spans_.begin());
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
    // Most runs have one or two spans for ever: grow by a quarter, not by doubling.
    if (spans_.size() == spans_.capacity()) {
      const auto position = next - spans_.begin();
      spans_.reserve(spans_.size() + std::max<size_t>(1, spans_.size() / 4));
      next = spans_.begin() + position;
    }
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
  auto span = spans_.begin() + (lower_bound(key) - spans_.begin());
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
  trim_capacity();
}

template <typename Span>
void SpanList<Span>::remove_if(const std::function<bool(const Span&)>& gone) {
  std::erase_if(spans_, gone);
  trim_capacity();
}

template <typename Span>
void SpanList<Span>::split(uint16_t at, SpanList& tail) {
  for (const Span& span : spans_) {
    if (span.end <= at) continue;
    Span moved = span;
    moved.begin = static_cast<uint16_t>(std::max(span.begin, at) - at);
    moved.end = static_cast<uint16_t>(span.end - at);
    tail.spans_.push_back(moved);
  }
  std::erase_if(spans_, [&](const Span& span) { return span.begin >= at; });
  for (Span& span : spans_) span.end = std::min(span.end, at);
  trim_capacity();
}

template <typename Span>
void SpanList<Span>::append(const SpanList& tail, uint16_t shift) {
  for (const Span& span : tail.spans_) {
    cover(span.key, static_cast<uint16_t>(span.begin + shift), static_cast<uint16_t>(span.end + shift), span.expires());
  }
}

template <typename Span>
void SpanList<Span>::shift_down(uint16_t by) {
  for (Span& span : spans_) {
    span.begin = static_cast<uint16_t>(span.begin - by);
    span.end = static_cast<uint16_t>(span.end - by);
  }
}

template <typename Span>
bool SpanList<Span>::well_formed(uint16_t begin, uint16_t end) const {
  for (size_t n = 0; n < spans_.size(); ++n) {
    const Span& span = spans_[n];
    if (span.begin >= span.end || span.begin < begin || span.end > end) return false;
    if (n == 0 || spans_[n - 1].key < span.key) continue;
    if (spans_[n - 1].key > span.key || spans_[n - 1].end > span.begin) return false;
    if (spans_[n - 1].end == span.begin && spans_[n - 1].expires() == span.expires()) return false;
  }
  return true;
}

template <typename Span>
void SpanList<Span>::trim_capacity() {
  if (spans_.capacity() > 4 && spans_.size() * 2 < spans_.capacity()) spans_.shrink_to_fit();
}

template class SpanList<HeldSpan>;
template class SpanList<PlacedSpan>;

}  // namespace warmpath

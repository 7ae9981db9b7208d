// prefetch(): asks for a cache line before it is needed.
//
// Always inlined, and so must be whatever only calls it: GCC takes a function that does nothing but prefetch for one
// without effects, and drops the calls (seen in 12; the index lost half its speed to that).
#pragma once

#include <cstddef>

#define WARMPATH_PREFETCHES [[gnu::always_inline]]

namespace warmpath {

inline constexpr size_t kCacheLine = 64;

WARMPATH_PREFETCHES inline void prefetch(const void* line) { __builtin_prefetch(line); }

// The lines of [begin, begin + bytes), at most so many.
WARMPATH_PREFETCHES inline void prefetch_lines(const void* begin, size_t bytes, size_t most) {
  const auto* at = static_cast<const char*>(begin);
  for (size_t line = 0; line * kCacheLine < bytes && line < most; ++line) __builtin_prefetch(at + line * kCacheLine);
}

}  // namespace warmpath

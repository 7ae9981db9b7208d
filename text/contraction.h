// The English contractions that pre-tokenizers keep apart. Thread safety: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>

namespace warmpath {

// The letter that the ASCII letter or the two bytes at `at` fold to, in lower case, and its size; U+017F folds to s.
struct FoldedLetter {
  uint8_t letter = 0;
  size_t size = 0;
};
inline FoldedLetter fold_letter(const uint8_t* at, const uint8_t* end) {
  if (at >= end) return {};
  if (*at < 0x80) return {static_cast<uint8_t>(*at | 0x20), 1};
  if (end - at >= 2 && at[0] == 0xC5 && at[1] == 0xBF) return {'s', 2};
  return {};
}

// Size of (?i:'s|'t|'re|'ve|'m|'ll|'d) at `at`, which is an apostrophe; 0 when it is none of them.
inline size_t contraction_size(const uint8_t* at, const uint8_t* end) {
  const FoldedLetter first = fold_letter(at + 1, end);
  switch (first.letter) {
    case 's':
    case 't':
    case 'm':
    case 'd':
      return 1 + first.size;
    case 'r':
    case 'v':
    case 'l': {
      const FoldedLetter second = fold_letter(at + 1 + first.size, end);
      return second.letter == (first.letter == 'l' ? 'l' : 'e') ? 3 : 0;
    }
    default:
      return 0;
  }
}

}  // namespace warmpath

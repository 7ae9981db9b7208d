#include "text/bpe_scanner.h"
#include "text/char_classes.h"

namespace warmpath {
namespace {

enum : uint8_t { kLetter = 1, kNumber = 2, kSpace = 4, kOther = 8, kSplitDigit = 16 };

template <bool kSplitDigits>
const CharClasses& classes() {
  static const CharClasses classes(
      [](CodePointProperties properties) -> uint8_t {
        if (kSplitDigits && properties.is_numeral_of_digits()) return kSplitDigit;
        if (properties.is_white_space()) return kSpace;
        if (properties.is_letter()) return kLetter;
        if (properties.is_number()) return kNumber;
        return kOther;
      },
      kOther);
  return classes;
}

// Size of 's 't 'm 'd 're 've 'll at `at`, which is an apostrophe; 0 when it is none of them.
size_t contraction_size(const uint8_t* at, const uint8_t* end) {
  if (end - at < 2) return 0;
  switch (at[1]) {
    case 's':
    case 't':
    case 'm':
    case 'd':
      return 2;
    case 'r':
    case 'v':
      return end - at > 2 && at[2] == 'e' ? 3 : 0;
    case 'l':
      return end - at > 2 && at[2] == 'l' ? 3 : 0;
    default:
      return 0;
  }
}

template <bool kSplitDigits>
const uint8_t* next_piece(const uint8_t* at, const uint8_t* end) {
  const CharClasses& chars = classes<kSplitDigits>();
  const CharClasses::Char first = chars.at(at, end);
  if (*at == '\'') {
    if (const size_t size = contraction_size(at, end)) return at + size;
  }
  if (first.bits == kSplitDigit) return at + first.size;
  if (first.bits != kSpace) return chars.run_end(at + first.size, end, first.bits);
  if (*at == ' ') {
    const uint8_t next = chars.bits_at(at + 1, end);
    if ((next & (kLetter | kNumber | kOther)) != 0) return chars.run_end(at + 1, end, next);
  }
  const uint8_t* last;
  const uint8_t* run = chars.run_end(at, end, kSpace, last);
  // \s+(?!\S): all of it at the end of the text (which is where a split-off digit stands too), else all but the last.
  const bool at_end = run == end || chars.at(run, end).bits == kSplitDigit;
  return at_end || last == at ? run : last;
}

}  // namespace

const uint8_t* next_piece_gpt2(const uint8_t* at, const uint8_t* end, ScanMemory&) {
  return next_piece<false>(at, end);
}
const uint8_t* next_piece_smollm(const uint8_t* at, const uint8_t* end, ScanMemory&) {
  return next_piece<true>(at, end);
}

}  // namespace warmpath

#include "text/bpe_scanner.h"
#include "text/char_classes.h"
#include "text/contraction.h"

namespace warmpath {
namespace {

enum : uint8_t { kLetter = 1, kNumber = 2, kSpace = 4, kOther = 8, kLineBreak = 16, kWhite = kSpace | kLineBreak };

template <bool kMarksAreLetters>
const CharClasses& classes() {
  static const CharClasses classes = [] {
    CharClasses built(
        [](CodePointProperties properties) -> uint8_t {
          if (properties.is_white_space()) return kSpace;
          if (properties.is_letter() || (kMarksAreLetters && properties.is_mark())) return kLetter;
          if (properties.is_number()) return kNumber;
          return kOther;
        },
        kOther);
    built.set_ascii('\r', kLineBreak);
    built.set_ascii('\n', kLineBreak);
    return built;
  }();
  return classes;
}

template <bool kMarksAreLetters, int kMaxNumerals>
const uint8_t* next_piece(const uint8_t* at, const uint8_t* end) {
  const CharClasses& chars = classes<kMarksAreLetters>();
  const CharClasses::Char first = chars.at(at, end);
  if (*at == '\'') {
    if (const size_t size = contraction_size(at, end)) return at + size;
  }
  const uint8_t* second = at + first.size;
  if (first.bits == kLetter) return chars.run_end(second, end, kLetter);
  if ((first.bits & (kSpace | kOther)) != 0 && (chars.bits_at(second, end) & kLetter) != 0) {
    return chars.run_end(second, end, kLetter);
  }
  if (first.bits == kNumber) {
    const uint8_t* stop = second;
    for (int count = 1; count < kMaxNumerals && stop < end; ++count) {
      const CharClasses::Char next = chars.at(stop, end);
      if (next.bits != kNumber) break;
      stop += next.size;
    }
    return stop;
  }
  if (first.bits == kOther || (*at == ' ' && (chars.bits_at(second, end) & kOther) != 0)) {
    return chars.run_end(chars.run_end(second, end, kOther), end, kLineBreak);
  }
  return chars.white_space_piece(at, end, kWhite, kLineBreak);
}

}  // namespace

const uint8_t* next_piece_llama3(const uint8_t* at, const uint8_t* end, ScanMemory&) {
  return next_piece<false, 3>(at, end);
}
const uint8_t* next_piece_qwen2(const uint8_t* at, const uint8_t* end, ScanMemory&) {
  return next_piece<false, 1>(at, end);
}
const uint8_t* next_piece_qwen35(const uint8_t* at, const uint8_t* end, ScanMemory&) {
  return next_piece<true, 1>(at, end);
}

}  // namespace warmpath

#include "text/bpe_scanner.h"
#include "text/char_classes.h"
#include "text/contraction.h"

namespace warmpath {
namespace {

enum : uint8_t {
  kUpper = 1,   // Lu Lt
  kLower = 2,   // Ll
  kCommon = 4,  // Lm Lo M: upper and lower at once; marks may open a word too
  kNumber = 8,
  kSpace = 16,
  kOther = 32,
  kLineBreak = 64,
  kHan = 128,  // beside the others
  kLetters = kUpper | kLower | kCommon,
  kWhite = kSpace | kLineBreak,
};

// What a family does differently.
struct Family {
  bool contractions;
  int max_numerals;
  bool slashes;  // they may follow punctuation's line breaks
  bool han;      // Han characters stand apart from words
};

// Bits of the characters, and of those that are marks.
struct Classes {
  CharClasses chars;
  CharClasses marks;
};

template <bool kApartHan>
const Classes& classes() {
  static const Classes classes = [] {
    CharClasses chars(
        [](CodePointProperties properties) -> uint8_t {
          const uint8_t han = kApartHan && properties.is_han() ? kHan : 0;
          if (properties.is_white_space()) return kSpace;
          if (properties.is_number()) return kNumber | han;
          if (han != 0) return han | (properties.is_letter() ? 0 : kOther);
          switch (properties.category()) {
            case GeneralCategory::kLu:
            case GeneralCategory::kLt:
              return kUpper;
            case GeneralCategory::kLl:
              return kLower;
            default:
              return properties.is_letter() || properties.is_mark() ? kCommon : kOther;
          }
        },
        kOther);
    chars.set_ascii('\r', kLineBreak);
    chars.set_ascii('\n', kLineBreak);
    return Classes{chars, CharClasses([](CodePointProperties properties) { return uint8_t{properties.is_mark()}; }, 0)};
  }();
  return classes;
}

// End of U*W+ or U+W* at `at`, the first that matches; `at` itself when neither does. U is upper or common, W lower or
// common.
const uint8_t* word_end(const CharClasses& chars, const uint8_t* at, const uint8_t* end) {
  const uint8_t* run = at;
  const uint8_t* after_common = nullptr;  // end of the last common character of the run of U
  while (run < end) {
    const CharClasses::Char here = chars.at(run, end);
    if ((here.bits & (kUpper | kCommon)) == 0) break;
    run += here.size;
    if ((here.bits & kCommon) != 0) after_common = run;
  }
  if ((chars.bits_at(run, end) & kLower) != 0) return chars.run_end(run, end, kLower | kCommon);
  return after_common != nullptr ? after_common : run;
}

template <Family kFamily>
const uint8_t* next_piece(const uint8_t* at, const uint8_t* end) {
  const CharClasses& chars = classes<kFamily.han>().chars;
  const CharClasses::Char first = chars.at(at, end);
  if (kFamily.han && (first.bits & kHan) != 0) return chars.run_end(at, end, kHan);
  const uint8_t* second = at + first.size;
  const uint8_t* word = at;
  if ((first.bits & (kUpper | kLower)) != 0) {
    word = word_end(chars, at, end);
  } else if ((first.bits & kCommon) != 0) {
    // A mark may be the [^\r\n\p{L}\p{N}]? before a word; where W+ finds nothing behind it, it is a word by itself.
    const bool mark = (classes<kFamily.han>().marks.at(at, end).bits) != 0;
    if (mark && second < end && (chars.bits_at(second, end) & kLetters) != 0) {
      word = word_end(chars, second, end);
      const CharClasses::Char last_of_upper = chars.at(second, end);
      if (word != second && (last_of_upper.bits & kUpper) != 0) {
        // U*W+ needs a W: a run of capitals alone has none.
        const uint8_t* capitals = chars.run_end(second, end, kUpper);
        if (capitals == word) word = second;
      }
    } else {
      word = word_end(chars, at, end);
    }
  } else if ((first.bits & (kSpace | kOther)) != 0 && (chars.bits_at(second, end) & kLetters) != 0) {
    word = word_end(chars, second, end);
  }
  if (word != at) {
    if (kFamily.contractions && word < end && *word == '\'') word += contraction_size(word, end);
    return word;
  }
  if ((first.bits & kNumber) != 0) {
    const uint8_t* stop = second;
    for (int count = 1; count < kFamily.max_numerals && stop < end; ++count) {
      const CharClasses::Char next = chars.at(stop, end);
      if ((next.bits & kNumber) == 0) break;
      stop += next.size;
    }
    return stop;
  }
  const uint8_t* symbols = at;
  if (*at == ' ' && (chars.bits_at(second, end) & (kOther | kCommon)) != 0) symbols = second;
  if ((chars.bits_at(symbols, end) & kOther) != 0) {
    // [^\s\p{L}\p{N}]+ holds marks too.
    const CharClasses& marks = classes<kFamily.han>().marks;
    while (symbols < end) {
      const CharClasses::Char here = chars.at(symbols, end);
      if ((here.bits & kOther) == 0 && ((here.bits & kCommon) == 0 || marks.at(symbols, end).bits == 0)) break;
      symbols += here.size;
    }
    while (symbols < end && (*symbols == '\r' || *symbols == '\n' || (kFamily.slashes && *symbols == '/'))) ++symbols;
    return symbols;
  }
  return chars.white_space_piece(at, end, kWhite, kLineBreak);
}

}  // namespace

const uint8_t* next_piece_gpt4o(const uint8_t* at, const uint8_t* end, ScanMemory&) {
  return next_piece<Family{true, 3, true, false}>(at, end);
}
const uint8_t* next_piece_tekken(const uint8_t* at, const uint8_t* end, ScanMemory&) {
  return next_piece<Family{false, 1, true, false}>(at, end);
}
const uint8_t* next_piece_kimi(const uint8_t* at, const uint8_t* end, ScanMemory&) {
  return next_piece<Family{true, 3, false, true}>(at, end);
}

}  // namespace warmpath

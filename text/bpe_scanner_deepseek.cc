#include <memory>

#include "text/bpe_scanner.h"
#include "text/char_classes.h"

namespace warmpath {
namespace {

// ----- deepseek-v3

namespace v3 {

enum : uint8_t { kLetter = 1, kNumber = 2, kSpace = 4, kSymbol = 8, kLineBreak = 16, kOther = 32, kCjk = 64 };
constexpr uint8_t kWhite = kSpace | kLineBreak;

bool is_cjk(uint32_t code) { return (code >= 0x4E00 && code <= 0x9FA5) || (code >= 0x3040 && code <= 0x30FF); }

// The bits of one character; kLetter counts marks, kSymbol punctuation.
CharClasses::Char look_alone(const uint8_t* at, const uint8_t* end) {
  static const CharClasses chars = [] {
    CharClasses built(
        [](CodePointProperties properties) -> uint8_t {
          if (properties.is_white_space()) return kSpace;
          if (properties.is_number()) return kNumber;
          if (properties.is_letter() || properties.is_mark()) return kLetter;
          if (properties.is_punctuation() || properties.is_symbol()) return kSymbol;
          return kOther;
        },
        kOther);
    built.set_ascii('\r', kLineBreak);
    built.set_ascii('\n', kLineBreak);
    return built;
  }();
  return chars.at(at, end);
}

// The same, but characters of the second split, which no later split joins with others, are kCjk.
CharClasses::Char look(const uint8_t* at, const uint8_t* end) {
  const CharClasses::Char here = look_alone(at, end);
  if (*at < 0xE3) return here;
  if ((here.bits & kNumber) == 0 && here.size == 3 && is_cjk(decode_utf8(at, end).code_point)) return {kCjk, 3};
  return here;
}
uint8_t bits_at(const uint8_t* at, const uint8_t* end) { return at < end ? look(at, end).bits : 0; }
const uint8_t* run_end(const uint8_t* at, const uint8_t* end, uint8_t wanted) {
  while (at < end) {
    const CharClasses::Char here = look(at, end);
    if ((here.bits & wanted) == 0) break;
    at += here.size;
  }
  return at;
}

// The third split cuts runs of kana and Han, too: at their few marks (U+30FB) and unassigned characters.
const uint8_t* next_cjk_piece(const uint8_t* at, const uint8_t* end) {
  const auto class_at = [end](const uint8_t* place) -> uint8_t {
    return bits_at(place, end) == kCjk ? look_alone(place, end).bits : 0;
  };
  constexpr size_t kSize = 3;  // bytes of each of them
  const auto class_end = [&class_at](const uint8_t* place, uint8_t wanted) {
    while (class_at(place) == wanted) place += kSize;
    return place;
  };
  const uint8_t first = class_at(at);
  const uint8_t* second = at + kSize;
  if (first != kOther) return class_end(second, first);
  if (class_at(second) == kLetter) return class_end(second, kLetter);
  while (class_at(second) == kOther && class_at(second + kSize) != kLetter) second += kSize;
  return second;
}

bool is_ascii_letter(uint8_t byte) { return static_cast<uint8_t>((byte | 0x20) - 'a') < 26; }

const uint8_t* next_piece(const uint8_t* at, const uint8_t* end) {
  const CharClasses::Char first = look(at, end);
  const uint8_t* second = at + first.size;
  switch (first.bits) {
    case kNumber: {
      const uint8_t* stop = second;
      for (int count = 1; count < 3 && stop < end; ++count) {
        const CharClasses::Char next = look(stop, end);
        if (next.bits != kNumber) break;
        stop += next.size;
      }
      return stop;
    }
    case kCjk:
      return next_cjk_piece(at, end);
    case kLetter:
      return run_end(second, end, kLetter);
    case kSymbol:
      if (*at < 0x80 && second < end && is_ascii_letter(*second)) {
        while (second < end && is_ascii_letter(*second)) ++second;
        return second;
      }
      return run_end(run_end(second, end, kSymbol), end, kLineBreak);
    case kOther: {
      if (bits_at(second, end) == kLetter) return run_end(second, end, kLetter);
      // Nothing matches these; they are a piece up to the next match, which may begin with the last of them.
      const uint8_t* stop = second;
      while (stop < end) {
        const CharClasses::Char next = look(stop, end);
        if (next.bits != kOther || bits_at(stop + next.size, end) == kLetter) break;
        stop += next.size;
      }
      return stop;
    }
    default:
      break;
  }
  const uint8_t after = bits_at(second, end);
  if (first.bits == kSpace && after == kLetter) return run_end(second, end, kLetter);
  if (*at == ' ' && after == kSymbol) return run_end(run_end(second, end, kSymbol), end, kLineBreak);
  // White space: up to its last line break; without one, all of it at the end of the text between numerals and CJK,
  // else all but the last.
  const uint8_t* last = at;
  const uint8_t* after_break = nullptr;
  const uint8_t* run = at;
  uint8_t stopper = 0;
  while (run < end) {
    const CharClasses::Char here = look(run, end);
    stopper = here.bits;
    if ((here.bits & kWhite) == 0) break;
    last = run;
    run += here.size;
    if (here.bits == kLineBreak) after_break = run;
  }
  if (after_break != nullptr) return after_break;
  const bool at_end = run == end || stopper == kNumber || stopper == kCjk;
  return at_end || last == at ? run : last;
}

}  // namespace v3

// ----- deepseek-llm and deepseek-coder

namespace llm {

// kWhite and kInWide come beside the others.
enum : uint8_t {
  kLineBreak = 1,
  kLetter = 2,
  kPunctuation = 4,
  kNumber = 8,
  kWide = 16,  // what the split of wide characters finds in the text that the first three splits leave
  kWhite = 32,
  kOther = 64,
  kInWide = 128,  // it would find this one, and cuts the pieces of the splits before it
};

// Cased letters as the pattern lists them (those of Unicode 13); pairs of first and last.
constexpr uint32_t kCased[][2] = {
    {'A', 'Z'},         {'a', 'z'},         {0xB5, 0xB5},       {0xC0, 0xD6},       {0xD8, 0xF6},
    {0xF8, 0x1BA},      {0x1BC, 0x1BF},     {0x1C4, 0x293},     {0x295, 0x2AF},     {0x370, 0x373},
    {0x376, 0x377},     {0x37B, 0x37D},     {0x37F, 0x37F},     {0x386, 0x386},     {0x388, 0x38A},
    {0x38C, 0x38C},     {0x38E, 0x3A1},     {0x3A3, 0x3F5},     {0x3F7, 0x481},     {0x48A, 0x52F},
    {0x531, 0x556},     {0x10A0, 0x10C5},   {0x13A0, 0x13F5},   {0x13F8, 0x13FD},   {0x1C90, 0x1CBA},
    {0x1CBD, 0x1CBF},   {0x1D00, 0x1D2B},   {0x1D6B, 0x1D77},   {0x1D79, 0x1D9A},   {0x1E00, 0x1F15},
    {0x1F18, 0x1F1D},   {0x1F20, 0x1F45},   {0x1F48, 0x1F4D},   {0x1F50, 0x1F57},   {0x1F59, 0x1F59},
    {0x1F5B, 0x1F5B},   {0x1F5D, 0x1F5D},   {0x1F5F, 0x1F7D},   {0x1F80, 0x1FB4},   {0x1FB6, 0x1FBC},
    {0x1FBE, 0x1FBE},   {0x1FC2, 0x1FC4},   {0x1FC6, 0x1FCC},   {0x1FD0, 0x1FD3},   {0x1FD6, 0x1FDB},
    {0x1FE0, 0x1FEC},   {0x1FF2, 0x1FF4},   {0x1FF6, 0x1FFC},   {0x2102, 0x2102},   {0x2107, 0x2107},
    {0x210A, 0x2113},   {0x2115, 0x2115},   {0x2119, 0x211D},   {0x2124, 0x2124},   {0x2126, 0x2126},
    {0x2128, 0x2128},   {0x212A, 0x212D},   {0x212F, 0x2134},   {0x2139, 0x2139},   {0x213C, 0x213F},
    {0x2145, 0x2149},   {0x214E, 0x214E},   {0x2183, 0x2184},   {0x2C00, 0x2C7B},   {0x2C7E, 0x2CE4},
    {0x2CEB, 0x2CEE},   {0x2CF2, 0x2CF3},   {0xA640, 0xA66D},   {0xA680, 0xA69B},   {0xA722, 0xA76F},
    {0xA771, 0xA787},   {0xA78B, 0xA78E},   {0xAB70, 0xABBF},   {0xFB00, 0xFB06},   {0xFB13, 0xFB17},
    {0xFF21, 0xFF3A},   {0xFF41, 0xFF5A},   {0x10400, 0x1044F}, {0x104B0, 0x104D3}, {0x104D8, 0x104FB},
    {0x10C80, 0x10CB2}, {0x10CC0, 0x10CF2}, {0x118A0, 0x118DF}, {0x1E900, 0x1E943}};
constexpr uint32_t kMarks[][2] = {{'!', '/'},       {':', '~'},       {0xFF01, 0xFF0F},
                                  {0xFF1A, 0xFF5E}, {0x2018, 0x201F}, {0x3000, 0x3002}};

// One byte a code point.
template <bool kCoder>
std::unique_ptr<const uint8_t[]> build_table() {
  auto table = std::make_unique<uint8_t[]>(kCodePoints);
  const auto mark = [&table](const auto& ranges, uint8_t bits) {
    for (const auto& range : ranges) {
      for (uint32_t code = range[0]; code <= range[1]; ++code) table[code] |= bits;
    }
  };
  if (!kCoder) mark(kCased, kLetter);
  if (!kCoder) mark(kMarks, kPunctuation);
  for (uint32_t code = 0; code < kCodePoints; ++code) {
    const CodePointProperties properties = properties_of(code);
    uint8_t& bits = table[code];
    if (kCoder && properties.is_letter()) bits |= kLetter;
    if (kCoder && properties.is_punctuation()) bits |= kPunctuation;
    // What two of the splits could take belongs to the earlier one, whose pieces the later one cuts.
    if ((bits & kLetter) != 0) bits = kLetter;
    if (properties.is_numeral_of_digits()) bits |= kNumber;
    const bool wide = (code >= 0x800 && code <= 0x9FA5) || (code >= 0xAC00 && code <= 0xD7FF);
    if (wide && (bits & (kLetter | kPunctuation)) == 0) bits |= kWide;
    if (properties.is_white_space()) bits |= kWhite;
    if ((bits & ~kWhite) == 0) bits |= kOther;
    if (wide) bits |= kInWide;
  }
  table['\r'] = kLineBreak;
  table['\n'] = kLineBreak;
  return table;
}

struct Char {
  uint8_t bits;
  uint32_t size;
};

template <bool kCoder>
class Scanner {
 public:
  static const uint8_t* next_piece(const uint8_t* at, const uint8_t* end, ScanMemory& memory) {
    const Char first = look(at, end);
    if (first.bits == kLineBreak) return at + 1;
    if (opens_word(at, end, first)) return word_end(at, end, first);
    const uint8_t* second = at + first.size;
    const bool spaced = (first.bits & kWhite) != 0 && second < end && opens_punctuation(second, end);
    if ((first.bits & kPunctuation) != 0 || spaced) return punctuation_end(at, end, first);
    if ((first.bits & kNumber) != 0) return second;
    // What the first three splits leave. Where it ends in white space, that is a piece of its own in deepseek-llm.
    const uint8_t* limit = end;
    bool trailing = false;
    if (!kCoder && (first.bits & kWhite) != 0) {
      const uint8_t* tail = trailing_end(white_end(at, end, memory), end);
      trailing = tail != nullptr;
      if (trailing) limit = tail;
    }
    const uint8_t* stop = second;
    while (stop < limit) {
      const Char here = look(stop, end);
      if ((here.bits & kWide) != (first.bits & kWide) || (here.bits & (kLineBreak | kNumber)) != 0) break;
      if (!trailing && (opens_word(stop, end, here) || opens_punctuation(stop, end))) break;
      if (!trailing && (here.bits & kWhite) != 0) {
        const uint8_t* after = stop + here.size;
        if (after < end && opens_punctuation(after, end)) break;
        if (!kCoder && trailing_end(white_end(stop, end, memory), end) != nullptr) break;
      }
      stop += here.size;
    }
    return stop;
  }

 private:
  static Char look(const uint8_t* at, const uint8_t* end) {
    static const std::unique_ptr<const uint8_t[]> table = build_table<kCoder>();
    const DecodedChar decoded = decode_utf8(at, end);
    if (decoded.code_point == kInvalidCodePoint) return {kOther, 1};
    return {table[decoded.code_point], decoded.size};
  }
  // Letters that deepseek-llm's punctuation (its range :-~, and the same in full width) takes, too.
  static bool is_marked(const uint8_t* at, Char here) {
    return !kCoder && (here.size == 1 || (*at == 0xEF && at[1] >= 0xBC));
  }
  // Of \s?LETTERS+ at `at` the part that the later splits leave together: all of it marked or not, and wide or not.
  static const uint8_t* word_end(const uint8_t* at, const uint8_t* end, Char first) {
    const uint8_t* stop = at + first.size;
    const bool spaced = (first.bits & kLetter) == 0;
    if (spaced && (first.bits & kPunctuation) != 0) return stop;  // U+3000 is cut off by one or the other
    const bool marked = spaced ? is_marked(stop, look(stop, end)) : is_marked(at, first);
    while (stop < end) {
      const Char here = look(stop, end);
      if ((here.bits & kLetter) == 0 || is_marked(stop, here) != marked) break;
      if ((here.bits & kInWide) != (first.bits & kInWide)) break;
      stop += here.size;
    }
    return stop;
  }
  // Whether \s?LETTERS+ matches at `at`, where `here` stands.
  static bool opens_word(const uint8_t* at, const uint8_t* end, Char here) {
    if ((here.bits & kLetter) != 0) return true;
    const uint8_t* second = at + here.size;
    return (here.bits & kWhite) != 0 && second < end && (look(second, end).bits & kLetter) != 0;
  }
  // Whether `at` holds punctuation that no word takes (U+3000 is white space, too).
  static bool opens_punctuation(const uint8_t* at, const uint8_t* end) {
    const Char here = look(at, end);
    return (here.bits & kPunctuation) != 0 && !opens_word(at, end, here);
  }
  // Of \s?PUNCTUATION+ the same. Where it ends in white space (U+3000), that is a piece of its own in deepseek-llm.
  static const uint8_t* punctuation_end(const uint8_t* at, const uint8_t* end, Char first) {
    const uint8_t* stop = at + first.size;
    bool white = (first.bits & kWhite) != 0;  // all so far
    while (stop < end && opens_punctuation(stop, end)) {
      const Char here = look(stop, end);
      if ((here.bits & kInWide) != (first.bits & kInWide)) break;
      const uint8_t* next = stop + here.size;
      if (kCoder || (here.bits & kWhite) == 0) {
        white = false;
      } else {
        while (next < end && (look(next, end).bits & kWhite) != 0 && opens_punctuation(next, end)) {
          next += look(next, end).size;
        }
        const bool last = next == end || !opens_punctuation(next, end);
        if (last && !white) break;
      }
      stop = next;
    }
    return stop;
  }
  // End of the run of white space at `at`, line breaks and punctuation apart.
  static const uint8_t* white_end(const uint8_t* at, const uint8_t* end, ScanMemory& memory) {
    if (memory.white_end != nullptr && at < memory.white_end) return memory.white_end;
    const uint8_t* stop = at;
    while (stop < end) {
      const Char here = look(stop, end);
      if ((here.bits & kWhite) == 0 || (here.bits & kPunctuation) != 0) break;
      stop += here.size;
    }
    memory.white_end = stop;
    return stop;
  }
  // \s+$ over what the first three splits leave: the end of the match when the run of white space that ends at `white`
  // ends that text, else null. A word or punctuation takes the last of the run.
  static const uint8_t* trailing_end(const uint8_t* white, const uint8_t* end) {
    if (white == end) return white;
    const Char here = look(white, end);
    if (here.bits == kLineBreak) return white;
    if ((here.bits & kLetter) == 0 && (here.bits & kPunctuation) == 0) return nullptr;
    if (!opens_word(white, end, here) && !opens_punctuation(white, end)) return nullptr;
    if ((here.bits & kWhite) != 0 && opens_word(white, end, here)) return white;  // U+3000 before a word
    const uint8_t* last = white - 1;
    while ((*last & 0xC0) == 0x80) --last;
    return last;
  }
};

}  // namespace llm
}  // namespace

const uint8_t* next_piece_deepseek_v3(const uint8_t* at, const uint8_t* end, ScanMemory&) {
  return v3::next_piece(at, end);
}
const uint8_t* next_piece_deepseek_llm(const uint8_t* at, const uint8_t* end, ScanMemory& memory) {
  return llm::Scanner<false>::next_piece(at, end, memory);
}
const uint8_t* next_piece_deepseek_coder(const uint8_t* at, const uint8_t* end, ScanMemory& memory) {
  return llm::Scanner<true>::next_piece(at, end, memory);
}

}  // namespace warmpath

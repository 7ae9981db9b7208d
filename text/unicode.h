// Unicode properties of code points (Unicode 16.0.0, see scripts/unicode_tables.py) and UTF-8 in memory.
// Thread safety: pure functions over tables built on first use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace warmpath {

// Order of the generated table; the groups L, N, M, P, S, Z, C are ranges of it.
enum class GeneralCategory : uint8_t {
  kLu,
  kLl,
  kLt,
  kLm,
  kLo,
  kNd,
  kNl,
  kNo,
  kMn,
  kMc,
  kMe,
  kPc,
  kPd,
  kPs,
  kPe,
  kPi,
  kPf,
  kPo,
  kSm,
  kSc,
  kSk,
  kSo,
  kZs,
  kZl,
  kZp,
  kCc,
  kCf,
  kCo,
  kCs,
  kCn,
};
inline constexpr int kGeneralCategories = 30;

// One byte a code point: the category and three bits.
class CodePointProperties {
 public:
  constexpr explicit CodePointProperties(uint8_t bits) : bits_(bits) {}
  constexpr GeneralCategory category() const { return static_cast<GeneralCategory>(bits_ & 0x1F); }
  constexpr bool is_white_space() const {
    return (bits_ & 0x20) != 0;
  }  // White_Space, which is \s in regular expressions
  constexpr bool is_han() const { return (bits_ & 0x40) != 0; }
  constexpr bool is_letter() const { return category() <= GeneralCategory::kLo; }
  constexpr bool is_number() const { return in(GeneralCategory::kNd, GeneralCategory::kNo); }
  constexpr bool is_mark() const { return in(GeneralCategory::kMn, GeneralCategory::kMe); }
  constexpr bool is_punctuation() const { return in(GeneralCategory::kPc, GeneralCategory::kPo); }
  constexpr bool is_symbol() const { return in(GeneralCategory::kSm, GeneralCategory::kSo); }
  // A numeral for Hugging Face's `Digits`, which follows Unicode 17.0.0.
  constexpr bool is_numeral_of_digits() const { return is_number() || (bits_ & 0x80) != 0; }
  constexpr uint8_t bits() const { return bits_; }

 private:
  constexpr bool in(GeneralCategory first, GeneralCategory last) const {
    return category() >= first && category() <= last;
  }
  uint8_t bits_;
};

inline constexpr uint32_t kCodePoints = 0x110000;

// The whole table, kCodePoints bytes, each the bits of a CodePointProperties.
const uint8_t* code_point_table();
inline CodePointProperties properties_of(uint32_t code_point) {
  return CodePointProperties(code_point_table()[code_point < kCodePoints ? code_point : 0xD800]);
}

struct DecodedChar {
  uint32_t code_point = 0;  // kInvalidCodePoint for a byte that begins no valid character
  uint32_t size = 0;        // bytes; 1 for an invalid byte
};
inline constexpr uint32_t kInvalidCodePoint = 0xFFFFFFFF;

// The character at `at`. REQUIRES at < end. Overlong forms, surrogates and values beyond U+10FFFF are invalid.
inline DecodedChar decode_utf8(const uint8_t* at, const uint8_t* end) {
  const uint32_t lead = *at;
  if (lead < 0x80) return {lead, 1};
  const size_t left = static_cast<size_t>(end - at);
  const auto tail = [&](size_t index) -> uint32_t { return at[index] ^ 0x80u; };  // < 0x40 when a continuation byte
  if (lead >= 0xC2 && lead < 0xE0) {
    if (left >= 2 && tail(1) < 0x40) return {(lead & 0x1F) << 6 | tail(1), 2};
  } else if (lead >= 0xE0 && lead < 0xF0) {
    if (left >= 3 && tail(1) < 0x40 && tail(2) < 0x40) {
      const uint32_t code = (lead & 0x0F) << 12 | tail(1) << 6 | tail(2);
      if (code >= 0x800 && (code < 0xD800 || code >= 0xE000)) return {code, 3};
    }
  } else if (lead >= 0xF0 && lead < 0xF5) {
    if (left >= 4 && tail(1) < 0x40 && tail(2) < 0x40 && tail(3) < 0x40) {
      const uint32_t code = (lead & 0x07) << 18 | tail(1) << 12 | tail(2) << 6 | tail(3);
      if (code >= 0x10000 && code < kCodePoints) return {code, 4};
    }
  }
  return {kInvalidCodePoint, 1};
}

// REQUIRES a code point < kCodePoints.
void append_utf8(uint32_t code_point, std::string& out);
// Number of characters; each invalid byte counts as one.
size_t utf8_length(std::string_view text);
bool is_valid_utf8(std::string_view text);
// Bytes before the first one that is no part of a valid character.
size_t valid_utf8_size(std::string_view text);
// Whether `text` holds bytes below 0x80 only.
bool is_ascii(std::string_view text);

// Python's str.upper and str.lower of one code point (without the context rule of the final sigma), appended to `out`.
void append_upper(uint32_t code_point, std::string& out);
void append_lower(uint32_t code_point, std::string& out);
// Of a word's first letter in str.title and str.capitalize.
void append_title(uint32_t code_point, std::string& out);
// Python's str.isspace and str.strip: White_Space and the separators U+001C to U+001F.
inline bool is_python_space(uint32_t code_point) {
  return (code_point >= 0x1C && code_point <= 0x1F) ||
         (code_point < kCodePoints && properties_of(code_point).is_white_space());
}
// Python's str.isprintable of one character, which decides what repr() escapes.
bool is_python_printable(uint32_t code_point);

}  // namespace warmpath

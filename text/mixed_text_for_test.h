// Deterministic mixed text for tests and benches: the twin of text/reference/mixed_text.py, byte for byte (which says
// what it holds). Test code only.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/unicode.h"

namespace warmpath {

class MixedText {
 public:
  // Document `index` of the series `seed`: valid UTF-8 of about `size` bytes.
  static std::string document(uint64_t index, uint64_t seed = 0, size_t size = 4096) {
    MixedText random(seed * 1000003 + index);
    const uint64_t flavour = index % 6;
    std::string text;
    while (text.size() < size) random.append_piece(flavour, text);
    return text;
  }

 private:
  explicit MixedText(uint64_t seed) : state_(seed) {}

  // Knuth's MMIX generator, the high half of 64 bits.
  uint64_t below(uint64_t bound) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return (state_ >> 33) % bound;
  }
  std::string_view word() { return words()[below(words().size())]; }
  void append_range_char(const std::pair<uint32_t, uint32_t>& range, std::string& text) {
    append_utf8(range.first + static_cast<uint32_t>(below(range.second - range.first + 1)), text);
  }
  template <typename Append>
  void times(uint64_t count, Append append) {
    for (uint64_t index = 0; index < count; ++index) append();
  }

  void append_piece(uint64_t flavour, std::string& text) {
    static constexpr std::string_view kPunctuation = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";
    static constexpr std::array<std::string_view, 15> kWhite = {"\n",       "\n\n",   "\r\n",   "\t",     "\t\t",
                                                                " \n",      "\n ",    "\u00a0", "\u2003", "\u3000",
                                                                "\xC2\x85", "\u2028", "\r",     "\v",     "\f"};
    const uint64_t kind = below(10);
    if ((flavour == 0 && kind < 7) || (flavour == 1 && kind < 4)) {
      text += word();
      if (below(8) != 0) text += ' ';
    } else if (flavour == 2 && kind < 8) {
      const auto& range = ranges()[below(ranges().size())];
      times(1 + below(12), [&] { append_range_char(range, text); });
    } else if (flavour == 4 && kind < 5) {
      const auto code = static_cast<uint32_t>(below(0x110000 - 0x800));
      append_utf8(code < 0xD800 ? code : code + 0x800, text);
    } else if (kind == 0) {
      text.append(1 + below(12), ' ');
    } else if (kind == 1) {
      const std::string_view white = kWhite[below(kWhite.size())];
      times(1 + below(3), [&] { text += white; });
    } else if (kind == 2) {
      times(1 + below(7), [&] { text += static_cast<char>('0' + below(10)); });
    } else if (kind == 3) {
      times(1 + below(5), [&] { text += kPunctuation[below(kPunctuation.size())]; });
    } else if (kind == 4) {
      times(1 + below(20), [&] {
        const auto letter = static_cast<char>('a' + below(26));
        text += static_cast<char>(letter - 32 * static_cast<int>(below(2)));
      });
    } else if (kind == 5) {
      append_utf8(static_cast<uint32_t>(below(2) != 0 ? below(32) : 127 + below(33)), text);
    } else if (kind == 6) {
      times(1 + below(6), [&] { append_utf8(static_cast<uint32_t>(below(256)), text); });
    } else if (kind == 7) {
      text += '\'';
      text += word();
    } else if (kind == 8) {
      append_range_char(ranges()[below(ranges().size())], text);
    } else {
      text += word();
    }
  }

  static const std::vector<std::string_view>& words() {
    static const std::vector<std::string_view> words = [] {
      static constexpr std::string_view kAll =
          "the of and to in is that it for was on are as with his they at be this from have or by one had not but what "
          "all "
          "were when we there can an your which their said if do will each about how up out them then she many some so "
          "these would other into has more her two like him see time could no make than first been its who now people "
          "my "
          "made over did down only way find use may water long little very after words called just where most know "
          "don't "
          "I'm we'll you're they've he'd it's CAN'T 'S 'Ll x's return def class self None import lambda yield async "
          "int "
          "main void std::vector const auto& static_cast<size_t> unsigned template typename nullptr #include "
          "<|im_end|> "
          "<|endoftext|> function=> ===!== && || /* */ // http://www.example.com/a?b=c&d=%20 user@mail.org "
          "getElementById "
          "camelCaseWord snake_case_word SCREAMING_CASE kConstantName __init__ TODO(me): 0x7fffffff 1e-10 3.14159 "
          "v1.2.3-rc4";
      std::vector<std::string_view> split;
      for (size_t from = 0; from <= kAll.size();) {
        const size_t end = std::min(kAll.find(' ', from), kAll.size());
        split.push_back(kAll.substr(from, end - from));
        from = end + 1;
      }
      return split;
    }();
    return words;
  }
  static const std::vector<std::pair<uint32_t, uint32_t>>& ranges() {
    static const std::vector<std::pair<uint32_t, uint32_t>> ranges = {
        {0xA0, 0x17F},      {0x180, 0x24F},     {0x300, 0x36F},     {0x370, 0x3FF},     {0x400, 0x4FF},
        {0x530, 0x58F},     {0x590, 0x5F4},     {0x600, 0x6FF},     {0x660, 0x669},     {0x900, 0x97F},
        {0xE00, 0xE5B},     {0x10A0, 0x10FF},   {0x1100, 0x11FF},   {0x1E00, 0x1EFF},   {0x2000, 0x200F},
        {0x2010, 0x205F},   {0x2070, 0x209C},   {0x20A0, 0x20C0},   {0x2150, 0x218B},   {0x2190, 0x23FF},
        {0x2460, 0x24FF},   {0x2500, 0x27BF},   {0x3000, 0x303F},   {0x3040, 0x30FF},   {0x3400, 0x4DBF},
        {0x4E00, 0x9FFF},   {0xAC00, 0xD7A3},   {0xE000, 0xE0FF},   {0xFB00, 0xFB4F},   {0xFE00, 0xFE0F},
        {0xFF01, 0xFFEE},   {0x10330, 0x1034A}, {0x10D40, 0x10D8F}, {0x11DE0, 0x11DEF}, {0x1D400, 0x1D7FF},
        {0x1F300, 0x1F64F}, {0x1F900, 0x1F9FF}, {0x20000, 0x20100}, {0xE0001, 0xE007F}};
    return ranges;
  }

  uint64_t state_;
};

}  // namespace warmpath

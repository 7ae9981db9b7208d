// Each hand-written scanner against the regular expressions that it stands for, run by PCRE2 one after the other, on
// short random texts dense in what the expressions tell apart.
#include "text/bpe_scanner.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "text/pre_tokenizer.h"
#include "text/tokenizer_family.h"
#include "text/unicode.h"

namespace warmpath {
namespace {

// Assigned for long, so that every PCRE2 in use knows them (but U+3097 and U+0378, which are not assigned).
constexpr uint32_t kCharacters[] = {
    'a',     'b',     'Z',     's',    't',    'r',    'e',    'l',    'd',    'm',     'v',     'S',     'T',
    '1',     '2',     '9',     ' ',    ' ',    ' ',    '\n',   '\n',   '\r',   '\t',    '\'',    '\'',    '/',
    '.',     '!',     '$',     '^',    '`',    '~',    '-',    '_',    '(',    '|',     0,       1,       0x0B,
    0x0C,    0x7F,    0x85,    0xA0,   0xAA,   0xAD,   0xB2,   0xBA,   0xBD,   0xDF,    0xE9,    0x130,   0x131,
    0x17F,   0x1BB,   0x1C5,   0x294,  0x2B0,  0x301,  0x378,  0x391,  0x3B1,  0x483,   0x488,   0x5D0,   0x61C,
    0x660,   0x6F0,   0x7FF,   0x900,  0x93E,  0x94D,  0x966,  0xE01,  0xE50,  0x10D0,  0x1100,  0x13A0,  0x1680,
    0x1EC7,  0x200B,  0x200D,  0x2003, 0x2016, 0x2018, 0x201F, 0x2028, 0x20DD, 0x212A,  0x2160,  0x2460,  0x2E80,
    0x2F00,  0x3000,  0x3001,  0x3005, 0x3007, 0x3021, 0x303B, 0x3041, 0x3097, 0x3099,  0x309A,  0x309B,  0x309C,
    0x30A0,  0x30A2,  0x30FB,  0x30FC, 0x3400, 0x4E00, 0x9FA5, 0xAB70, 0xAC00, 0xD7A3,  0xE000,  0xF900,  0xFB01,
    0xFE0F,  0xFF01,  0xFF11,  0xFF21, 0xFF3E, 0xFF40, 0xFF41, 0xFF5E, 0xFFFD, 0x10400, 0x1D400, 0x1E900, 0x1F600,
    0x20000, 0x2F800, 0x10FFFF};

std::string random_text(std::mt19937& random) {
  std::string text;
  const uint32_t count = 1 + random() % 10;
  uint32_t code = 0;
  for (uint32_t at = 0; at < count; ++at) {
    if (at == 0 || random() % 3 > 0) code = kCharacters[random() % std::size(kCharacters)];
    append_utf8(code, text);
  }
  return text;
}

std::string shown(const std::vector<std::string>& pieces) {
  std::string text;
  for (const std::string& piece : pieces) {
    for (const char byte : piece) {
      char digits[4];
      std::snprintf(digits, sizeof(digits), "%02X", static_cast<uint8_t>(byte));
      text += digits;
    }
    text += ' ';
  }
  return text;
}

TEST(BpeScanner, EveryScannerCutsAsItsExpressionsDo) {
  for (const ScannedPatterns& family : scanned_patterns()) {
    SCOPED_TRACE(std::string(family.patterns[0].substr(0, 60)));
    std::vector<PreTokenizer::Step> steps;
    for (const std::string_view pattern : family.patterns) {
      auto regex = Regex::compile(pattern);
      ASSERT_TRUE(regex.ok()) << regex.status().message();
      steps.push_back({.kind = PreTokenizer::Kind::kRegex, .regex = *std::move(regex)});
    }
    const PreTokenizer expressions(std::move(steps));
    std::mt19937 random(1);
    for (int round = 0; round < 30'000; ++round) {
      const std::string text = random_text(random);
      PreTokenizer::Pieces pieces;
      ASSERT_TRUE(expressions.split(text, TextBegins::kPrompt, pieces).ok());
      const std::vector<std::string> expected(pieces.views.begin(), pieces.views.end());
      std::vector<std::string> found;
      ScanMemory memory;
      const auto* at = reinterpret_cast<const uint8_t*>(text.data());
      const uint8_t* end = at + text.size();
      while (at < end) {
        const uint8_t* stop = family.scanner(at, end, memory);
        found.emplace_back(at, stop);
        at = stop;
      }
      ASSERT_EQ(shown(found), shown(expected)) << "of " << shown({text});
    }
  }
}

}  // namespace
}  // namespace warmpath

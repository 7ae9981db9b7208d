// The streaming detokenizer and the stop matcher against slow obvious twins, over random cuts of random bytes.
#include "text/detokenizer.h"

#include <gtest/gtest.h>

#include <random>

#include "text/mixed_text_for_test.h"
#include "text/stop_matcher.h"
#include "text/unicode.h"

namespace warmpath {
namespace {

// The whole byte string decoded at once, as the Unicode standard's "maximal subpart" practice has it: look for the
// longest valid character; else drop the longest prefix of some valid character, or one byte.
std::string decode_at_once(const std::string& bytes) {
  std::string text;
  for (size_t at = 0; at < bytes.size();) {
    const auto valid = [&](size_t size) { return at + size <= bytes.size() && is_valid_utf8(bytes.substr(at, size)); };
    size_t size = 1;
    while (size <= 4 && !(valid(size) && utf8_length(std::string_view(bytes).substr(at, size)) == 1)) ++size;
    if (size <= 4) {
      text += bytes.substr(at, size);
      at += size;
      continue;
    }
    // The longest prefix that some continuation makes valid.
    size_t broken = 1;
    for (size_t length = 2; length <= 3 && at + length <= bytes.size(); ++length) {
      const std::string prefix = bytes.substr(at, length);
      bool extends = false;
      for (int a = 0x80; a < 0xC0 && !extends; ++a) {
        extends = is_valid_utf8(prefix + static_cast<char>(a));
        for (int b = 0x80; b < 0xC0 && !extends && length == 2; ++b) {
          extends = is_valid_utf8(prefix + static_cast<char>(a) + static_cast<char>(b));
        }
      }
      if (!extends) break;
      broken = length;
    }
    text += "\xEF\xBF\xBD";
    at += broken;
  }
  return text;
}

std::string random_bytes(std::mt19937& random) {
  std::string bytes;
  const size_t pieces = random() % 12;
  for (size_t piece = 0; piece < pieces; ++piece) {
    switch (random() % 4) {
      case 0:
        bytes.push_back(static_cast<char>(random() % 256));
        break;
      case 1: {
        const uint32_t code = random() % 0x110000;
        if (code < 0xD800 || code >= 0xE000) append_utf8(code, bytes);
        break;
      }
      case 2: {  // the start of a character, cut off
        std::string whole;
        append_utf8(0x10000 + random() % 0x10000, whole);
        bytes += whole.substr(0, 1 + random() % 3);
        break;
      }
      default:
        bytes += "ab";
    }
  }
  return bytes;
}

TEST(Utf8Joiner, AnyCutGivesTheTextDecodedAtOnceAndNeverHalfACharacter) {
  std::mt19937 random(7);
  for (int round = 0; round < 20000; ++round) {
    const std::string bytes = random_bytes(random);
    const std::string expected = decode_at_once(bytes);
    Utf8Joiner joiner;
    std::string text;
    for (size_t at = 0; at < bytes.size();) {
      const size_t size = 1 + random() % 3;
      const size_t before = text.size();
      joiner.push(std::string_view(bytes).substr(at, size), text);
      ASSERT_TRUE(is_valid_utf8(std::string_view(text).substr(before)));
      ASSERT_LE(joiner.held_bytes(), 3u);
      at += size;
    }
    joiner.finish(text);
    ASSERT_EQ(text, expected) << "round " << round;
  }
}

TEST(Detokenizer, ByteTokensOfASplitCharacterComeOutTogether) {
  const auto tokenizer = Tokenizer::create(synthetic_vocabulary());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  Detokenizer detokenizer(**tokenizer);
  std::string text;
  for (const uint8_t byte : std::string("\xF0\x9F\x99")) detokenizer.push(byte, text);
  EXPECT_EQ(text, "");
  detokenizer.push(0x82, text);
  EXPECT_EQ(text, "🙂");
  detokenizer.push(258, text);  // <|im_end|> gives no text
  detokenizer.push(0xC3, text);
  detokenizer.finish(text);
  EXPECT_EQ(text, "🙂\xEF\xBF\xBD");
}

// Byte by byte over all the text so far: the first byte at which some stop string ends; the longest of those.
std::string stop_slowly(const std::vector<std::string>& stops, const std::string& text, std::string& matched) {
  for (size_t end = 1; end <= text.size(); ++end) {
    const std::string_view seen = std::string_view(text).substr(0, end);
    const std::string* longest = nullptr;
    for (const std::string& stop : stops) {
      if (!stop.empty() && seen.ends_with(stop) && (longest == nullptr || stop.size() > longest->size()))
        longest = &stop;
    }
    if (longest != nullptr) {
      matched = *longest;
      return text.substr(0, end - longest->size());
    }
  }
  matched.clear();
  return text;
}

TEST(StopMatcher, AnyCutStopsWhereTheWholeTextDoes) {
  std::mt19937 random(11);
  const auto letters = [&](size_t most) {
    std::string word;
    const size_t size = random() % (most + 1);
    for (size_t at = 0; at < size; ++at) word.push_back(static_cast<char>('a' + random() % 3));
    return word;
  };
  int stopped = 0;
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::string> stops;
    const size_t count = random() % 4;
    for (size_t stop = 0; stop < count; ++stop) stops.push_back(letters(5));
    const std::string text = letters(30);
    std::string expected_match;
    const std::string expected = stop_slowly(stops, text, expected_match);
    const auto built = StopStrings::create(stops);
    ASSERT_TRUE(built.ok());
    StopMatcher matcher(*built);
    std::string out;
    for (size_t at = 0; at < text.size();) {
      const size_t size = 1 + random() % 6;
      matcher.push(std::string_view(text).substr(at, size), out);
      ASSERT_LE(matcher.held_bytes(), 4u);
      // What is out is final: it must be a prefix of the answer.
      ASSERT_TRUE(expected.starts_with(out)) << out << " against " << expected;
      at += size;
    }
    matcher.finish(out);
    ASSERT_EQ(out, expected) << "round " << round << " text " << text;
    ASSERT_EQ(matcher.stopped(), !expected_match.empty());
    if (matcher.stopped()) {
      ASSERT_EQ(matcher.matched(), expected_match);
      ++stopped;
    }
  }
  std::cout << stopped << " of 20000 streams stopped as the slow twin does\n";
  EXPECT_GT(stopped, 5000);
}

TEST(StopStrings, LimitsAreAnErrorThatNamesThem) {
  const auto built = StopStrings::create(std::vector<std::string>(65, "x"));
  ASSERT_FALSE(built.ok());
  EXPECT_NE(built.status().message().find("at most 64"), std::string::npos);
}

}  // namespace
}  // namespace warmpath

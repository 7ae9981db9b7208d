// Python's str methods over MarkedText: results keep the origin of the bytes they are made of. Positions count
// characters. Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "text/marked_text.h"
#include "text/value.h"

namespace warmpath::jinja {

size_t char_count(const MarkedText& text);
std::vector<Value> characters_of(const MarkedText& text);
// Characters [first, end), clipped.
MarkedText char_slice(const MarkedText& text, size_t first, size_t end);

enum class Side : uint8_t { kBoth, kLeft, kRight };
// Without the characters of `chars` (white space when unset) at its ends.
MarkedText strip(const MarkedText& text, std::optional<std::string_view> chars, Side side);

enum class CaseChange : uint8_t { kUpper, kLower, kSwap, kCapitalize, kTitle, kJinjaTitle };
MarkedText change_case(const MarkedText& text, CaseChange change);

// At most `limit` replacements when it is not negative.
MarkedText replace(const MarkedText& text, std::string_view old, const MarkedText& replacement, int64_t limit);

// str.split / rsplit; without a separator by runs of white space. `limit` < 0: no limit.
std::vector<Value> split(const MarkedText& text, std::optional<std::string_view> separator, int64_t limit);
std::vector<Value> split_right(const MarkedText& text, std::optional<std::string_view> separator, int64_t limit);
std::vector<Value> split_lines(const MarkedText& text, bool keep_ends);

// `text` with spaces (or `fill`) to a width in characters.
enum class Align : uint8_t { kLeft, kRight, kCenter };
MarkedText pad(const MarkedText& text, int64_t width, std::string_view fill, Align align);

}  // namespace warmpath::jinja

#include "text/jinja/text_ops.h"

#include <algorithm>

#include "text/jinja/error.h"
#include "text/unicode.h"

namespace warmpath::jinja {
namespace {

const uint8_t* bytes_of(std::string_view text) { return reinterpret_cast<const uint8_t*>(text.data()); }

// Size of the character at `at`, and the size of the one that ends at `at` (walking back over continuation bytes).
size_t char_size(std::string_view text, size_t at) {
  return decode_utf8(bytes_of(text) + at, bytes_of(text) + text.size()).size;
}
size_t char_size_before(std::string_view text, size_t at) {
  for (size_t size = 1; size <= 4 && size <= at; ++size) {
    if ((static_cast<uint8_t>(text[at - size]) & 0xC0) == 0x80) continue;
    return char_size(text, at - size) == size ? size : 1;
  }
  return 1;
}
uint32_t code_point_at(std::string_view text, size_t at) {
  return decode_utf8(bytes_of(text) + at, bytes_of(text) + text.size()).code_point;
}

size_t byte_offset(std::string_view text, size_t chars, size_t from = 0) {
  size_t at = from;
  for (; chars > 0 && at < text.size(); --chars) at += char_size(text, at);
  return at;
}

bool is_word_break(uint32_t code) {
  // Jinja2's title filter starts words after these: [-\s({\[<]
  return code == '-' || code == '(' || code == '{' || code == '[' || code == '<' || is_python_space(code);
}
bool is_cased(uint32_t code) {
  if (code >= kCodePoints) return false;
  const GeneralCategory category = properties_of(code).category();
  return category == GeneralCategory::kLu || category == GeneralCategory::kLl || category == GeneralCategory::kLt;
}

}  // namespace

size_t char_count(const MarkedText& text) {
  size_t count = 0;
  for (const MarkedText::Part& part : text.parts()) count += utf8_length(part.bytes);
  return count;
}

std::vector<Value> characters_of(const MarkedText& text) {
  std::vector<Value> characters;
  size_t offset = 0;
  for (const MarkedText::Part& part : text.parts()) {
    for (size_t at = 0; at < part.bytes.size();) {
      const size_t size = char_size(part.bytes, at);
      characters.push_back(Value::string(text.substr(offset + at, size)));
      at += size;
    }
    offset += part.bytes.size();
  }
  return characters;
}

MarkedText char_slice(const MarkedText& text, size_t first, size_t end) {
  std::string scratch;
  const std::string_view all = text.view(scratch);
  if (is_ascii(all)) return text.substr(first, end - first);
  const size_t from = byte_offset(all, first);
  return text.substr(from, byte_offset(all, end - first, from) - from);
}

MarkedText strip(const MarkedText& text, std::optional<std::string_view> chars, Side side) {
  std::string scratch;
  const std::string_view all = text.view(scratch);
  const auto goes = [&](size_t at, size_t size) {
    if (chars) return chars->find(all.substr(at, size)) != std::string_view::npos;
    return is_python_space(code_point_at(all, at));
  };
  size_t first = 0;
  size_t end = all.size();
  while (side != Side::kRight && first < end && goes(first, char_size(all, first))) first += char_size(all, first);
  while (side != Side::kLeft && end > first) {
    const size_t size = char_size_before(all, end);
    if (!goes(end - size, size)) break;
    end -= size;
  }
  return text.substr(first, end - first);
}

MarkedText change_case(const MarkedText& text, CaseChange change) {
  MarkedText changed;
  bool word_start = true;  // carried from part to part
  for (const MarkedText::Part& part : text.parts()) {
    std::string bytes;
    bytes.reserve(part.bytes.size());
    for (size_t at = 0; at < part.bytes.size();) {
      const size_t size = char_size(part.bytes, at);
      const uint32_t code = code_point_at(part.bytes, at);
      if (code == kInvalidCodePoint) {
        bytes.append(part.bytes.substr(at, size));
        at += size;
        continue;
      }
      switch (change) {
        case CaseChange::kUpper:
          append_upper(code, bytes);
          break;
        case CaseChange::kLower:
          append_lower(code, bytes);
          break;
        case CaseChange::kSwap: {
          const bool upper = properties_of(code).category() == GeneralCategory::kLu;
          upper ? append_lower(code, bytes) : append_upper(code, bytes);
          break;
        }
        default:
          if (!word_start) {
            append_lower(code, bytes);
          } else if (change == CaseChange::kJinjaTitle) {
            append_upper(code, bytes);  // its filter calls upper(), not title()
          } else {
            append_title(code, bytes);
          }
          if (change == CaseChange::kCapitalize) word_start = false;
          if (change == CaseChange::kTitle) word_start = !is_cased(code);
          if (change == CaseChange::kJinjaTitle) word_start = is_word_break(code);
      }
      at += size;
    }
    changed.append(MarkedText(std::move(bytes), part.origin));
  }
  return changed;
}

MarkedText replace(const MarkedText& text, std::string_view old, const MarkedText& replacement, int64_t limit) {
  std::string scratch;
  const std::string_view all = text.view(scratch);
  MarkedText result;
  size_t from = 0;
  if (old.empty()) {
    // Python puts the replacement before every character and at the end.
    for (size_t at = 0; limit != 0 && at <= all.size(); --limit) {
      result.append(text.substr(from, at - from));
      result.append(replacement);
      from = at;
      if (at == all.size()) break;
      at += char_size(all, at);
    }
    result.append(text.substr(from));
    return result;
  }
  for (size_t at; limit != 0 && (at = all.find(old, from)) != std::string_view::npos; --limit) {
    result.append(text.substr(from, at - from));
    result.append(replacement);
    from = at + old.size();
  }
  if (from == 0) return text;
  result.append(text.substr(from));
  return result;
}

std::vector<Value> split(const MarkedText& text, std::optional<std::string_view> separator, int64_t limit) {
  std::string scratch;
  const std::string_view all = text.view(scratch);
  std::vector<Value> pieces;
  const auto take = [&](size_t first, size_t end) { pieces.push_back(Value::string(text.substr(first, end - first))); };
  if (separator) {
    if (separator->empty()) throw TemplateError("empty separator");
    size_t from = 0;
    for (size_t at; limit != 0 && (at = all.find(*separator, from)) != std::string_view::npos; --limit) {
      take(from, at);
      from = at + separator->size();
    }
    take(from, all.size());
    return pieces;
  }
  size_t at = 0;
  while (true) {
    while (at < all.size() && is_python_space(code_point_at(all, at))) at += char_size(all, at);
    if (at >= all.size()) return pieces;
    if (limit-- == 0) {
      take(at, all.size());
      return pieces;
    }
    const size_t first = at;
    while (at < all.size() && !is_python_space(code_point_at(all, at))) at += char_size(all, at);
    take(first, at);
  }
}

std::vector<Value> split_right(const MarkedText& text, std::optional<std::string_view> separator, int64_t limit) {
  if (limit < 0) return split(text, separator, -1);
  std::string scratch;
  const std::string_view all = text.view(scratch);
  std::vector<Value> pieces;
  size_t end = all.size();
  if (separator) {
    if (separator->empty()) throw TemplateError("empty separator");
    for (; limit > 0 && end >= separator->size(); --limit) {
      const size_t at = all.rfind(*separator, end - separator->size());
      if (at == std::string_view::npos) break;
      pieces.push_back(Value::string(text.substr(at + separator->size(), end - at - separator->size())));
      end = at;
    }
    pieces.push_back(Value::string(text.substr(0, end)));
  } else {
    while (true) {
      const auto space_before = [&] {
        return end > 0 && is_python_space(code_point_at(all, end - char_size_before(all, end)));
      };
      while (space_before()) end -= char_size_before(all, end);
      if (end == 0) break;
      if (limit-- == 0) {
        pieces.push_back(Value::string(text.substr(0, end)));
        break;
      }
      const size_t last = end;
      while (end > 0 && !space_before()) end -= char_size_before(all, end);
      pieces.push_back(Value::string(text.substr(end, last - end)));
    }
  }
  std::reverse(pieces.begin(), pieces.end());
  return pieces;
}

std::vector<Value> split_lines(const MarkedText& text, bool keep_ends) {
  std::string scratch;
  const std::string_view all = text.view(scratch);
  std::vector<Value> lines;
  size_t from = 0;
  for (size_t at = 0; at < all.size();) {
    const uint32_t code = code_point_at(all, at);
    const size_t size = char_size(all, at);
    // str.splitlines: \n \r \v \f, the separators U+001C to U+001E, NEL, LS and PS.
    const bool line_end = (code >= 0x0A && code <= 0x0D) || (code >= 0x1C && code <= 0x1E) || code == 0x85 ||
                          code == 0x2028 || code == 0x2029;
    if (!line_end) {
      at += size;
      continue;
    }
    const size_t next = code == '\r' && at + 1 < all.size() && all[at + 1] == '\n' ? at + 2 : at + size;
    lines.push_back(Value::string(text.substr(from, (keep_ends ? next : at) - from)));
    at = from = next;
  }
  if (from < all.size()) lines.push_back(Value::string(text.substr(from)));
  return lines;
}

MarkedText pad(const MarkedText& text, int64_t width, std::string_view fill, Align align) {
  const auto count = static_cast<int64_t>(char_count(text));
  if (width <= count) return text;
  if (width > (int64_t{1} << 24)) throw TemplateLimit("a padded string would be too wide");
  const int64_t missing = width - count;
  // CPython's str.center puts the odd space left when the width is odd.
  const int64_t left = align == Align::kLeft    ? 0
                       : align == Align::kRight ? missing
                                                : missing / 2 + (missing & width & 1);
  const auto filled = [&](int64_t times) {
    std::string bytes;
    for (int64_t index = 0; index < times; ++index) bytes += fill;
    return MarkedText(std::move(bytes), Origin::kTemplate);
  };
  MarkedText padded = filled(left);
  padded.append(text);
  padded.append(filled(missing - left));
  return padded;
}

}  // namespace warmpath::jinja

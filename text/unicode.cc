#include "text/unicode.h"

#include <cstring>
#include <memory>
#include <unordered_map>

#include "text/unicode_data.h"

namespace warmpath {
namespace {

std::unique_ptr<const uint8_t[]> build_code_point_table() {
  auto table = std::make_unique<uint8_t[]>(kCodePoints);
  for (size_t run = 0; run < kUnicodeRunCount; ++run) {
    const uint32_t first = kUnicodeRuns[run] >> 8;
    const uint32_t end = run + 1 < kUnicodeRunCount ? kUnicodeRuns[run + 1] >> 8 : kCodePoints;
    std::memset(table.get() + first, static_cast<int>(kUnicodeRuns[run] & 0xFF), end - first);
  }
  return table;
}

using CaseTable = std::unordered_map<uint32_t, std::array<uint32_t, 3>>;

CaseTable build_case_table(const std::vector<CaseMapping>& mappings) {
  CaseTable table;
  for (const CaseMapping& mapping : mappings) {
    for (uint32_t code = mapping.first; code <= mapping.last; code += mapping.stride) {
      table[code] =
          mapping.letters[0] != 0
              ? mapping.letters
              : std::array<uint32_t, 3>{static_cast<uint32_t>(static_cast<int32_t>(code) + mapping.offset), 0, 0};
    }
  }
  return table;
}

void append_mapped(const CaseTable& table, uint32_t code_point, std::string& out) {
  const auto found = table.find(code_point);
  if (found == table.end()) return append_utf8(code_point, out);
  for (const uint32_t letter : found->second) {
    if (letter != 0) append_utf8(letter, out);
  }
}

}  // namespace

const uint8_t* code_point_table() {
  static const std::unique_ptr<const uint8_t[]> table = build_code_point_table();
  return table.get();
}

void append_utf8(uint32_t code_point, std::string& out) {
  const auto byte = [&out](uint32_t value) { out.push_back(static_cast<char>(value)); };
  if (code_point < 0x80) {
    byte(code_point);
  } else if (code_point < 0x800) {
    byte(0xC0 | code_point >> 6);
    byte(0x80 | (code_point & 0x3F));
  } else if (code_point < 0x10000) {
    byte(0xE0 | code_point >> 12);
    byte(0x80 | (code_point >> 6 & 0x3F));
    byte(0x80 | (code_point & 0x3F));
  } else {
    byte(0xF0 | code_point >> 18);
    byte(0x80 | (code_point >> 12 & 0x3F));
    byte(0x80 | (code_point >> 6 & 0x3F));
    byte(0x80 | (code_point & 0x3F));
  }
}

size_t utf8_length(std::string_view text) {
  if (is_ascii(text)) return text.size();
  const auto* at = reinterpret_cast<const uint8_t*>(text.data());
  const uint8_t* end = at + text.size();
  size_t count = 0;
  for (; at < end; ++count) at += decode_utf8(at, end).size;
  return count;
}

size_t valid_utf8_size(std::string_view text) {
  const auto* begin = reinterpret_cast<const uint8_t*>(text.data());
  const uint8_t* at = begin;
  const uint8_t* end = at + text.size();
  while (at < end) {
    const DecodedChar decoded = decode_utf8(at, end);
    if (decoded.code_point == kInvalidCodePoint) break;
    at += decoded.size;
  }
  return static_cast<size_t>(at - begin);
}

bool is_valid_utf8(std::string_view text) { return valid_utf8_size(text) == text.size(); }

bool is_ascii(std::string_view text) {
  size_t index = 0;
  for (; index + 8 <= text.size(); index += 8) {
    uint64_t word;
    std::memcpy(&word, text.data() + index, 8);
    if ((word & 0x8080808080808080ull) != 0) return false;
  }
  for (; index < text.size(); ++index) {
    if (static_cast<uint8_t>(text[index]) >= 0x80) return false;
  }
  return true;
}

void append_upper(uint32_t code_point, std::string& out) {
  if (code_point < 0x80) {
    out.push_back(static_cast<char>(code_point >= 'a' && code_point <= 'z' ? code_point - 32 : code_point));
    return;
  }
  static const CaseTable table = build_case_table(upper_case_mappings());
  append_mapped(table, code_point, out);
}

void append_lower(uint32_t code_point, std::string& out) {
  if (code_point < 0x80) {
    out.push_back(static_cast<char>(code_point >= 'A' && code_point <= 'Z' ? code_point + 32 : code_point));
    return;
  }
  static const CaseTable table = build_case_table(lower_case_mappings());
  append_mapped(table, code_point, out);
}

void append_title(uint32_t code_point, std::string& out) {
  if (code_point < 0x80) return append_upper(code_point, out);
  static const CaseTable table = build_case_table(title_case_mappings());
  if (table.contains(code_point)) return append_mapped(table, code_point, out);
  append_upper(code_point, out);
}

bool is_python_printable(uint32_t code_point) {
  if (code_point == ' ') return true;
  return code_point < kCodePoints && properties_of(code_point).category() < GeneralCategory::kZs;
}

}  // namespace warmpath

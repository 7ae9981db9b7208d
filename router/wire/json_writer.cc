#include "router/wire/json_writer.h"

#include <array>
#include <charconv>
#include <cmath>

#include "base/json_escape.h"

namespace warmpath {

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// 1 for bytes that may be copied as they are: printable ASCII without quote and backslash.
constexpr std::array<bool, 256> plain_bytes() {
  std::array<bool, 256> plain{};
  for (int byte = 0x20; byte < 0x80; ++byte) plain[byte] = byte != '"' && byte != '\\';
  return plain;
}
constexpr std::array<bool, 256> kPlain = plain_bytes();

// Length of the well-formed UTF-8 sequence that starts `text` (Unicode 15, table 3-7), or 0.
size_t utf8_sequence(std::string_view text) {
  const auto byte = [&](size_t at) { return at < text.size() ? static_cast<uint8_t>(text[at]) : uint8_t{0}; };
  const auto continues = [&](size_t at) { return (byte(at) & 0xC0) == 0x80; };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return continues(1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    const uint8_t low = lead == 0xE0 ? 0xA0 : 0x80;
    const uint8_t high = lead == 0xED ? 0x9F : 0xBF;
    return byte(1) >= low && byte(1) <= high && continues(2) ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    const uint8_t low = lead == 0xF0 ? 0x90 : 0x80;
    const uint8_t high = lead == 0xF4 ? 0x8F : 0xBF;
    return byte(1) >= low && byte(1) <= high && continues(2) && continues(3) ? 4 : 0;
  }
  return 0;
}

template <typename T>
void append_digits(std::string& out, T number) {
  char digits[32];
  const auto [end, error] = std::to_chars(digits, digits + sizeof digits, number);
  out.append(digits, end);
}

template <typename T>
void append_real(std::string& out, T number) {
  if (std::isfinite(number)) {
    append_digits(out, number);
  } else {
    out += "-9999";
  }
}

}  // namespace

void append_json_escaped(std::string& out, std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    size_t end = at;
    while (end < text.size() && kPlain[static_cast<uint8_t>(text[end])]) ++end;
    out.append(text.data() + at, end - at);
    at = end;
    if (at == text.size()) return;
    const auto byte = static_cast<uint8_t>(text[at]);
    if (byte < 0x80) {
      append_json_escape(out, text[at]);
      ++at;
    } else if (const size_t length = utf8_sequence(text.substr(at)); length > 0) {
      out.append(text.data() + at, length);
      at += length;
    } else {
      out += kReplacement;
      ++at;
    }
  }
}

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  append_json_escaped(out, text);
  out += '"';
}

void append_json_number(std::string& out, int64_t number) { append_digits(out, number); }
void append_json_number(std::string& out, float number) { append_real(out, number); }
void append_json_number(std::string& out, double number) { append_real(out, number); }

}  // namespace warmpath

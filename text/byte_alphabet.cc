#include "text/byte_alphabet.h"

#include <array>

#include "text/unicode.h"

namespace warmpath {
namespace {

constexpr bool spells_itself(uint32_t byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

constexpr std::array<uint16_t, 256> kSpelling = [] {
  std::array<uint16_t, 256> spelling{};
  uint16_t next = 0x100;
  for (uint32_t byte = 0; byte < 256; ++byte)
    spelling[byte] = spells_itself(byte) ? static_cast<uint16_t>(byte) : next++;
  return spelling;
}();

constexpr std::array<int16_t, 0x144> kByte = [] {
  std::array<int16_t, 0x144> byte_of{};
  for (int16_t& byte : byte_of) byte = -1;
  for (uint32_t byte = 0; byte < 256; ++byte) byte_of[kSpelling[byte]] = static_cast<int16_t>(byte);
  return byte_of;
}();

}  // namespace

uint32_t spelling_of_byte(uint8_t byte) { return kSpelling[byte]; }

std::optional<std::string> bytes_of_spelling(std::string_view spelling) {
  std::string bytes;
  bytes.reserve(spelling.size());
  const auto* at = reinterpret_cast<const uint8_t*>(spelling.data());
  const uint8_t* end = at + spelling.size();
  while (at < end) {
    const DecodedChar decoded = decode_utf8(at, end);
    if (decoded.code_point >= kByte.size() || kByte[decoded.code_point] < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(kByte[decoded.code_point]));
    at += decoded.size;
  }
  return bytes;
}

std::string spelling_of_bytes(std::string_view bytes) {
  std::string spelling;
  for (const char byte : bytes) append_utf8(kSpelling[static_cast<uint8_t>(byte)], spelling);
  return spelling;
}

}  // namespace warmpath

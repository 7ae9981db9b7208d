// GPT-2's byte alphabet: byte-level BPE files spell each of the 256 bytes as one printable character. Bytes that are
// printable in Latin-1 (0x21-0x7E, 0xA1-0xAC, 0xAE-0xFF) stand for themselves, the other 68 are U+0100 to U+0143 in
// order (bytes_to_unicode in OpenAI's gpt-2 encoder.py). Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace warmpath {

// The character that spells `byte`.
uint32_t spelling_of_byte(uint8_t byte);
// "Ġhello" -> " hello"; nullopt when a character spells no byte.
std::optional<std::string> bytes_of_spelling(std::string_view spelling);
// " hello" -> "Ġhello".
std::string spelling_of_bytes(std::string_view bytes);

}  // namespace warmpath

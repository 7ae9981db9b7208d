// Append-only JSON output for the hot path: escaping and numbers into a std::string, nothing more.
// Whatever bytes come in, valid UTF-8 goes out: broken sequences become U+FFFD.
// Thread safety: pure functions on the caller's string.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace warmpath {

// `text` with quotes around it, or without them (for building one string from several pieces).
void append_json_string(std::string& out, std::string_view text);
void append_json_escaped(std::string& out, std::string_view text);

void append_json_number(std::string& out, int64_t number);
// The shortest digits that read back as the same float; NaN and infinities, which JSON lacks, become -9999 (the OpenAI
// wire's "no chance at all").
void append_json_number(std::string& out, float number);
void append_json_number(std::string& out, double number);

}  // namespace warmpath

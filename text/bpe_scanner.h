// How a tokenizer family splits text into pieces before BPE merges inside each piece. Each family is a hand-written
// scanner equal to its regular expression (the tests compare it with the expression itself), one pass, no backtracking
// beyond one character: linear in the text whatever it holds.
//
// Bytes that are not valid UTF-8 count as one symbol character each (class "other"), so no byte is lost.
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <string_view>

namespace warmpath {

// End of the piece that starts at `at`. REQUIRES at < end; the result is > at and <= end. `at` must be a place where a
// piece starts: the start of the text, or the end of the piece before.
using NextPiece = const uint8_t* (*)(const uint8_t* at, const uint8_t* end);

// The scanner of a family as tokenizer.ggml.pre names it; nullptr when it is not known.
NextPiece find_scanner(std::string_view pre);

// The families, for messages: "gpt-2, smollm, ...".
std::string_view known_scanners();

// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
const uint8_t* next_piece_gpt2(const uint8_t* at, const uint8_t* end);
// The same after every numeral has been split off as a piece of its own (Hugging Face's Digits, individual_digits).
const uint8_t* next_piece_smollm(const uint8_t* at, const uint8_t* end);

// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
const uint8_t* next_piece_llama3(const uint8_t* at, const uint8_t* end);
// The same with single numerals.
const uint8_t* next_piece_qwen2(const uint8_t* at, const uint8_t* end);
// The same with marks counted as letters: [^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+ and  ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*
const uint8_t* next_piece_qwen35(const uint8_t* at, const uint8_t* end);

}  // namespace warmpath

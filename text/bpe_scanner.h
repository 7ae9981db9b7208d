// How a tokenizer family splits text into pieces before BPE merges inside each piece. Each family is a hand-written
// scanner equal to its regular expression (the tests compare it with the expression itself), one pass, no backtracking
// beyond one character: linear in the text whatever it holds.
//
// Bytes that are not valid UTF-8 count as one symbol character each (class "other"), so no byte is lost.
// Thread safety: pure functions.
#pragma once

#include <cstdint>

namespace warmpath {

// What a scanner has seen ahead of the piece that it gave, so that it need not look again. One per text.
struct ScanMemory {
  const uint8_t* white_end = nullptr;  // end of the white space last looked at
};

// End of the piece that starts at `at`. REQUIRES at < end; the result is > at and <= end. `at` must be a place where a
// piece starts: the start of the text, or the end of the piece before.
using NextPiece = const uint8_t* (*)(const uint8_t* at, const uint8_t* end, ScanMemory& memory);

// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
const uint8_t* next_piece_gpt2(const uint8_t* at, const uint8_t* end, ScanMemory& memory);
// The same after every numeral has been split off as a piece of its own (Hugging Face's Digits, individual_digits).
const uint8_t* next_piece_smollm(const uint8_t* at, const uint8_t* end, ScanMemory& memory);

// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
const uint8_t* next_piece_llama3(const uint8_t* at, const uint8_t* end, ScanMemory& memory);
// The same with single numerals.
const uint8_t* next_piece_qwen2(const uint8_t* at, const uint8_t* end, ScanMemory& memory);
// The same with marks counted as letters: [^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+ and  ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*
const uint8_t* next_piece_qwen35(const uint8_t* at, const uint8_t* end, ScanMemory& memory);

// With U = [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}], W = [\p{Ll}\p{Lm}\p{Lo}\p{M}] and C = (?i:'s|'t|'re|'ve|'m|'ll|'d)?
// [^\r\n\p{L}\p{N}]?U*W+C|[^\r\n\p{L}\p{N}]?U+W*C|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+
const uint8_t* next_piece_gpt4o(const uint8_t* at, const uint8_t* end, ScanMemory& memory);
// The same without C and with single numerals.
const uint8_t* next_piece_tekken(const uint8_t* at, const uint8_t* end, ScanMemory& memory);
// [\p{Han}]+ first, then gpt-4o's with U and W without \p{Han} and with [\r\n]* instead of [\r\n/]*.
const uint8_t* next_piece_kimi(const uint8_t* at, const uint8_t* end, ScanMemory& memory);

// Three splits one after the other: \p{N}{1,3}, then [一-龥぀-ゟ゠-ヿ]+, then with A = ASCII punctuation
// A[A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
const uint8_t* next_piece_deepseek_v3(const uint8_t* at, const uint8_t* end, ScanMemory& memory);
// Splits one after the other: [\r\n], \s?C+ with C the cased letters of Unicode 13, \s?[!-/:-~！-／：-～‘-‟　-。]+,
// \s+$, [一-龥ࠀ-一가-퟿]+, and every numeral apart.
const uint8_t* next_piece_deepseek_llm(const uint8_t* at, const uint8_t* end, ScanMemory& memory);
// The same with \p{L} for C and \p{P} for the punctuation, and without \s+$.
const uint8_t* next_piece_deepseek_coder(const uint8_t* at, const uint8_t* end, ScanMemory& memory);

}  // namespace warmpath

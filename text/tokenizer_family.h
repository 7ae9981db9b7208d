// The families of byte-level BPE vocabularies that GGUF files name in tokenizer.ggml.pre: how each splits text into
// pieces. Thread safety: pure functions over constants.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "text/bpe_scanner.h"

namespace warmpath {

struct TokenizerFamily {
  std::string_view name;  // as llama.cpp's converter writes it
  NextPiece scanner = nullptr;
  // Without a scanner: regular expressions, each of which splits what the one before has left whole.
  std::span<const std::string_view> patterns = {};
  bool whole_pieces_first = false;  // a piece that is a token is that token, whatever the merges say
};

// nullptr when `pre` is not known.
const TokenizerFamily* find_tokenizer_family(std::string_view pre);
// For messages: "gpt-2, smollm, ...".
std::string known_tokenizer_families();

// The hand-written scanners, and the regular expressions that each equals.
struct ScannedPatterns {
  std::span<const std::string_view> patterns;
  NextPiece scanner;
};
std::span<const ScannedPatterns> scanned_patterns();

// The hand-written scanner that equals a pre-tokenizer's regular expressions, applied one after the other as isolated
// splits; nullptr when there is none.
NextPiece find_scanner(std::span<const std::string_view> patterns);

}  // namespace warmpath

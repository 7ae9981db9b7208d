// TextRules: what a tokenizer does to text around BPE: normalize, split, spell in symbols. A tokenizer.json says it in
// full; a GGUF file names a family. Thread safety: immutable once built.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "text/normalizer.h"
#include "text/pre_tokenizer.h"

namespace warmpath {

struct TextRules {
  // What merges start from.
  enum class Symbols : uint8_t {
    kBytes,       // one token a byte, spelled in GPT-2's alphabet
    kCharacters,  // one token a character, or a token a byte where there is none (see byte_fallback)
    kSpaced,      // characters, a space being U+2581: SentencePiece
  };
  // Of kSpaced: when a space is put before a run of text.
  enum class SpacePrefix : uint8_t {
    kNever,
    kAlways,
    kUnlessSpace,        // only if the run does not begin with one
    kPromptUnlessSpace,  // and only at the start of the prompt
  };

  Symbols symbols = Symbols::kBytes;
  SpacePrefix space_prefix = SpacePrefix::kNever;
  bool every_space_begins_a_piece = false;  // of kSpaced
  bool byte_fallback = false;               // tokens <0x00> ... <0xFF> spell characters that have no token
  bool fuse_unknown = false;                // neighbouring characters without any token are one unknown token
  bool whole_pieces_first = false;          // a piece that is a token is that token ("ignore_merges")
  bool spaces_in_tokens = false;            // U+2581 in a token stands for a space in the decoded text
  int strip_start = 0;                      // spaces that decoding drops at the start of the text
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  std::string identity;  // equal for rules that do the same to every text
};

// Of a GGUF vocabulary: `model` and `pre` as in Vocabulary. Errors name what is not known.
Result<std::shared_ptr<const TextRules>> rules_of_family(std::string_view model, std::string_view pre,
                                                         bool add_space_prefix);

}  // namespace warmpath

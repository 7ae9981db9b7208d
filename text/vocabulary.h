// Vocabulary: a tokenizer's tables as a model file holds them, before anything is built from them.
//
// `tokens` are spelled as in the file: byte-level BPE writes each byte as one printable character (GPT-2's table, see
// text/byte_alphabet.h), SentencePiece writes a space as U+2581 and bytes as <0x0A>, control tokens are plain text.
// Thread safety: a value.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/token.h"
#include "model_file/gguf_file.h"
#include "text/text_rules.h"

namespace warmpath {

// Numbers of tokenizer.ggml.token_type.
enum class TokenType : uint8_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,      // text in a prompt spells it only where the template wrote the text
  kUserDefined = 4,  // always matched as a whole, wherever it stands
  kUnused = 5,
  kByte = 6,
};

// A token that is found in text by its spelling, before anything else is done to the text: control tokens and those
// that a model's makers added.
struct AddedToken {
  TokenId id = 0;
  std::string text;
  bool control = false;
  bool normalized = false;   // found in the normalized text
  bool strip_left = false;   // takes the white space before it
  bool strip_right = false;  // takes the white space behind it
  bool single_word = false;  // only where no letter, digit or _ touches it

  bool operator==(const AddedToken&) const = default;
};

// One merge; lists are most wanted first.
struct TokenMerge {
  TokenId left = 0;
  TokenId right = 0;
  TokenId joined = 0;
};

struct Vocabulary {
  std::string model;                // tokenizer.ggml.model: "gpt2" (byte-level BPE) or "llama" (SentencePiece BPE);
                                    // "huggingface" from a tokenizer.json
  std::string pre;                  // tokenizer.ggml.pre: the family, such as "smollm"
  std::vector<std::string> tokens;  // index = id
  std::vector<TokenType> types;     // one per token
  std::vector<float> scores;        // one per token, or empty
  std::vector<TokenMerge> merges;
  std::vector<AddedToken> added;
  std::shared_ptr<const TextRules> rules;  // what happens to text around BPE
  std::optional<TokenId> bos;
  std::optional<TokenId> eos;
  std::optional<TokenId> unknown;
  std::vector<TokenId> end_of_generation;  // ids that end an answer; sorted, holds eos
  std::vector<TokenId> prompt_prefix;      // what a completion prompt begins with (chat templates write their own BOS)
  std::vector<TokenId> prompt_suffix;      // and ends with
  std::string chat_template;               // tokenizer.chat_template; empty when the file has none

  // Text of a token for templates and messages ("" when absent).
  std::string_view text_of(std::optional<TokenId> id) const;
};

// Reads and checks tokenizer.* of a GGUF file; a file that has tokenizer.huggingface.json and no tokenizer.ggml.model
// is read from that (text/tokenizer_json.h). Errors name the key.
Result<Vocabulary> vocabulary_from_gguf(const GgufFile& file);
// Fills end_of_generation with eos and the tokens that are known to end an answer, wherever a vocabulary has them.
void collect_end_of_generation(Vocabulary& vocabulary);

// For `synthetic:` models: 256 byte tokens, the ChatML control tokens and a ChatML template; no merges, so one token is
// one byte. `size` >= 320; the ids beyond the real tokens are unused.
Vocabulary synthetic_vocabulary(int size = 320);

}  // namespace warmpath

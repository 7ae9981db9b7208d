// Vocabulary: a tokenizer's tables as a model file holds them, before anything is built from them.
//
// `tokens` are spelled as in the file: byte-level BPE writes each byte as one printable character (GPT-2's table, see
// text/byte_alphabet.h), control tokens are plain text. Thread safety: a value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/token.h"
#include "model_file/gguf_file.h"

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

struct Vocabulary {
  std::string model;                // tokenizer.ggml.model: "gpt2" (byte-level BPE)
  std::string pre;                  // tokenizer.ggml.pre: the family, such as "smollm"
  std::vector<std::string> tokens;  // index = id
  std::vector<TokenType> types;     // one per token
  std::vector<float> scores;        // one per token, or empty
  std::vector<std::string> merges;  // "left right", most wanted first
  std::optional<TokenId> bos;
  std::optional<TokenId> eos;
  std::optional<TokenId> unknown;
  std::vector<TokenId> end_of_generation;  // ids that end an answer; sorted, holds eos
  bool add_bos = false;                    // a completion prompt starts with bos (chat templates write their own)
  std::string chat_template;               // tokenizer.chat_template; empty when the file has none

  // Text of a token for templates and messages ("" when absent).
  std::string_view text_of(std::optional<TokenId> id) const;
};

// Reads and checks tokenizer.* of a GGUF file. Errors name the key.
Result<Vocabulary> vocabulary_from_gguf(const GgufFile& file);

// For `synthetic:` models: 256 byte tokens, the ChatML control tokens and a ChatML template; no merges, so one token is
// one byte. `size` >= 320; the ids beyond the real tokens are unused.
Vocabulary synthetic_vocabulary(int size = 320);

}  // namespace warmpath

// Tokenizer: text to token ids and back, exactly as the model's own tokenizer does it (proven against Hugging Face
// tokenizers in tests).
//
// Time is linear in the text for splitting and O(n log n) inside one piece, whatever the input: a 4 MB run of one
// character takes well under a second. Only a tokenizer.json with a regular expression that no scanner knows can fail
// on a text, when the expression takes too long. Round trip: decode(encode(text)) == text for every byte string that
// the vocabulary can spell (see `lossless`). Thread safety: immutable after create(); any thread may encode and decode.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash128.h"
#include "base/status.h"
#include "base/token.h"
#include "text/added_tokens.h"
#include "text/vocabulary.h"

namespace warmpath {

class Tokenizer {
 public:
  // Errors name what is missing or unsupported (the family, a merge that no token spells, ...).
  static Result<std::shared_ptr<const Tokenizer>> create(Vocabulary vocabulary);
  ~Tokenizer();

  // Appends the ids of `text` to `out`. No BOS is added. Bytes that are not valid UTF-8 are kept, one symbol each.
  Status encode(std::string_view text, SpecialTokens mode, std::vector<TokenId>& out,
                TextBegins begins = TextBegins::kPrompt) const;
  Result<std::vector<TokenId>> encode(std::string_view text, SpecialTokens mode = SpecialTokens::kText) const;

  // The bytes that the ids stand for, control tokens as their text. Ids out of range give nothing.
  std::string decode(std::span<const TokenId> ids) const;
  // Bytes of one token; "" when out of range. Lives as long as the tokenizer.
  std::string_view token_bytes(TokenId id) const;

  int size() const;  // ids are 0 ... size() - 1
  bool is_control(TokenId id) const;
  bool is_end_of_generation(TokenId id) const;
  // The control or user-defined token spelled `text`.
  std::optional<TokenId> special_token(std::string_view text) const;
  // For prompt_encoder.h: the first token found by its text at or after `from`, under `mode`.
  std::optional<AddedTokens::Match> find_special(std::string_view text, size_t from, SpecialTokens mode) const;
  // Whether a run's ids depend on where it stands (TextBegins): some tokenizers put a space before text.
  bool depends_on_begin() const;
  // An offset >= `from` at which `text` can be cut so that both halves (the second as TextBegins::kInside) encode to
  // what the whole encodes to; text.size() when there is none. Such places are line starts followed by something that
  // is not white space.
  size_t next_safe_cut(std::string_view text, size_t from) const;

  // Whether every byte has a token and none is changed on the way. Some byte-level vocabularies lack a few that text
  // hardly ever holds (U+0004, say); those bytes are left out, as Hugging Face tokenizers and llama.cpp leave them out.
  bool lossless() const;

  // Identifies tokens, merges, types and rules: equal fingerprints encode equally.
  Hash128 fingerprint() const;
  const Vocabulary& vocabulary() const;

 private:
  struct Impl;
  explicit Tokenizer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace warmpath

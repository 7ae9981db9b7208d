// PieceEncoder: one piece of text to token ids: the merges of a vocabulary over its bytes or characters, with a cache
// of short pieces. Thread safety: immutable once built; each thread brings its own Scratch.
#pragma once

#include <bitset>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/bpe_model.h"
#include "text/piece_cache.h"
#include "text/symbol_table.h"
#include "text/vocabulary.h"

namespace warmpath {

class PieceEncoder {
 public:
  struct Scratch {
    PieceCache cache;
    BpeScratch bpe;
  };

  static Result<std::unique_ptr<const PieceEncoder>> create(const Vocabulary& vocabulary);

  // Appends the ids of `piece`; `readable`: bytes that may be read from piece.data() on. Of kSpaced vocabularies a
  // piece spells spaces as spaces and holds no U+2581.
  void encode(std::string_view piece, size_t readable, Scratch& scratch, std::vector<TokenId>& out) const;

  // The text that a token stands for; a byte token's byte.
  std::string_view token_text(TokenId id) const {
    const auto index = static_cast<size_t>(id);
    if (id < 0 || index + 1 >= offsets_.size()) return {};
    return std::string_view(texts_).substr(offsets_[index], offsets_[index + 1] - offsets_[index]);
  }
  // Whether some merge makes a token in whose text `second` follows `first` directly: text may be cut between two bytes
  // that no merge brings together, where both end and start a character. Of kSpaced vocabularies only.
  bool joins(uint8_t first, uint8_t second) const { return joined_pairs_[size_t{first} << 8 | second]; }
  bool has_every_byte() const { return has_every_byte_; }

 private:
  struct TextHash {
    using is_avalanching = void;
    size_t operator()(std::string_view text) const noexcept;
  };

  PieceEncoder() = default;
  Status build_texts(const Vocabulary& vocabulary);
  Status build_byte_model(const Vocabulary& vocabulary);
  Status build_character_model(const Vocabulary& vocabulary);
  // SentencePiece: every token is made of any two tokens that spell it together, the best score first.
  std::vector<BpeModel::Merge> merges_of_scores(const Vocabulary& vocabulary) const;
  void encode_new(std::string_view piece, Scratch& scratch, std::vector<TokenId>& out) const;

  bool bytes_ = true;  // symbols are bytes
  bool whole_pieces_first_ = false;
  bool has_every_byte_ = true;
  std::unique_ptr<BpeModel> model_;
  SymbolTable symbols_;
  std::string texts_;              // of all tokens, one after the other
  std::vector<uint32_t> offsets_;  // token id -> offset in texts_; one more than tokens
  boost::unordered_flat_map<std::string_view, TokenId, TextHash> token_of_text_;  // only when whole_pieces_first_
  std::bitset<size_t{1} << 16> joined_pairs_;
};

}  // namespace warmpath

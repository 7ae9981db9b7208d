// SymbolTable: the tokens from which merges start in vocabularies that spell text in characters: a token a character,
// or a token a byte where there is none, or the unknown token. Thread safety: immutable once built.
#pragma once

#include <array>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/token.h"

namespace warmpath {

class SymbolTable {
 public:
  SymbolTable() {
    ascii_.fill(-1);
    bytes_.fill(-1);
  }
  void add_character(uint32_t code_point, TokenId id);
  void set_byte(uint8_t byte, TokenId id) { bytes_[byte] = id; }
  // Neighbouring unknown characters become one token when `fuse`.
  void set_unknown(std::optional<TokenId> id, bool fuse) {
    unknown_ = id;
    fuse_ = fuse;
  }

  void append(std::string_view piece, std::vector<TokenId>& out) const;

 private:
  TokenId id_of(uint32_t code_point) const {
    if (code_point < 0x80) return ascii_[code_point];
    const auto found = others_.find(code_point);
    return found == others_.end() ? -1 : found->second;
  }

  std::array<TokenId, 128> ascii_;
  std::array<TokenId, 256> bytes_;
  boost::unordered_flat_map<uint32_t, TokenId> others_;
  std::optional<TokenId> unknown_;
  bool fuse_ = false;
};

}  // namespace warmpath

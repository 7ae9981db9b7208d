#include "text/symbol_table.h"

#include <algorithm>

#include "text/unicode.h"

namespace warmpath {

void SymbolTable::add_character(uint32_t code_point, TokenId id) {
  if (code_point < 0x80) {
    if (ascii_[code_point] < 0) ascii_[code_point] = id;
  } else {
    others_.emplace(code_point, id);
  }
}

void SymbolTable::append(std::string_view piece, std::vector<TokenId>& out) const {
  const auto* at = reinterpret_cast<const uint8_t*>(piece.data());
  const uint8_t* end = at + piece.size();
  // An unknown token waits for its neighbours, as in tokenizers' BPE::merge_word, behind byte tokens too.
  bool waits = false;
  while (at < end) {
    const DecodedChar here = decode_utf8(at, end);
    const TokenId id = here.code_point == kInvalidCodePoint ? -1 : id_of(here.code_point);
    const uint8_t* next = at + here.size;
    if (id >= 0) {
      if (waits) out.push_back(*unknown_);
      waits = false;
      out.push_back(id);
    } else if (std::all_of(at, next, [this](uint8_t byte) { return bytes_[byte] >= 0; })) {
      for (; at < next; ++at) out.push_back(bytes_[*at]);
    } else if (unknown_) {
      if (waits && !fuse_) out.push_back(*unknown_);
      waits = true;
    }
    at = next;
  }
  if (waits) out.push_back(*unknown_);
}

}  // namespace warmpath

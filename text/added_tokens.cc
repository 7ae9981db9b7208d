#include "text/added_tokens.h"

#include "text/unicode.h"

namespace warmpath {
namespace {

const uint8_t* bytes_of(std::string_view text) { return reinterpret_cast<const uint8_t*>(text.data()); }

// \w as Rust's regex crate has it, less the rare letters that are no L, M, N or Pc.
bool is_word(uint32_t code) {
  if (code == kInvalidCodePoint) return false;
  const CodePointProperties properties = properties_of(code);
  return properties.is_letter() || properties.is_mark() || properties.category() == GeneralCategory::kNd ||
         properties.category() == GeneralCategory::kNl || properties.category() == GeneralCategory::kPc;
}

// Start of the character that ends at `end`. REQUIRES end > from.
size_t char_before(std::string_view text, size_t from, size_t end) {
  size_t at = end - 1;
  while (at > from && end - at < 4 && (static_cast<uint8_t>(text[at]) & 0xC0) == 0x80) --at;
  const DecodedChar here = decode_utf8(bytes_of(text) + at, bytes_of(text) + end);
  return at + here.size == end ? at : end - 1;
}

uint32_t code_at(std::string_view text, size_t at) {
  return decode_utf8(bytes_of(text) + at, bytes_of(text) + text.size()).code_point;
}

}  // namespace

void AddedTokens::add(const AddedToken& token, std::string_view text) {
  if (text.empty()) return;
  matcher_.add(text, static_cast<TokenId>(tokens_.size()));
  tokens_.push_back(token);
  tokens_.back().text.clear();
  strips_left_ = strips_left_ || token.strip_left;
}

std::optional<AddedTokens::Match> AddedTokens::find(std::string_view text, size_t from, SpecialTokens mode) const {
  while (const auto hit = matcher_.find(text, from)) {
    const AddedToken& token = tokens_[static_cast<size_t>(hit->id)];
    const size_t end = hit->offset + hit->size;
    from = end;
    if (mode == SpecialTokens::kText && token.control) continue;
    if (token.single_word) {
      if (hit->offset > 0 && is_word(code_at(text, char_before(text, 0, hit->offset)))) continue;
      if (end < text.size() && is_word(code_at(text, end))) continue;
    }
    return Match{hit->offset, end, token.id, token.strip_left, token.strip_right};
  }
  return std::nullopt;
}

size_t white_space_begin(std::string_view text, size_t from, size_t end) {
  while (end > from) {
    const size_t at = char_before(text, from, end);
    const uint32_t code = code_at(text, at);
    if (code == kInvalidCodePoint || !properties_of(code).is_white_space()) break;
    end = at;
  }
  return end;
}

size_t white_space_end(std::string_view text, size_t at) {
  while (at < text.size()) {
    const DecodedChar here = decode_utf8(bytes_of(text) + at, bytes_of(text) + text.size());
    if (here.code_point == kInvalidCodePoint || !properties_of(here.code_point).is_white_space()) break;
    at += here.size;
  }
  return at;
}

}  // namespace warmpath

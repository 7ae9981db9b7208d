#include "text/piece_encoder.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>
#include <unordered_map>

#include "text/byte_alphabet.h"
#include "text/unicode.h"

namespace warmpath {
namespace {

constexpr std::string_view kSpaceSymbol = "\xE2\x96\x81";  // U+2581

// The byte of "<0x0A>"; -1 for anything else.
int byte_of_token(std::string_view text) {
  int byte = -1;
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return -1;
  const auto [stop, error] = std::from_chars(text.data() + 3, text.data() + 5, byte, 16);
  return error == std::errc() && stop == text.data() + 5 ? byte : -1;
}

bool takes_part_in_merges(TokenType type) { return type == TokenType::kNormal || type == TokenType::kUserDefined; }

}  // namespace

size_t PieceEncoder::TextHash::operator()(std::string_view text) const noexcept {
  return XXH3_64bits(text.data(), text.size());
}

Result<std::unique_ptr<const PieceEncoder>> PieceEncoder::create(const Vocabulary& vocabulary) {
  std::unique_ptr<PieceEncoder> encoder(new PieceEncoder);
  encoder->bytes_ = vocabulary.rules->symbols == TextRules::Symbols::kBytes;
  encoder->whole_pieces_first_ = vocabulary.rules->whole_pieces_first;
  WARMPATH_RETURN_IF_ERROR(encoder->build_texts(vocabulary));
  WARMPATH_RETURN_IF_ERROR(encoder->bytes_ ? encoder->build_byte_model(vocabulary)
                                           : encoder->build_character_model(vocabulary));
  return std::unique_ptr<const PieceEncoder>(std::move(encoder));
}

Status PieceEncoder::build_texts(const Vocabulary& vocabulary) {
  const bool spaces = vocabulary.rules->spaces_in_tokens || vocabulary.rules->symbols == TextRules::Symbols::kSpaced;
  offsets_.reserve(vocabulary.tokens.size() + 1);
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    offsets_.push_back(static_cast<uint32_t>(texts_.size()));
    const std::string& token = vocabulary.tokens[id];
    const TokenType type = vocabulary.types[id];
    if (type == TokenType::kByte && !bytes_ && byte_of_token(token) >= 0) {
      texts_ += static_cast<char>(byte_of_token(token));
    } else if (bytes_ && type == TokenType::kNormal) {
      // A spelling outside the byte alphabet cannot come out of BPE; such a token stands for its own text.
      texts_ += bytes_of_spelling(token).value_or(token);
    } else if (spaces && takes_part_in_merges(type)) {
      size_t from = 0;
      for (size_t at; (at = token.find(kSpaceSymbol, from)) != std::string::npos; from = at + kSpaceSymbol.size()) {
        texts_.append(token, from, at - from).append(1, ' ');
      }
      texts_.append(token, from);
    } else if (type != TokenType::kUnused) {
      texts_ += token;
    }
    if (texts_.size() > std::numeric_limits<uint32_t>::max()) return invalid_argument("the tokens exceed 4 GiB");
  }
  offsets_.push_back(static_cast<uint32_t>(texts_.size()));
  if (whole_pieces_first_) {
    for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
      if (vocabulary.types[id] == TokenType::kNormal) {
        token_of_text_.emplace(token_text(static_cast<TokenId>(id)), static_cast<TokenId>(id));
      }
    }
  }
  return {};
}

Status PieceEncoder::build_byte_model(const Vocabulary& vocabulary) {
  std::unordered_map<std::string_view, TokenId> id_of;
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    if (vocabulary.tokens[id].size() <= 2) id_of.emplace(vocabulary.tokens[id], static_cast<TokenId>(id));
  }
  std::array<TokenId, 256> byte_ids;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    std::string spelling;
    append_utf8(spelling_of_byte(static_cast<uint8_t>(byte)), spelling);
    const auto found = id_of.find(spelling);
    byte_ids[byte] = found == id_of.end() ? -1 : found->second;
    has_every_byte_ = has_every_byte_ && found != id_of.end();
  }
  std::vector<BpeModel::Merge> merges;
  merges.reserve(vocabulary.merges.size());
  for (const TokenMerge& merge : vocabulary.merges) {
    merges.push_back({merge.left, merge.right, merge.joined, static_cast<uint32_t>(merges.size())});
  }
  model_ = std::make_unique<BpeModel>(byte_ids, merges);
  return {};
}

Status PieceEncoder::build_character_model(const Vocabulary& vocabulary) {
  symbols_.set_unknown(vocabulary.unknown, vocabulary.rules->fuse_unknown);
  bool byte_seen[256] = {};
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    const std::string_view text = token_text(static_cast<TokenId>(id));
    const TokenType type = vocabulary.types[id];
    const int byte = byte_of_token(vocabulary.tokens[id]);
    if (vocabulary.rules->byte_fallback && type == TokenType::kByte && byte >= 0) {
      symbols_.set_byte(static_cast<uint8_t>(byte), static_cast<TokenId>(id));
      byte_seen[byte] = true;
    } else if (takes_part_in_merges(type) && !text.empty()) {
      const auto* begin = reinterpret_cast<const uint8_t*>(text.data());
      const DecodedChar first = decode_utf8(begin, begin + text.size());
      if (first.size == text.size() && first.code_point != kInvalidCodePoint) {
        symbols_.add_character(first.code_point, static_cast<TokenId>(id));
      }
    }
  }
  has_every_byte_ = std::all_of(std::begin(byte_seen), std::end(byte_seen), [](bool seen) { return seen; });
  std::vector<BpeModel::Merge> merges;
  if (vocabulary.model == "llama") {
    if (vocabulary.scores.empty()) return invalid_argument("tokenizer.ggml.scores is missing; SentencePiece needs it");
    merges = merges_of_scores(vocabulary);
  } else {
    for (const TokenMerge& merge : vocabulary.merges) {
      merges.push_back({merge.left, merge.right, merge.joined, static_cast<uint32_t>(merges.size())});
    }
  }
  for (const BpeModel::Merge& merge : merges) {
    const std::string_view text = token_text(merge.joined);
    for (size_t at = 1; at < text.size(); ++at) {
      joined_pairs_.set(size_t{static_cast<uint8_t>(text[at - 1])} << 8 | static_cast<uint8_t>(text[at]));
    }
  }
  std::array<TokenId, 256> none;
  none.fill(-1);
  model_ = std::make_unique<BpeModel>(none, merges);
  return {};
}

std::vector<BpeModel::Merge> PieceEncoder::merges_of_scores(const Vocabulary& vocabulary) const {
  boost::unordered_flat_map<std::string_view, TokenId, TextHash> id_of;
  std::vector<TokenId> order;
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    if (!takes_part_in_merges(vocabulary.types[id])) continue;
    if (id_of.emplace(token_text(static_cast<TokenId>(id)), static_cast<TokenId>(id)).second) {
      order.push_back(static_cast<TokenId>(id));
    }
  }
  const auto score = [&vocabulary](TokenId id) {
    const float value = vocabulary.scores[static_cast<size_t>(id)];
    return std::isnan(value) ? -std::numeric_limits<float>::infinity() : value;
  };
  std::stable_sort(order.begin(), order.end(), [&score](TokenId a, TokenId b) { return score(a) > score(b); });
  std::vector<BpeModel::Merge> merges;
  uint32_t rank = 0;
  for (size_t at = 0; at < order.size(); ++at) {
    if (at > 0 && score(order[at]) != score(order[at - 1])) ++rank;
    const std::string_view text = token_text(order[at]);
    for (size_t cut = 1; cut < text.size(); ++cut) {
      if ((static_cast<uint8_t>(text[cut]) & 0xC0) == 0x80) continue;
      const auto left = id_of.find(text.substr(0, cut));
      if (left == id_of.end()) continue;
      const auto right = id_of.find(text.substr(cut));
      if (right != id_of.end()) merges.push_back({left->second, right->second, order[at], rank});
    }
  }
  return merges;
}

void PieceEncoder::encode_new(std::string_view piece, Scratch& scratch, std::vector<TokenId>& out) const {
  if (whole_pieces_first_) {
    const auto whole = token_of_text_.find(piece);
    if (whole != token_of_text_.end()) {
      out.push_back(whole->second);
      return;
    }
  }
  if (bytes_) return model_->encode(piece, scratch.bpe, out);
  scratch.bpe.initial.clear();
  symbols_.append(piece, scratch.bpe.initial);
  model_->merge(scratch.bpe, out);
}

void PieceEncoder::encode(std::string_view piece, size_t readable, Scratch& scratch, std::vector<TokenId>& out) const {
  if (piece.size() > PieceCache::kMaxPieceBytes || piece.empty()) return encode_new(piece, scratch, out);
  const PieceCache::Key key = PieceCache::key_of(piece, readable);
  PieceCache::Entry& entry = scratch.cache.slot_of(key);
  if (PieceCache::matches(entry, key, piece.size())) {
    out.insert(out.end(), entry.ids, entry.ids + entry.count);
    return;
  }
  const size_t before = out.size();
  encode_new(piece, scratch, out);
  const size_t count = out.size() - before;
  if (count > PieceCache::kMaxIds) return;
  entry.key = key;
  entry.size = static_cast<uint32_t>(piece.size());
  entry.count = static_cast<uint32_t>(count);
  std::copy(out.begin() + static_cast<std::ptrdiff_t>(before), out.end(), entry.ids);
}

}  // namespace warmpath

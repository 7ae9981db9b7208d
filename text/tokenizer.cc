#include "text/tokenizer.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstring>
#include <mutex>
#include <unordered_map>

#include "base/check.h"
#include "text/bpe_model.h"
#include "text/bpe_scanner.h"
#include "text/byte_alphabet.h"
#include "text/piece_cache.h"
#include "text/special_matcher.h"
#include "text/unicode.h"

namespace warmpath {
namespace {

// What one call of encode() works with; kept for the next call.
struct Scratch {
  PieceCache cache;
  BpeScratch bpe;
};

struct TextHash {
  using is_avalanching = void;
  size_t operator()(std::string_view text) const noexcept { return XXH3_64bits(text.data(), text.size()); }
};

// Idle scratches beyond this are freed, as are those that a huge piece has blown up.
constexpr size_t kIdleScratches = 32;
constexpr size_t kScratchSymbols = size_t{1} << 16;

}  // namespace

struct Tokenizer::Impl {
  Vocabulary vocabulary;
  NextPiece next_piece = nullptr;
  bool whole_pieces_first = false;  // a piece that is a token is that token, whatever the merges say ("ignore_merges")
  std::unique_ptr<BpeModel> model;
  std::string bytes;              // of all tokens, one after the other
  std::vector<uint32_t> offsets;  // token id -> offset in `bytes`; size() + 1 of them
  boost::unordered_flat_map<std::string_view, TokenId, TextHash> token_of_bytes;  // only when whole_pieces_first
  SpecialMatcher special;                                                         // control and user-defined
  SpecialMatcher user_defined;
  std::unordered_map<std::string_view, TokenId> special_ids;
  bool lossless = true;
  Hash128 fingerprint;

  mutable std::mutex mutex;
  mutable std::vector<std::unique_ptr<Scratch>> idle;  // guarded by mutex

  Status build();
  Status build_bytes();
  Status build_merges();
  void build_fingerprint();

  std::unique_ptr<Scratch> take_scratch() const {
    {
      const std::lock_guard lock(mutex);
      if (!idle.empty()) {
        auto scratch = std::move(idle.back());
        idle.pop_back();
        return scratch;
      }
    }
    return std::make_unique<Scratch>();
  }
  void give_scratch(std::unique_ptr<Scratch> scratch) const {
    if (scratch->bpe.symbols.capacity() > kScratchSymbols) scratch->bpe = BpeScratch();
    const std::lock_guard lock(mutex);
    if (idle.size() < kIdleScratches) idle.push_back(std::move(scratch));
  }

  std::string_view token_bytes(TokenId id) const {
    const auto index = static_cast<size_t>(id);
    if (id < 0 || index + 1 >= offsets.size()) return {};
    return std::string_view(bytes).substr(offsets[index], offsets[index + 1] - offsets[index]);
  }
  void encode_plain(std::string_view text, Scratch& scratch, std::vector<TokenId>& out) const;
  void encode_piece(std::string_view piece, Scratch& scratch, std::vector<TokenId>& out) const;
};

Status Tokenizer::Impl::build() {
  if (vocabulary.model != "gpt2") {
    return unimplemented(
        fmt::format("tokenizer.ggml.model is '{}': this version reads byte-level BPE vocabularies ('gpt2') only",
                    vocabulary.model));
  }
  next_piece = find_scanner(vocabulary.pre);
  if (next_piece == nullptr) {
    return unimplemented(fmt::format("tokenizer.ggml.pre is '{}', which is not one of the known families: {}",
                                     vocabulary.pre, known_scanners()));
  }
  whole_pieces_first = next_piece == next_piece_llama3;
  WARMPATH_RETURN_IF_ERROR(build_bytes());
  WARMPATH_RETURN_IF_ERROR(build_merges());
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    const TokenType type = vocabulary.types[id];
    if (type != TokenType::kControl && type != TokenType::kUserDefined) continue;
    const std::string& spelling = vocabulary.tokens[id];
    special.add(spelling, static_cast<TokenId>(id));
    if (type == TokenType::kUserDefined) user_defined.add(spelling, static_cast<TokenId>(id));
    special_ids.emplace(spelling, static_cast<TokenId>(id));
  }
  build_fingerprint();
  return {};
}

Status Tokenizer::Impl::build_bytes() {
  offsets.reserve(vocabulary.tokens.size() + 1);
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    offsets.push_back(static_cast<uint32_t>(bytes.size()));
    if (vocabulary.types[id] == TokenType::kNormal) {
      // A spelling outside the byte alphabet cannot come out of BPE; such a token stands for its own text.
      bytes += bytes_of_spelling(vocabulary.tokens[id]).value_or(vocabulary.tokens[id]);
    } else if (vocabulary.types[id] != TokenType::kUnused) {
      bytes += vocabulary.tokens[id];
    }
    if (bytes.size() > std::numeric_limits<uint32_t>::max()) return invalid_argument("the tokens exceed 4 GiB");
  }
  offsets.push_back(static_cast<uint32_t>(bytes.size()));
  if (whole_pieces_first) {
    for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
      if (vocabulary.types[id] == TokenType::kNormal) {
        token_of_bytes.emplace(token_bytes(static_cast<TokenId>(id)), static_cast<TokenId>(id));
      }
    }
  }
  return {};
}

Status Tokenizer::Impl::build_merges() {
  std::unordered_map<std::string_view, TokenId> id_of;
  id_of.reserve(vocabulary.tokens.size());
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    id_of.emplace(vocabulary.tokens[id], static_cast<TokenId>(id));
  }
  std::array<TokenId, 256> byte_ids;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    std::string spelling;
    append_utf8(spelling_of_byte(static_cast<uint8_t>(byte)), spelling);
    const auto found = id_of.find(spelling);
    byte_ids[byte] = found == id_of.end() ? -1 : found->second;
    lossless = lossless && found != id_of.end();
  }
  std::vector<BpeModel::Merge> merges;
  merges.reserve(vocabulary.merges.size());
  std::string joined;
  for (size_t rank = 0; rank < vocabulary.merges.size(); ++rank) {
    const std::string_view merge = vocabulary.merges[rank];
    const size_t space = merge.find(' ', 1);  // a token may itself start with a space
    const auto refuse = [&](std::string_view problem) {
      return invalid_argument(fmt::format("tokenizer merge {} '{}': {}", rank, printable(merge), problem));
    };
    if (space == std::string_view::npos || space + 1 == merge.size()) return refuse("is not two tokens");
    joined.assign(merge.substr(0, space)).append(merge.substr(space + 1));
    const auto left = id_of.find(merge.substr(0, space));
    const auto right = id_of.find(merge.substr(space + 1));
    const auto both = id_of.find(joined);
    if (left == id_of.end() || right == id_of.end()) return refuse("names a token that the vocabulary lacks");
    if (both == id_of.end()) return refuse("joins to a token that the vocabulary lacks");
    merges.push_back({left->second, right->second, both->second});
  }
  model = std::make_unique<BpeModel>(byte_ids, merges);
  return {};
}

void Tokenizer::Impl::build_fingerprint() {
  // Length-prefixed, so that no two vocabularies spell the same bytes.
  std::string all;
  const auto add = [&all](std::string_view text) {
    const uint64_t size = text.size();
    all.append(reinterpret_cast<const char*>(&size), sizeof(size)).append(text);
  };
  add("warmpath tokenizer 1");
  add(vocabulary.model);
  add(vocabulary.pre);
  for (const std::string& token : vocabulary.tokens) add(token);
  add({reinterpret_cast<const char*>(vocabulary.types.data()), vocabulary.types.size()});
  for (const std::string& merge : vocabulary.merges) add(merge);
  fingerprint = hash128(all);
}

void Tokenizer::Impl::encode_piece(std::string_view piece, Scratch& scratch, std::vector<TokenId>& out) const {
  if (whole_pieces_first) {
    const auto whole = token_of_bytes.find(piece);
    if (whole != token_of_bytes.end()) {
      out.push_back(whole->second);
      return;
    }
  }
  model->encode(piece, scratch.bpe, out);
}

void Tokenizer::Impl::encode_plain(std::string_view text, Scratch& scratch, std::vector<TokenId>& out) const {
  const auto* at = reinterpret_cast<const uint8_t*>(text.data());
  const uint8_t* end = at + text.size();
  while (at < end) {
    const uint8_t* stop = next_piece(at, end);
    const std::string_view piece(reinterpret_cast<const char*>(at), static_cast<size_t>(stop - at));
    if (piece.size() > PieceCache::kMaxPieceBytes) {
      encode_piece(piece, scratch, out);
    } else {
      const PieceCache::Key key = PieceCache::key_of(piece, static_cast<size_t>(end - at));
      PieceCache::Entry& entry = scratch.cache.slot_of(key);
      if (PieceCache::matches(entry, key, piece.size())) {
        out.insert(out.end(), entry.ids, entry.ids + entry.count);
      } else {
        const size_t before = out.size();
        encode_piece(piece, scratch, out);
        const size_t count = out.size() - before;
        if (count <= PieceCache::kMaxIds) {
          entry.key = key;
          entry.size = static_cast<uint32_t>(piece.size());
          entry.count = static_cast<uint32_t>(count);
          std::copy(out.begin() + static_cast<std::ptrdiff_t>(before), out.end(), entry.ids);
        }
      }
    }
    at = stop;
  }
}

Tokenizer::Tokenizer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Tokenizer::~Tokenizer() = default;

Result<std::shared_ptr<const Tokenizer>> Tokenizer::create(Vocabulary vocabulary) {
  if (vocabulary.types.size() != vocabulary.tokens.size()) {
    return invalid_argument(fmt::format("the vocabulary has {} tokens but {} token types", vocabulary.tokens.size(),
                                        vocabulary.types.size()));
  }
  auto impl = std::make_unique<Impl>();
  impl->vocabulary = std::move(vocabulary);
  WARMPATH_RETURN_IF_ERROR(impl->build());
  return std::shared_ptr<const Tokenizer>(new Tokenizer(std::move(impl)));
}

void Tokenizer::encode(std::string_view text, SpecialTokens mode, std::vector<TokenId>& out) const {
  auto scratch = impl_->take_scratch();
  size_t from = 0;
  while (from < text.size()) {
    const auto match = find_special(text, from, mode);
    const size_t stop = match ? match->offset : text.size();
    impl_->encode_plain(text.substr(from, stop - from), *scratch, out);
    if (!match) break;
    out.push_back(match->id);
    from = match->offset + match->size;
  }
  impl_->give_scratch(std::move(scratch));
}

std::vector<TokenId> Tokenizer::encode(std::string_view text, SpecialTokens mode) const {
  std::vector<TokenId> ids;
  ids.reserve(text.size() / 4 + 1);
  encode(text, mode, ids);
  return ids;
}

std::string Tokenizer::decode(std::span<const TokenId> ids) const {
  std::string text;
  for (const TokenId id : ids) text += token_bytes(id);
  return text;
}

std::string_view Tokenizer::token_bytes(TokenId id) const { return impl_->token_bytes(id); }

int Tokenizer::size() const { return static_cast<int>(impl_->vocabulary.tokens.size()); }

bool Tokenizer::is_control(TokenId id) const {
  return id >= 0 && id < size() && impl_->vocabulary.types[static_cast<size_t>(id)] == TokenType::kControl;
}

bool Tokenizer::is_end_of_generation(TokenId id) const {
  const auto& ends = impl_->vocabulary.end_of_generation;
  return std::binary_search(ends.begin(), ends.end(), id);
}

std::optional<TokenId> Tokenizer::special_token(std::string_view text) const {
  const auto found = impl_->special_ids.find(text);
  return found == impl_->special_ids.end() ? std::nullopt : std::optional(found->second);
}

std::optional<Tokenizer::SpecialMatch> Tokenizer::find_special(std::string_view text, size_t from,
                                                               SpecialTokens mode) const {
  const auto match = (mode == SpecialTokens::kParse ? impl_->special : impl_->user_defined).find(text, from);
  if (!match) return std::nullopt;
  return SpecialMatch{match->offset, match->size, match->id};
}

size_t Tokenizer::next_safe_cut(std::string_view text, size_t from) const {
  if (impl_->special.holds_line_break()) return text.size();
  // One line break between two characters that are not white space: in every family a piece ends there, and neither
  // half can see that the other is missing.
  const auto* bytes = reinterpret_cast<const uint8_t*>(text.data());
  const auto plain = [&](size_t at) {
    const uint32_t code = decode_utf8(bytes + at, bytes + text.size()).code_point;
    return code != kInvalidCodePoint && code > 0x20 && !properties_of(code).is_white_space();
  };
  const auto plain_before = [&](size_t end) {
    size_t at = end - 1;
    while (at > 0 && end - at < 4 && (bytes[at] & 0xC0) == 0x80) --at;
    return plain(at);
  };
  for (size_t cut = std::max<size_t>(from, 2); cut < text.size(); ++cut) {
    const void* hit = std::memchr(text.data() + cut - 1, '\n', text.size() - cut);
    if (hit == nullptr) break;
    cut = static_cast<size_t>(static_cast<const char*>(hit) - text.data()) + 1;
    if (plain_before(cut - 1) && plain(cut)) return cut;
  }
  return text.size();
}

bool Tokenizer::lossless() const { return impl_->lossless; }
Hash128 Tokenizer::fingerprint() const { return impl_->fingerprint; }
const Vocabulary& Tokenizer::vocabulary() const { return impl_->vocabulary; }

}  // namespace warmpath

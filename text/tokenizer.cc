#include "text/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <unordered_map>

#include "text/piece_encoder.h"
#include "text/unicode.h"

namespace warmpath {
namespace {

constexpr std::string_view kSpaceSymbol = "\xE2\x96\x81";  // U+2581

// What one call of encode() works with; kept for the next call.
struct Scratch {
  PieceEncoder::Scratch pieces;
  PreTokenizer::Pieces splits;
};

// Idle scratches beyond this are freed, as are those that a huge piece has blown up.
constexpr size_t kIdleScratches = 32;
constexpr size_t kScratchSymbols = size_t{1} << 16;

}  // namespace

struct Tokenizer::Impl {
  Vocabulary vocabulary;
  std::unique_ptr<const PieceEncoder> pieces;
  AddedTokens added;             // found in the text as it is
  AddedTokens added_normalized;  // found in the normalized text
  std::unordered_map<std::string_view, TokenId> special_ids;
  bool can_cut = false;
  Hash128 fingerprint;

  mutable std::mutex mutex;
  mutable std::vector<std::unique_ptr<Scratch>> idle;  // guarded by mutex

  const TextRules& rules() const { return *vocabulary.rules; }
  Status build();
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
    const BpeScratch& bpe = scratch->pieces.bpe;
    if (std::max(bpe.symbols.capacity(), bpe.initial.capacity()) > kScratchSymbols) scratch->pieces.bpe = BpeScratch();
    if (scratch->splits.views.capacity() > kScratchSymbols) scratch->splits = {};
    const std::lock_guard lock(mutex);
    if (idle.size() < kIdleScratches) idle.push_back(std::move(scratch));
  }

  // Each encodes text in which no token of the kind before is to be found.
  template <typename EncodeRest>
  Status encode_around(const AddedTokens& tokens, std::string_view text, SpecialTokens mode, TextBegins begins,
                       std::vector<TokenId>& out, EncodeRest encode_rest) const;
  Status encode_text(std::string_view text, SpecialTokens mode, TextBegins begins, Scratch& scratch,
                     std::vector<TokenId>& out) const;
  Status encode_normalized(std::string_view text, TextBegins begins, Scratch& scratch, std::vector<TokenId>& out) const;
  void encode_spaced(std::string_view text, TextBegins begins, Scratch& scratch, std::vector<TokenId>& out) const;
};

Status Tokenizer::Impl::build() {
  auto encoder = PieceEncoder::create(vocabulary);
  if (!encoder.ok()) return encoder.status();
  pieces = *std::move(encoder);
  for (const AddedToken& token : vocabulary.added) {
    special_ids.emplace(token.text, token.id);
    if (!token.normalized || rules().normalizer.empty()) {
      added.add(token, token.text);
      continue;
    }
    std::string normal = token.text;
    WARMPATH_RETURN_IF_ERROR(rules().normalizer.apply(normal, TextBegins::kPrompt));
    added_normalized.add(token, normal);
  }
  const bool simple = rules().symbols == TextRules::Symbols::kSpaced || rules().pre_tokenizer.scanner() != nullptr;
  const bool looked_up_whole = rules().symbols == TextRules::Symbols::kSpaced && rules().whole_pieces_first;
  can_cut = simple && !looked_up_whole && !rules().normalizer.looks_far() && !added.reaches_far() &&
            !added_normalized.reaches_far();
  build_fingerprint();
  return {};
}

void Tokenizer::Impl::build_fingerprint() {
  // Length-prefixed, so that no two vocabularies spell the same bytes.
  std::string all;
  const auto add = [&all](std::string_view text) {
    const uint64_t size = text.size();
    all.append(reinterpret_cast<const char*>(&size), sizeof(size)).append(text);
  };
  add("warmpath tokenizer 2");
  add(vocabulary.model);
  add(rules().identity);
  for (const std::string& token : vocabulary.tokens) add(token);
  add({reinterpret_cast<const char*>(vocabulary.types.data()), vocabulary.types.size()});
  add({reinterpret_cast<const char*>(vocabulary.scores.data()), vocabulary.scores.size() * sizeof(float)});
  add({reinterpret_cast<const char*>(vocabulary.merges.data()), vocabulary.merges.size() * sizeof(TokenMerge)});
  for (const AddedToken& token : vocabulary.added) {
    add(fmt::format("{} {} {} {} {} {}", token.id, token.control, token.normalized, token.strip_left, token.strip_right,
                    token.single_word));
    add(token.text);
  }
  fingerprint = hash128(all);
}

template <typename EncodeRest>
Status Tokenizer::Impl::encode_around(const AddedTokens& tokens, std::string_view text, SpecialTokens mode,
                                      TextBegins begins, std::vector<TokenId>& out, EncodeRest encode_rest) const {
  size_t from = 0;    // what stands before is encoded
  size_t search = 0;  // white space that a token has taken may still begin another token
  while (const auto match = tokens.find(text, search, mode)) {
    const size_t begin = match->strip_left ? white_space_begin(text, from, std::max(from, match->begin)) : match->begin;
    if (begin > from) WARMPATH_RETURN_IF_ERROR(encode_rest(text.substr(from, begin - from), begins));
    out.push_back(match->id);
    begins = TextBegins::kRun;
    search = match->end;
    from = std::max(from, match->strip_right ? white_space_end(text, match->end) : match->end);
  }
  return from < text.size() ? encode_rest(text.substr(from), begins) : Status();
}

Status Tokenizer::Impl::encode_text(std::string_view text, SpecialTokens mode, TextBegins begins, Scratch& scratch,
                                    std::vector<TokenId>& out) const {
  if (rules().normalizer.empty()) return encode_normalized(text, begins, scratch, out);
  std::string normal(text);
  WARMPATH_RETURN_IF_ERROR(rules().normalizer.apply(normal, begins));
  if (added_normalized.empty()) return encode_normalized(normal, begins, scratch, out);
  return encode_around(added_normalized, normal, mode, begins, out, [&](std::string_view rest, TextBegins rest_begins) {
    return encode_normalized(rest, rest_begins, scratch, out);
  });
}

Status Tokenizer::Impl::encode_normalized(std::string_view text, TextBegins begins, Scratch& scratch,
                                          std::vector<TokenId>& out) const {
  if (rules().symbols == TextRules::Symbols::kSpaced) {
    encode_spaced(text, begins, scratch, out);
    return {};
  }
  if (const NextPiece next_piece = rules().pre_tokenizer.scanner(); next_piece != nullptr) {
    const auto* at = reinterpret_cast<const uint8_t*>(text.data());
    const uint8_t* end = at + text.size();
    ScanMemory memory;
    while (at < end) {
      const uint8_t* stop = next_piece(at, end, memory);
      pieces->encode({reinterpret_cast<const char*>(at), static_cast<size_t>(stop - at)}, static_cast<size_t>(end - at),
                     scratch.pieces, out);
      at = stop;
    }
    return {};
  }
  WARMPATH_RETURN_IF_ERROR(rules().pre_tokenizer.split(text, begins, scratch.splits));
  for (const std::string_view piece : scratch.splits.views) pieces->encode(piece, piece.size(), scratch.pieces, out);
  return {};
}

void Tokenizer::Impl::encode_spaced(std::string_view text, TextBegins begins, Scratch& scratch,
                                    std::vector<TokenId>& out) const {
  if (text.empty()) return;
  using Prefix = TextRules::SpacePrefix;
  const Prefix wanted = rules().space_prefix;
  bool prefix = wanted != Prefix::kNever && begins != TextBegins::kInside;
  if (wanted == Prefix::kPromptUnlessSpace) prefix = begins == TextBegins::kPrompt;
  if (wanted != Prefix::kAlways && (text[0] == ' ' || text.starts_with(kSpaceSymbol))) prefix = false;
  std::string respelled;
  if (text.find(kSpaceSymbol) != std::string_view::npos) {
    size_t from = 0;
    for (size_t at; (at = text.find(kSpaceSymbol, from)) != std::string_view::npos; from = at + kSpaceSymbol.size()) {
      respelled.append(text, from, at - from).append(1, ' ');
    }
    respelled.append(text, from);
    text = respelled;
  }
  // Pieces end before spaces and around line breaks where no merge reaches across: the rule of the vocabulary, or a
  // mere saving of work.
  const bool every_space = rules().every_space_begins_a_piece;
  const bool may_save = !rules().whole_pieces_first;  // else the run is looked up as a whole
  const auto ends_at = [&](size_t at) {
    if (!every_space && !may_save) return false;
    const auto before = static_cast<uint8_t>(text[at - 1]);
    const auto here = static_cast<uint8_t>(text[at]);
    if (here == ' ') return every_space || !pieces->joins(before, here);
    return (before == '\n' || here == '\n') && !pieces->joins(before, here);
  };
  size_t from = 0;
  std::string first;
  while (from < text.size()) {
    size_t stop = from + 1;
    const bool alone = prefix && every_space && text[0] == ' ';  // the prefix is a piece by itself
    if (alone) {
      pieces->encode(" ", 1, scratch.pieces, out);
      prefix = false;
    }
    while (stop < text.size() && !ends_at(stop)) ++stop;
    const std::string_view piece = text.substr(from, stop - from);
    if (prefix) {
      first.assign(1, ' ').append(piece);
      pieces->encode(first, first.size(), scratch.pieces, out);
      prefix = false;
    } else {
      pieces->encode(piece, text.size() - from, scratch.pieces, out);
    }
    from = stop;
  }
}

Tokenizer::Tokenizer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Tokenizer::~Tokenizer() = default;

Result<std::shared_ptr<const Tokenizer>> Tokenizer::create(Vocabulary vocabulary) {
  if (vocabulary.types.size() != vocabulary.tokens.size()) {
    return invalid_argument(fmt::format("the vocabulary has {} tokens but {} token types", vocabulary.tokens.size(),
                                        vocabulary.types.size()));
  }
  if (vocabulary.rules == nullptr) return internal_error("the vocabulary has no rules");
  auto impl = std::make_unique<Impl>();
  impl->vocabulary = std::move(vocabulary);
  WARMPATH_RETURN_IF_ERROR(impl->build());
  return std::shared_ptr<const Tokenizer>(new Tokenizer(std::move(impl)));
}

Status Tokenizer::encode(std::string_view text, SpecialTokens mode, std::vector<TokenId>& out,
                         TextBegins begins) const {
  auto scratch = impl_->take_scratch();
  const Status status =
      impl_->encode_around(impl_->added, text, mode, begins, out, [&](std::string_view rest, TextBegins rest_begins) {
        return impl_->encode_text(rest, mode, rest_begins, *scratch, out);
      });
  impl_->give_scratch(std::move(scratch));
  return status;
}

Result<std::vector<TokenId>> Tokenizer::encode(std::string_view text, SpecialTokens mode) const {
  std::vector<TokenId> ids;
  ids.reserve(text.size() / 4 + 1);
  WARMPATH_RETURN_IF_ERROR(encode(text, mode, ids));
  return ids;
}

std::string Tokenizer::decode(std::span<const TokenId> ids) const {
  std::string text;
  for (const TokenId id : ids) text += token_bytes(id);
  size_t spaces = 0;
  while (spaces < static_cast<size_t>(impl_->rules().strip_start) && spaces < text.size() && text[spaces] == ' ')
    ++spaces;
  return text.substr(spaces);
}

std::string_view Tokenizer::token_bytes(TokenId id) const { return impl_->pieces->token_text(id); }

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

std::optional<AddedTokens::Match> Tokenizer::find_special(std::string_view text, size_t from,
                                                          SpecialTokens mode) const {
  return impl_->added.find(text, from, mode);
}

bool Tokenizer::depends_on_begin() const {
  const auto& steps = impl_->rules().normalizer.steps();
  return impl_->rules().space_prefix != TextRules::SpacePrefix::kNever ||
         std::any_of(steps.begin(), steps.end(),
                     [](const Normalizer::Step& step) { return step.kind == Normalizer::Kind::kPrepend; }) ||
         (impl_->rules().pre_tokenizer.scanner() == nullptr && !impl_->rules().pre_tokenizer.empty());
}

size_t Tokenizer::next_safe_cut(std::string_view text, size_t from) const {
  if (!impl_->can_cut) return text.size();
  // One line break between two characters that are not white space: in every family a piece ends there, and neither
  // half can see that the other is missing. Not before a slash, which some families take with the line break.
  const auto* bytes = reinterpret_cast<const uint8_t*>(text.data());
  const auto plain = [&](size_t at) {
    const uint32_t code = decode_utf8(bytes + at, bytes + text.size()).code_point;
    return code != kInvalidCodePoint && code > 0x20 && code != '/' && !properties_of(code).is_white_space() &&
           !properties_of(code).is_mark();
  };
  const auto plain_before = [&](size_t end) {
    size_t at = end - 1;
    while (at > 0 && end - at < 4 && (bytes[at] & 0xC0) == 0x80) --at;
    return plain(at);
  };
  const bool spaced = impl_->rules().symbols == TextRules::Symbols::kSpaced;
  for (size_t cut = std::max<size_t>(from, 2); cut < text.size(); ++cut) {
    const void* hit = std::memchr(text.data() + cut - 1, '\n', text.size() - cut);
    if (hit == nullptr) break;
    cut = static_cast<size_t>(static_cast<const char*>(hit) - text.data()) + 1;
    if (spaced && impl_->pieces->joins('\n', bytes[cut])) continue;
    if (plain_before(cut - 1) && plain(cut)) return cut;
  }
  return text.size();
}

bool Tokenizer::lossless() const {
  const TextRules& rules = impl_->rules();
  const auto changes_text = [](const PreTokenizer::Step& step) {
    return step.behavior == SplitBehavior::kRemoved || step.kind == PreTokenizer::Kind::kPrefix ||
           step.kind == PreTokenizer::Kind::kMetaspace;
  };
  const auto& steps = rules.pre_tokenizer.steps();
  const auto& added = impl_->vocabulary.added;
  return impl_->pieces->has_every_byte() && rules.symbols == TextRules::Symbols::kBytes && rules.normalizer.empty() &&
         std::none_of(steps.begin(), steps.end(), changes_text) &&
         std::none_of(added.begin(), added.end(),
                      [](const AddedToken& token) { return token.strip_left || token.strip_right; });
}
Hash128 Tokenizer::fingerprint() const { return impl_->fingerprint; }
const Vocabulary& Tokenizer::vocabulary() const { return impl_->vocabulary; }

}  // namespace warmpath

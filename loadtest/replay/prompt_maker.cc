#include "loadtest/replay/prompt_maker.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "policies/rng.h"

namespace warmpath {

namespace {

// Common words, so that most tokenizers have a token for each with its space in front. 64 of them: six bits a word.
constexpr std::string_view kWords[64] = {
    "time",  "year",   "people",  "way",     "day",     "man",      "thing",   "woman",      "life",   "child",
    "world", "school", "state",   "family",  "group",   "country",  "problem", "hand",       "part",   "place",
    "case",  "week",   "company", "system",  "program", "question", "work",    "government", "number", "night",
    "point", "home",   "water",   "room",    "mother",  "area",     "money",   "story",      "fact",   "month",
    "lot",   "right",  "study",   "book",    "eye",     "job",      "word",    "business",   "issue",  "side",
    "kind",  "head",   "house",   "service", "friend",  "father",   "power",   "hour",       "game",   "line",
    "end",   "member", "law",     "car"};

// Seeds of text that belongs to one turn alone, apart from blocks' ids.
constexpr uint64_t kOwnText = uint64_t{1} << 62;

}  // namespace

TokenScale scale_from(int64_t words_a, int64_t tokens_a, int64_t words_b, int64_t tokens_b) {
  TokenScale scale;
  if (words_b == words_a) return scale;
  scale.tokens_per_word = static_cast<double>(tokens_b - tokens_a) / static_cast<double>(words_b - words_a);
  scale.tokens_per_word = std::clamp(scale.tokens_per_word, 0.05, 50.0);
  scale.overhead_tokens =
      std::max(0.0, static_cast<double>(tokens_a) - scale.tokens_per_word * static_cast<double>(words_a));
  return scale;
}

PromptMaker::PromptMaker(TokenScale scale, int block_tokens, std::string salt)
    : scale_(scale), block_tokens_(block_tokens), salt_(std::move(salt)) {}

void PromptMaker::append_words(std::string& out, uint64_t seed, int64_t skip, int64_t count) const {
  Rng rng(seed * 0x9e3779b97f4a7c15ull + 1);
  uint64_t bits = 0;
  for (int64_t n = 0; n < skip + count; ++n) {
    if (n % 10 == 0) bits = rng.next();
    const std::string_view word = kWords[bits & 63];
    bits >>= 6;
    if (n < skip) continue;
    out += word;
    out += ' ';
  }
}

std::string PromptMaker::plain_messages(int64_t words, uint32_t number) const {
  std::string out = R"([{"role":"user","content":")" + salt_ + ' ';
  append_words(out, kOwnText + (uint64_t{1} << 40) + number, 0, words);
  return out + R"("}])";
}

std::string PromptMaker::messages(const TraceTurn& turn, uint32_t number) const {
  if (!turn.messages.empty()) return turn.messages;
  const double words_per_block = block_tokens_ / scale_.tokens_per_word;
  const double wanted = (static_cast<double>(turn.input_tokens) - scale_.overhead_tokens) / scale_.tokens_per_word;
  const int64_t total = std::max<int64_t>(std::llround(wanted), 1);
  const int64_t base_blocks = turn.base_tokens / block_tokens_;

  std::string out;
  out.reserve(static_cast<size_t>(total) * 8 + 256);
  out += base_blocks > 0 ? R"([{"role":"system","content":")" : R"([{"role":"user","content":")";
  out += salt_;
  out += ' ';
  bool in_base = base_blocks > 0;
  const auto end_base = [&] {
    out += R"("},{"role":"user","content":")";
    in_base = false;
  };
  int64_t block = 0;
  int64_t done = 0;
  for (const BlockRun& run : turn.blocks) {
    for (uint32_t n = 0; n < run.count && done < total; ++n, ++block) {
      if (in_base && block >= base_blocks) end_base();
      // Block k ends at round((k + 1) * words_per_block), so that fractions do not add up.
      const int64_t end = std::llround(static_cast<double>(block + 1) * words_per_block);
      const int64_t count = std::min(end, total) - done;
      append_words(out, run.first + n, 0, count);
      done += count;
    }
  }
  if (in_base) end_base();
  if (done < total) append_words(out, kOwnText + number, 0, total - done);
  return out + R"("}])";
}

}  // namespace warmpath

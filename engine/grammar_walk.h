// Walks through a grammar for tests and benches: tokens drawn from the mask alone, so that what comes out shows what
// the grammar allows, not what a model would prefer.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "engine/grammar.h"
#include "engine/token_text.h"

namespace warmpath {

struct GrammarWalk {
  std::string text;
  std::vector<TokenId> tokens;
  bool ended = false;  // where the answer may end; else it was cut at the most tokens
};

// Every other token closes something, where that is allowed, so that most walks end. `ends` as for the matcher.
inline GrammarWalk walk_grammar(GrammarMatcher& matcher, const TokenText& text, std::mt19937& random, int most_tokens) {
  static constexpr std::string_view kClosers = "\"}],>/";
  GrammarWalk walk;
  std::vector<TokenId> allowed, closers;
  while (static_cast<int>(walk.tokens.size()) < most_tokens) {
    if (matcher.must_end() || (matcher.may_end() && random() % 4 == 0)) {
      walk.ended = true;
      return walk;
    }
    allowed.clear();
    closers.clear();
    const std::span<const uint32_t> mask = matcher.mask();
    for (size_t word = 0; word < mask.size(); ++word) {
      for (uint32_t bits = mask[word]; bits != 0; bits &= bits - 1) {
        const auto token = static_cast<TokenId>(word * 32 + static_cast<size_t>(__builtin_ctz(bits)));
        const std::string_view spelled = text.of(token);
        allowed.push_back(token);
        if (spelled.size() == 1 && kClosers.find(spelled) != std::string_view::npos) closers.push_back(token);
      }
    }
    const std::vector<TokenId>& from = !closers.empty() && random() % 2 == 0 ? closers : allowed;
    if (from.empty()) return walk;
    const TokenId token = from[random() % from.size()];
    if (!matcher.accept(token)) {
      // An end token, which does not move the matcher.
      walk.ended = matcher.may_end();
      return walk;
    }
    walk.tokens.push_back(token);
    walk.text += text.of(token);
  }
  walk.ended = matcher.may_end();
  return walk;
}

}  // namespace warmpath

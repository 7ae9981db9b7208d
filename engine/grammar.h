// Grammars as token masks: the one header behind which xgrammar (https://github.com/mlc-ai/xgrammar) lives.
//
// A GrammarCompiler belongs to one vocabulary; a CompiledGrammar is what it makes of a Grammar; a GrammarMatcher
// follows one answer and says which tokens may come next. Masks are bits, token t in bit t % 32 of word t / 32. An end
// token is allowed exactly where the answer may end; other control tokens only where the grammar names them.
//
// Bounds: what the schema is checked for (text/schema/json_schema.h), kMaxRegexBytes, kMaxEbnfBytes, and kMaxRepetition
// in both. Compiling takes from under a millisecond to some seconds for the largest schemas: never on the engine's
// thread (engine/grammar_shop.h). Thread safety: a compiler and compiled grammars may be used by any thread; a matcher
// belongs to one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "base/token.h"
#include "engine/token_text.h"
#include "proto/grammar.h"

namespace warmpath {

inline constexpr size_t kMaxRegexBytes = 4096;
inline constexpr size_t kMaxEbnfBytes = 64 << 10;

class CompiledGrammar {
 public:
  virtual ~CompiledGrammar() = default;
  virtual size_t bytes() const = 0;  // of memory, about
};

class GrammarCompiler {
 public:
  // Whether this build can constrain answers at all (cmake/Xgrammar.cmake).
  static bool available();
  // `vocabulary` is the model's, which may have more tokens than `text` knows; `end_tokens` end its answers.
  static Result<std::unique_ptr<GrammarCompiler>> create(const TokenText& text, TokenId vocabulary,
                                                         std::vector<TokenId> end_tokens);
  virtual ~GrammarCompiler() = default;

  // kInvalidArgument names what cannot be kept. REQUIRES a grammar that validate() accepts, and is not empty.
  virtual Result<std::shared_ptr<const CompiledGrammar>> compile(const Grammar& grammar) const = 0;
};

class GrammarMatcher {
 public:
  // At the beginning of an answer. `ends` are the tokens that end this one. REQUIRES a grammar of a GrammarCompiler.
  static std::unique_ptr<GrammarMatcher> create(std::shared_ptr<const CompiledGrammar> grammar,
                                                std::vector<TokenId> ends);
  virtual ~GrammarMatcher() = default;

  // What may come next; valid until the matcher moves.
  virtual std::span<const uint32_t> mask() const = 0;
  bool allows(TokenId token) const { return (mask()[static_cast<size_t>(token) / 32] >> (token % 32) & 1) != 0; }
  // The answer may end here / must, because nothing can follow.
  virtual bool may_end() const = 0;
  virtual bool must_end() const = 0;
  // Moves on by a token that does not end the answer; false, and nothing moved, if the grammar has none such here.
  virtual bool accept(TokenId token) = 0;
  // Takes the last `tokens` back.
  virtual void roll_back(int32_t tokens) = 0;
};

}  // namespace warmpath

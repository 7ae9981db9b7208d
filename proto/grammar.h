// Grammar: what an answer must look like, as a tree of a few kinds. The gateway makes it from response_format, tool
// choices and the like; the engine turns it into a token mask (engine/grammar.h).
//
// Bounds, checked where it comes off the wire: kMaxGrammarNodes nodes, kMaxGrammarDepth levels, kMaxGrammarBytes of
// text together. Thread safety: a value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/token.h"

namespace warmpath {

struct Grammar {
  enum class Kind : uint8_t {
    kNone,        // no constraint; only as the root
    kLiteral,     // the bytes `text`
    kToken,       // the one token `tokens[0]`: a marker that is met as a token only
    kJsonSchema,  // a JSON value that the JSON schema `text` accepts
    kRegex,       // text that the regular expression `text` matches from beginning to end
    kEbnf,        // the rule `root` of the EBNF grammar `text`
    kText,        // any text in which none of the strings `excluded` occurs
    kTokens,      // any tokens but `tokens` and control tokens
    kSequence,    // `parts`, one after the other
    kAnyOf,       // one of `parts`
    kRepeat,      // `parts[0]`, `least` to `most` times; most < 0: without end
    kQwenObject,  // a JSON object that the schema `text` accepts, written as Qwen3-Coder's <parameter=...> elements
    kGlmObject,   // likewise as GLM's <arg_key> and <arg_value> pairs
  };

  Kind kind = Kind::kNone;
  std::string text;
  std::vector<TokenId> tokens;
  std::vector<std::string> excluded;
  std::vector<Grammar> parts;
  int32_t least = 0;
  int32_t most = -1;
  // White space between a JSON value's own bytes: at most so many characters at a place (at least 1).
  int32_t most_space = 0;

  bool empty() const { return kind == Kind::kNone; }
  bool operator==(const Grammar&) const = default;

  static Grammar literal(std::string_view bytes);
  static Grammar token(TokenId id);
  static Grammar json_schema(std::string_view schema, int32_t most_space);
  static Grammar regex(std::string_view expression);
  static Grammar ebnf(std::string_view grammar);
  static Grammar text_without(std::vector<std::string> excluded);
  static Grammar tokens_without(std::vector<TokenId> excluded);
  static Grammar sequence(std::vector<Grammar> parts);
  static Grammar any_of(std::vector<Grammar> parts);
  static Grammar repeat(Grammar part, int32_t least, int32_t most);
};

inline constexpr size_t kMaxGrammarNodes = 16'384;
inline constexpr int kMaxGrammarDepth = 32;
inline constexpr size_t kMaxGrammarBytes = 1 << 20;

// The bounds above, and that each kind has what it needs; token ids lie in [0, vocabulary).
Status validate(const Grammar& grammar, TokenId vocabulary);

}  // namespace warmpath

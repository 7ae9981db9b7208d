#include "proto/grammar.h"

#include <fmt/format.h>

#include <utility>

namespace warmpath {

namespace {

struct Size {
  size_t nodes = 0;
  size_t bytes = 0;
};

Status check_shape(const Grammar& grammar, TokenId vocabulary) {
  using Kind = Grammar::Kind;
  const auto wrong = [](std::string_view what) { return invalid_argument(fmt::format("grammar: {}", what)); };
  switch (grammar.kind) {
    case Kind::kNone:
      return wrong("a part has no kind");
    case Kind::kLiteral:
    case Kind::kText:
    case Kind::kTokens:
      break;
    case Kind::kToken:
      if (grammar.tokens.size() != 1) return wrong("a token part names one token");
      break;
    case Kind::kJsonSchema:
    case Kind::kQwenObject:
    case Kind::kGlmObject:
    case Kind::kRegex:
    case Kind::kEbnf:
      if (grammar.text.empty()) return wrong("a schema, regular expression or EBNF part is empty");
      break;
    case Kind::kSequence:
    case Kind::kAnyOf:
      if (grammar.parts.empty()) return wrong("a sequence or alternative has no parts");
      break;
    case Kind::kRepeat:
      if (grammar.parts.size() != 1 || grammar.least < 0 || (grammar.most >= 0 && grammar.most < grammar.least)) {
        return wrong("a repetition has one part, and bounds in order");
      }
      break;
  }
  for (const std::string& excluded : grammar.excluded) {
    if (excluded.empty()) return wrong("an excluded string is empty");
  }
  for (const TokenId token : grammar.tokens) {
    if (token < 0 || token >= vocabulary) {
      return wrong(fmt::format("token {} is named; this model has tokens 0 to {}", token, vocabulary - 1));
    }
  }
  return {};
}

Status check(const Grammar& grammar, TokenId vocabulary, int depth, Size& size) {
  if (depth > kMaxGrammarDepth) {
    return invalid_argument(fmt::format("grammar: parts are nested deeper than {} levels", kMaxGrammarDepth));
  }
  size.nodes += 1 + grammar.tokens.size() + grammar.excluded.size();
  size.bytes += grammar.text.size();
  for (const std::string& excluded : grammar.excluded) size.bytes += excluded.size();
  if (size.nodes > kMaxGrammarNodes || size.bytes > kMaxGrammarBytes) {
    return invalid_argument(fmt::format("grammar: at most {} parts and {} bytes of text are allowed: ask for less",
                                        kMaxGrammarNodes, kMaxGrammarBytes));
  }
  WARMPATH_RETURN_IF_ERROR(check_shape(grammar, vocabulary));
  for (const Grammar& part : grammar.parts) WARMPATH_RETURN_IF_ERROR(check(part, vocabulary, depth + 1, size));
  return {};
}

Grammar of(Grammar::Kind kind, std::string_view text = {}) {
  Grammar grammar;
  grammar.kind = kind;
  grammar.text = text;
  return grammar;
}

}  // namespace

Grammar Grammar::literal(std::string_view bytes) { return of(Kind::kLiteral, bytes); }

Grammar Grammar::token(TokenId id) {
  Grammar grammar = of(Kind::kToken);
  grammar.tokens = {id};
  return grammar;
}

Grammar Grammar::json_schema(std::string_view schema, int32_t most_space) {
  Grammar grammar = of(Kind::kJsonSchema, schema);
  grammar.most_space = most_space;
  return grammar;
}

Grammar Grammar::regex(std::string_view expression) { return of(Kind::kRegex, expression); }
Grammar Grammar::ebnf(std::string_view grammar) { return of(Kind::kEbnf, grammar); }

Grammar Grammar::text_without(std::vector<std::string> excluded) {
  Grammar grammar = of(Kind::kText);
  grammar.excluded = std::move(excluded);
  return grammar;
}

Grammar Grammar::tokens_without(std::vector<TokenId> excluded) {
  Grammar grammar = of(Kind::kTokens);
  grammar.tokens = std::move(excluded);
  return grammar;
}

Grammar Grammar::sequence(std::vector<Grammar> parts) {
  Grammar grammar = of(Kind::kSequence);
  grammar.parts = std::move(parts);
  return grammar;
}

Grammar Grammar::any_of(std::vector<Grammar> parts) {
  Grammar grammar = of(Kind::kAnyOf);
  grammar.parts = std::move(parts);
  return grammar;
}

Grammar Grammar::repeat(Grammar part, int32_t least, int32_t most) {
  Grammar grammar = of(Kind::kRepeat);
  grammar.parts.push_back(std::move(part));
  grammar.least = least;
  grammar.most = most;
  return grammar;
}

Status validate(const Grammar& grammar, TokenId vocabulary) {
  if (grammar.empty()) return {};
  Size size;
  return check(grammar, vocabulary, 1, size);
}

}  // namespace warmpath

// Lexer: template source to tokens, with Jinja2's whitespace rules as transformers sets them (trim_blocks,
// lstrip_blocks, one trailing newline dropped, \r\n and \r read as \n). Thread safety: a pure function.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/error.h"
#include "text/marked_text.h"

namespace warmpath::jinja {

enum class TokenKind : uint8_t {
  kData,           // text outside of any tag
  kVariableBegin,  // {{
  kVariableEnd,
  kBlockBegin,  // {%
  kBlockEnd,
  kName,
  kString,  // text already unescaped
  kInteger,
  kFloat,
  kOperator,
  kEnd,  // of the template
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string_view text;  // into the source; into `strings` for kString; the spelling otherwise
  Place place;
};

struct TokenStream {
  boost::intrusive_ptr<const SharedBytes> source;  // normalized; what the tokens view
  std::vector<Token> tokens;
  std::vector<std::unique_ptr<std::string>> strings;  // unescaped literals
};

// Throws TemplateError.
TokenStream tokenize_template(std::string_view source);

}  // namespace warmpath::jinja

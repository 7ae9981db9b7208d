// TokenText: the bytes that each token adds to an answer's text, for stop strings. Control tokens add none, as in the
// detokenizer of text/. Thread safety: immutable.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/token.h"
#include "text/vocabulary.h"

namespace warmpath {

class TokenText {
 public:
  explicit TokenText(const Vocabulary& vocabulary);

  // "" for a token that is out of range or adds no text.
  std::string_view of(TokenId token) const {
    const auto index = static_cast<size_t>(token);
    return token >= 0 && index < bytes_.size() ? std::string_view(bytes_[index]) : std::string_view();
  }

 private:
  std::vector<std::string> bytes_;
};

}  // namespace warmpath

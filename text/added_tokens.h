// AddedTokens: finds the tokens that are matched by their text before anything else happens to it: leftmost first, the
// longest of those that start at one place, as Hugging Face tokenizers finds them. Thread safety: immutable once built.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "text/special_matcher.h"
#include "text/vocabulary.h"

namespace warmpath {

// What control-token text (`<|im_end|>`) inside the input means.
enum class SpecialTokens : uint8_t {
  kText,   // data: encoded like any other text
  kParse,  // the control token
};

class AddedTokens {
 public:
  struct Match {
    size_t begin = 0;  // of the token's own text
    size_t end = 0;
    TokenId id = 0;
    bool strip_left = false;
    bool strip_right = false;
  };

  // `text` is what to look for, which a normalizer may have made of token.text.
  void add(const AddedToken& token, std::string_view text);
  bool empty() const { return tokens_.empty(); }
  // Whether text next to a token may depend on the token more than a line away.
  bool reaches_far() const { return matcher_.holds_line_break() || strips_left_; }

  // The first match at or after `from`. Under kText a control token's spelling is passed over whole.
  std::optional<Match> find(std::string_view text, size_t from, SpecialTokens mode) const;

 private:
  SpecialMatcher matcher_;
  std::vector<AddedToken> tokens_;  // without their text; a match's id is an index into this
  bool strips_left_ = false;
};

// Where the white space before `end` begins (not before `from`), and where the white space at `at` ends.
size_t white_space_begin(std::string_view text, size_t from, size_t end);
size_t white_space_end(std::string_view text, size_t at);

}  // namespace warmpath

// Regex: a regular expression of a tokenizer.json, as Hugging Face tokenizers run it (Oniguruma's Ruby syntax over
// Unicode), run by PCRE2. Only for expressions that no hand-written scanner knows.
//
// The expression comes with a model file and the text from anywhere, so a search is bounded in steps, stack, memory and
// processor time; beyond a bound it ends with an error. Character properties are those of the PCRE2 library in use
// (Unicode 14 in Debian 12, 16 in Debian 13). Thread safety: immutable; any thread may search, each with its own
// working memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"

namespace warmpath {

class Regex {
 public:
  // Errors name the place in the expression.
  static Result<std::shared_ptr<const Regex>> compile(std::string_view pattern);
  ~Regex();

  struct Match {
    size_t begin = 0;
    size_t end = 0;
    bool found = false;
  };
  // All matches in one text, first to last. An empty match right behind the match before is passed over.
  class Search {
   public:
    // REQUIRES valid UTF-8; `regex` and `text` outlive the search.
    Search(const Regex& regex, std::string_view text) : regex_(regex), text_(text) {}
    Result<Match> next();

   private:
    Status check_time();
    const Regex& regex_;
    std::string_view text_;
    size_t from_ = 0;
    size_t last_end_ = std::string_view::npos;
    uint32_t calls_ = 0;
    double started_ = -1;  // this thread's processor time in seconds; -1: not yet looked at
  };

  const std::string& pattern() const { return pattern_; }

 private:
  struct Code;
  Regex(std::string pattern, std::unique_ptr<Code> code);
  std::string pattern_;
  std::unique_ptr<Code> code_;
};

// The same expression in PCRE2's syntax: class intersections and nested classes become look-aheads and alternatives,
// ^ and $ match at lines, \h is a hexadecimal digit. For tests; compile() does it.
Result<std::string> pcre_of_oniguruma(std::string_view pattern);

}  // namespace warmpath

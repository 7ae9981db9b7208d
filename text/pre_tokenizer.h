// PreTokenizer: how a tokenizer.json cuts text into the pieces inside which merges happen, as Hugging Face tokenizers
// does it: steps, each of which cuts what the one before has left. Where all steps together are one of the known
// families, `scanner()` is its hand-written scanner; otherwise split() runs them one by one.
// Thread safety: immutable once built.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/bpe_scanner.h"
#include "text/normalizer.h"
#include "text/regex.h"

namespace warmpath {

// What becomes of a delimiter.
enum class SplitBehavior : uint8_t { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

class PreTokenizer {
 public:
  enum class Kind : uint8_t {
    kScanner,      // `scanner`: all of the text is pieces
    kRegex,        // `regex`
    kLiteral,      // `text`
    kNumeral,      // one numeral (Unicode's N)
    kWhiteSpace,   // one White_Space character
    kPunctuation,  // one character of P, or an ASCII symbol
    kPrefix,       // no split: `text` is put before a piece that does not begin with it
    kMetaspace,    // spaces become `text`, which is put first as `prefix` says, and (where `split`) every one begins a
                   // piece
  };
  enum class Prefix : uint8_t { kNever, kFirst, kAlways };
  struct Step {
    Kind kind;
    SplitBehavior behavior = SplitBehavior::kIsolated;
    bool invert = false;
    NextPiece scanner = nullptr;
    std::shared_ptr<const Regex> regex = nullptr;
    std::string text = {};
    Prefix prefix = Prefix::kNever;
    bool split = true;
  };

  // The pieces of one text; those that differ from it view `owned`.
  struct Pieces {
    std::vector<std::string_view> views;
    std::deque<std::string> owned;
    std::vector<std::string_view> next;  // working memory
  };

  PreTokenizer() = default;
  explicit PreTokenizer(std::vector<Step> steps) : steps_(std::move(steps)) {}

  bool empty() const { return steps_.empty(); }
  const std::vector<Step>& steps() const { return steps_; }
  // The scanner that does all; null when there is none.
  NextPiece scanner() const {
    return steps_.size() == 1 && steps_[0].kind == Kind::kScanner ? steps_[0].scanner : nullptr;
  }
  Status split(std::string_view text, TextBegins begins, Pieces& pieces) const;

 private:
  std::vector<Step> steps_;
};

}  // namespace warmpath

// Normalizer: what a tokenizer.json does to text before it is split: Unicode normal forms, case, replacements, as
// Hugging Face tokenizers does them. Bytes that are not valid UTF-8 pass unchanged. Linear in the text.
// Thread safety: immutable once built.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/regex.h"

namespace warmpath {

// Where a piece of text stands in a prompt; some rules act only where text begins.
enum class TextBegins : uint8_t {
  kPrompt,  // the prompt begins here
  kRun,     // right behind a token found by its text
  kInside,  // inside a run: what stands before was encoded on its own (Tokenizer::next_safe_cut)
};

class Normalizer {
 public:
  enum class Kind : uint8_t {
    kNfc,
    kNfd,
    kNfkc,
    kNfkd,
    kLowercase,
    kStrip,         // White_Space at the ends
    kStripAccents,  // marks
    kPrepend,       // `text`, where a run begins, unless the run is empty
    kReplace,       // `from` or what `regex` matches by `text`
  };
  struct Step {
    Kind kind;
    std::string from = {};
    std::string text = {};
    std::shared_ptr<const Regex> regex = nullptr;
    bool left = true;  // kStrip
    bool right = true;
  };

  Normalizer() = default;
  explicit Normalizer(std::vector<Step> steps) : steps_(std::move(steps)) {}

  bool empty() const { return steps_.empty(); }
  const std::vector<Step>& steps() const { return steps_; }
  // Whether what a step does to a character can depend on characters far away, so that no text may be cut in parts.
  bool looks_far() const;
  // `text` normalized in place.
  Status apply(std::string& text, TextBegins begins) const;

 private:
  std::vector<Step> steps_;
};

}  // namespace warmpath

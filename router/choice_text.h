// ChoiceText: the tokens of one choice on their way to text: whole UTF-8 characters only, nothing that may still turn
// out to be part of a stop string, and with log-probabilities where asked for.
// Thread safety: none; belongs to its answer. The tokenizer must outlive it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "proto/generate.h"
#include "router/wire/answer_writer.h"
#include "text/detokenizer.h"
#include "text/stop_matcher.h"

namespace warmpath {

class ChoiceText {
 public:
  // `stops` may be null.
  ChoiceText(const Tokenizer& tokenizer, std::shared_ptr<const StopStrings> stops, bool logprobs);

  void push(const TokenOutput& token);
  // No token follows: what was held back is text after all, unless a stop string was met.
  void finish(FinishReason reason);

  bool finished() const { return finished_; }
  FinishReason reason() const { return reason_; }

  // Text and chances that are certain and not yet taken.
  bool has_news() const { return !text_.empty(); }
  std::string take_text();
  std::vector<TokenChance> take_chances();

 private:
  const Tokenizer& tokenizer_;
  Detokenizer detokenizer_;
  std::unique_ptr<StopMatcher> matcher_;  // null without stop strings
  const bool logprobs_;
  std::string text_;
  std::string piece_;
  std::vector<TokenChance> chances_;
  bool finished_ = false;
  FinishReason reason_ = FinishReason::kError;
};

}  // namespace warmpath

// ChoiceText: the tokens of one choice on their way to text, reasoning and calls: whole UTF-8 characters only, nothing
// that may still turn out to be part of a stop string, and with log-probabilities where asked for.
// Thread safety: none; belongs to its answer. The tokenizer must outlive it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "proto/generate.h"
#include "router/wire/answer_writer.h"
#include "text/answer/answer_parser.h"
#include "text/detokenizer.h"
#include "text/stop_matcher.h"

namespace warmpath {

class ChoiceText {
 public:
  // `stops` may be null; so may `markers`: then all is text.
  ChoiceText(const Tokenizer& tokenizer, std::shared_ptr<const StopStrings> stops, bool logprobs,
             std::shared_ptr<const AnswerMarkers> markers, const AnswerParser::Options& parser_options);

  void push(const TokenOutput& token);
  // No token follows: what was held back is text after all, unless a stop string was met.
  void finish(FinishReason reason);

  bool finished() const { return finished_; }
  // REQUIRES finished().
  const AnswerEnd& end() const { return end_; }

  // Pieces and chances that are certain and not yet taken.
  bool has_news() const { return !pieces_.empty(); }
  std::vector<AnswerPiece> take_pieces();
  std::vector<TokenChance> take_chances();

  int64_t reasoning_tokens() const { return reasoning_tokens_; }
  int64_t calls() const { return calls_; }
  int64_t malformed_calls() const { return parser_ ? parser_->malformed_calls() : 0; }

 private:
  void pass_on();
  void collect();

  const Tokenizer& tokenizer_;
  Detokenizer detokenizer_;
  std::unique_ptr<StopMatcher> matcher_;  // null without stop strings
  const std::shared_ptr<const AnswerMarkers> markers_;
  std::unique_ptr<AnswerParser> parser_;  // null without markers
  const bool logprobs_;
  std::string text_;   // certain, not yet parsed
  std::string bytes_;  // of one token
  std::vector<AnswerPiece> pieces_;
  std::vector<TokenChance> chances_;
  int64_t reasoning_tokens_ = 0;
  int64_t calls_ = 0;
  bool finished_ = false;
  AnswerEnd end_{.reason = FinishReason::kError, .called = false, .stop_string = {}};
};

}  // namespace warmpath

#include "router/choice_text.h"

namespace warmpath {

ChoiceText::ChoiceText(const Tokenizer& tokenizer, std::shared_ptr<const StopStrings> stops, bool logprobs)
    : tokenizer_(tokenizer),
      detokenizer_(tokenizer),
      matcher_(stops ? std::make_unique<StopMatcher>(std::move(stops)) : nullptr),
      logprobs_(logprobs) {}

void ChoiceText::push(const TokenOutput& token) {
  if (finished_ || (matcher_ && matcher_->stopped())) return;
  if (logprobs_) {
    TokenChance& chance = chances_.emplace_back();
    chance.bytes = tokenizer_.token_bytes(token.token);
    chance.logprob = token.logprob;
    for (const auto& [id, logprob] : token.top_logprobs) chance.top.emplace_back(tokenizer_.token_bytes(id), logprob);
  }
  if (!matcher_) {
    detokenizer_.push(token.token, text_);
    return;
  }
  piece_.clear();
  detokenizer_.push(token.token, piece_);
  matcher_->push(piece_, text_);
}

void ChoiceText::finish(FinishReason reason) {
  if (finished_) return;
  finished_ = true;
  reason_ = reason;
  if (!matcher_) {
    detokenizer_.finish(text_);
    return;
  }
  piece_.clear();
  detokenizer_.finish(piece_);
  matcher_->push(piece_, text_);
  matcher_->finish(text_);
  if (matcher_->stopped()) reason_ = FinishReason::kStop;
}

std::string ChoiceText::take_text() { return std::exchange(text_, {}); }
std::vector<TokenChance> ChoiceText::take_chances() { return std::exchange(chances_, {}); }

}  // namespace warmpath

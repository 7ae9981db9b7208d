#include "router/choice_text.h"

namespace warmpath {

ChoiceText::ChoiceText(const Tokenizer& tokenizer, std::shared_ptr<const StopStrings> stops, bool logprobs,
                       std::shared_ptr<const AnswerMarkers> markers, const AnswerParser::Options& parser_options)
    : tokenizer_(tokenizer),
      detokenizer_(tokenizer),
      matcher_(stops ? std::make_unique<StopMatcher>(std::move(stops)) : nullptr),
      markers_(std::move(markers)),
      parser_(markers_ ? std::make_unique<AnswerParser>(markers_, parser_options) : nullptr),
      logprobs_(logprobs) {}

void ChoiceText::push(const TokenOutput& token) {
  if (finished_ || (matcher_ && matcher_->stopped())) return;
  if (logprobs_) {
    TokenChance& chance = chances_.emplace_back();
    chance.bytes = tokenizer_.token_bytes(token.token);
    chance.logprob = token.logprob;
    for (const auto& [id, logprob] : token.top_logprobs) chance.top.emplace_back(tokenizer_.token_bytes(id), logprob);
  }
  if (const auto marker = markers_ ? markers_->of_token(token.token) : std::nullopt) {
    // Neither a character nor a stop string goes on behind a marker.
    bytes_.clear();
    detokenizer_.finish(bytes_);
    if (matcher_) {
      matcher_->push(bytes_, text_);
      matcher_->finish(text_);
    } else {
      text_ += bytes_;
    }
    pass_on();
    parser_->push_marker(*marker);
    collect();
    return;
  }
  if (matcher_) {
    bytes_.clear();
    detokenizer_.push(token.token, bytes_);
    matcher_->push(bytes_, text_);
  } else {
    detokenizer_.push(token.token, text_);
  }
  if (parser_ && parser_->in_reasoning()) ++reasoning_tokens_;
  pass_on();
}

void ChoiceText::finish(FinishReason reason) {
  if (finished_) return;
  finished_ = true;
  end_.reason = reason;
  if (matcher_) {
    bytes_.clear();
    detokenizer_.finish(bytes_);
    matcher_->push(bytes_, text_);
    matcher_->finish(text_);
    if (matcher_->stopped()) {
      end_.reason = FinishReason::kStop;
      end_.stop_string = matcher_->matched();
    }
  } else {
    detokenizer_.finish(text_);
  }
  pass_on();
  if (parser_) {
    parser_->finish();
    collect();
  }
  end_.called = calls_ > 0;
}

void ChoiceText::pass_on() {
  if (text_.empty()) return;
  if (parser_) {
    parser_->push_text(text_);
    text_.clear();
    collect();
  } else if (pieces_.empty()) {
    pieces_.push_back({AnswerPiece::Kind::kText, std::exchange(text_, {}), {}});
  } else {
    pieces_.back().text += text_;
    text_.clear();
  }
}

void ChoiceText::collect() {
  for (AnswerPiece& piece : parser_->take_pieces()) {
    const bool is_call = piece.kind == AnswerPiece::Kind::kCall;
    calls_ += is_call ? 1 : 0;
    const bool joins = !is_call && piece.kind != AnswerPiece::Kind::kCallEnd;
    if (joins && !pieces_.empty() && pieces_.back().kind == piece.kind) {
      pieces_.back().text += piece.text;
    } else {
      pieces_.push_back(std::move(piece));
    }
  }
}

std::vector<AnswerPiece> ChoiceText::take_pieces() { return std::exchange(pieces_, {}); }
std::vector<TokenChance> ChoiceText::take_chances() { return std::exchange(chances_, {}); }

}  // namespace warmpath

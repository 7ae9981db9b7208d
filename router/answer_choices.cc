#include "router/answer_choices.h"

#include <numeric>

#include "router/random_id.h"

namespace warmpath {

namespace {

bool ended_well(const ChoiceText& choice) {
  if (!choice.finished()) return false;
  const FinishReason reason = choice.end().reason;
  return reason == FinishReason::kStop || reason == FinishReason::kLength;
}

// An id for a call whose format has none. Mistral's templates take exactly nine letters and digits.
std::string new_call_id(Wire wire, CallFormat format) {
  if (format == CallFormat::kMistral) return random_id("").substr(0, 9);
  return random_id(wire == Wire::kMessages ? "toolu_" : "call_");
}

// The token that ended a choice is not part of its text: it is made nobody's.
void drop_stop_tokens(GenerateUpdate& update) {
  for (const ChoiceFinish& finish : update.finished) {
    if (finish.stop_token < 0) continue;
    for (size_t at = update.tokens.size(); at-- > 0;) {
      if (update.tokens[at].choice != finish.choice) continue;
      if (update.tokens[at].token == finish.stop_token) update.tokens[at].choice = -1;
      break;
    }
  }
}

}  // namespace

AnswerChoices::AnswerChoices(const PreparedRequest& prepared)
    : prepared_(prepared),
      per_prompt_(static_cast<size_t>(prepared.options.sampling.n)),
      choices_(prepared.choices()),
      closed_(prepared.choices()),
      shown_(prepared.prompts.size()),
      cached_(prepared.prompts.size()),
      completed_(prepared.prompts.size()) {
  for (size_t prompt = 0; prompt < prepared.prompts.size(); ++prompt) reset(prompt);
}

void AnswerChoices::reset(size_t prompt) {
  for (size_t choice = prompt * per_prompt_; choice < (prompt + 1) * per_prompt_; ++choice) {
    choices_[choice] = std::make_unique<ChoiceText>(*prepared_.identity->tokenizer, prepared_.stops,
                                                    prepared_.options.sampling.top_logprobs >= 0, prepared_.markers,
                                                    prepared_.parser_options);
  }
  cached_[prompt] = 0;
  completed_[prompt] = 0;
}

void AnswerChoices::take(int prompt, GenerateUpdate& update) {
  const auto text_of = [&](int32_t choice) -> ChoiceText* {
    if (choice < 0 || static_cast<size_t>(choice) >= per_prompt_) return nullptr;
    return choices_[first_of(prompt) + static_cast<size_t>(choice)].get();
  };
  if (update.start) cached_[static_cast<size_t>(prompt)] = update.start->cached_tokens();
  drop_stop_tokens(update);
  for (const TokenOutput& token : update.tokens) {
    if (ChoiceText* text = text_of(token.choice)) text->push(token);
  }
  for (const ChoiceFinish& finish : update.finished) {
    ChoiceText* text = text_of(finish.choice);
    if (text == nullptr) continue;
    text->finish(finish.reason);
    completed_[static_cast<size_t>(prompt)] += finish.completion_tokens;
  }
}

bool AnswerChoices::has_news() const {
  for (size_t choice = 0; choice < choices_.size(); ++choice) {
    if (!closed_[choice] && (choices_[choice]->has_news() || ended_well(*choices_[choice]))) return true;
  }
  return false;
}

void AnswerChoices::write_news(AnswerWriter& writer, std::string& out) {
  for (size_t choice = 0; choice < choices_.size(); ++choice) {
    if (closed_[choice]) continue;
    ChoiceText& text = *choices_[choice];
    if (text.has_news()) {
      write_pieces(static_cast<int>(choice), text, writer, out);
      shown_[choice / per_prompt_] = true;
    }
    if (ended_well(text)) {
      writer.finish(out, static_cast<int>(choice), text.end());
      closed_[choice] = true;
      shown_[choice / per_prompt_] = true;
    }
  }
}

void AnswerChoices::write_pieces(int choice, ChoiceText& text, AnswerWriter& writer, std::string& out) {
  for (const AnswerPiece& piece : text.take_pieces()) {
    switch (piece.kind) {
      case AnswerPiece::Kind::kText:
        writer.text(out, choice, piece.text, text.take_chances());
        break;
      case AnswerPiece::Kind::kReasoning:
        writer.reasoning(out, choice, piece.text);
        break;
      case AnswerPiece::Kind::kCall:
        writer.call(out, choice, id_of(piece), piece.text);
        break;
      case AnswerPiece::Kind::kArguments:
        writer.arguments(out, choice, piece.text);
        break;
      case AnswerPiece::Kind::kCallEnd:
        writer.end_call(out, choice);
        break;
    }
  }
}

std::string AnswerChoices::id_of(const AnswerPiece& piece) const {
  return piece.id.empty() ? new_call_id(prepared_.wire, prepared_.markers->format().calls) : piece.id;
}

bool AnswerChoices::take_back(int prompt) {
  if (shown_[static_cast<size_t>(prompt)]) return false;
  reset(static_cast<size_t>(prompt));
  return true;
}

Status AnswerChoices::ending(int prompt) const {
  for (size_t choice = first_of(prompt); choice < first_of(prompt) + per_prompt_; ++choice) {
    if (ended_well(*choices_[choice])) continue;
    if (choices_[choice]->finished() && choices_[choice]->end().reason == FinishReason::kDeadline) {
      return {StatusCode::kDeadlineExceeded, "The request ran out of time"};
    }
    return internal_error("The replica ended the answer without saying how");
  }
  return {};
}

std::vector<AnswerPart> AnswerChoices::parts_of(std::vector<AnswerPiece> pieces) const {
  std::vector<AnswerPart> parts;
  for (AnswerPiece& piece : pieces) {
    if (piece.kind == AnswerPiece::Kind::kCall) {
      parts.push_back({AnswerPart::Kind::kCall, {}, id_of(piece), std::move(piece.text)});
    } else if (piece.kind == AnswerPiece::Kind::kArguments) {
      parts.back().text += piece.text;
    } else if (piece.kind != AnswerPiece::Kind::kCallEnd) {
      const bool is_text = piece.kind == AnswerPiece::Kind::kText;
      parts.push_back(
          {is_text ? AnswerPart::Kind::kText : AnswerPart::Kind::kReasoning, std::move(piece.text), {}, {}});
    }
  }
  return parts;
}

std::vector<AnswerChoice> AnswerChoices::take_whole() {
  std::vector<AnswerChoice> whole(choices_.size());
  for (size_t choice = 0; choice < choices_.size(); ++choice) {
    whole[choice].parts = parts_of(choices_[choice]->take_pieces());
    whole[choice].chances = choices_[choice]->take_chances();
    whole[choice].end = choices_[choice]->end();
  }
  return whole;
}

int64_t AnswerChoices::cached_tokens() const { return std::accumulate(cached_.begin(), cached_.end(), int64_t{0}); }
int64_t AnswerChoices::completion_tokens() const {
  return std::accumulate(completed_.begin(), completed_.end(), int64_t{0});
}

AnswerUsage AnswerChoices::usage() const {
  AnswerUsage usage;
  usage.cached_tokens = cached_tokens();
  usage.completion_tokens = completion_tokens();
  for (const auto& choice : choices_) usage.reasoning_tokens += choice->reasoning_tokens();
  return usage;
}

int64_t AnswerChoices::calls() const {
  return std::accumulate(choices_.begin(), choices_.end(), int64_t{0},
                         [](int64_t sum, const auto& choice) { return sum + choice->calls(); });
}
int64_t AnswerChoices::malformed_calls() const {
  return std::accumulate(choices_.begin(), choices_.end(), int64_t{0},
                         [](int64_t sum, const auto& choice) { return sum + choice->malformed_calls(); });
}

}  // namespace warmpath

#include "router/answer_choices.h"

#include <numeric>

namespace warmpath {

namespace {

bool ended_well(const ChoiceText& choice) {
  return choice.finished() && (choice.reason() == FinishReason::kStop || choice.reason() == FinishReason::kLength);
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
                                                    prepared_.options.sampling.top_logprobs >= 0);
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
      const std::string news = text.take_text();
      const std::vector<TokenChance> chances = text.take_chances();
      writer.text(out, static_cast<int>(choice), news, chances);
      shown_[choice / per_prompt_] = true;
    }
    if (ended_well(text)) {
      writer.finish(out, static_cast<int>(choice), text.reason());
      closed_[choice] = true;
      shown_[choice / per_prompt_] = true;
    }
  }
}

bool AnswerChoices::take_back(int prompt) {
  if (shown_[static_cast<size_t>(prompt)]) return false;
  reset(static_cast<size_t>(prompt));
  return true;
}

Status AnswerChoices::ending(int prompt) const {
  for (size_t choice = first_of(prompt); choice < first_of(prompt) + per_prompt_; ++choice) {
    if (ended_well(*choices_[choice])) continue;
    if (choices_[choice]->finished() && choices_[choice]->reason() == FinishReason::kDeadline) {
      return {StatusCode::kDeadlineExceeded, "The request ran out of time"};
    }
    return internal_error("The replica ended the answer without saying how");
  }
  return {};
}

std::vector<AnswerChoice> AnswerChoices::take_whole() {
  std::vector<AnswerChoice> whole(choices_.size());
  for (size_t choice = 0; choice < choices_.size(); ++choice) {
    whole[choice].text = choices_[choice]->take_text();
    whole[choice].chances = choices_[choice]->take_chances();
    whole[choice].reason = choices_[choice]->reason();
  }
  return whole;
}

int64_t AnswerChoices::cached_tokens() const { return std::accumulate(cached_.begin(), cached_.end(), int64_t{0}); }
int64_t AnswerChoices::completion_tokens() const {
  return std::accumulate(completed_.begin(), completed_.end(), int64_t{0});
}

}  // namespace warmpath

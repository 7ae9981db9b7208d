// AnswerChoices: what the client gets of each choice: its text so far, what of it was shown, how it ended, and the
// counts that usage reports. Prompt p's choices are numbered p * n ... p * n + n - 1.
// Thread safety: none; belongs to its answer.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "router/choice_text.h"
#include "router/prepared_request.h"
#include "router/wire/answer_writer.h"

namespace warmpath {

class AnswerChoices {
 public:
  // `prepared` must outlive it.
  explicit AnswerChoices(const PreparedRequest& prepared);

  size_t size() const { return choices_.size(); }
  // Takes in what a replica sent for a prompt. Choices that do not exist are ignored.
  void take(int prompt, GenerateUpdate& update);
  // Appends what is new and certain to a stream; the prompts it belongs to count as shown from now on.
  void write_news(AnswerWriter& writer, std::string& out);
  bool has_news() const;
  // True if nothing of the prompt was shown; all that came for it is forgotten then.
  bool take_back(int prompt);
  // Ok when every choice of the prompt ended by itself or at its length.
  Status ending(int prompt) const;

  // For the answer that is not streamed. Once.
  std::vector<AnswerChoice> take_whole();
  int64_t cached_tokens() const;
  int64_t completion_tokens() const;
  AnswerUsage usage() const;  // all but the prompt tokens
  int64_t calls() const;      // of tools
  int64_t malformed_calls() const;

 private:
  size_t first_of(int prompt) const { return static_cast<size_t>(prompt) * per_prompt_; }
  void reset(size_t prompt);
  void write_pieces(int choice, ChoiceText& text, AnswerWriter& writer, std::string& out);
  std::vector<AnswerPart> parts_of(std::vector<AnswerPiece> pieces) const;
  std::string id_of(const AnswerPiece& piece) const;

  const PreparedRequest& prepared_;
  const size_t per_prompt_;
  std::vector<std::unique_ptr<ChoiceText>> choices_;
  std::vector<bool> closed_;  // per choice: its finish chunk was written
  std::vector<bool> shown_;   // per prompt
  std::vector<int64_t> cached_;
  std::vector<int64_t> completed_;
};

}  // namespace warmpath

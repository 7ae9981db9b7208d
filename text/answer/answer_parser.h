// AnswerParser: an answer as it is generated, in; its text, reasoning and calls of tools, out.
//
// Pieces come as early as they are certain: text at once (trailing white space waits, because it belongs to a call that
// may follow), a call as soon as its name is known and its arguments begin, arguments byte by byte, checked to be JSON.
// Nothing is lost: what looks like a call and is none is handed out as the text it was; a call that breaks off after it
// was begun keeps what the model wrote as its (then invalid) arguments, so that the client refuses it instead of
// running half of it. Both are counted. White space between text and calls, and around reasoning, is layout that the
// chat template writes again, and is left out.
// The same pieces come out (neighbours of one kind joined) however the text was cut.
// Thread safety: none; belongs to one answer.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "text/answer/answer_piece.h"
#include "text/answer/marker.h"
#include "text/value.h"

namespace warmpath {

class AnswerParser {
 public:
  struct Options {
    Value tools = Value::none();  // the request's, as in Conversation::tools
    bool in_reasoning = false;    // the prompt ends inside the reasoning
  };

  AnswerParser(std::shared_ptr<const AnswerMarkers> markers, Options options);
  ~AnswerParser();

  void push_text(std::string_view text);  // UTF-8
  void push_marker(Marker marker);        // a token that is one (AnswerMarkers::of_token)
  void finish();                          // nothing follows

  bool has_pieces() const;
  std::vector<AnswerPiece> take_pieces();
  bool in_reasoning() const;
  // Calls that were handed out as text, and calls whose arguments are not JSON.
  int64_t malformed_calls() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// Whether a prompt that ends with `tail` leaves the answer inside its reasoning.
bool prompt_opens_reasoning(const AnswerMarkers& markers, std::string_view tail);

}  // namespace warmpath

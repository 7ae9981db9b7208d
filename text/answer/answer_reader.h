// AnswerReader: what the tasks that read an answer (parse_task.h) share: the symbols still to be read, the pieces made
// of them, and the readings that several formats have in common. Included by this folder's .cc files only.
// Thread safety: none; belongs to one answer.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "text/answer/answer_piece.h"
#include "text/answer/marker.h"
#include "text/answer/parse_task.h"
#include "text/answer/tool_schemas.h"

namespace warmpath {

// A byte of text, a marker, or the answer's end.
struct Symbol {
  enum class Kind : uint8_t { kByte, kMarker, kEnd };
  Kind kind = Kind::kEnd;
  char byte = 0;
  Marker marker = Marker::kEnd;

  bool is(char wanted) const { return kind == Kind::kByte && byte == wanted; }
  bool is(Marker wanted) const { return kind == Kind::kMarker && marker == wanted; }
  bool is_end() const { return kind == Kind::kEnd; }
  bool is_byte() const { return kind == Kind::kByte; }
  bool is_space() const { return is(' ') || is('\n') || is('\r') || is('\t'); }
};

class AnswerReader {
 public:
  static constexpr size_t kMaxNameBytes = 256;

  AnswerReader(const AnswerMarkers& markers, Value tools) : markers_(markers), tools_(std::move(tools)) {}

  // --- The parser's side: hands over symbols and lets the tasks run until they have read them.
  void feed(std::string_view text);
  void feed(Marker marker);
  void feed_end();
  void run();
  ParseSchedule& schedule() { return schedule_; }
  std::vector<AnswerPiece>& pieces() { return pieces_; }
  int64_t malformed() const { return malformed_; }

  // --- The tasks' side.
  const AnswerMarkers& markers() const { return markers_; }
  const ToolSchemas& tools() const { return tools_; }

  // co_await peek(): the next symbol, left where it is. take() moves on.
  auto peek() {
    struct Peek {
      AnswerReader& reader;
      bool await_ready() const noexcept { return reader.has_symbol(); }
      void await_suspend(std::coroutine_handle<> self) const noexcept {
        reader.schedule_.current = self;
        reader.schedule_.waits_for_input = true;
      }
      Symbol await_resume() const noexcept { return reader.symbol(); }
    };
    return Peek{*this};
  }
  void take();
  // The bytes at hand up to the next marker, and taking all of them. REQUIRES that peek() gave a byte.
  std::string_view run_of_text() const { return text_; }
  void take_run();
  // How a symbol was written.
  std::string_view spelling(const Symbol& symbol) const;

  // From here on what is taken is remembered, so that it can still become text.
  void remember();
  // What was remembered is no call, and becomes text. Returns false.
  bool give_up();
  // No call follows; what was remembered is text where it is not layout. Returns true.
  bool end_of_calls();
  void forget();

  void say(std::string_view text);
  void think(std::string_view text);
  void begin_reasoning();
  void end_reasoning();
  void begin_call(std::string name, std::string id = {});
  void argue(std::string_view json);
  void end_call();
  void count_malformed() { ++malformed_; }
  void finish_text();
  bool in_reasoning() const { return in_reasoning_; }
  // No text since the beginning, the last call or the last reasoning.
  bool at_block_start() const { return at_block_start_; }

  // --- Readings. Each leaves the first symbol that does not belong to it.
  ParseTask skip_space();
  // Exactly these bytes.
  ParseTask literal(std::string_view wanted);
  // Bytes up to a marker, the end, or (not taken either) one of `stops`, trimmed; false beyond kMaxNameBytes.
  ParseTask word(std::string_view stops, std::string& out);
  // A JSON value; what was read goes to `sink` as it comes.
  ParseTask json_value(std::function<void(std::string_view)>& sink);
  // A JSON string, decoded.
  ParseTask json_string(std::string& out);
  // A JSON object as the arguments of the call that was begun. If it breaks off, all up to the call's end marker is
  // handed on as it is and the call counted; never false.
  ParseTask object_arguments();
  ParseTask rest_of_broken_call();
  // {"name": ..., "arguments" or "parameters": {...}}: a whole call. With `only_known` no other members are allowed but
  // "type" and "id", and the tool must be the request's. False: no call was begun.
  ParseTask envelope(bool only_known);

 private:
  bool has_symbol() const { return !text_.empty() || has_marker_ || ended_; }
  Symbol symbol() const;
  void add(AnswerPiece::Kind kind, std::string_view text);

  const AnswerMarkers& markers_;
  const ToolSchemas tools_;
  ParseSchedule schedule_;

  std::string_view text_;  // not yet taken
  bool has_marker_ = false;
  Marker marker_ = Marker::kEnd;
  bool ended_ = false;

  std::vector<AnswerPiece> pieces_;
  std::string remembered_;
  bool remembering_ = false;
  std::string space_;  // after text: kept until it is known whether a call follows
  std::string thought_space_;
  bool skipping_space_ = false;  // after reasoning
  bool at_block_start_ = true;
  bool after_call_ = false;
  bool in_call_ = false;
  bool in_reasoning_ = false;
  bool thinking_begun_ = false;
  int64_t malformed_ = 0;
};

// The formats' own tasks. Each is entered before the marker that begins its calls, and returns after as many calls as
// belong together; false: what was taken has been handed out as text.
ParseTask read_tagged_calls(AnswerReader& reader);
ParseTask read_llama3_calls(AnswerReader& reader);
ParseTask read_mistral_calls(AnswerReader& reader);
ParseTask read_sectioned_calls(AnswerReader& reader);  // deepseek, kimi
// A whole answer of channels.
ParseTask read_harmony(AnswerReader& reader, bool calls);

}  // namespace warmpath

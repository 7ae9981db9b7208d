// AnswerWriter: the bytes of an answer on one wire, streamed or whole. One per request; it knows the JSON and nothing
// of tokens, replicas or time. Implementations: chat_writer.cc, completion_writer.cc, messages_writer.cc,
// responses_writer.cc.
//
// A stream is: open() once, then per choice, in any interleaving, text(), reasoning() and calls (call(), arguments()
// any number of times, end_call()) and one finish(), then close(). keep_alive() may come anywhere after open(). Every
// call appends whole SSE events to `out`. Thread safety: none; belongs to its request.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "proto/generate.h"
#include "router/wire/response_tools.h"

namespace warmpath {

// A token as log-probabilities show it. `bytes` may be part of a UTF-8 character.
struct TokenChance {
  std::string_view bytes;
  float logprob = 0;
  std::vector<std::pair<std::string_view, float>> top;  // likeliest first
};

struct AnswerUsage {
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;  // of those, prompt tokens whose KV was found
  int64_t completion_tokens = 0;
  int64_t reasoning_tokens = 0;  // of those, tokens of reasoning
};

// How a choice ended.
struct AnswerEnd {
  FinishReason reason = FinishReason::kStop;
  bool called = false;           // it holds calls of tools
  std::string stop_string = {};  // the one that was met, if any
};

// A stretch of a whole answer.
struct AnswerPart {
  enum class Kind : uint8_t { kText, kReasoning, kCall };
  Kind kind = Kind::kText;
  std::string text;  // of a call: its arguments
  std::string id;    // of a call
  std::string name;  // of a call
};

// One whole choice, for the answer that is not streamed.
struct AnswerChoice {
  std::vector<AnswerPart> parts;     // as they came
  std::vector<TokenChance> chances;  // empty unless asked for
  AnswerEnd end;
};

struct AnswerHead {
  std::string id;           // "chatcmpl-...", "cmpl-...", "msg_...", "resp_..."
  int64_t created = 0;      // seconds since 1970
  std::string model;        // as the client named it
  std::string fingerprint;  // system_fingerprint
  bool logprobs = false;
  std::shared_ptr<const ResponseTools> tools =
      nullptr;                 // of the responses wire: what the model's names for tools stand for
  bool include_usage = false;  // a stream ends with a usage chunk, and other chunks say "usage":null
};

class AnswerWriter {
 public:
  virtual ~AnswerWriter() = default;

  // `usage` as far as it is known: prompt tokens, and cached ones where the replica has said so.
  virtual void open(std::string& out, int choices, const AnswerUsage& usage) = 0;
  virtual void text(std::string& out, int choice, std::string_view text, std::span<const TokenChance> chances) = 0;
  virtual void reasoning(std::string& out, int choice, std::string_view text) = 0;
  virtual void call(std::string& out, int choice, std::string_view id, std::string_view name) = 0;
  virtual void arguments(std::string& out, int choice, std::string_view json) = 0;
  virtual void end_call(std::string& out, int choice) = 0;
  virtual void finish(std::string& out, int choice, const AnswerEnd& end) = 0;
  virtual void close(std::string& out, const AnswerUsage& usage) = 0;
  // What tells the client that the stream lives, in the form that resets its timers.
  virtual void keep_alive(std::string& out) { out += ": keep-alive\n\n"; }

  virtual std::string whole(std::span<const AnswerChoice> choices, const AnswerUsage& usage) = 0;
};

std::unique_ptr<AnswerWriter> chat_writer(AnswerHead head);
std::unique_ptr<AnswerWriter> completion_writer(AnswerHead head);
std::unique_ptr<AnswerWriter> messages_writer(AnswerHead head);
std::unique_ptr<AnswerWriter> responses_writer(AnswerHead head);

// Shared pieces of the two: `{"prompt_tokens":...}`; `"stop"`, `"length"` or `"tool_calls"`; and the opening of an
// object ({"id":...,"object":OBJECT,"created":...,"model":...,"system_fingerprint":...).
void append_usage(std::string& out, const AnswerUsage& usage);
std::string_view wire_finish_reason(const AnswerEnd& end);
std::string object_head(const AnswerHead& head, std::string_view object);

}  // namespace warmpath

// AnswerWriter: the bytes of an answer on one wire, streamed or whole. One per request; it knows the JSON and nothing
// of tokens, replicas or time. Implementations: chat_writer.cc, completion_writer.cc.
//
// A stream is: open() for each choice, then text() and finish() per choice in any interleaving, then usage() where
// asked for, then done(). Every call appends whole SSE events ("data: {...}\n\n") to `out`. Thread safety: none;
// belongs to its request.
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
};

// One whole choice, for the answer that is not streamed.
struct AnswerChoice {
  std::string text;
  std::vector<TokenChance> chances;  // empty unless asked for
  FinishReason reason = FinishReason::kStop;
};

struct AnswerHead {
  std::string id;           // "chatcmpl-..." or "cmpl-..."
  int64_t created = 0;      // seconds since 1970
  std::string model;        // as the client named it
  std::string fingerprint;  // system_fingerprint
  bool logprobs = false;
  bool include_usage = false;  // a stream ends with a usage chunk, and other chunks say "usage":null
};

class AnswerWriter {
 public:
  virtual ~AnswerWriter() = default;

  virtual void open(std::string& out, int choice) = 0;
  virtual void text(std::string& out, int choice, std::string_view text, std::span<const TokenChance> chances) = 0;
  virtual void finish(std::string& out, int choice, FinishReason reason) = 0;
  virtual void usage(std::string& out, const AnswerUsage& usage) = 0;

  virtual std::string whole(std::span<const AnswerChoice> choices, const AnswerUsage& usage) = 0;

  static void done(std::string& out) { out += "data: [DONE]\n\n"; }
};

std::unique_ptr<AnswerWriter> chat_writer(AnswerHead head);
std::unique_ptr<AnswerWriter> completion_writer(AnswerHead head);

// Shared pieces of the two: `{"prompt_tokens":...}`; `"stop"` or `"length"`; and the opening of an object
// ({"id":...,"object":OBJECT,"created":...,"model":...,"system_fingerprint":...).
void append_usage(std::string& out, const AnswerUsage& usage);
std::string_view wire_finish_reason(FinishReason reason);
std::string object_head(const AnswerHead& head, std::string_view object);

}  // namespace warmpath

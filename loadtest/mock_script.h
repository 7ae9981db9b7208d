// MockScript: what a mock replica answers, and how it fails, read from a file of JSON lines. The first line that
// fits a request answers it; without a script, or when no line fits, the reply is a fixed text as long as
// max_tokens.
//
//   {"when": "weather", "reply": "It rains.", "times": 1}        ends with the model's end token
//   {"reply": "one two three", "fault": "hang", "after_tokens": 2}
//   {"when": "<tools>", "reply": "Let me look.", "calls": [{"name": "bash", "arguments": {"command": "ls"}}]}
//
//   when          fits when the prompt's text contains it; absent = fits every prompt
//   unless        fits when the prompt's text does not contain it; with `when`, both must hold
//   times         how often this line is used, over all replicas of the process; absent = always
//   reply         the text; absent = the fixed text, or none where there are calls or reasoning
//   reasoning     before the text, written <think>...</think>
//   calls         of tools, after the text, written <tool_call>{"name": ..., "arguments": {...}}</tool_call>: what a
//                 gateway reads under `parsers: {tools: tagged, reasoning: think}`. A model's own spelling of calls
//                 goes into `reply`
//   fault         "refuse"  refused before anything is generated, with `status`
//                 "error"   ends with `status` after `after_tokens` tokens
//                 "hang"    nothing more after `after_tokens` tokens, until the caller cancels
//                 "exit"    the process ends at once after `after_tokens` tokens, as in a crash
//   after_tokens  0 when absent
//   status        "unavailable" when absent; the names of base/status.h
//   message       goes with it
//
// To play an agent's task, give each step a `when` that only the step before it produces (a word that its command
// prints), the last step first: then retries and requests beside the task get what belongs to them.
// Lines that are empty or start with # are skipped. Thread safety: any thread may call pick().
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace warmpath {

struct MockReply {
  enum class Fault { kNone, kRefuse, kError, kHang, kExit };

  std::string when;
  std::string unless;
  std::optional<std::string> reply;
  Fault fault = Fault::kNone;
  int32_t after_tokens = 0;
  Status status{StatusCode::kUnavailable, "the mock replica's script says so"};
};

class MockScript {
 public:
  MockScript() = default;
  // Errors name the line and the field.
  static Result<std::shared_ptr<const MockScript>> parse(std::string_view text);
  static Result<std::shared_ptr<const MockScript>> read(const std::string& path);

  // Whether pick() looks at the prompt's text at all.
  bool needs_text() const { return needs_text_; }
  // The line that answers this prompt, or null. A line with `times` is used up by this.
  const MockReply* pick(std::string_view prompt_text) const;

 private:
  struct Line {
    MockReply reply;
    bool limited = false;
    mutable std::atomic<int64_t> left{0};
  };
  static Status parse_line(std::string_view text, Line& line);

  std::deque<Line> lines_;
  bool needs_text_ = false;
};

}  // namespace warmpath

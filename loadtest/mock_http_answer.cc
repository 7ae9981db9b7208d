#include "loadtest/mock_http_answer.h"

#include <fmt/format.h>

#include <ctime>

namespace warmpath {

namespace {

std::string quoted(std::string_view text) {
  std::string json = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      json += '\\';
      json += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      json += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      json += c;
    }
  }
  return json + '"';
}

std::string chunk(std::string_view bytes) { return fmt::format("{:x}\r\n{}\r\n", bytes.size(), bytes); }

int http_status(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return 200;
    case StatusCode::kInvalidArgument:
    case StatusCode::kContextLengthExceeded:
      return 400;
    case StatusCode::kNotFound:
      return 404;
    case StatusCode::kResourceExhausted:
      return 429;
    case StatusCode::kUnavailable:
      return 503;
    case StatusCode::kDeadlineExceeded:
      return 504;
    default:
      return 500;
  }
}

const char* reason_phrase(int status) { return status == 200 ? "OK" : status < 500 ? "Refused" : "Failed"; }

}  // namespace

std::string http_json_reply(int status, const std::string& body) {
  return fmt::format("HTTP/1.1 {} {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{}", status,
                     reason_phrase(status), body.size(), body);
}

std::string http_error_reply(const Status& status) {
  return http_json_reply(http_status(status.code()),
                         fmt::format("{{\"error\":{{\"message\":{},\"type\":\"{}\",\"code\":null}}}}",
                                     quoted(status.message()), status_code_name(status.code())));
}

MockHttpAnswer::MockHttpAnswer(Shape shape, const Tokenizer& tokenizer, Send send)
    : shape_(std::move(shape)), send_(std::move(send)), detokenizer_(tokenizer) {}

std::string MockHttpAnswer::usage() const {
  return fmt::format(
      "{{\"prompt_tokens\":{},\"completion_tokens\":{},\"total_tokens\":{},\"prompt_tokens_details\":{{\"cached_"
      "tokens\":{}}}}}",
      shape_.prompt_tokens, completion_tokens_, shape_.prompt_tokens + completion_tokens_, cached_tokens_);
}

std::string MockHttpAnswer::event(const std::string& delta_text, const char* finish_reason) const {
  const std::string finish = finish_reason != nullptr ? quoted(finish_reason) : "null";
  const std::string choice =
      shape_.chat ? fmt::format("{{\"index\":0,\"delta\":{{{}}},\"finish_reason\":{}}}",
                                delta_text.empty() ? "" : "\"content\":" + quoted(delta_text), finish)
                  : fmt::format("{{\"index\":0,\"text\":{},\"finish_reason\":{}}}", quoted(delta_text), finish);
  return fmt::format("data: {{\"id\":\"{}\",\"object\":\"{}\",\"created\":{},\"model\":{},\"choices\":[{}]{}}}\n\n",
                     shape_.id, shape_.chat ? "chat.completion.chunk" : "text_completion", std::time(nullptr),
                     quoted(shape_.model), choice, finish_reason != nullptr ? ",\"usage\":" + usage() : "");
}

void MockHttpAnswer::on_update(GenerateUpdate update) {
  const std::lock_guard lock(mutex_);
  if (ended_) return;
  if (update.start) cached_tokens_ = update.start->cached_tokens();
  std::string delta;
  for (const TokenOutput& output : update.tokens) {
    if (output.choice != 0) continue;
    ++completion_tokens_;
    detokenizer_.push(output.token, delta);
  }
  for (const ChoiceFinish& finish : update.finished) {
    if (finish.choice != 0) continue;
    reason_ = finish.reason;
    detokenizer_.finish(delta);
  }
  if (!shape_.stream) {
    text_ += delta;
    return;
  }
  if (delta.empty()) return;
  std::string bytes;
  if (!begun_) {
    bytes = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    begun_ = true;
  }
  send_(bytes + chunk(event(delta, nullptr)), false);
}

void MockHttpAnswer::on_done(Status status) {
  const std::lock_guard lock(mutex_);
  if (ended_) return;
  ended_ = true;
  const char* reason = reason_ == FinishReason::kLength ? "length" : "stop";
  if (shape_.stream && begun_) {
    // A broken answer ends without the last chunk, so that nobody takes it for a whole one.
    send_(status.ok() ? chunk(event("", reason) + "data: [DONE]\n\n") + "0\r\n\r\n" : "", true);
    return;
  }
  if (!status.ok()) return send_(http_error_reply(status), true);
  if (shape_.stream) {
    return send_("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n" +
                     chunk(event("", reason) + "data: [DONE]\n\n") + "0\r\n\r\n",
                 true);
  }
  const std::string choice =
      shape_.chat
          ? fmt::format(
                "{{\"index\":0,\"message\":{{\"role\":\"assistant\",\"content\":{}}},\"finish_reason\":\"{}\"}}",
                quoted(text_), reason)
          : fmt::format("{{\"index\":0,\"text\":{},\"finish_reason\":\"{}\"}}", quoted(text_), reason);
  send_(
      http_json_reply(200, fmt::format("{{\"id\":\"{}\",\"object\":\"{}\",\"created\":{},\"model\":{},\"choices\":[{}],"
                                       "\"usage\":{}}}",
                                       shape_.id, shape_.chat ? "chat.completion" : "text_completion",
                                       std::time(nullptr), quoted(shape_.model), choice, usage())),
      true);
}

}  // namespace warmpath

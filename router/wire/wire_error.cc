#include "router/wire/wire_error.h"

#include <fmt/format.h>

#include "router/wire/json_writer.h"

namespace warmpath {

WireError bad_request(std::string_view param, std::string message) {
  return {.message = std::move(message), .param = std::string(param)};
}

WireError unsupported(std::string_view param, std::string message) {
  return {.message = std::move(message), .param = std::string(param), .code = "unsupported_parameter"};
}

WireError too_busy(std::string message, int retry_after_s) {
  return {.status = 429,
          .message = std::move(message),
          .type = "rate_limit_error",
          .code = "rate_limit_exceeded",
          .retry_after_s = retry_after_s};
}

WireError too_many_requests(int64_t most) {
  return too_busy(fmt::format("The gateway already has {} requests in progress", most), 1);
}

WireError nobody_to_serve(std::string message, int retry_after_s) {
  return {.status = 503,
          .message = std::move(message),
          .type = "server_error",
          .code = "service_unavailable",
          .retry_after_s = retry_after_s};
}

WireError context_overflow(std::string_view param, int64_t context_tokens, int64_t prompt_tokens,
                           int64_t completion_tokens) {
  WireError error;
  error.param = std::string(param);
  error.code = "context_length_exceeded";
  error.prompt_tokens = prompt_tokens + completion_tokens;
  error.context_tokens = context_tokens;
  if (completion_tokens > 0) {
    error.message = fmt::format(
        "This model's maximum context length is {} tokens. However, you requested {} tokens ({} in the {}, {} in the "
        "completion). Please reduce the length of the {} or completion.",
        context_tokens, prompt_tokens + completion_tokens, prompt_tokens, param, completion_tokens, param);
  } else {
    error.message = fmt::format(
        "This model's maximum context length is {} tokens. However, you requested {} tokens in the {}. Please reduce "
        "the length of the {}.",
        context_tokens, prompt_tokens, param, param);
  }
  return error;
}

WireError from_status(const Status& status) {
  switch (status.code()) {
    case StatusCode::kInvalidArgument:
      return {.message = status.message()};
    case StatusCode::kUnimplemented:
      return {.message = status.message(), .code = "unsupported_parameter"};
    case StatusCode::kContextLengthExceeded:
      return {.message = status.message(), .code = "context_length_exceeded"};
    case StatusCode::kNotFound:
      return {.status = 404, .message = status.message(), .code = "not_found"};
    case StatusCode::kResourceExhausted:
      return too_busy(status.message(), 1);
    case StatusCode::kUnavailable:
      // The message names an address of ours; the log has it.
      return nobody_to_serve("The replica that was to answer failed; try again", 1);
    case StatusCode::kFailedPrecondition:
      return nobody_to_serve(status.message(), 1);
    case StatusCode::kDeadlineExceeded:
      return {.status = 504, .message = status.message(), .type = "server_error", .code = "deadline_exceeded"};
    default:
      return {.status = 500, .message = status.message(), .type = "server_error", .code = "internal_error"};
  }
}

namespace {

std::string_view anthropic_type(const WireError& error) {
  switch (error.status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_error";
    case 503:
      return "overloaded_error";
    case 504:
      return "timeout_error";
    default:
      return error.status < 500 ? "invalid_request_error" : "api_error";
  }
}

}  // namespace

int anthropic_status(const WireError& error) { return error.status == 503 ? 529 : error.status; }

std::string anthropic_error_body(const WireError& error, std::string_view request_id) {
  std::string message = error.message;
  if (error.code == "context_length_exceeded") {
    message = error.context_tokens > 0
                  ? fmt::format("prompt is too long: {} tokens > {} maximum", error.prompt_tokens, error.context_tokens)
                  : "prompt is too long: " + error.message;
  }
  std::string body = R"({"type":"error","error":{"type":)";
  append_json_string(body, anthropic_type(error));
  body += R"(,"message":)";
  append_json_string(body, message);
  body += R"(},"request_id":)";
  append_json_string(body, request_id);
  body += '}';
  return body;
}

std::string error_body(const WireError& error) {
  const auto text_or_null = [](std::string& out, std::string_view text) {
    if (text.empty()) {
      out += "null";
    } else {
      append_json_string(out, text);
    }
  };
  std::string body = R"({"error":{"message":)";
  append_json_string(body, error.message);
  body += R"(,"type":)";
  append_json_string(body, error.type);
  body += R"(,"param":)";
  text_or_null(body, error.param);
  body += R"(,"code":)";
  text_or_null(body, error.code);
  body += "}}";
  return body;
}

}  // namespace warmpath

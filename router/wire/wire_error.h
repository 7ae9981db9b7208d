// WireError: an answer that is not a completion. OpenAI's wires and Anthropic's write it in their own shapes:
//   {"error":{"message":"...","type":"...","param":"..."|null,"code":"..."|null}}
//   {"type":"error","error":{"type":"...","message":"..."},"request_id":"..."}
// Thread safety: values and pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace warmpath {

struct WireError {
  int status = 400;  // HTTP
  std::string message = {};
  std::string type = "invalid_request_error";
  std::string param = {};     // the body field at fault; empty = null
  std::string code = {};      // empty = null
  int64_t prompt_tokens = 0;  // of a context overflow: what was asked for, and what there is
  int64_t context_tokens = 0;
  int retry_after_s = 0;  // > 0: a Retry-After header goes with it (always so for 429 and 503)

  bool operator==(const WireError&) const = default;
};

WireError bad_request(std::string_view param, std::string message);
// A field this server understands but cannot honour. Refused, because ignoring it would change what the caller gets.
WireError unsupported(std::string_view param, std::string message);
WireError too_busy(std::string message, int retry_after_s);         // 429
WireError too_many_requests(int64_t most);                          // likewise: the gateway's own limit
WireError nobody_to_serve(std::string message, int retry_after_s);  // 503

// "This model's maximum context length is X tokens. However, you requested Y tokens (...)": the wording that agents'
// overflow detectors look for. `completion_tokens` 0 = the prompt alone does not fit.
WireError context_overflow(std::string_view param, int64_t context_tokens, int64_t prompt_tokens,
                           int64_t completion_tokens);

// How an upstream's or the text pipeline's failure is told to the client.
WireError from_status(const Status& status);

std::string error_body(const WireError& error);

// Anthropic's shape, types, words (a prompt that is too long) and statuses (529 where others say 503).
std::string anthropic_error_body(const WireError& error, std::string_view request_id);
int anthropic_status(const WireError& error);

}  // namespace warmpath

// POST /v1/responses: the request body. As chat.h: parse_responses() scans it once, read_responses() turns the views
// into the same Conversation that chat requests make. Items that are one turn of the assistant (reasoning, text, calls)
// become one message. Thread safety: pure functions; any thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "router/wire/generation_options.h"
#include "router/wire/response_tools.h"
#include "router/wire/wire_error.h"
#include "text/conversation.h"
#include "text/message_cache.h"

namespace warmpath {

struct ResponsesRequest {
  GenerationOptions options;
  std::string instructions;
  std::string input_text;  // when `input` is a string
  bool has_input_text = false;
  std::vector<std::string_view> input;  // else: one JSON object each; views of the body
  std::vector<std::string_view> tools;  // likewise; empty when tool_choice is "none"
  std::string effort;                   // reasoning.effort; empty: absent
};

// `body` is followed by at least 64 readable bytes and outlives the request.
bool parse_responses(std::string_view body, ResponsesRequest& request, WireError& error);

// `left_out`: the names of tools that the model will not see.
bool read_responses(const ResponsesRequest& request, MessageCache& cache, Conversation& conversation,
                    std::shared_ptr<const ResponseTools>& tools, std::vector<std::string>& left_out, WireError& error);

}  // namespace warmpath

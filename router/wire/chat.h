// POST /v1/chat/completions: the request body.
//
// Two steps, because which model's message cache to read with is only known after the scan: parse_chat() scans the body
// once and leaves every message and tool as a view of its bytes; read_conversation() turns those views into Values
// (each parsed once per process, MessageCache) and checks their shape. Thread safety: pure functions; any thread.
#pragma once

#include <string_view>
#include <vector>

#include "router/wire/generation_options.h"
#include "router/wire/wire_error.h"
#include "text/conversation.h"
#include "text/message_cache.h"

namespace warmpath {

struct ChatRequest {
  GenerationOptions options;
  std::vector<std::string_view> messages;  // one JSON object each; views of the body
  std::vector<std::string_view> tools;     // likewise; empty when tool_choice is "none"
  std::string_view template_kwargs;        // one JSON object, or empty
  std::string reasoning_effort;            // handed to the template; empty: absent
  bool add_generation_prompt = true;
};

// `body` is followed by at least 64 readable bytes and outlives the request.
bool parse_chat(std::string_view body, ChatRequest& request, WireError& error);

bool read_conversation(const ChatRequest& request, MessageCache& cache, Conversation& conversation, WireError& error);

}  // namespace warmpath

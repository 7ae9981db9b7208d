// POST /v1/messages and /v1/messages/count_tokens (Anthropic's wire): the request body. As chat.h: parse_messages()
// scans it once, read_messages() turns the views into the same Conversation that chat requests make.
//
// A system prompt's billing header (it changes with every request) is left out; cache_control is ignored; system
// messages inside the history stay where they are; tools that Anthropic's own servers run are left out and named.
// Thread safety: pure functions; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "router/wire/generation_options.h"
#include "router/wire/wire_error.h"
#include "text/conversation.h"
#include "text/message_cache.h"

namespace warmpath {

struct MessagesRequest {
  GenerationOptions options;
  std::string_view system_blocks;  // a JSON array, or empty
  std::string system_text;         // or this
  bool has_system_text = false;
  std::vector<std::string_view> messages;  // one JSON object each; views of the body
  std::vector<std::string_view> tools;     // likewise; empty when tool_choice is "none"
  std::string effort;                      // output_config.effort; empty: absent
  int thinking = -1;                       // 1 on, 0 off, -1 not said
};

// `body` is followed by at least 64 readable bytes and outlives the request. With `counting` max_tokens may be absent.
bool parse_messages(std::string_view body, bool counting, MessagesRequest& request, WireError& error);

// `left_out`: the names of tools that the model will not see.
bool read_messages(const MessagesRequest& request, MessageCache& cache, Conversation& conversation,
                   std::vector<std::string>& left_out, WireError& error);

}  // namespace warmpath

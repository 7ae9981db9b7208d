// What the gateway does for templates that cannot say what a request contains: lists of text parts become one string,
// null content becomes "", and tools, past tool calls and tool results are written into ordinary messages in one
// documented form (docs/prompts.md):
//
//   system:     the request's own system text, then a section that lists the tools as JSON, one a line, inside
//               <tools></tools>, and asks for calls as <tool_call>{"name": ..., "arguments": {...}}</tool_call>
//   assistant:  its text, then one <tool_call> line per call
//   tool:       a user message holding <tool_response>TEXT</tool_response>; neighbours are joined into one message
//
// Thread safety: pure functions.
#pragma once

#include "base/status.h"
#include "text/chat_template.h"
#include "text/conversation.h"

namespace warmpath {

struct AdaptedConversation {
  Conversation conversation;
  bool default_tools = false;  // tools, calls or results were written by the default rendering
  bool joined_parts = false;   // content parts or null content were made strings
};

// The conversation itself, sharing its messages, where the template needs no help. Errors: content that cannot be text
// (an image part for a text-only template), named by message index.
Result<AdaptedConversation> adapt_conversation(const TemplateAbilities& abilities, const Conversation& conversation);

}  // namespace warmpath

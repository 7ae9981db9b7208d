// ToolSchemas: what a request's tools say about their arguments, for formats that write arguments as plain text and
// leave it to the schema whether `5` is a number or a string. Thread safety: immutable.
#pragma once

#include <string_view>

#include "text/value.h"

namespace warmpath {

class ToolSchemas {
 public:
  // `tools` as in Conversation::tools: none, or a list of {"type": "function", "function": {...}}.
  explicit ToolSchemas(Value tools) : tools_(std::move(tools)) {}

  bool knows(std::string_view tool) const { return function(tool) != nullptr; }
  // Whether the parameter's value is text, not JSON. A parameter without a schema is text.
  bool is_text(std::string_view tool, std::string_view parameter) const;

 private:
  const Value* function(std::string_view tool) const;

  Value tools_;
};

}  // namespace warmpath

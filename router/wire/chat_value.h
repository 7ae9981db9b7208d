// Building blocks for adapters whose wires are not chat's: chat messages and tools as Values, frozen so that they may
// be cached, sharing the strings they are made of. Thread safety: pure functions.
#pragma once

#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "router/wire/wire_error.h"
#include "text/value.h"

namespace warmpath {

Value text_value(std::string_view text);
// A dict of these entries, in order; those that are undefined are left out.
Value dict_value(std::initializer_list<std::pair<std::string_view, Value>> entries);
Value list_value(std::vector<Value> items);

bool is_text(const Value* value, std::string_view text);

// {"role": ..., "content": ...}
Value message_value(std::string_view role, Value content);
// {"type": "function", "function": {"name", "description", "parameters"}}
Value tool_value(Value name, Value description, Value parameters);
// {"id", "type": "function", "function": {"name", "arguments"}}
Value call_value(Value id, Value name, Value arguments);

// The texts of a message as its content: one is a string, several are a list of text parts, none is "".
Value content_value(std::vector<Value> texts);

// A failure at PATH ("content[2].text") inside one message, and that failure as the client's answer, the message's own
// place (WHERE: "messages[3]") in front. Always false.
Status bad_part(std::string_view path, std::string_view what);
bool refuse_part(WireError& error, std::string_view where, const Status& status);

}  // namespace warmpath

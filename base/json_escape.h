// One byte as a JSON string must write it: quote, backslash and control characters (RFC 8259, section 7).
// Thread safety: any thread.
#pragma once

#include <string>

namespace warmpath {

void append_json_escape(std::string& out, char byte);

}  // namespace warmpath

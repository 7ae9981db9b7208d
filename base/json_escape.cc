#include "base/json_escape.h"

#include <cstdint>

namespace warmpath {

void append_json_escape(std::string& out, char byte) {
  constexpr char kHexDigits[] = "0123456789abcdef";
  switch (byte) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      out += "\\u00";
      out += kHexDigits[static_cast<uint8_t>(byte) >> 4];
      out += kHexDigits[static_cast<uint8_t>(byte) & 15];
  }
}

}  // namespace warmpath

#include "router/browser_origin.h"

#include <string>

#include "router/config.h"

namespace warmpath {

bool is_foreign_origin(std::string_view origin) {
  if (origin.empty()) return false;
  const size_t scheme_end = origin.find("://");
  if (scheme_end == std::string_view::npos) return true;  // "null": a sandboxed frame or a file
  std::string_view host = origin.substr(scheme_end + 3);
  const size_t bracket = host.rfind(']');
  const size_t colon = host.rfind(':');
  if (colon != std::string_view::npos && (bracket == std::string_view::npos || colon > bracket))
    host = host.substr(0, colon);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  return !is_loopback({std::string(host), 0});
}

}  // namespace warmpath

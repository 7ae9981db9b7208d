// Browser origin: which web page a request comes from. A page anywhere on the web can make a browser talk to 127.0.0.1:
// openly, which browsers note in an Origin header, or by resolving its own name to 127.0.0.1 (DNS rebinding), which
// leaves that name in the Host header. Thread safety: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace warmpath {

// False without an Origin header, and for pages served by this machine (http://localhost:3000, http://127.0.0.1,
// http://[::1]). True for everything else, what is no origin at all included.
bool is_foreign_origin(std::string_view origin);

// True when the Host header is a name other than localhost and `own_names`. IP addresses, and requests without a Host
// (HTTP/1.0), come from nobody who was led here by a name.
bool is_foreign_host(std::string_view host, const std::vector<std::string>& own_names);

}  // namespace warmpath

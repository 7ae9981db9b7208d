// Browser origin: which web page a request comes from, for gateways without keys. A page anywhere on the web can make a
// browser post to 127.0.0.1, and needs no permission for it as long as it does not read the answer; what tells such a
// request from an agent's is the Origin header that browsers add. Thread safety: pure function.
#pragma once

#include <string_view>

namespace warmpath {

// False without an Origin header, and for pages served by this machine (http://localhost:3000, http://127.0.0.1,
// http://[::1]).
bool is_foreign_origin(std::string_view origin);

}  // namespace warmpath

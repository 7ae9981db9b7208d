// Which conversation a request belongs to, as its headers say: each agent has its own way of naming sessions and the
// threads (subagents) inside them. The key is a hint that binds exact equals only, within one tenant.
// Thread safety: pure functions.
#pragma once

#include <string_view>

#include "base/hash128.h"
#include "router/http.h"

namespace warmpath {

// Zero when nothing names the session. `prompt_cache_key` is the body's field, "" when absent; it is the weakest hint.
Hash128 session_key_of(const HttpRequest& request, std::string_view tenant, std::string_view prompt_cache_key);

}  // namespace warmpath

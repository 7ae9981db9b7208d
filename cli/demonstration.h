// Demonstration: two chat requests that share a long prefix, to show the prefix cache at work on the user's own
// machine. Thread safety: blocking; one thread.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

namespace warmpath {

// Asks both questions of the gateway at host:port and prints tokens, cached tokens and times to the first token.
// `prefix_tokens` is about how long the shared prefix is. `api_key` may be empty.
Status run_demonstration(const std::string& host, uint16_t port, const std::string& model, int prefix_tokens,
                         const std::string& api_key);

}  // namespace warmpath

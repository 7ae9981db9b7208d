// Demonstration: two chat requests that share a long prefix, to show the prefix cache at work on the user's own
// machine. Thread safety: blocking; one thread.
#pragma once

#include <string>

#include "base/status.h"
#include "loadtest/chat_client.h"

namespace warmpath {

// Asks both questions through `client` and prints tokens, cached tokens and times to the first token.
// `prefix_tokens` is about how long the shared prefix is. client.interrupt() ends it early, with an error.
Status run_demonstration(ChatClient& client, const std::string& model, int prefix_tokens);

}  // namespace warmpath

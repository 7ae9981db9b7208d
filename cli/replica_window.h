// What a running replica says of its context window, for people.
#pragma once

#include <string>

namespace warmpath {

// In tokens; 0 when the replica does not answer within a few seconds.
int replica_window(const std::string& address);

}  // namespace warmpath

// A ready file tells scripts on which ports a server listens: "PORT ADMIN_PORT\n". It appears whole or not at all.
// Thread safety: pure function.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

namespace warmpath {

// Nothing is written when `path` is empty.
Status write_ready_file(const std::string& path, uint16_t port, uint16_t admin_port);

}  // namespace warmpath

// Sizes in bytes, as users write them. Thread safety: pure function.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"

namespace warmpath {

// "512MiB", "1.5GiB", "1000000".
Result<int64_t> parse_bytes(std::string_view text);

}  // namespace warmpath

// InputFile: what a command reads: a file, or standard input when the name is "-" or missing.
// Thread safety: one thread.
#pragma once

#include <string>

#include "base/status.h"

namespace warmpath {

bool is_standard_input(const std::string& path);
// At most `max_bytes`; the error names the file.
Result<std::string> read_input(const std::string& path, size_t max_bytes);

}  // namespace warmpath

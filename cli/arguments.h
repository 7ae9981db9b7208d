// Command lines: parsed, or explained. Every program ends with 0 when it did what it was asked, 1 when that failed, and
// 2 when the command line itself was wrong. Thread safety: main thread.
#pragma once

#include <optional>
#include <string>

#include "base/status.h"

namespace CLI {
class App;
}

namespace warmpath {

inline constexpr int kExitFailure = 1;
inline constexpr int kExitUsage = 2;

// The exit code when the program ends here (--help, --version, or a mistake, which is explained on stderr); else
// nullopt.
std::optional<int> parse_arguments(CLI::App& app, int argc, char** argv);

// Says on stderr what `command` ("warmpath up") could not do. Returns kExitFailure.
int report_failure(const std::string& command, const Status& status);
// Likewise what is wrong about its command line. Returns kExitUsage.
int report_usage(const std::string& command, const std::string& what);

}  // namespace warmpath

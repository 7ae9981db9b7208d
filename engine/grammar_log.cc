// xgrammar's own log, so that it says nothing on stderr: its warnings are about keywords that text/schema has refused
// or rewritten by then, its fatal errors become exceptions. Part of the library, because the library calls it.
#include <stdexcept>
#include <string>

#include "base/log.h"

namespace xgrammar {

void LogFatalImpl(const std::string&, int, const std::string& message) { throw std::runtime_error(message); }

void LogMessageImpl(const std::string&, int, int, const std::string& message) {
  warmpath::log_debug("xgrammar", {{"message", message}});
}

}  // namespace xgrammar

#include "config/config_error.h"

namespace warmpath {

std::string format_config_error(std::string_view file, const ConfigError& error) {
  std::string line(file);
  if (error.line > 0) line += ":" + std::to_string(error.line) + ":" + std::to_string(error.column);
  if (!line.empty()) line += ": ";
  if (!error.path.empty()) line += error.path + ": ";
  return line + error.message;
}

std::string format_config_errors(std::string_view file, const std::vector<ConfigError>& errors) {
  std::string lines;
  for (const ConfigError& error : errors) {
    if (!lines.empty()) lines += '\n';
    lines += format_config_error(file, error);
  }
  return lines;
}

}  // namespace warmpath

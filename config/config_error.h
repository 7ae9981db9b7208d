// ConfigError: one thing wrong in a configuration file, told so that the reader can fix it without opening the manual.
// Thread safety: values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace warmpath {

struct ConfigError {
  int line = 0;  // from 1; 0 when the error has no place in the file
  int column = 0;
  std::string path;  // "models[0].policy.price"; empty for the file as a whole
  std::string message;

  bool operator==(const ConfigError&) const = default;
};

// "FILE:LINE:COLUMN: PATH: MESSAGE", without the parts that are unknown.
std::string format_config_error(std::string_view file, const ConfigError& error);

// One line per error, in file order.
std::string format_config_errors(std::string_view file, const std::vector<ConfigError>& errors);

}  // namespace warmpath

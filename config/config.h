// Reading a configuration: a file or a text in, a filled struct or a list of errors out. Nothing is half applied.
//
//   ConfigResult<Gateway> result = load_config(gateway_schema(), "warmpath.yaml");
//   if (!result.ok()) { std::cerr << result.error_text() << '\n'; return 1; }
//   start(*result.config);
//
// Thread safety: pure functions, apart from reading the file and (for secrets) the environment. No exceptions.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "config/config_error.h"
#include "config/schema.h"

namespace warmpath {

template <typename T>
struct ConfigResult {
  std::string file;
  std::unique_ptr<T> config;  // null when there are errors
  std::vector<ConfigError> errors;

  bool ok() const { return config != nullptr; }
  std::string error_text() const { return format_config_errors(file, errors); }
};

std::optional<std::string> read_environment(const std::string& name);

// The untemplated part: text → tree → object. `check`, if any, then reports what else is wrong about the object.
void parse_config_into(const StructSpec& spec, std::string_view text, const EnvironmentLookup& environment,
                       void* object, std::vector<ConfigError>& errors,
                       const std::function<void(CheckContext&)>& check = nullptr);
// The file's bytes (at most kMaxYamlBytes), or why not.
Result<std::string> read_config_file(const std::string& path);

// `file` only names the text in errors.
template <typename T>
ConfigResult<T> parse_config(const StructSchema<T>& schema, std::string_view text, std::string file = "config",
                             const EnvironmentLookup& environment = read_environment) {
  ConfigResult<T> result{std::move(file), std::make_unique<T>(), {}};
  parse_config_into(*schema.spec(), text, environment, result.config.get(), result.errors);
  if (!result.errors.empty()) result.config.reset();
  return result;
}

template <typename T>
ConfigResult<T> load_config(const StructSchema<T>& schema, const std::string& path,
                            const EnvironmentLookup& environment = read_environment) {
  const Result<std::string> text = read_config_file(path);
  if (!text.ok()) return {path, nullptr, {{0, 0, "", text.status().message()}}};
  return parse_config(schema, *text, path, environment);
}

}  // namespace warmpath

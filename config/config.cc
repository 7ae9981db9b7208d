#include "config/config.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace warmpath {

std::optional<std::string> read_environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

void parse_config_into(const StructSpec& spec, std::string_view text, const EnvironmentLookup& environment,
                       void* object, std::vector<ConfigError>& errors,
                       const std::function<void(CheckContext&)>& check) {
  YamlNode root;
  if (!parse_yaml(text, root, errors)) return;
  root.mark = {1, 1};  // what is missing at the top is missing from the file
  ParseContext context(errors, environment);
  parse_struct(spec, root, context, object);
  if (check) {
    CheckContext at(context, root);
    check(at);
  }
  std::stable_sort(errors.begin(), errors.end(), [](const ConfigError& left, const ConfigError& right) {
    return std::pair(left.line, left.column) < std::pair(right.line, right.column);
  });
}

Result<std::string> read_config_file(const std::string& path) {
  std::error_code code;
  if (std::filesystem::is_directory(path, code)) return invalid_argument("is a folder, not a file");
  std::ifstream in(path, std::ios::binary);
  if (!in) return not_found("cannot be opened; check the path and its permissions");
  std::string text;
  std::vector<char> piece(64 << 10);
  while (in.read(piece.data(), static_cast<std::streamsize>(piece.size())) || in.gcount() > 0) {
    text.append(piece.data(), static_cast<size_t>(in.gcount()));
    if (text.size() > kMaxYamlBytes) break;  // parse_yaml refuses it with the limit named
  }
  return text;
}

}  // namespace warmpath

#include "base/log.h"

#include <fmt/format.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>

namespace warmpath {

namespace {

spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> instance = [] {
    auto created = std::make_shared<spdlog::logger>("warmpath", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    created->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %l %v");
    created->flush_on(spdlog::level::info);
    return created;
  }();
  return *instance;
}

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarn:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
    case LogLevel::kOff:
      break;
  }
  return spdlog::level::off;
}

// A value stays on its line and in its field, whatever bytes it holds.
void append_value(std::string& line, std::string_view value) {
  bool plain = !value.empty();
  for (const char c : value) {
    if (c <= ' ' || c == '"' || c == '=' || c == '\\' || c == 0x7f) plain = false;
  }
  if (plain) {
    line.append(value);
    return;
  }
  line.push_back('"');
  for (const char c : value) {
    if (c == '"' || c == '\\') {
      line.push_back('\\');
      line.push_back(c);
    } else if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) {
      line += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      line.push_back(c);
    }
  }
  line.push_back('"');
}

}  // namespace

LogField::LogField(std::string_view field_key, double number) : key(field_key), value(fmt::format("{:.6g}", number)) {}

void set_log_level(LogLevel level) { logger().set_level(to_spdlog(level)); }

bool log_enabled(LogLevel level) { return logger().should_log(to_spdlog(level)); }

bool parse_log_level(std::string_view word, LogLevel& level) {
  if (word == "debug")
    level = LogLevel::kDebug;
  else if (word == "info")
    level = LogLevel::kInfo;
  else if (word == "warn")
    level = LogLevel::kWarn;
  else if (word == "error")
    level = LogLevel::kError;
  else if (word == "off")
    level = LogLevel::kOff;
  else
    return false;
  return true;
}

void log_line(LogLevel level, std::string_view event, std::initializer_list<LogField> fields) {
  if (!log_enabled(level)) return;
  std::string line(event);
  for (const LogField& field : fields) {
    line.push_back(' ');
    line.append(field.key);
    line.push_back('=');
    append_value(line, field.value);
  }
  logger().log(to_spdlog(level), fmt::string_view("{}"), line);
}

}  // namespace warmpath

// Structured logs: one line each, `time level event key=value ...`, to stderr (values quoted where needed).
//
//   log_info("replica_ready", {{"replica", name}, {"blocks", blocks}});
//
// Never pass prompt text, keys or other secrets. Thread safety: every function may be called from any thread.
#pragma once

#include <concepts>
#include <initializer_list>
#include <string>
#include <string_view>

namespace warmpath {

enum class LogLevel { kDebug, kInfo, kWarn, kError, kOff };

// A key and its value, formatted.
struct LogField {
  std::string_view key;
  std::string value;

  LogField(std::string_view field_key, std::string_view text) : key(field_key), value(text) {}
  LogField(std::string_view field_key, const char* text) : key(field_key), value(text) {}
  LogField(std::string_view field_key, const std::string& text) : key(field_key), value(text) {}
  LogField(std::string_view field_key, bool flag) : key(field_key), value(flag ? "true" : "false") {}
  template <std::integral T>
  requires(!std::same_as<T, bool>) LogField(std::string_view field_key, T number)
      : key(field_key), value(std::to_string(number)) {}
  LogField(std::string_view field_key, double number);
};

// Lines below `level` are dropped. Default: kInfo.
void set_log_level(LogLevel level);
bool log_enabled(LogLevel level);
// "debug", "info", "warn", "error", "off"; false when the word is none of them.
bool parse_log_level(std::string_view word, LogLevel& level);

void log_line(LogLevel level, std::string_view event, std::initializer_list<LogField> fields);
inline void log_debug(std::string_view event, std::initializer_list<LogField> fields = {}) {
  if (log_enabled(LogLevel::kDebug)) log_line(LogLevel::kDebug, event, fields);
}
inline void log_info(std::string_view event, std::initializer_list<LogField> fields = {}) {
  log_line(LogLevel::kInfo, event, fields);
}
inline void log_warn(std::string_view event, std::initializer_list<LogField> fields = {}) {
  log_line(LogLevel::kWarn, event, fields);
}
inline void log_error(std::string_view event, std::initializer_list<LogField> fields = {}) {
  log_line(LogLevel::kError, event, fields);
}

}  // namespace warmpath

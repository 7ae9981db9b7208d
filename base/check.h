// WARMPATH_CHECK: programmer errors end the process, with the place. Never used on bytes that came from outside.
// WARMPATH_DCHECK: the same, in debug and sanitizer trees only.
#pragma once

namespace warmpath {
[[noreturn]] void check_failed(const char* file, int line, const char* expression, const char* message);
}  // namespace warmpath

#define WARMPATH_CHECK(condition, message)                               \
  do {                                                                   \
    if (!(condition)) [[unlikely]]                                       \
      ::warmpath::check_failed(__FILE__, __LINE__, #condition, message); \
  } while (false)

#ifdef NDEBUG
#define WARMPATH_DCHECK(condition, message) \
  do {                                      \
  } while (false && (condition))
#else
#define WARMPATH_DCHECK(condition, message) WARMPATH_CHECK(condition, message)
#endif

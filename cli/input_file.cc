#include "cli/input_file.h"

#include <string.h>

#include <cerrno>
#include <cstdio>

namespace warmpath {

bool is_standard_input(const std::string& path) { return path.empty() || path == "-"; }

Result<std::string> read_input(const std::string& path, size_t max_bytes) {
  const bool standard_input = is_standard_input(path);
  std::FILE* file = standard_input ? stdin : std::fopen(path.c_str(), "rb");
  if (file == nullptr) return not_found("cannot read " + path + ": " + strerror(errno));
  std::string bytes;
  char chunk[65536];
  size_t got = 0;
  while ((got = std::fread(chunk, 1, sizeof chunk, file)) > 0 && bytes.size() <= max_bytes) bytes.append(chunk, got);
  const bool failed = std::ferror(file) != 0;
  const int why = errno;
  if (!standard_input) std::fclose(file);
  if (failed) return unavailable("cannot read " + path + ": " + strerror(why));
  if (bytes.size() > max_bytes) {
    return invalid_argument((standard_input ? std::string("standard input") : path) + " is larger than " +
                            std::to_string(max_bytes) + " bytes");
  }
  return bytes;
}

}  // namespace warmpath

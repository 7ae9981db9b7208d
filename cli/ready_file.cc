#include "cli/ready_file.h"

#include <filesystem>
#include <fstream>

namespace warmpath {

Status write_ready_file(const std::string& path, uint16_t port, uint16_t admin_port) {
  if (path.empty()) return {};
  const std::string temporary = path + ".tmp";
  std::ofstream(temporary) << port << ' ' << admin_port << '\n';
  std::error_code error;
  std::filesystem::rename(temporary, path, error);
  return error ? unavailable("cannot write " + path + ": " + error.message()) : Status();
}

}  // namespace warmpath

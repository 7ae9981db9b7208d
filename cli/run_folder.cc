#include "cli/run_folder.h"

#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

namespace warmpath {

namespace fs = std::filesystem;

namespace {

constexpr size_t kRoomForName = sizeof("/warmpath-XXXXXX/replica-63.sock");

}  // namespace

Result<RunFolder> RunFolder::make() {
  std::string tried;
  for (const char* parent :
       {static_cast<const char*>(getenv("XDG_RUNTIME_DIR")), static_cast<const char*>(getenv("TMPDIR")), "/tmp"}) {
    if (parent == nullptr || *parent == '\0') continue;
    std::error_code error;
    std::string pattern = (fs::absolute(parent, error) / "warmpath-XXXXXX").string();
    std::string why;
    if (strlen(parent) + kRoomForName > sizeof(sockaddr_un::sun_path)) {
      why = "its path is too long for sockets";
    } else if (mkdtemp(pattern.data()) != nullptr) {
      return RunFolder(pattern);
    } else {
      why = strerror(errno);
    }
    tried += (tried.empty() ? "" : ", ") + std::string(parent) + " (" + why + ")";
  }
  return unavailable("cannot make a folder for sockets and logs in " + tried +
                     "; set TMPDIR to one that can be written");
}

RunFolder::RunFolder(RunFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}

RunFolder::~RunFolder() {
  std::error_code error;
  if (!path_.empty()) fs::remove_all(path_, error);
}

Status check_writable(const fs::path& folder) {
  std::error_code error;
  fs::path existing = folder;
  while (!fs::exists(existing, error) && existing.has_parent_path() && existing != existing.parent_path()) {
    existing = existing.parent_path();
  }
  std::string pattern = (existing / ".warmpath-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) {
    return unavailable(existing.string() + " cannot be written: " + strerror(errno));
  }
  rmdir(pattern.c_str());
  return {};
}

}  // namespace warmpath

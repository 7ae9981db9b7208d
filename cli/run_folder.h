// RunFolder: where `warmpath up` keeps its sockets, configuration and logs while it runs: a folder of its own, in the
// first of $XDG_RUNTIME_DIR, $TMPDIR and /tmp that can be written and whose path leaves room for a socket's.
// Also whether a folder can be written at all, found out by doing so. Thread safety: one thread.
#pragma once

#include <filesystem>

#include "base/status.h"

namespace warmpath {

class RunFolder {
 public:
  static Result<RunFolder> make();
  RunFolder(RunFolder&& other) noexcept;
  RunFolder& operator=(RunFolder&& other) = delete;
  ~RunFolder();  // takes the folder away with it

  const std::filesystem::path& path() const { return path_; }

 private:
  explicit RunFolder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

// Ok when files can be made in `folder`, or, where it does not exist yet, when it can be made. Leaves nothing behind.
// (access() says yes to root on file systems that then refuse.)
Status check_writable(const std::filesystem::path& folder);

}  // namespace warmpath

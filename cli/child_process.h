// ChildProcess: a program that this process started and ends again. Its output goes to a log file; it dies with its
// parent (PR_SET_PDEATHSIG), so that nothing is orphaned whatever happens. Thread safety: spawn from the main thread
// only (the kernel ties the death signal to the spawning thread).
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/status.h"

namespace warmpath {

class ChildProcess {
 public:
  // argv[0] is the program's path. stdin is /dev/null; stdout and stderr are appended to `log_path`.
  static Result<ChildProcess> spawn(const std::vector<std::string>& argv, const std::string& log_path);

  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ~ChildProcess();  // ends it: SIGTERM, then SIGKILL after a grace of 5 s

  pid_t pid() const { return pid_; }
  // True while it runs. Once false, exit_text() says how it ended: "exit code 1", "signal 9".
  bool running();
  const std::string& exit_text() const { return exit_text_; }
  void terminate();                 // SIGTERM; returns at once
  void kill_now();                  // SIGKILL, and waits
  bool wait_until(double seconds);  // true when it has ended

 private:
  explicit ChildProcess(pid_t pid) : pid_(pid) {}
  void reap(int options);

  pid_t pid_ = -1;  // -1 = none, or reaped
  std::string exit_text_;
};

// The last `lines` lines of a text file; empty when it cannot be read.
std::string tail_of(const std::string& path, int lines);

}  // namespace warmpath

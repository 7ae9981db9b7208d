// Supervisor: keeps a set of child processes running until it is told to stop. A child that dies is started again,
// after a pause that grows while it keeps dying. Thread safety: main thread only (see child_process.h).
#pragma once

#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "cli/child_process.h"

namespace warmpath {

class Supervisor {
 public:
  // Blocks SIGINT, SIGTERM and SIGHUP (the terminal closes) in this process, so that run() and stop_requested() can
  // take them in turn.
  Supervisor();
  // Ends the children, the last started first, each with SIGTERM and time to finish its work; a second
  // signal kills what is left.
  ~Supervisor();

  // Starts a child under `name`, which is what messages call it; its output goes to `log_path`.
  Status start(std::string name, std::vector<std::string> argv, std::string log_path);
  pid_t pid_of(const std::string& name) const;

  // An error naming a child that has died and how its log ends; ok while all run.
  Status first_death();
  // True once one of them has come; waits for one for at most `wait_s`.
  bool stop_requested(double wait_s);
  // Serves until one of them comes, restarting what dies.
  void run();

 private:
  struct Child {
    std::string name;
    std::vector<std::string> argv;
    std::string log_path;
    std::unique_ptr<ChildProcess> process;  // null between a death and the restart
    double restart_at_s = 0;
    double pause_s = kFirstPauseS;
    double started_at_s = 0;
  };
  static constexpr double kFirstPauseS = 0.5;
  static constexpr double kLongestPauseS = 30;
  static constexpr double kStopGraceS = 40;  // the gateway's default drain time and some

  void look_after(Child& child);

  sigset_t signals_;
  bool stop_ = false;
  std::vector<Child> children_;
};

}  // namespace warmpath

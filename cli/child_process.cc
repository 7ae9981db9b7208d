#include "cli/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <fstream>
#include <thread>
#include <utility>

namespace warmpath {

Result<ChildProcess> ChildProcess::spawn(const std::vector<std::string>& argv, const std::string& log_path) {
  if (access(argv[0].c_str(), X_OK) != 0) return not_found(argv[0] + " is missing or not executable");
  const int log = open(log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (log < 0) return unavailable("cannot write " + log_path + ": " + strerror(errno));
  std::vector<char*> arguments;
  for (const std::string& argument : argv) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);

  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) {
    close(log);
    return unavailable(std::string("cannot start a process: ") + strerror(errno));
  }
  if (pid == 0) {
    // Only async-signal-safe calls from here to exec.
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(1);
    // Ctrl-C reaches the terminal's whole group; the parent decides when this one ends.
    setpgid(0, 0);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    const int null = open("/dev/null", O_RDONLY);
    dup2(null, 0);
    dup2(log, 1);
    dup2(log, 2);
    execv(arguments[0], arguments.data());
    _exit(127);
  }
  close(log);
  return ChildProcess(pid);
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), exit_text_(std::move(other.exit_text_)) {}

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(exit_text_, other.exit_text_);
  return *this;
}

ChildProcess::~ChildProcess() {
  if (!running()) return;
  terminate();
  if (!wait_until(5)) kill_now();
}

void ChildProcess::kill_now() {
  if (pid_ >= 0) kill(pid_, SIGKILL);
  reap(0);
}

void ChildProcess::reap(int options) {
  if (pid_ < 0) return;
  int status = 0;
  pid_t got;
  do {
    got = waitpid(pid_, &status, options);
  } while (got < 0 && errno == EINTR);
  if (got != pid_) return;
  exit_text_ = WIFSIGNALED(status) ? "signal " + std::to_string(WTERMSIG(status))
                                   : "exit code " + std::to_string(WEXITSTATUS(status));
  pid_ = -1;
}

bool ChildProcess::running() {
  reap(WNOHANG);
  return pid_ >= 0;
}

void ChildProcess::terminate() {
  if (pid_ >= 0) kill(pid_, SIGTERM);
}

bool ChildProcess::wait_until(double seconds) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (running()) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

std::string tail_of(const std::string& path, int lines) {
  std::ifstream in(path);
  std::vector<std::string> kept;
  for (std::string line; std::getline(in, line);) {
    kept.push_back(std::move(line));
    if (kept.size() > static_cast<size_t>(lines)) kept.erase(kept.begin());
  }
  std::string text;
  for (const std::string& line : kept) text += line + "\n";
  return text;
}

}  // namespace warmpath

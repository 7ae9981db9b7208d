#include "cli/supervisor.h"

#include <algorithm>
#include <cstdio>

namespace warmpath {

Supervisor::Supervisor() {
  sigemptyset(&signals_);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals_, signal);
  sigprocmask(SIG_BLOCK, &signals_, nullptr);
}

Supervisor::~Supervisor() {
  bool now = false;
  for (auto child = children_.rbegin(); child != children_.rend(); ++child) {
    if (!child->process) continue;
    if (!now) child->process->terminate();
    for (double waited = 0; !now && waited < kStopGraceS && !child->process->wait_until(0.1); waited += 0.1) {
      timespec none{};
      now = sigtimedwait(&signals_, nullptr, &none) > 0;
    }
    child->process->kill_now();
    child->process.reset();
  }
}

Status Supervisor::start(std::string name, std::vector<std::string> argv, std::string log_path) {
  auto process = ChildProcess::spawn(argv, log_path);
  if (!process.ok()) return process.status();
  Child child;
  child.name = std::move(name);
  child.argv = std::move(argv);
  child.log_path = std::move(log_path);
  child.process = std::make_unique<ChildProcess>(std::move(*process));
  child.started_at_s = SystemClock::instance().now_s();
  children_.push_back(std::move(child));
  return {};
}

pid_t Supervisor::pid_of(const std::string& name) const {
  for (const Child& child : children_) {
    if (child.name == name && child.process) return child.process->pid();
  }
  return -1;
}

Status Supervisor::first_death() {
  for (Child& child : children_) {
    if (child.process && !child.process->running()) {
      return unavailable(child.name + " ended with " + child.process->exit_text() + "; its log ends:\n" +
                         tail_of(child.log_path, 12));
    }
  }
  return {};
}

bool Supervisor::stop_requested(double wait_s) {
  if (stop_) return true;
  timespec limit{};
  limit.tv_sec = static_cast<time_t>(wait_s);
  limit.tv_nsec = static_cast<long>((wait_s - static_cast<double>(limit.tv_sec)) * 1e9);
  stop_ = sigtimedwait(&signals_, nullptr, &limit) > 0;
  return stop_;
}

void Supervisor::look_after(Child& child) {
  const double now = SystemClock::instance().now_s();
  if (child.process) {
    if (child.process->running()) return;
    if (now - child.started_at_s > kLongestPauseS) child.pause_s = kFirstPauseS;
    std::fprintf(stderr, "warmpath: %s ended with %s; starting it again in %.1f s (log: %s)\n", child.name.c_str(),
                 child.process->exit_text().c_str(), child.pause_s, child.log_path.c_str());
    child.process.reset();
    child.restart_at_s = now + child.pause_s;
    child.pause_s = std::min(child.pause_s * 2, kLongestPauseS);
    return;
  }
  if (now < child.restart_at_s) return;
  auto process = ChildProcess::spawn(child.argv, child.log_path);
  child.started_at_s = now;
  if (process.ok()) {
    child.process = std::make_unique<ChildProcess>(std::move(*process));
  } else {
    std::fprintf(stderr, "warmpath: %s: %s\n", child.name.c_str(), process.status().message().c_str());
    child.restart_at_s = now + child.pause_s;
  }
}

void Supervisor::run() {
  while (!stop_requested(0.2)) {
    for (Child& child : children_) look_after(child);
  }
}

}  // namespace warmpath

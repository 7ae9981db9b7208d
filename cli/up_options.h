// UpOptions: the flags of `warmpath up`, what is wrong about them, and what they make of its children: a gateway's
// configuration and engines' command lines. Thread safety: values and pure functions (but for looking at files).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "model_file/model_store.h"

namespace CLI {
class App;
}

namespace warmpath {

struct UpOptions {
  std::string model = std::string(default_model().name);
  std::string name;
  int replicas = 2;
  int threads = 0;  // per replica; 0 = cores / replicas
  int context = 0;  // 0 = the model's
  std::string kv_bytes;
  std::string precision = "fast";
  std::string policy = "predicted_seconds";
  std::string host = "127.0.0.1";
  std::optional<uint16_t> port;
  std::optional<uint16_t> admin_port;
  std::string keys_file;
  bool insecure_no_auth = false;
  bool pull = false;
  bool once = false;
  bool no_demo = false;
  bool print_config = false;
  std::string ready_file;
};

// Registers the flags and their help.
void add_up_flags(CLI::App& app, UpOptions& options);

// What would otherwise be noticed by one of the children only; empty when all is well.
std::string find_mistake(const UpOptions& options);
// The same about files.
Status check_files(const UpOptions& options);

// "127.0.0.1:8080", "[::1]:8080".
std::string host_and_port(const std::string& host, int port);
// Where replica number `replica` listens.
std::string socket_of(const std::filesystem::path& folder, int replica);
std::string gateway_yaml(const UpOptions& options, const std::filesystem::path& folder, uint16_t port,
                         uint16_t admin_port);
std::vector<std::string> engine_argv(const UpOptions& options, const std::string& program_folder,
                                     const std::filesystem::path& folder, int replica);

}  // namespace warmpath

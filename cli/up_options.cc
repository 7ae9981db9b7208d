#include "cli/up_options.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>

#include "cli/byte_size.h"
#include "config/nearest_word.h"
#include "policies/policy_config.h"
#include "router/auth.h"
#include "router/config.h"

namespace warmpath {

namespace fs = std::filesystem;

namespace {

std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? "''" : std::string(1, c);
  return result + "'";
}

// An address that can be listened on.
bool is_address(const std::string& host) {
  unsigned char bytes[sizeof(in6_addr)];
  return host == "localhost" || inet_pton(AF_INET, host.c_str(), bytes) == 1 ||
         inet_pton(AF_INET6, host.c_str(), bytes) == 1;
}

}  // namespace

void add_up_flags(CLI::App& app, UpOptions& options) {
  app.add_option("--model", options.model,
                 "a model's name (warmpath models list), a GGUF file, a Hugging Face folder, or\n"
                 "synthetic:SHAPE for load tests")
      ->capture_default_str();
  app.add_option("--name", options.name, "serve the model under this name (default: its own)");
  app.add_option("--replicas", options.replicas, "engine replicas")->check(CLI::Range(1, 64))->capture_default_str();
  app.add_option("--threads", options.threads, "threads of each replica (default: cores / replicas)")
      ->check(CLI::Range(1, 1024));
  app.add_option("--context", options.context, "context window in tokens (default: the model's)")
      ->check(CLI::Range(64, 1 << 24));
  app.add_option("--kv-bytes", options.kv_bytes,
                 "KV cache of each replica, such as 512MiB (default: chosen by the engine)");
  app.add_option("--precision", options.precision, "fast (8-bit activations) or float (reference)")
      ->check(CLI::IsMember({"fast", "float"}))
      ->capture_default_str();
  app.add_option("--policy", options.policy, "how requests are routed (docs/configuration.md)")->capture_default_str();
  app.add_option("--host", options.host, "address to listen on; one other than loopback needs --keys-file")
      ->capture_default_str();
  app.add_option("--port", options.port, "port of the gateway (default: 8080, or the next free one; 0 = any)");
  app.add_option("--admin-port", options.admin_port,
                 "port of /metrics and /receipts (default: 9090, or the next free one; 0 = any)");
  app.add_option("--keys-file", options.keys_file, "clients must present a key from this file (warmpath keys)");
  app.add_flag("--insecure-no-auth", options.insecure_no_auth, "listen on any address without keys");
  app.add_flag("--pull", options.pull, "fetch the model first if it is not here");
  app.add_flag("--once", options.once, "stop after the demonstration");
  app.add_flag("--no-demo", options.no_demo, "no demonstration");
  app.add_flag("--print-config", options.print_config, "print the gateway configuration that this would run, and stop");
  app.add_option("--ready-file", options.ready_file,
                 "write 'PORT ADMIN_PORT' to this file once it serves (for scripts)");
}

std::string find_mistake(const UpOptions& options) {
  const std::vector<std::string>& policies = policy_names();
  if (std::find(policies.begin(), policies.end(), options.policy) == policies.end()) {
    return "--policy: \"" + options.policy + "\" is not known" + suggest_word(options.policy, policies);
  }
  if (!options.kv_bytes.empty()) {
    const auto bytes = parse_bytes(options.kv_bytes);
    if (!bytes.ok()) return "--kv-bytes: " + bytes.status().message();
  }
  if (options.port && options.port == options.admin_port && *options.port != 0) {
    return "--port and --admin-port are both " + std::to_string(*options.port) + "; each listener needs its own";
  }
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  if (std::any_of(options.name.begin(), options.name.end(), is_control)) {
    return "--name: a name holds no control characters";
  }
  if (!is_address(options.host)) {
    return "--host: \"" + options.host + "\" is no IP address; give one, such as 127.0.0.1 or 0.0.0.0";
  }
  if (!is_loopback({options.host, 0}) && options.keys_file.empty() && !options.insecure_no_auth) {
    return "--host " + options.host +
           " can be reached from other machines: pass --keys-file FILE (`warmpath keys add NAME --file FILE` makes "
           "one), or --insecure-no-auth";
  }
  return "";
}

Status check_files(const UpOptions& options) {
  if (!options.keys_file.empty()) {
    const Status keys = check_key_file(options.keys_file);
    if (!keys.ok()) {
      return not_found("--keys-file: " + keys.message() + " (`warmpath keys add NAME --file FILE` makes one)");
    }
  }
  if (!options.ready_file.empty()) {
    const fs::path folder = fs::absolute(options.ready_file).parent_path();
    if (access(folder.c_str(), W_OK) != 0) {
      return not_found("--ready-file: cannot write to " + folder.string() + ": " + strerror(errno));
    }
  }
  return {};
}

std::string host_and_port(const std::string& host, int port) {
  const bool is_v6 = host.find(':') != std::string::npos && !host.starts_with('[');
  return (is_v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

std::string socket_of(const fs::path& folder, int replica) {
  return "unix:" + (folder / ("replica-" + std::to_string(replica) + ".sock")).string();
}

std::string gateway_yaml(const UpOptions& options, const fs::path& folder, uint16_t port, uint16_t admin_port) {
  std::string yaml = "listen: " + quoted(host_and_port(options.host, port)) +
                     "\nadmin:\n  listen: " + quoted("127.0.0.1:" + std::to_string(admin_port)) + "\n";
  if (!options.keys_file.empty()) {
    yaml += "auth:\n  keys: " + quoted(fs::absolute(options.keys_file).string()) + "\n";
  } else if (options.insecure_no_auth) {
    yaml += "auth:\n  insecure_no_auth: true\n";
  }
  yaml +=
      "models:\n  - name: " + quoted(options.name) + "\n    policy: " + quoted(options.policy) + "\n    endpoints:\n";
  for (int replica = 0; replica < options.replicas; ++replica) {
    yaml += "      - " + quoted(socket_of(folder, replica)) + "\n";
  }
  return yaml;
}

std::vector<std::string> engine_argv(const UpOptions& options, const std::string& program_folder,
                                     const fs::path& folder, int replica) {
  std::vector<std::string> argv{program_folder + "/warmpath-engine",
                                "--model",
                                options.model,
                                "--served-model-name",
                                options.name,
                                "--listen",
                                socket_of(folder, replica),
                                "--threads",
                                std::to_string(options.threads),
                                "--precision",
                                options.precision};
  if (options.context > 0) argv.insert(argv.end(), {"--context", std::to_string(options.context)});
  if (!options.kv_bytes.empty()) argv.insert(argv.end(), {"--kv-bytes", options.kv_bytes});
  return argv;
}

}  // namespace warmpath

// `warmpath up`: writes a gateway configuration for N engine replicas on this machine, starts them all, and looks after
// them.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/version.h"
#include "cli/command.h"
#include "cli/demonstration.h"
#include "cli/model_pull.h"
#include "cli/ready_file.h"
#include "cli/replica_window.h"
#include "cli/supervisor.h"
#include "loadtest/http_client.h"
#include "model_file/model_store.h"
#include "router/config.h"

namespace warmpath {

namespace fs = std::filesystem;

namespace {

constexpr uint16_t kDefaultPort = 8080;
constexpr uint16_t kDefaultAdminPort = 9090;
constexpr int kPortsToTry = 20;

struct Options {
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

// Takes its folder away with it.
struct RunFolder {
  fs::path path;
  ~RunFolder() {
    std::error_code error;
    if (!path.empty()) fs::remove_all(path, error);
  }
};

// Ok, or why the port cannot be listened on.
Status try_port(const std::string& host, uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  if (inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1) return {};  // IPv6: the gateway itself will say
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int one = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  const bool usable = bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 && listen(fd, 1) == 0;
  const int why = errno;
  close(fd);
  if (usable) return {};
  const std::string name = "port " + std::to_string(port);
  if (why == EADDRINUSE) return unavailable(name + " is in use");
  return unavailable("cannot listen on " + host + ", " + name + ": " + strerror(why));
}

// A port that was asked for must be free; the default gives way to the next free one.
Result<uint16_t> choose_port(const std::string& host, std::optional<uint16_t> asked, uint16_t usual, const char* flag) {
  if (asked) {
    const Status usable = *asked == 0 ? Status() : try_port(host, *asked);
    if (usable.ok()) return *asked;
    return unavailable(usable.message() + "; choose another with " + flag);
  }
  for (uint16_t port = usual; port < usual + kPortsToTry; ++port) {
    if (!try_port(host, port).ok()) continue;
    if (port != usual) std::printf("port %d is in use; taking %d\n", usual, port);
    return port;
  }
  return unavailable("no free port from " + std::to_string(usual) + " on; choose one with " + flag);
}

std::string socket_of(const fs::path& folder, int replica) {
  return "unix:" + (folder / ("replica-" + std::to_string(replica) + ".sock")).string();
}

std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? "''" : std::string(1, c);
  return result + "'";
}

std::string gateway_yaml(const Options& options, const fs::path& folder, uint16_t port, uint16_t admin_port) {
  std::string yaml = "listen: " + quoted(options.host + ":" + std::to_string(port)) +
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

std::vector<std::string> engine_argv(const Options& options, const std::string& program_folder, const fs::path& folder,
                                     int replica) {
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

// What would otherwise be noticed only after the models are loaded.
Status check_flags(const Options& options) {
  if (!options.keys_file.empty() && access(options.keys_file.c_str(), R_OK) != 0) {
    return not_found("--keys-file: cannot read " + options.keys_file + ": " + strerror(errno) +
                     " (`warmpath keys add NAME --file FILE` makes one)");
  }
  if (!options.ready_file.empty()) {
    const fs::path folder = fs::absolute(options.ready_file).parent_path();
    if (access(folder.c_str(), W_OK) != 0) {
      return not_found("--ready-file: cannot write to " + folder.string() + ": " + strerror(errno));
    }
  }
  if (!is_loopback({options.host, 0}) && options.keys_file.empty() && !options.insecure_no_auth) {
    return invalid_argument(
        "--host " + options.host +
        " can be reached from other machines: pass --keys-file FILE (`warmpath keys add NAME --file FILE` "
        "makes one), or --insecure-no-auth");
  }
  return {};
}

// Makes sure that the model is there, and fills in the name it is served under.
Status prepare_model(Options& options) {
  if (const PinnedModel* pinned = find_pinned_model(options.model); pinned != nullptr && options.pull) {
    WARMPATH_RETURN_IF_ERROR(pull_model(*pinned));
  }
  const auto model = open_model(options.model);
  if (!model.ok()) return model.status();
  if (options.name.empty()) options.name = model->name;
  if (!model->path.empty()) options.model = fs::absolute(model->path).string();
  return {};
}

// Polls /readyz. True when ready, false when told to stop.
Result<bool> wait_until_ready(Supervisor& supervisor, const std::string& ready_file, const std::string& host,
                              uint16_t& port, uint16_t& admin_port) {
  std::printf("starting (the replicas load the model) ");
  for (int poll = 0;; ++poll) {
    if (supervisor.stop_requested(0.1)) return false;
    const Status death = supervisor.first_death();
    if (!death.ok()) {
      std::printf("\n");
      return death;
    }
    if (poll % 10 == 9) std::printf(".");
    std::fflush(stdout);
    std::ifstream in(ready_file);
    if (!(in >> port >> admin_port)) continue;
    HttpClient client(host, port, 5);
    const auto reply = client.request("GET", "/readyz", {}, "");
    if (reply.ok() && reply->status == 200) break;
  }
  std::printf(" ready\n");
  return true;
}

void print_how_to(const Options& options, const std::string& url, uint16_t admin_port, const fs::path& folder,
                  int context) {
  std::printf("\nwarmpath %s serves %s%s\n\n", kVersion, options.name.c_str(),
              options.model.rfind("synthetic:", 0) == 0 ? " (SYNTHETIC: random weights, its answers are noise)" : "");
  std::printf("  URL             %s\n", url.c_str());
  std::printf("  context window  %d tokens\n", context);
  std::printf("  replicas        %d on this machine, policy %s\n", options.replicas, options.policy.c_str());
  std::printf("  admin           http://127.0.0.1:%d/metrics and /receipts\n", admin_port);
  std::printf("  logs            %s\n\n", folder.c_str());
  std::printf("Point an OpenAI-compatible client at it:\n");
  std::printf("  export OPENAI_BASE_URL=%s OPENAI_API_KEY=%s\n", url.c_str(),
              options.keys_file.empty() ? "unused" : "YOUR_KEY");
  std::printf("  curl %s/chat/completions -H 'content-type: application/json'%s \\\n", url.c_str(),
              options.keys_file.empty() ? "" : " -H \"authorization: Bearer $OPENAI_API_KEY\"");
  std::printf("    -d '{\"model\": \"%s\", \"messages\": [{\"role\": \"user\", \"content\": \"Hello\"}]}'\n",
              options.name.c_str());
  if (context <= 8192) {
    std::printf("%d tokens suit chat clients and pi; larger agents want a larger model: --model PATH.gguf\n", context);
  }
}

int serve(Options options) {
  const auto fail = [](const Status& status) {
    std::fprintf(stderr, "warmpath up: %s\n", status.message().c_str());
    return 1;
  };
  if (options.threads == 0) {
    options.threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()) / options.replicas);
  }
  if (options.print_config) {
    if (options.name.empty()) options.name = options.model;
    std::fputs(gateway_yaml(options, "/run/warmpath", options.port.value_or(kDefaultPort),
                            options.admin_port.value_or(kDefaultAdminPort))
                   .c_str(),
               stdout);
    return 0;
  }
  const Status sound = check_flags(options);
  if (!sound.ok()) return fail(sound);
  const Status prepared = prepare_model(options);
  if (!prepared.ok()) return fail(prepared);
  const auto port = choose_port(options.host, options.port, kDefaultPort, "--port");
  if (!port.ok()) return fail(port.status());
  const auto admin = choose_port("127.0.0.1", options.admin_port, kDefaultAdminPort, "--admin-port");
  if (!admin.ok()) return fail(admin.status());

  const char* runtime = getenv("XDG_RUNTIME_DIR");
  std::string pattern =
      (fs::path(runtime != nullptr && fs::is_directory(runtime) ? runtime : "/tmp") / "warmpath-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) return fail(unavailable("cannot make a folder like " + pattern));
  const RunFolder folder{pattern};
  const std::string config = folder.path / "gateway.yaml", ready = folder.path / "gateway.ready";
  std::ofstream(config) << gateway_yaml(options, folder.path, *port, *admin);

  // Declared after the folder: the children end before their sockets and logs go.
  Supervisor supervisor;
  const std::string programs = fs::read_symlink("/proc/self/exe").parent_path();
  for (int replica = 0; replica < options.replicas; ++replica) {
    const std::string name = "replica-" + std::to_string(replica);
    const Status started =
        supervisor.start(name, engine_argv(options, programs, folder.path, replica), folder.path / (name + ".log"));
    if (!started.ok()) return fail(started);
  }
  const Status started =
      supervisor.start("gateway", {programs + "/warmpath", "gateway", "--config", config, "--ready-file", ready},
                       folder.path / "gateway.log");
  if (!started.ok()) return fail(started);

  uint16_t bound_port = 0, bound_admin_port = 0;
  const std::string reach = options.host == "0.0.0.0" ? "127.0.0.1" : options.host;
  const auto waited = wait_until_ready(supervisor, ready, reach, bound_port, bound_admin_port);
  if (!waited.ok()) return fail(waited.status());
  if (!*waited) return 0;

  const int context = replica_window(socket_of(folder.path, 0));
  if (!options.no_demo && options.keys_file.empty()) {
    ChatClient client(reach, bound_port, 600);
    auto shown =
        std::async(std::launch::async, run_demonstration, std::ref(client), options.name, std::min(1500, context / 3));
    while (shown.wait_for(std::chrono::milliseconds(100)) != std::future_status::ready) {
      if (!supervisor.stop_requested(0)) continue;
      client.interrupt();
      return 0;
    }
    const Status outcome = shown.get();
    if (!outcome.ok()) return fail(outcome);
  }
  print_how_to(options, "http://" + reach + ":" + std::to_string(bound_port) + "/v1", bound_admin_port, folder.path,
               context);
  const Status told = write_ready_file(options.ready_file, bound_port, bound_admin_port);
  if (!told.ok()) return fail(told);
  if (options.once) return 0;
  std::printf("\nCtrl-C stops it.\n");
  std::fflush(stdout);
  supervisor.run();
  std::printf("\nstopping: requests in flight may finish; Ctrl-C again ends them\n");
  std::fflush(stdout);
  return 0;
}

}  // namespace

void add_up_command(CLI::App& app, CommandMain& selected) {
  CLI::App* command = app.add_subcommand(
      "up",
      "Start a gateway and engine replicas on this machine, show that the prefix cache works, and serve until Ctrl-C.");
  const auto options = std::make_shared<Options>();
  command
      ->add_option("--model", options->model,
                   "a model's name (warmpath models list), a GGUF file, or synthetic:SHAPE for load tests")
      ->capture_default_str();
  command->add_option("--name", options->name, "serve the model under this name (default: its own)");
  command->add_option("--replicas", options->replicas, "engine replicas")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  command->add_option("--threads", options->threads, "threads of each replica (default: cores / replicas)")
      ->check(CLI::Range(1, 1024));
  command->add_option("--context", options->context, "context window in tokens (default: the model's)")
      ->check(CLI::Range(64, 1 << 24));
  command->add_option("--kv-bytes", options->kv_bytes,
                      "KV cache of each replica, such as 512MiB (default: chosen by the engine)");
  command->add_option("--precision", options->precision, "fast (8-bit activations) or float (reference)")
      ->check(CLI::IsMember({"fast", "float"}))
      ->capture_default_str();
  command->add_option("--policy", options->policy, "how requests are routed (docs/configuration.md)")
      ->capture_default_str();
  command->add_option("--host", options->host, "address to listen on; one other than loopback needs --keys-file")
      ->capture_default_str();
  command->add_option("--port", options->port, "port of the gateway (default: 8080, or the next free one; 0 = any)");
  command->add_option("--admin-port", options->admin_port,
                      "port of /metrics and /receipts (default: 9090, or the next free one; 0 = any)");
  command->add_option("--keys-file", options->keys_file, "clients must present a key from this file (warmpath keys)");
  command->add_flag("--insecure-no-auth", options->insecure_no_auth, "listen on any address without keys");
  command->add_flag("--pull", options->pull, "fetch the model first if it is not here");
  command->add_flag("--once", options->once, "stop after the demonstration");
  command->add_flag("--no-demo", options->no_demo, "no demonstration");
  command->add_flag("--print-config", options->print_config,
                    "print the gateway configuration that this would run, and stop");
  command->add_option("--ready-file", options->ready_file,
                      "write 'PORT ADMIN_PORT' to this file once it serves (for scripts)");
  command->callback([&selected, options] { selected = [options] { return serve(*options); }; });
}

}  // namespace warmpath

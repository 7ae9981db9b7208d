// `warmpath up`: writes a gateway configuration for N engine replicas on this machine, starts them all, and looks after
// them.
#include <arpa/inet.h>
#include <netinet/in.h>
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
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/demonstration.h"
#include "cli/model_pull.h"
#include "cli/ready_file.h"
#include "cli/replica_window.h"
#include "cli/run_folder.h"
#include "cli/supervisor.h"
#include "cli/up_options.h"
#include "loadtest/http_client.h"
#include "model_file/model_store.h"
#include "router/wire/json_writer.h"
#include "text/model_text.h"

namespace warmpath {

namespace fs = std::filesystem;

namespace {

constexpr uint16_t kDefaultPort = 8080;
constexpr uint16_t kDefaultAdminPort = 9090;
constexpr int kPortsToTry = 20;

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

// A port that was asked for must be free; the default gives way to the next free one that is not `taken`.
Result<uint16_t> choose_port(const std::string& host, std::optional<uint16_t> asked, uint16_t usual, const char* flag,
                             uint16_t taken = 0) {
  if (asked) {
    const Status usable = *asked == 0 ? Status() : try_port(host, *asked);
    if (usable.ok()) return *asked;
    return unavailable(usable.message() + "; choose another with " + flag);
  }
  for (uint16_t port = usual; port < usual + kPortsToTry; ++port) {
    if (port == taken || !try_port(host, port).ok()) continue;
    if (port != usual) std::printf("port %d is in use; taking %d\n", usual, port);
    return port;
  }
  return unavailable("no free port from " + std::to_string(usual) + " on; choose one with " + flag);
}

// Makes sure that the model is there, and fills in the name it is served under.
Status prepare_model(UpOptions& options) {
  if (const PinnedModel* pinned = find_pinned_model(options.model); pinned != nullptr && options.pull) {
    WARMPATH_RETURN_IF_ERROR(pull_model(*pinned));
  }
  const auto model = open_model_with_text(options.model);
  if (!model.ok()) return model.status();
  if (options.name.empty()) options.name = model->name;
  const auto architecture = model->file.get_string_or("general.architecture", "");
  const auto most = model->file.get_uint_or(std::string(architecture.ok() ? *architecture : "") + ".context_length", 0);
  if (most.ok() && *most > 0 && static_cast<uint64_t>(options.context) > *most) {
    return invalid_argument("--context " + std::to_string(options.context) + ": the model was made for at most " +
                            std::to_string(*most) + " tokens");
  }
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

std::string shell_quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? "'\\''" : std::string(1, c);
  return result + "'";
}

void print_how_to(const UpOptions& options, const std::string& url, uint16_t admin_port, const fs::path& folder,
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
  std::string body = "{\"model\": ";
  append_json_string(body, options.name);
  body += ", \"messages\": [{\"role\": \"user\", \"content\": \"Hello\"}]}";
  std::printf("    -d %s\n", shell_quoted(body).c_str());
  if (context <= 8192) {
    std::printf("%d tokens suit chat clients and pi; larger agents want a larger model: --model PATH.gguf\n", context);
  }
}

int serve(UpOptions options) {
  const auto fail = [](const Status& status) { return report_failure("warmpath up", status); };
  const std::string mistake = find_mistake(options);
  if (!mistake.empty()) return report_usage("warmpath up", mistake);
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
  const Status files = check_files(options);
  if (!files.ok()) return fail(files);
  const Status prepared = prepare_model(options);
  if (!prepared.ok()) return fail(prepared);
  const auto port = choose_port(options.host, options.port, kDefaultPort, "--port");
  if (!port.ok()) return fail(port.status());
  const auto admin = choose_port("127.0.0.1", options.admin_port, kDefaultAdminPort, "--admin-port", *port);
  if (!admin.ok()) return fail(admin.status());

  const auto run_folder = RunFolder::make();
  if (!run_folder.ok()) return fail(run_folder.status());
  const fs::path& folder = run_folder->path();
  const std::string config = folder / "gateway.yaml", ready = folder / "gateway.ready";
  std::ofstream(config) << gateway_yaml(options, folder, *port, *admin);

  // Declared after the folder: the children end before their sockets and logs go.
  Supervisor supervisor;
  const std::string programs = fs::read_symlink("/proc/self/exe").parent_path();
  for (int replica = 0; replica < options.replicas; ++replica) {
    const std::string name = "replica-" + std::to_string(replica);
    const Status started =
        supervisor.start(name, engine_argv(options, programs, folder, replica), folder / (name + ".log"));
    if (!started.ok()) return fail(started);
  }
  const Status started =
      supervisor.start("gateway", {programs + "/warmpath", "gateway", "--config", config, "--ready-file", ready},
                       folder / "gateway.log");
  if (!started.ok()) return fail(started);

  uint16_t bound_port = 0, bound_admin_port = 0;
  const std::string reach = options.host == "0.0.0.0" ? "127.0.0.1" : options.host == "::" ? "::1" : options.host;
  const auto waited = wait_until_ready(supervisor, ready, reach, bound_port, bound_admin_port);
  if (!waited.ok()) return fail(waited.status());
  if (!*waited) return 0;

  const int context = replica_window(socket_of(folder, 0));
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
  print_how_to(options, "http://" + host_and_port(reach, bound_port) + "/v1", bound_admin_port, folder, context);
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
  const auto options = std::make_shared<UpOptions>();
  add_up_flags(*command, *options);
  command->callback([&selected, options] { selected = [options] { return serve(*options); }; });
}

}  // namespace warmpath

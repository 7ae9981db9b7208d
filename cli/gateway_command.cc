// `warmpath gateway`: the gateway alone, from a configuration file.
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "base/log.h"
#include "base/version.h"
#include "cli/command.h"
#include "cli/ready_file.h"
#include "config/config.h"
#include "config/reference.h"
#include "router/config.h"
#include "router/config_checks.h"
#include "router/gateway_service.h"

namespace warmpath {

namespace {

struct Options {
  std::string config;
  std::string check;
  std::string ready_file;
  bool insecure_no_auth = false;
  bool print_reference = false;
};

ConfigResult<GatewayConfig> load(const std::string& path, bool insecure_no_auth) {
  ConfigResult<GatewayConfig> result{path, std::make_unique<GatewayConfig>(), {}};
  // The flag stands where the file says nothing, before the file's own checks run.
  result.config->auth.insecure_no_auth = insecure_no_auth;
  const Result<std::string> text = read_config_file(path);
  if (text.ok()) {
    parse_config_into(
        *gateway_schema().spec(), *text, read_environment, result.config.get(), result.errors,
        [&](CheckContext& context) { report_config_problems(find_reference_problems(*result.config), context); });
  } else {
    result.errors.push_back({0, 0, "", text.status().message()});
  }
  if (!result.errors.empty()) result.config.reset();
  return result;
}

int check(const Options& options) {
  const auto config = load(options.check, options.insecure_no_auth);
  if (!config.ok()) {
    std::fprintf(stderr, "%s\n", config.error_text().c_str());
    return 1;
  }
  size_t endpoints = 0;
  for (const ModelConfig& model : config.config->models) endpoints += model.endpoints.size();
  std::printf("%s is valid: %zu model(s), %zu endpoint(s)\n", options.check.c_str(), config.config->models.size(),
              endpoints);
  return 0;
}

void reload(GatewayService& service, const Options& options) {
  const auto config = load(options.config, options.insecure_no_auth);
  if (!config.ok()) {
    log_error("reload_refused", {{"file", options.config}, {"errors", config.error_text()}});
    return;
  }
  const auto reloaded = service.reload(*config.config);
  if (!reloaded.ok()) {
    log_error("reload_refused", {{"file", options.config}, {"errors", reloaded.status().message()}});
    return;
  }
}

int serve(const Options& options) {
  const auto config = load(options.config, options.insecure_no_auth);
  if (!config.ok()) {
    std::fprintf(stderr, "%s\n", config.error_text().c_str());
    return 1;
  }
  // Blocked before any thread starts, so that only this one takes them.
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  ::signal(SIGPIPE, SIG_IGN);

  auto service = GatewayService::start(*config.config);
  if (!service.ok()) {
    std::fprintf(stderr, "warmpath gateway: %s\n", service.status().message().c_str());
    return 1;
  }
  log_info("gateway_listening", {{"version", kVersion},
                                 {"port", (*service)->port()},
                                 {"admin_port", (*service)->admin_port()},
                                 {"config", options.config}});
  const Status told = write_ready_file(options.ready_file, (*service)->port(), (*service)->admin_port());
  if (!told.ok()) {
    std::fprintf(stderr, "warmpath gateway: %s\n", told.message().c_str());
    return 1;
  }
  for (int signal = 0;;) {
    if (sigwait(&signals, &signal) != 0) continue;
    if (signal != SIGHUP) break;
    reload(**service, options);
  }
  // A second signal ends it at once.
  const timespec at_once{};
  (*service)->drain([&] { return sigtimedwait(&signals, nullptr, &at_once) > 0; });
  (*service)->stop();
  log_info("stopped");
  return 0;
}

}  // namespace

void add_gateway_command(CLI::App& app, CommandMain& selected) {
  CLI::App* command =
      app.add_subcommand("gateway",
                         "Serve a configuration file (docs/configuration.md): the URL that agents are pointed at.\n"
                         "SIGHUP reloads the file, SIGTERM finishes what is in flight (limits.drain_s) and stops.");
  const auto options = std::make_shared<Options>();
  CLI::Option_group* what = command->add_option_group("what to do");
  what->add_option("--config", options->config, "serve this configuration");
  what->add_option("--check", options->check,
                   "only say whether this configuration is valid, and what is wrong with it");
  what->add_flag("--print-config-reference", options->print_reference,
                 "print the manual of the configuration file (Markdown)");
  what->require_option(1);
  command->add_flag("--insecure-no-auth", options->insecure_no_auth,
                    "allow listening beyond this machine without keys");
  command->add_option("--ready-file", options->ready_file,
                      "write 'PORT ADMIN_PORT' to this file once it listens (for scripts)");
  command->callback([&selected, options] {
    selected = [options] {
      if (options->print_reference) {
        std::printf("# Configuration\n\nGenerated from the code (`warmpath gateway --print-config-reference`).\n%s",
                    config_reference_markdown(gateway_schema()).c_str());
        return 0;
      }
      return options->check.empty() ? serve(*options) : check(*options);
    };
  });
}

}  // namespace warmpath

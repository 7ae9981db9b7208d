#include "router/gateway_core.h"

#include <algorithm>
#include <thread>

#include "base/log.h"
#include "router/config_checks.h"

namespace warmpath {

namespace {

// Paths of the configuration that are read once, at the start.
constexpr std::string_view kNeedRestart[] = {
    "listen",
    "threads",
    "admin.listen",
    "index.",
    "limits.receipts_bytes",
    "limits.max_body_bytes",
    "limits.max_total_body_bytes",
    "limits.max_head_bytes",
    "limits.max_connections",
    "limits.max_unsent_bytes",
    "limits.idle_s",
    "limits.head_read_s",
    "limits.body_stall_s",
    "limits.write_stall_s",
};

bool needs_restart(std::string_view path) {
  if (path.starts_with("models[") && path.ends_with(".tokenizer")) return true;
  if (path.starts_with("models[") && path.find(".parsers.") != std::string_view::npos) return true;
  if (path.ends_with(".encoder_cache_bytes")) return true;
  return std::any_of(std::begin(kNeedRestart), std::end(kNeedRestart), [&](std::string_view known) {
    return known.ends_with('.') ? path.starts_with(known) : path == known;
  });
}

int worker_threads() { return std::max(2, static_cast<int>(std::thread::hardware_concurrency()) / 2); }

}  // namespace

Result<std::shared_ptr<const Auth>> load_auth(const AuthConfig& config) {
  if (config.keys.empty()) return Auth::open_to_all();
  return Auth::load(config.keys, config.state.empty() ? config.keys + ".salts" : config.state);
}

GatewayCore::GatewayCore(const GatewayConfig& config, UpstreamFactory factory, const Clock& clock, MonitorTiming timing)
    : config_(config),
      receipts_(config.limits.receipts_bytes),
      fleet_(std::move(factory), config.index, clock, timing),
      workers_("wp-worker", worker_threads()),
      services_{fleet_, metrics_, receipts_, workers_, clock},
      gateway_(services_),
      admin_(services_) {}

GatewayCore::~GatewayCore() { stop_workers(); }

Result<std::unique_ptr<GatewayCore>> GatewayCore::create(const GatewayConfig& config, UpstreamFactory factory,
                                                         const Clock& clock, MonitorTiming timing) {
  WARMPATH_RETURN_IF_ERROR(check_gateway_config(config));
  Result<std::shared_ptr<const Auth>> auth = load_auth(config.auth);
  if (!auth.ok()) return auth.status();
  std::unique_ptr<GatewayCore> core(new GatewayCore(config, std::move(factory), clock, timing));
  core->use_settings(config, *auth);
  WARMPATH_RETURN_IF_ERROR(core->fleet_.apply(config));
  if (!(*auth)->required() && config.auth.insecure_no_auth) {
    log_warn("no_authentication",
             {{"listen", config.listen}, {"why", "auth.insecure_no_auth is set and there are no keys"}});
  }
  return core;
}

void GatewayCore::use_settings(const GatewayConfig& config, std::shared_ptr<const Auth> auth) {
  LogLevel level{};
  if (parse_log_level(config.log.level, level)) set_log_level(level);
  services_.set_settings(std::make_shared<const LiveSettings>(
      LiveSettings{config.limits, config.log, std::move(auth), config.admin.hosts}));
}

Result<std::vector<std::string>> GatewayCore::reload(const GatewayConfig& config) {
  WARMPATH_RETURN_IF_ERROR(check_gateway_config(config));
  Result<std::shared_ptr<const Auth>> auth = load_auth(config.auth);
  if (!auth.ok()) return auth.status();
  WARMPATH_RETURN_IF_ERROR(fleet_.apply(config));
  use_settings(config, *auth);

  std::vector<std::string> after_restart;
  for (const ConfigChange& change : config_difference(gateway_schema(), config_, config)) {
    if (needs_restart(change.path)) {
      after_restart.push_back(change.path);
      log_warn("config_change_needs_restart", {{"change", format_config_change(change)}});
    } else {
      log_info("config_changed", {{"change", format_config_change(change)}});
    }
  }
  config_ = config;
  log_info("config_reloaded", {{"models", config.models.size()}, {"keys", (*auth)->keys()}});
  return after_restart;
}

void GatewayCore::begin_drain() { services_.draining.store(true); }

void GatewayCore::stop_workers() { workers_.stop(); }

}  // namespace warmpath

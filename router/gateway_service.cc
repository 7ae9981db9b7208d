#include "router/gateway_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <thread>

#include "base/log.h"
#include "router/grpc_upstream.h"
#include "router/heap_settings.h"
#include "router/http_server.h"

namespace warmpath {

namespace {

// When the time to drain is up: for answering what can still be answered with 503.
constexpr double kLastWordS = 1;
constexpr double kAskHurryS = 0.05;

// The token in an endpoint's file: its first line.
Result<std::string> read_token(const std::string& path) {
  std::ifstream file(path);
  std::string token;
  if (!file || !std::getline(file, token) || token.empty()) {
    return failed_precondition(
        fmt::format("token_file {} cannot be read: {}", path, errno != 0 ? std::strerror(errno) : "it is empty"));
  }
  return token;
}

Result<std::shared_ptr<Upstream>> open_endpoint(const EndpointConfig& endpoint) {
  GrpcUpstreamOptions options;
  if (!endpoint.token_file.empty()) {
    Result<std::string> token = read_token(endpoint.token_file);
    if (!token.ok()) return token.status();
    options.token = *std::move(token);
  }
  return std::shared_ptr<Upstream>(make_grpc_upstream(endpoint.address, std::move(options)));
}

int io_threads(const GatewayConfig& config) {
  return config.threads > 0 ? config.threads : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace

struct GatewayService::Parts {
  std::unique_ptr<GatewayCore> core;
  std::unique_ptr<HttpServer> server;        // main listener
  std::unique_ptr<HttpServer> admin_server;  // its own thread and limits, so that it answers when the other is flooded
  uint16_t port = 0;
  uint16_t admin_port = 0;
};

GatewayService::GatewayService() : parts_(std::make_unique<Parts>()) {}
GatewayService::~GatewayService() { stop(); }

Result<std::unique_ptr<GatewayService>> GatewayService::start(const GatewayConfig& config) {
  use_roomy_heaps();
  std::unique_ptr<GatewayService> service(new GatewayService);
  WARMPATH_RETURN_IF_ERROR(service->open(config));
  return service;
}

Status GatewayService::open(const GatewayConfig& config) {
  auto core = GatewayCore::create(config, open_endpoint);
  if (!core.ok()) return core.status();
  parts_->core = *std::move(core);
  const auto listen = [](HttpServer& server, std::string_view field, const std::string& text, HttpHandler& handler,
                         uint16_t& port) -> Status {
    const Result<SocketAddress> address = parse_socket_address(text);
    if (!address.ok()) return address.status();
    const Result<uint16_t> bound = server.listen(address->host, address->port, &handler);
    if (!bound.ok()) return failed_precondition(fmt::format("{} {}: {}", field, text, bound.status().message()));
    port = *bound;
    return {};
  };
  parts_->server = std::make_unique<HttpServer>(config.limits, io_threads(config));
  WARMPATH_RETURN_IF_ERROR(listen(*parts_->server, "listen", config.listen, parts_->core->gateway(), parts_->port));
  if (!config.admin.listen.empty()) {
    HttpLimits limits;
    limits.max_body_bytes = 64 << 10;
    parts_->admin_server = std::make_unique<HttpServer>(limits, 1);
    WARMPATH_RETURN_IF_ERROR(
        listen(*parts_->admin_server, "admin", config.admin.listen, parts_->core->admin(), parts_->admin_port));
  }
  parts_->core->services().http_counters = [server = parts_->server.get()] { return server->counters(); };
  parts_->server->start();
  if (parts_->admin_server) parts_->admin_server->start();
  log_info("gateway_listening", {{"port", parts_->port}, {"admin_port", parts_->admin_port}});
  return {};
}

uint16_t GatewayService::port() const { return parts_->port; }
uint16_t GatewayService::admin_port() const { return parts_->admin_port; }
bool GatewayService::ready() const {
  return !parts_->core->services().draining.load() && parts_->core->fleet().ready();
}

Result<std::vector<std::string>> GatewayService::reload(const GatewayConfig& config) {
  return parts_->core->reload(config);
}

bool GatewayService::drain(const std::function<bool()>& hurry) {
  parts_->core->begin_drain();
  parts_->server->begin_drain();
  const Services& services = parts_->core->services();
  const double drain_s = services.settings()->limits.drain_s;
  log_info("draining", {{"in_progress", services.in_progress.load()}, {"drain_s", drain_s}});
  const Clock& clock = SystemClock::instance();
  const double end_s = clock.now_s() + drain_s;
  bool idle = parts_->server->wait_until_idle(0);
  while (!idle && clock.now_s() < end_s && !(hurry && hurry())) {
    idle = parts_->server->wait_until_idle(std::clamp(end_s - clock.now_s(), 0.0, kAskHurryS));
  }
  if (!idle) {
    log_warn("drain_time_is_up", {{"in_progress", services.in_progress.load()}, {"drain_s", drain_s}});
    parts_->server->end_drain(kLastWordS);
  }
  return idle;
}

void GatewayService::stop() {
  if (!parts_->core) return;
  if (parts_->server) parts_->server->stop();
  if (parts_->admin_server) parts_->admin_server->stop();
  parts_->core->stop_workers();
  parts_->admin_server = nullptr;
  parts_->server = nullptr;
  parts_->core = nullptr;
}

}  // namespace warmpath

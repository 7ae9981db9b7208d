// GatewayCore: everything of a gateway but its sockets: fleet, services, and the two handlers. The service around it
// (gateway_service.h) adds listeners and gRPC; tests hand requests straight to the handlers.
//
// Lifetime: no handler may run and no worker hold a request when it is destroyed; stop the listeners first.
// Thread safety: gateway() and admin() as HttpHandler; reload() and begin_drain() from any thread, one at a time.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "router/admin.h"
#include "router/config.h"
#include "router/fleet.h"
#include "router/gateway.h"
#include "router/services.h"

namespace warmpath {

// Keys and salts as the configuration names them. Errors name the file.
Result<std::shared_ptr<const Auth>> load_auth(const AuthConfig& config);

class GatewayCore {
 public:
  static Result<std::unique_ptr<GatewayCore>> create(const GatewayConfig& config, UpstreamFactory factory,
                                                     const Clock& clock = SystemClock::instance(),
                                                     MonitorTiming timing = {});
  ~GatewayCore();

  HttpHandler& gateway() { return gateway_; }
  HttpHandler& admin() { return admin_; }
  Services& services() { return services_; }
  Fleet& fleet() { return fleet_; }
  const GatewayConfig& config() const { return config_; }

  // Replaces the configuration while requests run. On an error nothing has changed. What changed is logged, and so is
  // what only a restart can change (listeners, threads, the HTTP limits, the sizes of index and receipts), which is
  // returned by its path too.
  Result<std::vector<std::string>> reload(const GatewayConfig& config);

  // From now on /readyz says 503 and new completions are refused.
  void begin_drain();
  // Ends the workers; to be called after the listeners have stopped.
  void stop_workers();

 private:
  GatewayCore(const GatewayConfig& config, UpstreamFactory factory, const Clock& clock, MonitorTiming timing);
  void use_settings(const GatewayConfig& config, std::shared_ptr<const Auth> auth);

  GatewayConfig config_;
  Metrics metrics_;
  ReceiptRing receipts_;
  Fleet fleet_;
  TaskQueue workers_;
  Services services_;
  Gateway gateway_;
  Admin admin_;
};

}  // namespace warmpath

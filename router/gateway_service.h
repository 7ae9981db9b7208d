// GatewayService: a whole gateway on real sockets: the main and the admin listener, gRPC to the replicas, and
// GatewayCore between them. What `warmpath gateway` and `warmpath up` run.
//
//   auto service = GatewayService::start(config);           // listening; /readyz says when replicas have answered
//   on SIGHUP:   service->reload(new_config);
//   on SIGTERM:  service->drain(); service->stop();
//
// Thread safety: every method from any thread, one at a time. Signals are the caller's.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "router/gateway_core.h"

namespace warmpath {

class GatewayService {
 public:
  static Result<std::unique_ptr<GatewayService>> start(const GatewayConfig& config);
  ~GatewayService();  // stop()

  uint16_t port() const;
  uint16_t admin_port() const;  // 0: no admin listener
  bool ready() const;           // what /readyz says

  // As GatewayCore::reload.
  Result<std::vector<std::string>> reload(const GatewayConfig& config);

  // /readyz turns 503 and new requests are refused; returns once those in progress are answered, or after
  // limits.drain_s or once `hurry` says so, which is asked now and then (false then: some were told that it is over).
  bool drain(const std::function<bool()>& hurry = nullptr);
  // Aborts what is in progress and stops everything. Idempotent.
  void stop();

 private:
  GatewayService();
  Status open(const GatewayConfig& config);

  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace warmpath

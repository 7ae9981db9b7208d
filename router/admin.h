// Admin: the handler of the admin listener.
//
//   GET /metrics                                   Prometheus text; no key needed: the listener is the guard
//   GET /receipts?tenant=T&request_id=R&limit=N    newest first; a tenant's key shows its own, an admin key everybody's
//   GET /index/snapshot                            the index as bytes (docs/index_snapshot.md); an admin key
//   GET /healthz
//
// Thread safety: as HttpHandler.
#pragma once

#include <memory>

#include "router/http.h"
#include "router/services.h"

namespace warmpath {

class Admin final : public HttpHandler {
 public:
  explicit Admin(Services& services) : services_(services) {}
  void handle(std::shared_ptr<HttpExchange> exchange) override;

 private:
  class SnapshotStream;

  void send_snapshot(std::shared_ptr<HttpExchange> exchange, HttpHeaders headers);
  void show_receipts(HttpExchange& exchange, HttpHeaders headers);

  Services& services_;
};

}  // namespace warmpath

// Gateway: the handler of the main listener. Knows the routes, who may use them, and hands completions to Answer.
//
//   POST /v1/chat/completions, /v1/completions      (also without /v1)
//   GET  /v1/models, /v1/models/{name}
//   GET  /healthz, /readyz, /health, /              no key needed
//
// Thread safety: as HttpHandler: called on every I/O thread.
#pragma once

#include <memory>
#include <string>

#include "router/http.h"
#include "router/prepared_request.h"
#include "router/services.h"

namespace warmpath {

// The request id to echo: the client's x-request-id where it is 1 to 128 of [A-Za-z0-9._:-], else a random one.
std::string request_id_of(const HttpRequest& request);

// An error in the wire's shape, with Retry-After where it has one.
void respond_error(HttpExchange& exchange, const WireError& error, HttpHeaders headers);

class Gateway final : public HttpHandler {
 public:
  explicit Gateway(Services& services) : services_(services) {}

  void handle(std::shared_ptr<HttpExchange> exchange) override;

 private:
  void handle_completion(std::shared_ptr<HttpExchange> exchange, Wire wire, const Identity& identity,
                         std::string request_id, std::shared_ptr<const LiveSettings> settings);
  void list_models(HttpExchange& exchange, HttpHeaders headers);
  void show_model(HttpExchange& exchange, std::string_view name, HttpHeaders headers);
  void show_readiness(HttpExchange& exchange, HttpHeaders headers);

  Services& services_;
};

}  // namespace warmpath

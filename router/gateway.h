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
  // An answer that is known at once.
  struct Reply {
    int status = 200;
    HttpHeaders headers;
    std::string body;
  };
  static Reply text_reply(int status, std::string body);
  static Reply json_reply(std::string body);
  static Reply error_reply(const WireError& error);

  void begin_completion(std::shared_ptr<HttpExchange> exchange, Wire wire, Identity identity, std::string request_id,
                        std::shared_ptr<const LiveSettings> settings);
  Reply list_models() const;
  Reply show_model(std::string_view name) const;
  Reply show_readiness() const;

  Services& services_;
};

}  // namespace warmpath

// Gateway: the handler of the main listener. Knows the routes, who may use them, and hands completions to Answer.
//
//   POST /v1/chat/completions, /v1/completions      (also without /v1)
//   GET  /v1/models, /v1/models/{name}
//   GET  /healthz, /readyz, /health, /              no key needed
//
// Thread safety: as HttpHandler: called on every I/O thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

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
  // So that nobody without a key makes the gateway hold bodies.
  std::optional<HttpAnswer> refuse_before_body(const HttpRequest& request) override;

 private:
  enum class Place { kNowhere, kRoot, kHealth, kReady, kChat, kCompletions, kModels, kModel };
  struct Target {
    Place place = Place::kNowhere;
    std::string_view rest;     // the model's name, percent-encoded
    std::string_view methods;  // allowed ones
  };
  static Target find_target(std::string_view path);
  static bool is_completion(Place place);
  static bool needs_key(Place place);

  static HttpAnswer text_reply(int status, std::string body);
  static HttpAnswer json_reply(std::string body);
  static HttpAnswer error_reply(const WireError& error);

  std::optional<HttpAnswer> refusal(const HttpRequest& request, const Target& target, const LiveSettings& settings,
                                    const std::optional<Identity>& identity);
  static void log_request(const HttpRequest& request, const std::string& request_id, const Target& target,
                          const LiveSettings& settings, const std::optional<Identity>& identity, int status);
  void begin_completion(std::shared_ptr<HttpExchange> exchange, Wire wire, Identity identity, std::string request_id,
                        std::shared_ptr<const LiveSettings> settings);
  HttpAnswer list_models() const;
  HttpAnswer show_model(std::string_view name) const;
  HttpAnswer show_readiness() const;

  Services& services_;
};

}  // namespace warmpath

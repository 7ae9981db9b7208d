// Gateway: the handler of the main listener. Knows the routes, who may use them, and hands completions to Answer.
//
//   POST /v1/chat/completions, /v1/completions, /v1/messages, /v1/responses      (all of /v1 also without it)
//   POST /v1/messages/count_tokens, /v1/tokenize
//   GET  /v1/models, /v1/models/{name}
//   GET  /healthz, /readyz, /health, /, /api/hello                               no key needed
//
// Thread safety: as HttpHandler: called on every I/O thread.
#pragma once

#include <functional>
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
  enum class Place {
    kNowhere,
    kRoot,
    kHealth,
    kReady,
    kChat,
    kCompletions,
    kMessages,
    kResponses,
    kCountTokens,
    kTokenize,
    kEmbeddings,
    kModels,
    kModel
  };
  struct Target {
    Place place = Place::kNowhere;
    std::string_view rest;     // the model's name, percent-encoded
    std::string_view methods;  // allowed ones
  };
  static Target find_target(std::string_view path);
  static std::optional<Wire> wire_of(Place place);  // of what asks a replica for an answer
  static bool is_work(Place place);                 // what costs the gateway or a replica work
  static bool needs_key(Place place);

  // Somebody's request while it is answered here.
  struct Visit {
    Target target;
    std::shared_ptr<const LiveSettings> settings;
    std::optional<Identity> identity;
    std::string request_id;
    bool anthropic = false;  // errors have that wire's shape
  };
  Visit visit_of(const HttpRequest& request) const;

  static HttpAnswer text_reply(int status, std::string body);
  static HttpAnswer json_reply(std::string body);
  static HttpAnswer error_reply(const Visit& visit, const WireError& error);

  std::optional<HttpAnswer> refusal(const HttpRequest& request, const Visit& visit);
  // Logs it and gives it its request id.
  static void sign(const HttpRequest& request, const Visit& visit, HttpAnswer& reply);
  static void send(HttpExchange& exchange, const Visit& visit, HttpAnswer reply);

  void reply_from_body(std::shared_ptr<HttpExchange> exchange, Visit visit,
                       std::function<bool(std::string_view, std::string&, WireError&)> work);
  void count_tokens(std::shared_ptr<HttpExchange> exchange, Visit visit);
  void tokenize(std::shared_ptr<HttpExchange> exchange, Visit visit);
  HttpAnswer list_models() const;
  HttpAnswer show_model(const Visit& visit) const;
  HttpAnswer show_readiness() const;

  Services& services_;
};

}  // namespace warmpath

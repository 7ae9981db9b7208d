#include "router/gateway.h"

#include <fmt/format.h>

#include <chrono>
#include <optional>

#include "router/answer.h"
#include "router/model_list.h"
#include "router/salt_file.h"

namespace warmpath {

namespace {

constexpr std::string_view kModelsPath = "/models/";

// When the process started: a model's "created", which clients want as a number and nobody reads.
int64_t start_time() {
  static const int64_t kStart =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  return kStart;
}

bool is_request_id(std::string_view id) {
  constexpr std::string_view kAllowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:-";
  return !id.empty() && id.size() <= 128 && id.find_first_not_of(kAllowed) == std::string_view::npos;
}

// %2F and the like; nullopt when the escapes are broken.
std::optional<std::string> percent_decoded(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '%') {
      out += text[at];
      continue;
    }
    const auto byte = bytes_from_hex(text.substr(at + 1, 2));
    if (!byte || byte->size() != 1) return std::nullopt;
    out += *byte;
    at += 2;
  }
  return out;
}

enum class Place { kNowhere, kRoot, kHealth, kReady, kChat, kCompletions, kModels, kModel };

struct Target {
  Place place = Place::kNowhere;
  std::string_view rest;     // the model's name, percent-encoded
  std::string_view methods;  // allowed ones
};

Target find_target(std::string_view path) {
  constexpr std::string_view kGet = "GET, HEAD, OPTIONS";
  constexpr std::string_view kPost = "POST, OPTIONS";
  if (path == "/") return {Place::kRoot, {}, kGet};
  if (path == "/healthz" || path == "/health") return {Place::kHealth, {}, kGet};
  if (path == "/readyz") return {Place::kReady, {}, kGet};
  if (path.starts_with("/v1/")) path.remove_prefix(3);
  if (path == "/chat/completions") return {Place::kChat, {}, kPost};
  if (path == "/completions") return {Place::kCompletions, {}, kPost};
  if (path == "/models") return {Place::kModels, {}, kGet};
  if (path.starts_with(kModelsPath)) return {Place::kModel, path.substr(kModelsPath.size()), kGet};
  return {};
}

bool is_allowed(std::string_view methods, std::string_view method) {
  for (size_t at = 0; at < methods.size();) {
    const size_t comma = std::min(methods.find(", ", at), methods.size());
    if (methods.substr(at, comma - at) == method) return true;
    at = comma + 2;
  }
  return false;
}

bool needs_key(Place place) { return place != Place::kRoot && place != Place::kHealth && place != Place::kReady; }

WireError unauthenticated(bool key_given) {
  return {.status = 401,
          .message = key_given ? "Incorrect API key provided"
                               : "No API key provided: send it as 'Authorization: Bearer KEY' or 'x-api-key: KEY'",
          .code = "invalid_api_key"};
}

}  // namespace

std::string request_id_of(const HttpRequest& request) {
  const std::string_view given = request.header("x-request-id");
  return is_request_id(given) ? std::string(given) : "req_" + bytes_to_hex(random_bytes(12));
}

void respond_error(HttpExchange& exchange, const WireError& error, HttpHeaders headers) {
  headers.emplace_back("content-type", "application/json");
  if (error.retry_after_s > 0) headers.emplace_back("retry-after", std::to_string(error.retry_after_s));
  exchange.respond(error.status, headers, error_body(error));
}

void Gateway::handle(std::shared_ptr<HttpExchange> exchange) {
  const HttpRequest& request = exchange->request();
  std::string request_id = request_id_of(request);
  HttpHeaders headers = {{"x-request-id", request_id}};
  const Target target = find_target(request.path);
  if (target.place == Place::kNowhere) {
    respond_error(*exchange,
                  {.status = 404,
                   .message = fmt::format("There is nothing at {} {}; this gateway serves /v1/chat/completions, "
                                          "/v1/completions and /v1/models",
                                          request.method, request.path),
                   .code = "not_found"},
                  std::move(headers));
    return;
  }
  if (request.method == "OPTIONS") {
    headers.emplace_back("allow", target.methods);
    exchange->respond(204, headers, "");
    return;
  }
  if (!is_allowed(target.methods, request.method)) {
    headers.emplace_back("allow", target.methods);
    respond_error(
        *exchange,
        {.status = 405,
         .message = fmt::format("{} does not answer {}; use {}", request.path, request.method, target.methods),
         .code = "method_not_allowed"},
        std::move(headers));
    return;
  }
  const std::shared_ptr<const LiveSettings> settings = services_.settings();
  std::optional<Identity> identity;
  if (needs_key(target.place)) {
    identity = settings->auth->identify(request);
    if (!identity) {
      services_.metrics.refused("unauthenticated");
      headers.emplace_back("www-authenticate", "Bearer realm=\"warmpath\"");
      const bool key_given = !request.header("authorization").empty() || !request.header("x-api-key").empty();
      respond_error(*exchange, unauthenticated(key_given), std::move(headers));
      return;
    }
  }
  switch (target.place) {
    case Place::kRoot:
      headers.emplace_back("content-type", "text/plain; charset=utf-8");
      exchange->respond(200, headers, "warmpath: an OpenAI-compatible gateway; base URL of clients: /v1\n");
      return;
    case Place::kHealth:
      headers.emplace_back("content-type", "text/plain; charset=utf-8");
      exchange->respond(200, headers, "ok\n");
      return;
    case Place::kReady:
      show_readiness(*exchange, std::move(headers));
      return;
    case Place::kModels:
      list_models(*exchange, std::move(headers));
      return;
    case Place::kModel:
      show_model(*exchange, target.rest, std::move(headers));
      return;
    case Place::kChat:
    case Place::kCompletions:
      handle_completion(std::move(exchange), target.place == Place::kChat ? Wire::kChat : Wire::kCompletions, *identity,
                        std::move(request_id), settings);
      return;
    case Place::kNowhere:
      break;
  }
}

void Gateway::handle_completion(std::shared_ptr<HttpExchange> exchange, Wire wire, const Identity& identity,
                                std::string request_id, std::shared_ptr<const LiveSettings> settings) {
  if (services_.draining.load(std::memory_order_relaxed)) {
    services_.metrics.refused("draining");
    respond_error(*exchange, nobody_to_serve("The gateway is shutting down", 2), {{"x-request-id", request_id}});
    return;
  }
  const auto answer = std::make_shared<Answer>(services_, std::move(exchange), wire, identity, std::move(request_id),
                                               std::move(settings));
  answer->begin();
}

void Gateway::list_models(HttpExchange& exchange, HttpHeaders headers) {
  headers.emplace_back("content-type", "application/json");
  exchange.respond(200, headers, model_list_json(services_.fleet, start_time()));
}

void Gateway::show_model(HttpExchange& exchange, std::string_view name, HttpHeaders headers) {
  const std::optional<std::string> decoded = percent_decoded(name);
  std::string body = decoded ? model_json(services_.fleet, *decoded, start_time()) : "";
  if (body.empty()) {
    respond_error(exchange,
                  {.status = 404,
                   .message = fmt::format("The model '{}' does not exist", decoded.value_or(std::string(name))),
                   .param = "model",
                   .code = "model_not_found"},
                  std::move(headers));
    return;
  }
  headers.emplace_back("content-type", "application/json");
  exchange.respond(200, headers, std::move(body));
}

void Gateway::show_readiness(HttpExchange& exchange, HttpHeaders headers) {
  const bool draining = services_.draining.load(std::memory_order_relaxed);
  const bool ready = !draining && services_.fleet.ready();
  std::string body = ready ? "ready\n" : draining ? "draining\n" : "waiting for replicas\n";
  for (const auto& model : services_.fleet.models()) {
    const ReplicaList replicas = model->replicas();
    const auto usable = std::count_if(replicas.begin(), replicas.end(), [](const auto& r) { return r->usable(); });
    body += fmt::format("{}: {} of {} replicas\n", model->name(), usable, replicas.size());
  }
  headers.emplace_back("content-type", "text/plain; charset=utf-8");
  if (!ready) headers.emplace_back("retry-after", "1");
  exchange.respond(ready ? 200 : 503, headers, std::move(body));
}

}  // namespace warmpath

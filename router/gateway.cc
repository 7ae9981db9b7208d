#include "router/gateway.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "base/log.h"
#include "router/answer.h"
#include "router/browser_origin.h"
#include "router/model_list.h"
#include "router/random_id.h"
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

bool is_allowed(std::string_view methods, std::string_view method) {
  for (size_t at = 0; at < methods.size();) {
    const size_t comma = std::min(methods.find(", ", at), methods.size());
    if (methods.substr(at, comma - at) == method) return true;
    at = comma + 2;
  }
  return false;
}

WireError unauthenticated(bool key_given) {
  return {.status = 401,
          .message = key_given ? "Incorrect API key provided"
                               : "No API key provided: send it as 'Authorization: Bearer KEY' or 'x-api-key: KEY'",
          .code = "invalid_api_key"};
}

}  // namespace

Gateway::Target Gateway::find_target(std::string_view path) {
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

bool Gateway::is_completion(Place place) { return place == Place::kChat || place == Place::kCompletions; }

bool Gateway::needs_key(Place place) {
  return place != Place::kRoot && place != Place::kHealth && place != Place::kReady;
}

std::string request_id_of(const HttpRequest& request) {
  const std::string_view given = request.header("x-request-id");
  return is_request_id(given) ? std::string(given) : random_id("req_");
}

void respond_error(HttpExchange& exchange, const WireError& error, HttpHeaders headers) {
  headers.emplace_back("content-type", "application/json");
  if (error.retry_after_s > 0) headers.emplace_back("retry-after", std::to_string(error.retry_after_s));
  exchange.respond(error.status, headers, error_body(error));
}

HttpAnswer Gateway::text_reply(int status, std::string body) {
  return {status, {{"content-type", "text/plain; charset=utf-8"}}, std::move(body)};
}

HttpAnswer Gateway::json_reply(std::string body) {
  return {200, {{"content-type", "application/json"}}, std::move(body)};
}

HttpAnswer Gateway::error_reply(const WireError& error) {
  HttpAnswer reply{error.status, {{"content-type", "application/json"}}, error_body(error)};
  if (error.retry_after_s > 0) reply.headers.emplace_back("retry-after", std::to_string(error.retry_after_s));
  return reply;
}

// Why nobody looks at the request's body; nullopt when it is to be served.
std::optional<HttpAnswer> Gateway::refusal(const HttpRequest& request, const Target& target,
                                           const LiveSettings& settings, const std::optional<Identity>& identity) {
  if (target.place == Place::kNowhere) {
    return error_reply({.status = 404,
                        .message = fmt::format("There is nothing at {} {}; this gateway serves /v1/chat/completions, "
                                               "/v1/completions and /v1/models",
                                               request.method, request.path),
                        .code = "not_found"});
  }
  if (request.method == "OPTIONS") return HttpAnswer{204, {{"allow", std::string(target.methods)}}, ""};
  if (!is_allowed(target.methods, request.method)) {
    HttpAnswer reply = error_reply(
        {.status = 405,
         .message = fmt::format("{} does not answer {}; use {}", request.path, request.method, target.methods),
         .code = "method_not_allowed"});
    reply.headers.emplace_back("allow", target.methods);
    return reply;
  }
  if (needs_key(target.place) && !identity) {
    services_.metrics.refused("unauthenticated");
    HttpAnswer reply =
        error_reply(unauthenticated(!request.header("authorization").empty() || !request.header("x-api-key").empty()));
    reply.headers.emplace_back("www-authenticate", "Bearer realm=\"warmpath\"");
    return reply;
  }
  if (!is_completion(target.place)) return std::nullopt;
  if (!settings.auth->required() && is_foreign_origin(request.header("origin"))) {
    services_.metrics.refused("foreign_origin");
    return error_reply({.status = 403,
                        .message = "This gateway has no keys, so it refuses requests that web pages of other sites "
                                   "send (Origin header). Set auth.keys to serve browsers",
                        .code = "foreign_origin"});
  }
  if (services_.draining.load(std::memory_order_relaxed)) {
    services_.metrics.refused("draining");
    return error_reply(nobody_to_serve("The gateway is shutting down", 2));
  }
  return std::nullopt;
}

void Gateway::log_request(const HttpRequest& request, const std::string& request_id, const Target& target,
                          const LiveSettings& settings, const std::optional<Identity>& identity, int status) {
  // Probes come every few seconds and say nothing new.
  const bool is_probe = target.place == Place::kHealth || target.place == Place::kReady;
  if (!settings.log.access || is_probe) return;
  log_info("request", {{"request", request_id},
                       {"tenant", identity ? identity->tenant->name : ""},
                       {"method", request.method},
                       {"path", request.path},
                       {"status", status}});
}

std::optional<HttpAnswer> Gateway::refuse_before_body(const HttpRequest& request) {
  const std::shared_ptr<const LiveSettings> settings = services_.settings();
  const Target target = find_target(request.path);
  std::optional<Identity> identity;
  if (needs_key(target.place)) identity = settings->auth->identify(request);
  std::optional<HttpAnswer> reply = refusal(request, target, *settings, identity);
  if (!reply && is_completion(target.place) && services_.in_progress.load() >= settings->limits.max_requests) {
    services_.metrics.refused("too_many_requests");
    reply = error_reply(too_many_requests(settings->limits.max_requests));
  }
  if (!reply) return std::nullopt;
  std::string request_id = request_id_of(request);
  log_request(request, request_id, target, *settings, identity, reply->status);
  reply->headers.emplace_back("x-request-id", std::move(request_id));
  return reply;
}

void Gateway::handle(std::shared_ptr<HttpExchange> exchange) {
  const HttpRequest& request = exchange->request();
  const std::shared_ptr<const LiveSettings> settings = services_.settings();
  std::string request_id = request_id_of(request);
  const Target target = find_target(request.path);
  std::optional<Identity> identity;
  if (needs_key(target.place)) identity = settings->auth->identify(request);

  HttpAnswer reply;
  if (std::optional<HttpAnswer> refused = refusal(request, target, *settings, identity)) {
    reply = *std::move(refused);
  } else if (is_completion(target.place)) {
    begin_completion(std::move(exchange), target.place == Place::kChat ? Wire::kChat : Wire::kCompletions,
                     *std::move(identity), std::move(request_id), settings);
    return;
  } else if (target.place == Place::kModels) {
    reply = list_models();
  } else if (target.place == Place::kModel) {
    reply = show_model(target.rest);
  } else if (target.place == Place::kReady) {
    reply = show_readiness();
  } else if (target.place == Place::kHealth) {
    reply = text_reply(200, "ok\n");
  } else {
    reply = text_reply(200, "warmpath: an OpenAI-compatible gateway; base URL of clients: /v1\n");
  }
  log_request(request, request_id, target, *settings, identity, reply.status);
  reply.headers.emplace_back("x-request-id", std::move(request_id));
  exchange->respond(reply.status, reply.headers, std::move(reply.body));
}

void Gateway::begin_completion(std::shared_ptr<HttpExchange> exchange, Wire wire, Identity identity,
                               std::string request_id, std::shared_ptr<const LiveSettings> settings) {
  const auto answer = std::make_shared<Answer>(services_, std::move(exchange), wire, std::move(identity),
                                               std::move(request_id), std::move(settings));
  answer->begin();
}

HttpAnswer Gateway::list_models() const { return json_reply(model_list_json(services_.fleet, start_time())); }

HttpAnswer Gateway::show_model(std::string_view name) const {
  const std::optional<std::string> decoded = percent_decoded(name);
  std::string body = decoded ? model_json(services_.fleet, *decoded, start_time()) : "";
  if (!body.empty()) return json_reply(std::move(body));
  return error_reply({.status = 404,
                      .message = fmt::format("The model '{}' does not exist", decoded.value_or(std::string(name))),
                      .param = "model",
                      .code = "model_not_found"});
}

HttpAnswer Gateway::show_readiness() const {
  const bool draining = services_.draining.load(std::memory_order_relaxed);
  const bool ready = !draining && services_.fleet.ready();
  std::string body = ready ? "ready\n" : draining ? "draining\n" : "waiting for replicas\n";
  for (const auto& model : services_.fleet.models()) {
    const ReplicaList replicas = model->replicas();
    const auto usable = std::count_if(replicas.begin(), replicas.end(), [](const auto& r) { return r->usable(); });
    body += fmt::format("{}: {} of {} replicas\n", model->name(), usable, replicas.size());
  }
  HttpAnswer reply = text_reply(ready ? 200 : 503, std::move(body));
  if (!ready) reply.headers.emplace_back("retry-after", "1");
  return reply;
}

}  // namespace warmpath

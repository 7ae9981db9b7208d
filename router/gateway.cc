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
// Bodies from this size on are read by a worker, so that this thread's other connections need not wait.
constexpr size_t kLargeBodyBytes = 64 << 10;

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
  if (path == "/" || path == "/api/hello") return {Place::kRoot, {}, kGet};
  if (path == "/healthz" || path == "/health") return {Place::kHealth, {}, kGet};
  if (path == "/readyz") return {Place::kReady, {}, kGet};
  if (path.starts_with("/v1/")) path.remove_prefix(3);
  if (path == "/chat/completions") return {Place::kChat, {}, kPost};
  if (path == "/completions") return {Place::kCompletions, {}, kPost};
  if (path == "/messages") return {Place::kMessages, {}, kPost};
  if (path == "/messages/count_tokens") return {Place::kCountTokens, {}, kPost};
  if (path == "/responses") return {Place::kResponses, {}, kPost};
  if (path == "/tokenize") return {Place::kTokenize, {}, kPost};
  if (path == "/embeddings") return {Place::kEmbeddings, {}, kPost};
  if (path == "/models") return {Place::kModels, {}, kGet};
  if (path.starts_with(kModelsPath)) return {Place::kModel, path.substr(kModelsPath.size()), kGet};
  return {};
}

std::optional<Wire> Gateway::wire_of(Place place) {
  switch (place) {
    case Place::kChat:
      return Wire::kChat;
    case Place::kCompletions:
      return Wire::kCompletions;
    case Place::kMessages:
      return Wire::kMessages;
    case Place::kResponses:
      return Wire::kResponses;
    default:
      return std::nullopt;
  }
}

bool Gateway::is_work(Place place) {
  return wire_of(place) || place == Place::kCountTokens || place == Place::kTokenize;
}

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

HttpAnswer Gateway::error_reply(const Visit& visit, const WireError& error) {
  HttpAnswer reply{error.status, {{"content-type", "application/json"}}, ""};
  if (error.retry_after_s > 0) reply.headers.emplace_back("retry-after", std::to_string(error.retry_after_s));
  if (visit.anthropic) {
    reply.status = anthropic_status(error);
    reply.headers.emplace_back("request-id", visit.request_id);
    reply.body = anthropic_error_body(error, visit.request_id);
  } else {
    reply.body = error_body(error);
  }
  return reply;
}

Gateway::Visit Gateway::visit_of(const HttpRequest& request) const {
  Visit visit;
  visit.target = find_target(request.path);
  visit.settings = services_.settings();
  if (needs_key(visit.target.place)) visit.identity = visit.settings->auth->identify(request);
  visit.request_id = request_id_of(request);
  // Anthropic's clients send their version with every request, also where the path is everybody's.
  visit.anthropic = visit.target.place == Place::kMessages || visit.target.place == Place::kCountTokens ||
                    !request.header("anthropic-version").empty();
  return visit;
}

// Why nobody looks at the request's body; nullopt when it is to be served.
std::optional<HttpAnswer> Gateway::refusal(const HttpRequest& request, const Visit& visit) {
  const Target& target = visit.target;
  if (target.place == Place::kNowhere) {
    return error_reply(visit,
                       {.status = 404,
                        .message = fmt::format("There is nothing at {} {}; this gateway serves /v1/chat/completions, "
                                               "/v1/responses, /v1/messages, /v1/completions and /v1/models",
                                               request.method, request.path),
                        .code = "not_found"});
  }
  if (request.method == "OPTIONS") return HttpAnswer{204, {{"allow", std::string(target.methods)}}, ""};
  if (!is_allowed(target.methods, request.method)) {
    HttpAnswer reply = error_reply(
        visit, {.status = 405,
                .message = fmt::format("{} does not answer {}; use {}", request.path, request.method, target.methods),
                .code = "method_not_allowed"});
    reply.headers.emplace_back("allow", target.methods);
    return reply;
  }
  if (needs_key(target.place) && !visit.identity) {
    services_.metrics.refused("unauthenticated");
    HttpAnswer reply = error_reply(
        visit, unauthenticated(!request.header("authorization").empty() || !request.header("x-api-key").empty()));
    reply.headers.emplace_back("www-authenticate", "Bearer realm=\"warmpath\"");
    return reply;
  }
  if (target.place == Place::kEmbeddings) {
    return error_reply(visit, {.status = 404,
                               .message = "The models here write text; none of them makes embeddings",
                               .code = "unsupported_endpoint"});
  }
  if (!is_work(target.place)) return std::nullopt;
  if (!visit.settings->auth->required() && is_foreign_origin(request.header("origin"))) {
    services_.metrics.refused("foreign_origin");
    return error_reply(visit, {.status = 403,
                               .message = "This gateway has no keys, so it refuses requests that web pages of other "
                                          "sites send (Origin header). Set auth.keys to serve browsers",
                               .code = "foreign_origin"});
  }
  if (services_.draining.load(std::memory_order_relaxed)) {
    services_.metrics.refused("draining");
    return error_reply(visit, nobody_to_serve("The gateway is shutting down", 2));
  }
  return std::nullopt;
}

void Gateway::sign(const HttpRequest& request, const Visit& visit, HttpAnswer& reply) {
  // Probes come every few seconds and say nothing new.
  const bool is_probe = visit.target.place == Place::kHealth || visit.target.place == Place::kReady;
  if (visit.settings->log.access && !is_probe) {
    log_info("request", {{"request", visit.request_id},
                         {"tenant", visit.identity ? visit.identity->tenant->name : ""},
                         {"method", request.method},
                         {"path", request.path},
                         {"status", reply.status}});
  }
  reply.headers.emplace_back("x-request-id", visit.request_id);
}

void Gateway::send(HttpExchange& exchange, const Visit& visit, HttpAnswer reply) {
  sign(exchange.request(), visit, reply);
  exchange.respond(reply.status, reply.headers, std::move(reply.body));
}

std::optional<HttpAnswer> Gateway::refuse_before_body(const HttpRequest& request) {
  const Visit visit = visit_of(request);
  std::optional<HttpAnswer> reply = refusal(request, visit);
  if (!reply && wire_of(visit.target.place) && services_.in_progress.load() >= visit.settings->limits.max_requests) {
    services_.metrics.refused("too_many_requests");
    reply = error_reply(visit, too_many_requests(visit.settings->limits.max_requests));
  }
  if (reply) sign(request, visit, *reply);
  return reply;
}

void Gateway::handle(std::shared_ptr<HttpExchange> exchange) {
  const HttpRequest& request = exchange->request();
  Visit visit = visit_of(request);
  if (std::optional<HttpAnswer> refused = refusal(request, visit)) {
    return send(*exchange, visit, *std::move(refused));
  }
  if (const std::optional<Wire> wire = wire_of(visit.target.place)) {
    std::make_shared<Answer>(services_, std::move(exchange), *wire, *std::move(visit.identity),
                             std::move(visit.request_id), std::move(visit.settings))
        ->begin();
    return;
  }
  switch (visit.target.place) {
    case Place::kCountTokens:
      return count_tokens(std::move(exchange), std::move(visit));
    case Place::kTokenize:
      return tokenize(std::move(exchange), std::move(visit));
    case Place::kModels:
      return send(*exchange, visit, list_models());
    case Place::kModel:
      return send(*exchange, visit, show_model(visit));
    case Place::kReady:
      return send(*exchange, visit, show_readiness());
    case Place::kHealth:
      return send(*exchange, visit, text_reply(200, "ok\n"));
    default:
      return send(*exchange, visit,
                  text_reply(200, "warmpath: a gateway for language models; base URL of clients: /v1\n"));
  }
}

// What a body alone decides; a long one is left to a worker.
void Gateway::reply_from_body(std::shared_ptr<HttpExchange> exchange, Visit visit,
                              std::function<bool(std::string_view, std::string&, WireError&)> work) {
  const auto reply_to = [work = std::move(work)](const HttpExchange& asked, const Visit& by) {
    std::string out;
    WireError error;
    return work(asked.request().body, out, error) ? json_reply(std::move(out)) : error_reply(by, error);
  };
  if (exchange->request().body.size() < kLargeBodyBytes) return send(*exchange, visit, reply_to(*exchange, visit));
  services_.workers.post([exchange, visit = std::move(visit), reply_to] {
    HttpAnswer reply = reply_to(*exchange, visit);
    exchange->post([exchange, visit, reply = std::move(reply)] { send(*exchange, visit, reply); });
  });
}

void Gateway::count_tokens(std::shared_ptr<HttpExchange> exchange, Visit visit) {
  const auto count = [this](std::string_view body, std::string& out, WireError& error) {
    int64_t tokens = 0;
    if (!count_prompt_tokens(body, services_.fleet, tokens, error)) return false;
    out = fmt::format(R"({{"input_tokens":{}}})", tokens);
    return true;
  };
  reply_from_body(std::move(exchange), std::move(visit), count);
}

void Gateway::tokenize(std::shared_ptr<HttpExchange> exchange, Visit visit) {
  const auto list = [this](std::string_view body, std::string& out, WireError& error) {
    PreparedRequest prepared;
    if (!encode_prompt(body, services_.fleet, prepared, error)) return false;
    const std::vector<TokenId>& tokens = prepared.prompts.front().tokens;
    out = fmt::format(R"({{"count":{},"max_model_len":{},"tokens":[{}]}})", tokens.size(),
                      prepared.identity->description.context_tokens, fmt::join(tokens, ","));
    return true;
  };
  reply_from_body(std::move(exchange), std::move(visit), list);
}

HttpAnswer Gateway::list_models() const { return json_reply(model_list_json(services_.fleet, start_time())); }

HttpAnswer Gateway::show_model(const Visit& visit) const {
  const std::string_view name = visit.target.rest;
  const std::optional<std::string> decoded = percent_decoded(name);
  std::string body = decoded ? model_json(services_.fleet, *decoded, start_time()) : "";
  if (!body.empty()) return json_reply(std::move(body));
  return error_reply(visit,
                     {.status = 404,
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

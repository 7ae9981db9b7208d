#include "router/admin.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <memory>
#include <utility>

#include "router/browser_origin.h"
#include "router/gateway.h"

namespace warmpath {

namespace {

constexpr size_t kMostReceipts = 10'000;

// The value of `key` in "a=b&c=d", as sent; "" when absent. Names of tenants and requests need no escapes.
std::string_view query_value(std::string_view query, std::string_view key) {
  while (!query.empty()) {
    const size_t end = std::min(query.find('&'), query.size());
    const std::string_view pair = query.substr(0, end);
    const size_t equals = pair.find('=');
    if (equals != std::string_view::npos && pair.substr(0, equals) == key) return pair.substr(equals + 1);
    query.remove_prefix(std::min(end + 1, query.size()));
  }
  return {};
}

}  // namespace

void Admin::handle(std::shared_ptr<HttpExchange> exchange) {
  const HttpRequest& request = exchange->request();
  HttpHeaders headers = {{"x-request-id", request_id_of(request)}};
  if (is_foreign_origin(request.header("origin")) ||
      is_foreign_host(request.header("host"), services_.settings()->admin_hosts)) {
    respond_error(
        *exchange,
        {.status = 403,
         .message = "The admin listener answers to IP addresses, to localhost and to the names in admin.hosts, "
                    "and to no web page of another site",
         .code = "foreign_host"},
        std::move(headers));
    return;
  }
  const bool known = request.path == "/metrics" || request.path == "/receipts" || request.path == "/index/snapshot" ||
                     request.path == "/healthz";
  if (!known) {
    respond_error(*exchange,
                  {.status = 404,
                   .message = "The admin listener serves /metrics, /receipts, /index/snapshot and /healthz",
                   .code = "not_found"},
                  std::move(headers));
    return;
  }
  if (request.method != "GET" && request.method != "HEAD") {
    headers.emplace_back("allow", "GET, HEAD");
    respond_error(*exchange, {.status = 405, .message = "Use GET", .code = "method_not_allowed"}, std::move(headers));
    return;
  }
  if (request.path == "/receipts") {
    show_receipts(*exchange, std::move(headers));
  } else if (request.path == "/index/snapshot") {
    send_snapshot(std::move(exchange), std::move(headers));
  } else if (request.path == "/metrics") {
    headers.emplace_back("content-type", "text/plain; version=0.0.4; charset=utf-8");
    const std::optional<HttpCounters> http =
        services_.http_counters ? std::optional(services_.http_counters()) : std::nullopt;
    exchange->respond(200, headers, services_.metrics.text(services_.fleet, http ? &*http : nullptr));
  } else {
    headers.emplace_back("content-type", "text/plain; charset=utf-8");
    exchange->respond(200, headers, "ok\n");
  }
}

// The index as bytes, piece by piece, as fast as the client takes them.
class Admin::SnapshotStream : public std::enable_shared_from_this<SnapshotStream> {
 public:
  SnapshotStream(Services& services, std::shared_ptr<HttpExchange> exchange)
      : services_(services), exchange_(std::move(exchange)) {
    progress_.replicas = services_.fleet.snapshot_replicas();
    progress_.saved_at_ns =
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
            .count();
  }

  void go_on() {
    constexpr size_t kMostUnsent = size_t{4} << 20;
    if (gone_) return;
    if (exchange_->unsent_bytes() > kMostUnsent) {
      exchange_->post_after(0.02, [self = shared_from_this()] { self->go_on(); });
      return;
    }
    std::string piece;
    const bool more = services_.fleet.index().read(
        [&](const RadixIndex& index) { return index.save_piece(progress_, services_.clock.now_ns(), piece); });
    exchange_->write(std::move(piece));
    if (more) {
      exchange_->post([self = shared_from_this()] { self->go_on(); });
    } else {
      exchange_->end();
    }
  }
  void stop() { gone_ = true; }

 private:
  Services& services_;
  const std::shared_ptr<HttpExchange> exchange_;
  SnapshotProgress progress_;
  bool gone_ = false;
};

void Admin::send_snapshot(std::shared_ptr<HttpExchange> exchange, HttpHeaders headers) {
  const std::optional<Identity> identity = services_.settings()->auth->identify(exchange->request());
  if (!identity || !identity->admin) {
    if (!identity) headers.emplace_back("www-authenticate", "Bearer realm=\"warmpath\"");
    respond_error(*exchange,
                  {.status = identity ? 403 : 401,
                   .message = "The index's snapshot needs an admin key",
                   .code = identity ? "forbidden" : "invalid_api_key"},
                  std::move(headers));
    return;
  }
  headers.emplace_back("content-type", "application/octet-stream");
  const auto stream = std::make_shared<SnapshotStream>(services_, exchange);
  exchange->on_client_gone([weak = std::weak_ptr(stream)] {
    if (const auto open = weak.lock()) open->stop();
  });
  exchange->begin_stream(200, headers);
  stream->go_on();
}

void Admin::show_receipts(HttpExchange& exchange, HttpHeaders headers) {
  const HttpRequest& request = exchange.request();
  const std::optional<Identity> identity = services_.settings()->auth->identify(request);
  if (!identity) {
    headers.emplace_back("www-authenticate", "Bearer realm=\"warmpath\"");
    respond_error(exchange, {.status = 401, .message = "Receipts need an API key", .code = "invalid_api_key"},
                  std::move(headers));
    return;
  }
  ReceiptFilter filter;
  const std::string_view tenant = query_value(request.query, "tenant");
  if (!identity->admin) {
    if (!tenant.empty() && tenant != identity->tenant->name) {
      respond_error(
          exchange,
          {.status = 403, .message = "Only an admin key shows another tenant's receipts", .code = "forbidden"},
          std::move(headers));
      return;
    }
    filter.tenant = identity->tenant->name;
  } else if (!tenant.empty()) {
    filter.tenant = tenant;
  }
  filter.request_id = query_value(request.query, "request_id");
  if (const std::string_view limit = query_value(request.query, "limit"); !limit.empty()) {
    const auto [end, code] = std::from_chars(limit.data(), limit.data() + limit.size(), filter.most);
    if (code != std::errc() || end != limit.data() + limit.size() || filter.most > kMostReceipts) {
      respond_error(exchange, bad_request("limit", "'limit' must be a number up to 10000"), std::move(headers));
      return;
    }
  }
  headers.emplace_back("content-type", "application/json");
  exchange.respond(200, headers, services_.receipts.json(filter));
}

}  // namespace warmpath

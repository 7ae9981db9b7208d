// The gateway's view of HTTP, free of Beast and Asio types: a request, and the exchange that answers it.
// The server behind it (router/http_server.h) reads the whole body before the handler sees the request.
//
// Thread safety: an HttpExchange belongs to its connection's I/O thread: every method except post() must be called
// there. The handler is called there too, with many exchanges on several threads at once. The last reference may be
// dropped on any thread; dropping it without an answer makes the server answer 500 (or abort a begun stream).
// Calls that come after the answer is complete, aborted or its client gone are ignored.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace warmpath {

// Names are static text.
using HttpHeaders = std::vector<std::pair<std::string_view, std::string>>;

struct HttpRequest {
  std::string_view method;  // as sent: "POST"
  std::string_view target;  // as sent: "/v1/models?limit=2"
  std::string_view path;    // before '?', percent-encoding untouched (valid, no NUL); of http://host/path only /path
  std::string_view query;   // after '?', or empty
  // Every header field, in order, names as sent. Values trimmed. Use header() to look one up.
  std::vector<std::pair<std::string_view, std::string_view>> headers;
  // Followed by at least 64 readable bytes (simdjson's padding). Lives as long as the exchange, as all views here do.
  std::string_view body;
  std::string_view peer;  // "127.0.0.1:51234", "[::1]:51234"

  // The first field of that name, ASCII case-insensitive; empty when absent.
  std::string_view header(std::string_view name) const;
};

class HttpExchange {
 public:
  virtual ~HttpExchange() = default;
  virtual const HttpRequest& request() const = 0;

  // The whole answer. Exactly one of respond() and begin_stream() is called per exchange.
  // content-length, date and connection are the server's; `headers` carries the rest (content-type, ...).
  virtual void respond(int status, const HttpHeaders& headers, std::string body) = 0;

  // A chunked answer whose length is not known. write() queues and never blocks.
  virtual void begin_stream(int status, const HttpHeaders& headers) = 0;
  virtual void write(std::string bytes) = 0;
  virtual size_t unsent_bytes() const = 0;  // queued and not yet taken by the kernel
  virtual void end() = 0;                   // the clean end: last chunk
  // Close without a clean end, so that no client takes a cut answer for a whole one. Also before anything was sent.
  virtual void abort() = 0;

  // Called once if the client closes, resets or stops reading before the answer is complete (during queue and prefill
  // too), or the server force-aborts. Never called from inside another call on the exchange.
  virtual void on_client_gone(std::function<void()> callback) = 0;
  // Called once if the server's time to drain is over before the answer is complete: the last chance to say so. What is
  // still unanswered a moment later is aborted, as by a client that left.
  virtual void on_drain_over(std::function<void()> callback) = 0;

  // Runs `task` on the exchange's I/O thread, later; from any thread. The exchange stays alive until it ran.
  virtual void post(std::function<void()> task) = 0;
  // Runs `task` there after `delay_s` unless the exchange is over by then (keep-alives, deadlines).
  virtual void post_after(double delay_s, std::function<void()> task) = 0;
};

// {"error":{"message","type","param","code"}}: OpenAI's error shape. An empty `param` or `code` is written as null.
std::string http_error_body(std::string_view message, std::string_view type, std::string_view code = {},
                            std::string_view param = {});
// "Not Found"; empty for a status without a name here.
std::string_view http_reason(int status);
// ASCII case-insensitive comparison, as for field names.
bool http_iequals(std::string_view a, std::string_view b);

struct HttpAnswer {
  int status = 200;
  HttpHeaders headers;
  std::string body;
};

class HttpHandler {
 public:
  virtual ~HttpHandler() = default;
  virtual void handle(std::shared_ptr<HttpExchange> exchange) = 0;
  // Asked once the header of a request with a large or endless body has come, before the server takes the body:
  // `request` has none yet. An answer here spares both sides the rest and closes the connection; nullopt reads on.
  virtual std::optional<HttpAnswer> refuse_before_body(const HttpRequest& request) {
    (void)request;
    return std::nullopt;
  }
};

}  // namespace warmpath

// The server's HttpExchange: owns one request's bytes, and passes the answer on to its connection while there is one.
// Internal to http_*.cc, free of Asio.
//
// Thread safety: as HttpExchange; is_over() and drop() from any thread. Invariant: connection_ is set exactly while the
// answer is not complete.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "router/http.h"
#include "router/http_body.h"
#include "router/http_head.h"

namespace warmpath {

class HttpConnection;
class HttpIoThread;

class HttpServerExchange final : public HttpExchange, public std::enable_shared_from_this<HttpServerExchange> {
 public:
  HttpServerExchange(std::shared_ptr<HttpIoThread> thread, HttpConnection* connection, std::string_view head_bytes,
                     std::string_view peer);

  // --- for the connection
  HttpRefusal parse(const HttpLimits& limits);
  const HttpHead& head() const { return head_; }
  HttpBody& body() { return body_; }
  void seal_body() { head_.request.body = body_.seal(); }
  // What the handler gets: its last copy's end is noticed.
  std::shared_ptr<HttpExchange> make_handle();
  // Ends the exchange. A client that is gone is told to the handler by the returned callback, which may be empty.
  std::function<void()> finish(bool client_gone);
  std::function<void()> take_drain_callback() { return std::exchange(drain_callback_, nullptr); }
  bool is_over() const { return over_.load(std::memory_order_acquire); }

  // --- HttpExchange
  const HttpRequest& request() const override { return head_.request; }
  void respond(int status, const HttpHeaders& headers, std::string body) override;
  void begin_stream(int status, const HttpHeaders& headers) override;
  void write(std::string bytes) override;
  size_t unsent_bytes() const override;
  void end() override;
  void abort() override;
  void on_client_gone(std::function<void()> callback) override;
  void on_drain_over(std::function<void()> callback) override;
  void post(std::function<void()> task) override;
  void post_after(double delay_s, std::function<void()> task) override;

 private:
  void drop();

  const std::shared_ptr<HttpIoThread> thread_;
  HttpConnection* connection_;
  const std::string head_bytes_;
  const std::string peer_;
  HttpHead head_;
  HttpBody body_;
  std::atomic<bool> over_{false};
  bool client_gone_ = false;
  std::function<void()> gone_callback_;
  std::function<void()> drain_callback_;
};

}  // namespace warmpath

#include "router/http_server_exchange.h"

#include <utility>

#include "router/http_connection.h"
#include "router/http_io_thread.h"

namespace warmpath {

HttpServerExchange::HttpServerExchange(std::shared_ptr<HttpIoThread> thread, HttpConnection* connection,
                                       std::string_view head_bytes, std::string_view peer)
    : thread_(std::move(thread)),
      connection_(connection),
      head_bytes_(head_bytes),
      peer_(peer),
      body_(thread_->shared().bodies) {}

HttpRefusal HttpServerExchange::parse(const HttpLimits& limits) {
  HttpRefusal refusal = parse_http_head(head_bytes_, limits, head_);
  head_.request.peer = peer_;
  return refusal;
}

std::shared_ptr<HttpExchange> HttpServerExchange::make_handle() {
  return {static_cast<HttpExchange*>(this), [self = shared_from_this()](HttpExchange*) mutable {
            if (!self->is_over()) {
              HttpServerExchange* exchange = self.get();
              exchange->thread_->post([dropped = std::move(self)] { dropped->drop(); });
            }
            self.reset();
          }};
}

std::function<void()> HttpServerExchange::finish(bool client_gone) {
  connection_ = nullptr;
  client_gone_ = client_gone;
  over_.store(true, std::memory_order_release);
  // Moved out even when not wanted: its captures may hold the handler's last reference to this exchange.
  const std::function<void()> unused = std::exchange(drain_callback_, nullptr);
  return std::exchange(gone_callback_, nullptr);
}

void HttpServerExchange::drop() {
  if (connection_ != nullptr) connection_->on_dropped();
}

void HttpServerExchange::respond(int status, const HttpHeaders& headers, std::string body) {
  if (connection_ != nullptr) connection_->respond(status, headers, std::move(body));
}

void HttpServerExchange::begin_stream(int status, const HttpHeaders& headers) {
  if (connection_ != nullptr) connection_->begin_stream(status, headers);
}

void HttpServerExchange::write(std::string bytes) {
  if (connection_ != nullptr) connection_->write(std::move(bytes));
}

size_t HttpServerExchange::unsent_bytes() const { return connection_ != nullptr ? connection_->unsent_bytes() : 0; }

void HttpServerExchange::end() {
  if (connection_ != nullptr) connection_->end();
}

void HttpServerExchange::abort() {
  if (connection_ != nullptr) connection_->abort_answer();
}

void HttpServerExchange::on_client_gone(std::function<void()> callback) {
  if (client_gone_) {
    post(std::move(callback));
  } else if (!is_over()) {
    gone_callback_ = std::move(callback);
  }
}

void HttpServerExchange::on_drain_over(std::function<void()> callback) {
  if (!is_over()) drain_callback_ = std::move(callback);
}

void HttpServerExchange::post(std::function<void()> task) { thread_->post(std::move(task), shared_from_this()); }

void HttpServerExchange::post_after(double delay_s, std::function<void()> task) {
  if (connection_ != nullptr) connection_->post_after(delay_s, std::move(task));
}

}  // namespace warmpath

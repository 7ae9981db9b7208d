#include "router/http_server.h"

#include <sys/resource.h>

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/log.h"
#include "router/http_connection.h"
#include "router/http_io_thread.h"

namespace warmpath {
namespace {

using boost::asio::ip::tcp;
using Acceptor = boost::asio::basic_socket_acceptor<tcp, HttpExecutor>;

// Connections that are over the limit are told so, unless there are very many of them.
constexpr size_t kToldOverLimit = 256;
constexpr double kAcceptPauseS = 0.1;

std::string endpoint_text(const tcp::endpoint& endpoint) {
  std::string address = endpoint.address().to_string();
  if (endpoint.address().is_v6()) address = "[" + address + "]";
  return address + ":" + std::to_string(endpoint.port());
}

// The usual soft limit of 1,024 is for programs that use select(); the hard limit is the administrator's word.
void raise_open_files_limit() {
  rlimit limit;
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) {
    log_warn("open_files_limit_not_raised", {{"remedy", "raise it with ulimit -n before starting"}});
  }
}

}  // namespace

// A listening socket on the first thread. Accepted sockets go to the thread with the fewest connections.
// (Not SO_REUSEPORT: it spreads few long connections badly, and lets a second server share the port unnoticed.)
class HttpListener : public std::enable_shared_from_this<HttpListener> {
 public:
  HttpListener(std::vector<std::shared_ptr<HttpIoThread>> threads, HttpHandler* handler)
      : threads_(std::move(threads)),
        state_(std::make_shared<HttpListenerState>(handler)),
        acceptor_(std::in_place, threads_[0]->context()),
        pause_(std::in_place, threads_[0]->context()) {}

  Status open(const tcp::endpoint& endpoint) {
    boost::system::error_code ec;
    acceptor_->open(endpoint.protocol(), ec);
    if (!ec) acceptor_->set_option(tcp::acceptor::reuse_address(true), ec);
    if (!ec && endpoint.address().is_v6()) acceptor_->set_option(boost::asio::ip::v6_only(false), ec);
    if (!ec) acceptor_->bind(endpoint, ec);
    if (!ec) acceptor_->listen(4096, ec);
    if (!ec) acceptor_->non_blocking(true, ec);
    if (ec) {
      return unavailable(
          "cannot listen on " + endpoint_text(endpoint) + ": " + ec.message() +
          (ec == boost::asio::error::address_in_use ? "; stop the program that holds it or choose another port" : ""));
    }
    return {};
  }

  uint16_t port() const {
    boost::system::error_code ec;
    return acceptor_->local_endpoint(ec).port();
  }

  void accept() {
    if (!acceptor_) return;
    std::shared_ptr<HttpIoThread> thread = least_loaded();
    acceptor_->async_accept(thread->context(),
                            [self = shared_from_this(), thread](boost::system::error_code ec, HttpSocket socket) {
                              if (!self->acceptor_ || ec == boost::asio::error::operation_aborted) return;
                              if (!ec) {
                                self->hand_over(thread, std::move(socket));
                              } else if (ec != boost::asio::error::connection_aborted) {
                                return self->pause(ec);
                              }
                              self->accept();
                            });
  }

  // On the first thread, or once it was joined.
  void close() {
    acceptor_.reset();
    pause_.reset();
  }

  uint64_t errors() const { return errors_.get(); }

 private:
  std::shared_ptr<HttpIoThread> least_loaded() {
    size_t best = next_++ % threads_.size();
    for (size_t i = 0; i < threads_.size(); ++i) {
      if (threads_[i]->load().load(std::memory_order_relaxed) <
          threads_[best]->load().load(std::memory_order_relaxed)) {
        best = i;
      }
    }
    return threads_[best];
  }

  void hand_over(const std::shared_ptr<HttpIoThread>& thread, HttpSocket socket) {
    boost::system::error_code ec;
    tcp::endpoint peer = socket.remote_endpoint(ec);
    size_t open = state_->connections.load(std::memory_order_relaxed);
    const size_t limit = threads_[0]->limits().max_connections;
    thread->load().fetch_add(1, std::memory_order_relaxed);  // given back by the connection's end
    auto connection = std::make_shared<HttpConnection>(thread, std::move(socket), state_, endpoint_text(peer));
    if (ec || open >= limit + kToldOverLimit) return;
    auto begin = [thread, connection = std::move(connection), over = open >= limit] {
      // Who asks goes before who once asked: idle connections, however many, lock nobody out.
      const bool refused = over && !thread->close_one_idle();
      thread->add(connection);
      connection->start(refused);
    };
    thread == threads_[0] ? begin() : thread->post(std::move(begin));
  }

  // Out of file descriptors or memory: the waiting client stays in the kernel's queue meanwhile.
  void pause(const boost::system::error_code& ec) {
    errors_.add(1);
    log_warn("http_accept_failed", {{"reason", ec.message()}, {"remedy", "raise the open files limit (ulimit -n)"}});
    pause_->expires_after(http_seconds(kAcceptPauseS));
    pause_->async_wait([self = shared_from_this()](const boost::system::error_code& cancelled) {
      if (!cancelled) self->accept();
    });
  }

  const std::vector<std::shared_ptr<HttpIoThread>> threads_;
  const std::shared_ptr<HttpListenerState> state_;
  std::optional<Acceptor> acceptor_;
  std::optional<HttpTimer> pause_;
  size_t next_ = 0;
  HttpCounter errors_;
};

struct HttpServer::Parts {
  std::shared_ptr<HttpShared> shared;
  std::vector<std::shared_ptr<HttpIoThread>> threads;
  mutable std::mutex mutex;  // guards what follows
  std::vector<std::shared_ptr<HttpListener>> listeners;
  bool started = false;
  bool stopped = false;
};

HttpServer::HttpServer(const HttpLimits& limits, int threads) : parts_(std::make_unique<Parts>()) {
  parts_->shared = std::make_shared<HttpShared>(limits);
  for (int i = 0; i < std::max(threads, 1); ++i) {
    parts_->threads.push_back(std::make_shared<HttpIoThread>(parts_->shared));
  }
}

HttpServer::~HttpServer() { stop(); }

Result<uint16_t> HttpServer::listen(const std::string& host, uint16_t port, HttpHandler* handler) {
  boost::system::error_code ec;
  auto address = boost::asio::ip::make_address(host == "localhost" ? "127.0.0.1" : host, ec);
  if (ec) return invalid_argument("cannot listen on `" + host + "`: give an IP address, such as 127.0.0.1 or ::1");
  auto listener = std::make_shared<HttpListener>(parts_->threads, handler);
  WARMPATH_RETURN_IF_ERROR(listener->open({address, port}));
  uint16_t bound = listener->port();
  std::lock_guard lock(parts_->mutex);
  if (parts_->stopped) return failed_precondition("the HTTP server has been stopped");
  parts_->listeners.push_back(listener);
  if (parts_->started) parts_->threads[0]->post([listener] { listener->accept(); });
  return bound;
}

void HttpServer::start() {
  std::lock_guard lock(parts_->mutex);
  if (parts_->started || parts_->stopped) return;
  parts_->started = true;
  raise_open_files_limit();
  for (const auto& listener : parts_->listeners) parts_->threads[0]->post([listener] { listener->accept(); });
  for (const auto& thread : parts_->threads) thread->start();
}

void HttpServer::stop_accepting() {
  std::lock_guard lock(parts_->mutex);
  for (const auto& listener : parts_->listeners) parts_->threads[0]->post([listener] { listener->close(); });
}

void HttpServer::begin_drain() {
  parts_->shared->draining.store(true, std::memory_order_relaxed);
  for (const auto& thread : parts_->threads) {
    thread->post([thread] {
      for (const auto& connection : thread->connections()) connection->close_if_idle();
    });
  }
}

bool HttpServer::wait_until_idle(double timeout_s) {
  const auto deadline = HttpClock::now() + http_seconds(timeout_s);
  while (parts_->shared->in_flight.load(std::memory_order_relaxed) > 0) {
    if (HttpClock::now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

bool HttpServer::end_drain(double grace_s) {
  for (const auto& thread : parts_->threads) {
    thread->post([thread] {
      for (const auto& connection : thread->connections()) connection->end_drain();
    });
  }
  return wait_until_idle(grace_s);
}

void HttpServer::abort_all() {
  for (const auto& thread : parts_->threads) {
    thread->post([thread] {
      for (const auto& connection : thread->connections()) connection->force_abort();
    });
  }
}

void HttpServer::stop() {
  stop_accepting();
  {
    std::lock_guard lock(parts_->mutex);
    if (std::exchange(parts_->stopped, true)) return;
  }
  abort_all();
  for (const auto& thread : parts_->threads) thread->join();
  for (const auto& listener : parts_->listeners) listener->close();
  for (const auto& thread : parts_->threads) thread->close();
}

HttpCounters HttpServer::counters() const {
  HttpCounters sum;
  for (const auto& thread : parts_->threads) {
    const HttpThreadCounters& counters = thread->counters();
    sum.accepted += counters.accepted.get();
    sum.active += thread->load().load(std::memory_order_relaxed);
    sum.requests += counters.requests.get();
    sum.bytes_in += counters.bytes_in.get();
    sum.bytes_out += counters.bytes_out.get();
    sum.clients_gone += counters.clients_gone.get();
    sum.slow_readers += counters.slow_readers.get();
    sum.truncated += counters.truncated.get();
    sum.idle_closed += counters.idle_closed.get();
    for (size_t i = 0; i < kHttpRefusals; ++i) sum.refused[i] += counters.refused[i].get();
  }
  sum.in_flight = parts_->shared->in_flight.load(std::memory_order_relaxed);
  sum.body_bytes = parts_->shared->bodies->used();
  std::lock_guard lock(parts_->mutex);
  for (const auto& listener : parts_->listeners) sum.accept_errors += listener->errors();
  return sum;
}

}  // namespace warmpath

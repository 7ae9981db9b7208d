// An HTTP/1.1 server: N threads, each with its own event loop; a connection stays on the thread that got it, the one
// with the fewest connections when it came. Whole requests go to an HttpHandler (router/http.h); everything that is
// wrong about a request as HTTP is answered here (router/http_refusal.h), within HttpLimits.
//
//   HttpServer server(limits, threads);
//   auto port = server.listen("127.0.0.1", 8080, &handler);
//   server.start();
//   ...
//   server.begin_drain();            // still answers, each reply with `connection: close`; idle connections close
//   server.wait_until_idle(30);      // answers in flight
//   server.end_drain(1);             // handlers say what they can about what is left
//   server.stop();                   // aborts the rest
//
// Thread safety: every method may be called from any thread, but not from the server's own ones for wait_until_idle(),
// end_drain(), stop() and the destructor; listen() must come before stop(). Handlers must outlive stop(). An
// HttpExchange may outlive the server: what is called or posted on it then is ignored.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"
#include "router/http.h"
#include "router/http_counters.h"
#include "router/http_limits.h"

namespace warmpath {

class HttpServer {
 public:
  HttpServer(const HttpLimits& limits, int threads);
  ~HttpServer();  // stop()
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Listens on an IP address or `localhost`; returns the port, which the kernel picks for port 0. May be called several
  // times (main and admin listener); each listener has its own handler and its own count of connections. Connections
  // wait in the kernel until start().
  Result<uint16_t> listen(const std::string& host, uint16_t port, HttpHandler* handler);
  void start();  // also raises the process's soft limit of open files to the hard one

  void stop_accepting();  // closes the listeners: new connections are refused by the kernel
  void begin_drain();
  // True once no answer is in flight; false if that took longer than `timeout_s`.
  bool wait_until_idle(double timeout_s);
  // Tells the handler of every answer in flight that the drain is over (on_drain_over), refuses requests that are still
  // being received, and waits up to `grace_s` until nothing is in flight. True if so.
  bool end_drain(double grace_s);
  // Aborts every answer in flight (its on_client_gone is called) and closes every connection.
  void abort_all();
  // stop_accepting(), abort_all(), and joins the threads. Idempotent.
  void stop();

  HttpCounters counters() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace warmpath

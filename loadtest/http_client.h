// HttpClient: a small blocking HTTP/1.1 client for loopback: the demonstration, load tests and benches.
// One kept-alive connection; streamed bodies reach the caller as they arrive.
// Thread safety: one thread at a time, but for interrupt().
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace warmpath {

struct HttpReply {
  int status = 0;
  std::vector<std::pair<std::string, std::string>> headers;  // names lower-cased
  std::string body;                                          // empty when a sink took it

  std::string_view header(std::string_view lower_case_name) const;  // empty when absent
};

// Gets body bytes as they arrive; returning false leaves the connection at once.
using BodySink = std::function<bool(std::string_view bytes)>;

class HttpClient {
 public:
  // `host` is a numeric address; `timeout_s` bounds every wait for the peer's next bytes.
  HttpClient(std::string host, uint16_t port, double timeout_s);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  using Headers = std::vector<std::pair<std::string, std::string>>;
  // kUnavailable when the peer refuses, resets or cuts the body short; kCancelled when `sink` returned false.
  Result<HttpReply> request(std::string_view method, std::string_view target, const Headers& headers,
                            std::string_view body, const BodySink& sink = nullptr);
  // From any thread: a request in progress fails soon.
  void interrupt();

 private:
  struct Connection;
  std::string host_;
  uint16_t port_;
  double timeout_s_;
  std::unique_ptr<Connection> connection_;
  std::atomic<int> socket_{-1};  // of the request in progress, for interrupt()
};

}  // namespace warmpath

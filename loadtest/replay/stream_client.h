// StreamClient: streamed chat completions from one OpenAI-compatible server, thousands at a time on one thread, with
// the time of everything that matters. http:// and https:// (the certificate is checked against the system's
// authorities). Connections are kept and used again; a kept one that turns out closed is replaced once, silently.
// Thread safety: everything on the io_context's one thread.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"

namespace warmpath {

struct StreamTarget {
  bool tls = false;
  std::string host;
  std::string port;
  std::string path;  // of the API: "/v1" unless the URL has its own
};
// "http://127.0.0.1:8080", "https://api.example.com/v1", "[::1]:8080" (http).
Result<StreamTarget> parse_stream_target(const std::string& url);

// Seconds on the caller's clock; 0: did not happen.
struct StreamTimes {
  double sent_s = 0;  // the request's first byte was handed to the kernel
  double first_byte_s = 0;
  double first_content_s = 0;
  double last_content_s = 0;
  double done_s = 0;
};

struct StreamAnswer {
  StreamTimes times;
  int status = 0;     // HTTP; 0: no reply
  std::string error;  // empty: the whole answer came
  std::string replica;
  int64_t content_events = 0;
  int64_t prompt_tokens = -1;  // usage; -1: not told
  int64_t cached_tokens = -1;
  int64_t completion_tokens = -1;
};

class StreamClient {
 public:
  using Clock = std::chrono::steady_clock;
  struct Options {
    std::string api_key;
    std::string replica_header = "x-warmpath-replica";
    double timeout_s = 600;   // for the peer's next bytes
    Clock::time_point start;  // where the times begin
  };

  StreamClient(boost::asio::io_context& context, StreamTarget target, Options options);
  ~StreamClient();
  StreamClient(const StreamClient&) = delete;
  StreamClient& operator=(const StreamClient&) = delete;

  // Looks the host up. Once, before anything else.
  boost::asio::awaitable<Status> resolve();
  // Opens a connection for the caller's next complete(), if none is to spare; an error shows with the request.
  boost::asio::awaitable<void> prepare();
  // One request; `headers` are lines that end in CRLF.
  boost::asio::awaitable<StreamAnswer> complete(std::string headers, std::string body);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace warmpath

// A blocking HTTP client that can also misbehave, for tests and benches: it sends exactly the bytes it is given.
//
// Thread safety: a value; one thread at a time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace warmpath {

struct TestResponse {
  int status = 0;  // 0 = no response
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;       // chunks joined
  bool complete = false;  // ended as its framing says; false if cut
  bool reset = false;     // cut by a TCP reset

  std::string_view header(std::string_view name) const;  // first of that name; empty when absent
};

class TestClient {
 public:
  // REQUIRES: something listens there.
  explicit TestClient(uint16_t port, std::string host = "127.0.0.1", int receive_buffer_bytes = 0);
  ~TestClient() { close(); }
  TestClient(TestClient&& other) noexcept : fd_(std::exchange(other.fd_, -1)), buffer_(std::move(other.buffer_)) {}
  TestClient(const TestClient&) = delete;
  TestClient& operator=(const TestClient&) = delete;

  bool connected() const { return fd_ >= 0; }
  bool send(std::string_view bytes);  // false once the peer has closed
  // One response, or what came of it until the connection closed or nothing came for `timeout_s`.
  TestResponse read_response(bool to_head_request = false, double timeout_s = 5);
  // send() and read_response().
  TestResponse ask(std::string_view bytes);
  // More bytes into the buffer; false at the end or after `timeout_s`.
  bool read_some(double timeout_s);
  std::string take_buffer() { return std::exchange(buffer_, {}); }
  // True if the peer closes within `timeout_s`; what comes until then is dropped.
  bool closed_by_peer(double timeout_s);
  void half_close();
  void reset();  // closes with a TCP reset
  void close();
  int fd() const { return fd_; }

 private:
  int fd_ = -1;
  std::string buffer_;
  bool ended_ = false;
  bool was_reset_ = false;
};

// "POST /path HTTP/1.1" with a Host, a Content-Length and `extra` header lines (each with its CR LF).
std::string test_post(std::string_view path, std::string_view body, std::string_view extra = {});
std::string test_get(std::string_view path, std::string_view extra = {});

}  // namespace warmpath

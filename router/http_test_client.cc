#include "router/http_test_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <string>
#include <utility>

#include "router/http.h"

namespace warmpath {

std::string_view TestResponse::header(std::string_view name) const {
  for (const auto& [field, value] : headers) {
    if (http_iequals(field, name)) return value;
  }
  return {};
}

TestClient::TestClient(uint16_t port, std::string host, int receive_buffer_bytes) {
  sockaddr_in v4{.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {}, .sin_zero = {}};
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port);
  const bool is_v4 = inet_pton(AF_INET, host.c_str(), &v4.sin_addr) == 1;
  if (!is_v4 && inet_pton(AF_INET6, host.c_str(), &v6.sin6_addr) != 1) return;
  fd_ = ::socket(is_v4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd_ < 0) return;
  int one = 1;
  ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  if (receive_buffer_bytes > 0) {
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer_bytes, sizeof receive_buffer_bytes);
  }
  auto* address = is_v4 ? reinterpret_cast<sockaddr*>(&v4) : reinterpret_cast<sockaddr*>(&v6);
  if (::connect(fd_, address, is_v4 ? sizeof v4 : sizeof v6) != 0) close();
}

bool TestClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

bool TestClient::read_some(double timeout_s) {
  if (fd_ < 0 || ended_) return false;
  pollfd wait{fd_, POLLIN, 0};
  int ready;
  do {
    ready = ::poll(&wait, 1, static_cast<int>(timeout_s * 1000));
  } while (ready < 0 && errno == EINTR);
  if (ready <= 0) return false;
  char bytes[64 << 10];
  ssize_t n = ::recv(fd_, bytes, sizeof bytes, 0);
  if (n <= 0) {
    ended_ = true;
    was_reset_ = n < 0;
    return false;
  }
  buffer_.append(bytes, static_cast<size_t>(n));
  return true;
}

TestResponse TestClient::read_response(bool to_head_request, double timeout_s) {
  TestResponse response;
  size_t end;
  for (;;) {
    while ((end = buffer_.find("\r\n\r\n")) == std::string::npos) {
      if (!read_some(timeout_s)) {
        response.reset = was_reset_;
        return response;
      }
    }
    response.status = buffer_.size() > 12 ? std::atoi(buffer_.c_str() + 9) : 0;
    if (response.status != 100) break;
    buffer_.erase(0, end + 4);
  }
  for (size_t line = buffer_.find("\r\n") + 2; line < end;) {
    size_t line_end = buffer_.find("\r\n", line);
    size_t colon = buffer_.find(':', line);
    if (colon < line_end) {
      size_t value = buffer_.find_first_not_of(' ', colon + 1);
      response.headers.emplace_back(buffer_.substr(line, colon - line),
                                    value < line_end ? buffer_.substr(value, line_end - value) : std::string());
    }
    line = line_end + 2;
  }
  buffer_.erase(0, end + 4);
  if (to_head_request || response.status == 204 || response.status == 304) {
    response.complete = true;
  } else if (!response.header("content-length").empty()) {
    size_t length = std::strtoull(std::string(response.header("content-length")).c_str(), nullptr, 10);
    while (buffer_.size() < length && read_some(timeout_s)) {
    }
    response.complete = buffer_.size() >= length;
    response.body = buffer_.substr(0, length);
    buffer_.erase(0, response.body.size());
  } else if (response.header("transfer-encoding") == "chunked") {
    for (;;) {
      size_t line_end;
      while ((line_end = buffer_.find("\r\n")) == std::string::npos && read_some(timeout_s)) {
      }
      if (line_end == std::string::npos) break;
      size_t size = std::strtoull(buffer_.c_str(), nullptr, 16);
      while (buffer_.size() < line_end + 4 + size && read_some(timeout_s)) {
      }
      if (buffer_.size() < line_end + 4 + size) break;
      response.body += buffer_.substr(line_end + 2, size);
      buffer_.erase(0, line_end + 4 + size);
      if (size == 0) {
        response.complete = true;
        break;
      }
    }
  } else {
    while (read_some(timeout_s)) {
    }
    response.complete = ended_ && !was_reset_;
    response.body = take_buffer();
  }
  response.reset = was_reset_;
  return response;
}

TestResponse TestClient::ask(std::string_view bytes) {
  send(bytes);  // even if it fails half-way, an answer may be there
  return read_response(bytes.substr(0, 5) == "HEAD ");
}

bool TestClient::closed_by_peer(double timeout_s) {
  auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(timeout_s);
  while (!ended_) {
    std::chrono::duration<double> left = deadline - std::chrono::steady_clock::now();
    if (left.count() <= 0) return false;
    read_some(left.count());
    buffer_.clear();
  }
  return true;
}

void TestClient::half_close() { ::shutdown(fd_, SHUT_WR); }

void TestClient::reset() {
  linger hard{1, 0};
  ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
  close();
}

void TestClient::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

std::string test_post(std::string_view path, std::string_view body, std::string_view extra) {
  std::string out = "POST " + std::string(path) + " HTTP/1.1\r\nHost: localhost\r\n" + std::string(extra) +
                    "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n";
  out += body;
  return out;
}

std::string test_get(std::string_view path, std::string_view extra) {
  return "GET " + std::string(path) + " HTTP/1.1\r\nHost: localhost\r\n" + std::string(extra) + "\r\n";
}

}  // namespace warmpath

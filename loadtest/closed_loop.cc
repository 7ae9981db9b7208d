#include "loadtest/closed_loop.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <string_view>

namespace warmpath {

namespace {

using SteadyClock = std::chrono::steady_clock;

// How many bytes of `bytes` one whole reply takes, or 0 when it is not whole yet. Knows content-length and chunked
// bodies.
size_t whole_reply(std::string_view bytes, size_t known_incomplete) {
  const size_t head_end =
      bytes.find("\r\n\r\n", known_incomplete > 3 && known_incomplete < 4096 ? known_incomplete - 3 : 0);
  if (head_end == std::string_view::npos) return 0;
  std::string_view head = bytes.substr(0, head_end + 2);
  const size_t body = head_end + 4;
  size_t length = 0;
  bool chunked = false;
  for (size_t line = head.find("\r\n") + 2; line < head.size();) {
    const size_t end = head.find("\r\n", line);
    const std::string_view field = head.substr(line, end - line);
    if (strncasecmp(field.data(), "content-length:", 15) == 0) length = std::strtoull(field.data() + 15, nullptr, 10);
    if (strncasecmp(field.data(), "transfer-encoding:", 18) == 0) chunked = true;
    line = end + 2;
  }
  if (!chunked) return bytes.size() >= body + length ? body + length : 0;
  for (size_t chunk = body;;) {
    const size_t line_end = bytes.find("\r\n", chunk);
    if (line_end == std::string_view::npos) return 0;
    const size_t size = std::strtoull(bytes.data() + chunk, nullptr, 16);
    const size_t next = line_end + 2 + size + 2;
    if (next > bytes.size()) return 0;
    if (size == 0) return next;
    chunk = next;
  }
}

struct Connection {
  int fd = -1;
  std::string out;
  size_t sent = 0;
  std::string in;
  size_t examined = 0;
  SteadyClock::time_point start;

  ~Connection() {
    if (fd >= 0) close(fd);
  }
};

class Loop {
 public:
  explicit Loop(const ClosedLoopOptions& options) : options_(options), epoll_(epoll_create1(EPOLL_CLOEXEC)) {}
  ~Loop() { close(epoll_); }

  Result<ClosedLoopResult> run() {
    std::vector<Connection> connections(static_cast<size_t>(options_.connections));
    const auto begin = SteadyClock::now();
    deadline_ =
        begin + std::chrono::duration_cast<SteadyClock::duration>(std::chrono::duration<double>(options_.seconds));
    for (Connection& connection : connections) WARMPATH_RETURN_IF_ERROR(open(connection));
    auto last_progress = begin;
    std::vector<epoll_event> events(connections.size());
    while (busy_ > 0) {
      const int ready = epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), 100);
      const auto now = SteadyClock::now();
      if (ready > 0) last_progress = now;
      if (std::chrono::duration<double>(now - last_progress).count() > options_.reply_timeout_s) {
        return Status(StatusCode::kDeadlineExceeded, "the server stopped answering");
      }
      for (int event = 0; event < ready; ++event) {
        WARMPATH_RETURN_IF_ERROR(serve(*static_cast<Connection*>(events[static_cast<size_t>(event)].data.ptr)));
      }
    }
    result_.seconds = std::chrono::duration<double>(SteadyClock::now() - begin).count();
    return std::move(result_);
  }

 private:
  Status open(Connection& connection) {
    connection.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(options_.port);
    if (inet_pton(AF_INET, options_.host.c_str(), &address.sin_addr) != 1) {
      return invalid_argument("'" + options_.host + "' is not an IPv4 address");
    }
    if (connect(connection.fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
      return unavailable("cannot connect to port " + std::to_string(options_.port) + ": " + strerror(errno));
    }
    const int one = 1;
    setsockopt(connection.fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.ptr = &connection;
    epoll_ctl(epoll_, EPOLL_CTL_ADD, connection.fd, &event);
    ++busy_;
    return next_request(connection);
  }

  Status next_request(Connection& connection) {
    const std::string body = options_.body(next_++);
    connection.out =
        "POST " + options_.target +
        " HTTP/1.1\r\nhost: bench\r\ncontent-type: application/json\r\ncontent-length: " + std::to_string(body.size()) +
        "\r\n\r\n" + body;
    connection.in.clear();
    connection.examined = 0;
    connection.start = SteadyClock::now();
    for (std::string_view rest = connection.out; !rest.empty();) {
      const ssize_t sent = send(connection.fd, rest.data(), rest.size(), MSG_NOSIGNAL);
      if (sent < 0) return unavailable(std::string("the server broke off: ") + strerror(errno));
      rest.remove_prefix(static_cast<size_t>(sent));
    }
    return {};
  }

  Status serve(Connection& connection) {
    char buffer[65536];
    const ssize_t got = recv(connection.fd, buffer, sizeof buffer, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return {};
    if (got <= 0) return unavailable("the server closed a connection without an answer");
    connection.in.append(buffer, static_cast<size_t>(got));
    const size_t whole = whole_reply(connection.in, connection.examined);
    connection.examined = connection.in.size();
    if (whole == 0) return {};
    const auto now = SteadyClock::now();
    if (connection.in.compare(0, 12, "HTTP/1.1 200") == 0) {
      ++result_.answered;
      result_.latencies_us.push_back(std::chrono::duration<double, std::micro>(now - connection.start).count());
    } else {
      if (result_.refused++ == 0) result_.first_refusal = connection.in.substr(0, 1000);
    }
    if (now < deadline_) return next_request(connection);
    epoll_ctl(epoll_, EPOLL_CTL_DEL, connection.fd, nullptr);
    --busy_;
    return {};
  }

  const ClosedLoopOptions& options_;
  const int epoll_;
  SteadyClock::time_point deadline_;
  int64_t next_ = 0;
  int busy_ = 0;
  ClosedLoopResult result_;
};

}  // namespace

Result<ClosedLoopResult> run_closed_loop(const ClosedLoopOptions& options) { return Loop(options).run(); }

double percentile(std::vector<double> values, double percent) {
  if (values.empty()) return 0;
  const size_t rank =
      std::min(values.size() - 1, static_cast<size_t>(static_cast<double>(values.size()) * percent / 100));
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(rank), values.end());
  return values[rank];
}

}  // namespace warmpath

#include "loadtest/mock_http.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <simdjson.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <thread>
#include <unordered_map>

#include "loadtest/mock_http_answer.h"

namespace warmpath {

namespace {

constexpr size_t kMaxHeadBytes = 64 * 1024;
constexpr size_t kMaxBodyBytes = 64 * 1024 * 1024;
constexpr size_t kReadBytes = 256 * 1024;
constexpr int64_t kDefaultMaxTokens = 16;

struct ParsedRequest {
  std::string_view model;
  std::string_view prompt_json;  // the raw JSON of messages or prompt
  bool stream = false;
  int64_t max_tokens = kDefaultMaxTokens;
};

// `json` is followed by simdjson's padding.
Status parse_body(simdjson::ondemand::parser& parser, std::string_view json, ParsedRequest& request) {
  simdjson::ondemand::document document;
  simdjson::ondemand::object object;
  if (parser.iterate(json.data(), json.size(), json.size() + simdjson::SIMDJSON_PADDING).get(document) ||
      document.get_object().get(object)) {
    return invalid_argument("the body is not a JSON object");
  }
  for (auto field : object) {
    std::string_view key;
    simdjson::ondemand::value value;
    if (field.unescaped_key().get(key) || field.value().get(value)) return invalid_argument("the body is not JSON");
    if (key == "messages" || key == "prompt") {
      if (simdjson::to_json_string(value).get(request.prompt_json)) return invalid_argument("the body is not JSON");
    } else if (key == "stream") {
      if (value.get_bool().get(request.stream)) return invalid_argument("'stream' is not a boolean");
    } else if (key == "max_tokens" || key == "max_completion_tokens") {
      if (value.get_int64().get(request.max_tokens)) return invalid_argument("'max_tokens' is not a number");
    }
  }
  if (request.prompt_json.size() < 3) return invalid_argument("the body has neither messages nor a prompt");
  return {};
}

// Four bytes a token; the closing bracket is left out, so that a longer conversation continues a shorter one.
std::vector<TokenId> tokens_of(std::string_view json, int32_t vocabulary) {
  json.remove_suffix(1);
  std::vector<TokenId> tokens;
  tokens.reserve(json.size() / 4 + 1);
  for (size_t at = 0; at < json.size(); at += 4) {
    uint32_t word = 0;
    std::memcpy(&word, json.data() + at, std::min<size_t>(4, json.size() - at));
    tokens.push_back(static_cast<TokenId>((uint64_t{word} * 2'654'435'761u) % static_cast<uint32_t>(vocabulary)));
  }
  return tokens;
}

bool same_ignoring_case(std::string_view left, std::string_view lower) {
  return left.size() == lower.size() && std::equal(left.begin(), left.end(), lower.begin(), [](char a, char b) {
           return (a >= 'A' && a <= 'Z' ? a + 32 : a) == b;
         });
}

// What of the head matters; a content-length that is no number refuses the connection.
bool content_length_of(std::string_view head, size_t& length) {
  length = 0;
  for (size_t at = head.find("\r\n"); at != std::string_view::npos && at + 2 < head.size();) {
    const size_t end = std::min(head.find("\r\n", at + 2), head.size());
    const std::string_view line = head.substr(at + 2, end - at - 2);
    const size_t colon = line.find(':');
    if (colon != std::string_view::npos && same_ignoring_case(line.substr(0, colon), "content-length")) {
      std::string_view value = line.substr(colon + 1);
      while (value.starts_with(' ')) value.remove_prefix(1);
      const auto [stop, error] = std::from_chars(value.data(), value.data() + value.size(), length);
      if (error != std::errc() || length > kMaxBodyBytes) return false;
    }
    if (colon != std::string_view::npos && same_ignoring_case(line.substr(0, colon), "transfer-encoding")) return false;
    at = end == head.size() ? std::string_view::npos : end;
  }
  return true;
}

}  // namespace

class MockHttp::Server {
 public:
  explicit Server(std::vector<MockHttpFace> faces) : faces_(std::move(faces)) {}

  ~Server() {
    stopping_ = true;
    if (thread_.joinable()) {
      wake();
      thread_.join();
    }
    while (!connections_.empty()) drop(connections_.begin()->second);
    for (const int fd : listeners_) close(fd);
    if (epoll_ >= 0) close(epoll_);
    if (event_ >= 0) close(event_);
  }

  Status listen(const std::string& host) {
    epoll_ = epoll_create1(EPOLL_CLOEXEC);
    event_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    watch(event_, EPOLLIN);
    for (const MockHttpFace& face : faces_) {
      sockaddr_in address{};
      address.sin_family = AF_INET;
      address.sin_port = htons(face.port);
      if (inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1) {
        return invalid_argument(fmt::format("'{}' is not a numeric IPv4 address", host));
      }
      const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
      listeners_.push_back(fd);
      const int yes = 1;
      setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
      socklen_t size = sizeof address;
      if (bind(fd, reinterpret_cast<const sockaddr*>(&address), size) != 0 || ::listen(fd, 1024) != 0 ||
          getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
        return unavailable(fmt::format("cannot listen on {}:{}: {}", host, face.port, std::strerror(errno)));
      }
      ports_.push_back(ntohs(address.sin_port));
      watch(fd, EPOLLIN);
    }
    thread_ = std::thread([this] { run(); });
    return {};
  }

  const std::vector<uint16_t>& ports() const { return ports_; }

 private:
  struct Connection {
    int fd = -1;
    size_t face = 0;
    std::string in;
    std::string request_id;  // of the answer under way; empty = none

    std::mutex mutex;
    std::string out;
    bool answered = false;  // the last bytes of the answer lie in `out`
    bool dirty = false;     // in dirty_
    bool cut = false;       // close when `out` is sent
  };
  using ConnectionPtr = std::shared_ptr<Connection>;

  void watch(int fd, uint32_t events) {
    epoll_event event{};
    event.events = events;
    event.data.fd = fd;
    epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
  }

  void wake() {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(event_, &one, sizeof one);
  }

  void run() {
    std::array<epoll_event, 256> events;
    while (!stopping_) {
      const int count = epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), -1);
      for (int i = 0; i < count; ++i) {
        const int fd = events[static_cast<size_t>(i)].data.fd;
        if (fd == event_) {
          uint64_t ignored;
          while (read(event_, &ignored, sizeof ignored) > 0) {
          }
        } else if (const auto listener = std::find(listeners_.begin(), listeners_.end(), fd);
                   listener != listeners_.end()) {
          accept_all(fd, static_cast<size_t>(listener - listeners_.begin()));
        } else if (const auto found = connections_.find(fd); found != connections_.end()) {
          const ConnectionPtr connection = found->second;
          if (!receive(connection)) drop(connection);
        }
      }
      flush_dirty();
    }
  }

  void accept_all(int listener, size_t face) {
    for (;;) {
      const int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
      if (fd < 0) return;
      const int yes = 1;
      setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
      auto connection = std::make_shared<Connection>();
      connection->fd = fd;
      connection->face = face;
      connections_[fd] = std::move(connection);
      watch(fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET);
    }
  }

  // False when the connection is over.
  bool receive(const ConnectionPtr& connection) {
    for (;;) {
      const size_t before = connection->in.size();
      connection->in.resize(before + kReadBytes);
      const ssize_t got = read(connection->fd, connection->in.data() + before, kReadBytes);
      connection->in.resize(before + (got > 0 ? static_cast<size_t>(got) : 0));
      if (got == 0) return false;
      if (got < 0) {
        if (errno == EINTR) continue;
        if (errno != EAGAIN) return false;
        break;
      }
      if (static_cast<size_t>(got) < kReadBytes) break;
    }
    return serve(connection) && flush(*connection);
  }

  bool serve(const ConnectionPtr& connection) {
    std::string& in = connection->in;
    while (connection->request_id.empty()) {
      const size_t head_end = in.find("\r\n\r\n");
      if (head_end == std::string::npos) return in.size() <= kMaxHeadBytes;
      const std::string_view head = std::string_view(in).substr(0, head_end);
      size_t length = 0;
      if (!content_length_of(head, length)) return false;
      const size_t total = head_end + 4 + length;
      if (in.size() < total) {
        in.reserve(total + simdjson::SIMDJSON_PADDING);
        return true;
      }
      in.reserve(in.size() + simdjson::SIMDJSON_PADDING);
      const std::string_view whole(in);
      handle(connection, whole.substr(0, whole.find("\r\n")), whole.substr(head_end + 4, length));
      in.erase(0, total);
      if (!flush(*connection)) return false;
    }
    return true;
  }

  void handle(const ConnectionPtr& connection, std::string_view request_line, std::string_view body) {
    const MockHttpFace& face = faces_[connection->face];
    const auto reply = [&](std::string bytes) {
      const std::lock_guard lock(connection->mutex);
      connection->out += bytes;
    };
    if (request_line.starts_with("GET /health")) return reply(http_json_reply(200, "{\"status\":\"ok\"}"));
    if (request_line.starts_with("GET /v1/models")) {
      return reply(http_json_reply(
          200, fmt::format("{{\"object\":\"list\",\"data\":[{{\"id\":\"{}\",\"object\":\"model\",\"created\":0,"
                           "\"owned_by\":\"mock-replica\"}}]}}",
                           face.model)));
    }
    const bool chat = request_line.starts_with("POST /v1/chat/completions");
    if (!chat && !request_line.starts_with("POST /v1/completions")) {
      return reply(http_error_reply(not_found("a mock replica serves /v1/chat/completions and /v1/completions")));
    }
    ParsedRequest parsed;
    const Status valid = parse_body(parser_, body, parsed);
    if (!valid.ok()) return reply(http_error_reply(valid));

    GenerateRequest request;
    request.request_id = fmt::format("http-{}", ++last_request_);
    request.prompt = tokens_of(parsed.prompt_json, face.engine->options().tokenizer->size());
    request.sampling.max_tokens = static_cast<int32_t>(std::clamp<int64_t>(parsed.max_tokens, 0, INT32_MAX));
    MockHttpAnswer::Shape shape{request.request_id, face.model, chat, parsed.stream,
                                static_cast<int64_t>(request.prompt.size())};
    connection->request_id = request.request_id;
    auto answer = std::make_shared<MockHttpAnswer>(
        std::move(shape), *face.engine->options().tokenizer,
        [this, weak = std::weak_ptr(connection)](std::string bytes, bool last) { send(weak, std::move(bytes), last); });
    const Status taken = face.engine->submit(std::move(request), answer, parsed.prompt_json);
    if (!taken.ok()) answer->on_done(taken);
    settle(*connection);
  }

  // From any thread. Empty last bytes cut the connection: the answer has no clean end.
  void send(const std::weak_ptr<Connection>& weak, std::string bytes, bool last) {
    const ConnectionPtr connection = weak.lock();
    if (connection == nullptr) return;
    bool tell = false;
    {
      const std::lock_guard lock(connection->mutex);
      connection->out += bytes;
      connection->answered = connection->answered || last;
      connection->cut = connection->cut || (last && bytes.empty());
      if (std::this_thread::get_id() != thread_.get_id() && !connection->dirty) tell = connection->dirty = true;
    }
    if (!tell) return;
    const std::lock_guard lock(dirty_mutex_);
    dirty_.push_back(connection);
    if (dirty_.size() == 1) wake();
  }

  // The next request of the connection may be served.
  static void settle(Connection& connection) {
    const std::lock_guard lock(connection.mutex);
    if (!connection.answered) return;
    connection.answered = false;
    connection.request_id.clear();
  }

  void flush_dirty() {
    std::vector<ConnectionPtr> dirty;
    {
      const std::lock_guard lock(dirty_mutex_);
      dirty.swap(dirty_);
    }
    for (const ConnectionPtr& connection : dirty) {
      {
        const std::lock_guard lock(connection->mutex);
        connection->dirty = false;
      }
      if (connection->fd < 0) continue;
      settle(*connection);
      if (!flush(*connection) || !serve(connection)) drop(connection);
    }
  }

  bool flush(Connection& connection) {
    const std::lock_guard lock(connection.mutex);
    size_t sent = 0;
    while (sent < connection.out.size()) {
      const ssize_t count =
          ::send(connection.fd, connection.out.data() + sent, connection.out.size() - sent, MSG_NOSIGNAL);
      if (count < 0) {
        if (errno == EINTR) continue;
        if (errno != EAGAIN) return false;
        break;  // EPOLLOUT tells when there is room
      }
      sent += static_cast<size_t>(count);
    }
    connection.out.erase(0, sent);
    return !(connection.cut && connection.out.empty());
  }

  void drop(ConnectionPtr connection) {
    if (connection->fd < 0) return;
    connections_.erase(connection->fd);
    close(connection->fd);
    connection->fd = -1;
    if (!connection->request_id.empty()) faces_[connection->face].engine->cancel(connection->request_id);
  }

  const std::vector<MockHttpFace> faces_;
  std::vector<int> listeners_;
  std::vector<uint16_t> ports_;
  int epoll_ = -1;
  int event_ = -1;
  std::unordered_map<int, ConnectionPtr> connections_;  // the thread's
  simdjson::ondemand::parser parser_;                   // the thread's
  uint64_t last_request_ = 0;                           // the thread's
  std::mutex dirty_mutex_;
  std::vector<ConnectionPtr> dirty_;  // have bytes from other threads
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

MockHttp::MockHttp(std::unique_ptr<Server> server) : server_(std::move(server)) {}
MockHttp::~MockHttp() = default;
const std::vector<uint16_t>& MockHttp::ports() const { return server_->ports(); }

Result<std::unique_ptr<MockHttp>> MockHttp::start(const std::string& host, std::vector<MockHttpFace> faces) {
  auto server = std::make_unique<Server>(std::move(faces));
  WARMPATH_RETURN_IF_ERROR(server->listen(host));
  return std::unique_ptr<MockHttp>(new MockHttp(std::move(server)));
}

}  // namespace warmpath

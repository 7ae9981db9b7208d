#include "loadtest/http_client.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <cctype>

namespace warmpath {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using tcp = asio::ip::tcp;

namespace {

constexpr size_t kReadBytes = 65536;

void set_timeout(int socket, double seconds) {
  timeval limit{};
  limit.tv_sec = static_cast<time_t>(seconds);
  limit.tv_usec = static_cast<suseconds_t>((seconds - static_cast<double>(limit.tv_sec)) * 1e6);
  setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), [](unsigned char c) { return std::tolower(c); });
  return result;
}

}  // namespace

std::string_view HttpReply::header(std::string_view lower_case_name) const {
  for (const auto& [name, value] : headers) {
    if (name == lower_case_name) return value;
  }
  return {};
}

// A plain stream over the socket: Asio's blocking reads ignore SO_RCVTIMEO, so reads go to the kernel directly.
struct HttpClient::Connection {
  using executor_type = asio::io_context::executor_type;
  asio::io_context context{1};
  tcp::socket socket{context};
  boost::beast::flat_buffer buffer;

  template <class Buffers>
  size_t read_some(const Buffers& buffers, boost::system::error_code& error) {
    const asio::mutable_buffer target = *asio::buffer_sequence_begin(buffers);
    const ssize_t got = ::recv(socket.native_handle(), target.data(), target.size(), 0);
    if (got > 0) {
      error = {};
      return static_cast<size_t>(got);
    }
    if (got == 0) {
      error = asio::error::eof;
    } else {
      error = boost::system::error_code(errno == EAGAIN ? ETIMEDOUT : errno, boost::system::system_category());
    }
    return 0;
  }
  template <class Buffers>
  size_t read_some(const Buffers& buffers) {
    boost::system::error_code error;
    const size_t got = read_some(buffers, error);
    if (error) throw boost::system::system_error(error);
    return got;
  }

  bool send_all(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(socket.native_handle(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }
};

HttpClient::HttpClient(std::string host, uint16_t port, double timeout_s)
    : host_(std::move(host)), port_(port), timeout_s_(timeout_s) {}
HttpClient::~HttpClient() = default;

Result<HttpReply> HttpClient::request(std::string_view method, std::string_view target, const Headers& headers,
                                      std::string_view body, const BodySink& sink) {
  boost::system::error_code error;
  const bool reused = connection_ != nullptr;
  if (!reused) {
    connection_ = std::make_unique<Connection>();
    const auto address = asio::ip::make_address(host_, error);
    if (error) return invalid_argument("'" + host_ + "' is not a numeric address");
    connection_->socket.connect({address, port_}, error);
    if (error) {
      connection_.reset();
      return unavailable("cannot connect to " + host_ + ":" + std::to_string(port_) + ": " + error.message());
    }
    connection_->socket.set_option(tcp::no_delay(true), error);
    set_timeout(connection_->socket.native_handle(), timeout_s_);
    connection_->buffer.reserve(kReadBytes);
  }
  socket_ = connection_->socket.native_handle();
  const auto fail = [&](std::string_view what, const std::string& why) -> Result<HttpReply> {
    socket_ = -1;
    connection_.reset();
    return unavailable(std::string(what) + " " + host_ + ":" + std::to_string(port_) + ": " + why);
  };

  std::string head;
  head.append(method).append(" ").append(target).append(" HTTP/1.1\r\nhost: ").append(host_).append(":");
  head.append(std::to_string(port_)).append("\r\n");
  for (const auto& [name, value] : headers) head.append(name).append(": ").append(value).append("\r\n");
  if (!body.empty() || method == "POST")
    head.append("content-length: ").append(std::to_string(body.size())).append("\r\n");
  head.append("\r\n");
  if (!connection_->send_all(head) || !connection_->send_all(body)) return fail("cannot send to", "connection closed");

  http::response_parser<http::buffer_body> parser;
  parser.body_limit(boost::none);
  http::read_header(*connection_, connection_->buffer, parser, error);
  if (error) return fail("no reply from", error.message());

  HttpReply reply;
  reply.status = static_cast<int>(parser.get().result_int());
  for (const auto& field : parser.get()) {
    reply.headers.emplace_back(lower({field.name_string().data(), field.name_string().size()}),
                               std::string(field.value().data(), field.value().size()));
  }
  std::vector<char> chunk(kReadBytes);
  while (!parser.is_done()) {
    parser.get().body().data = chunk.data();
    parser.get().body().size = chunk.size();
    parser.get().body().more = true;
    http::read_some(*connection_, connection_->buffer, parser, error);
    if (error == http::error::need_buffer) error = {};
    const std::string_view got(chunk.data(), chunk.size() - parser.get().body().size);
    if (!got.empty()) {
      if (!sink) {
        reply.body.append(got);
      } else if (!sink(got)) {
        socket_ = -1;
        connection_.reset();
        return Status(StatusCode::kCancelled, "the caller left");
      }
    }
    if (error) return fail("the reply was cut short by", error.message());
  }
  socket_ = -1;
  if (!parser.get().keep_alive()) connection_.reset();
  return reply;
}

void HttpClient::interrupt() {
  const int socket = socket_;
  if (socket >= 0) ::shutdown(socket, SHUT_RDWR);
}

}  // namespace warmpath

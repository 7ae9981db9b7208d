#include "loadtest/replay/stream_client.h"

#include <simdjson.h>

#include <array>
#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/ssl/ssl_stream.hpp>
#include <boost/url/parse.hpp>
#include <optional>

namespace warmpath {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using tcp = asio::ip::tcp;
using Error = boost::system::error_code;

namespace {

constexpr size_t kMaxErrorBody = 300;
constexpr size_t kMaxLine = size_t{4} << 20;

// Puts lines of a body together, however its bytes were cut, and reads what the events say.
class EventReader {
 public:
  explicit EventReader(StreamAnswer& answer) : answer_(answer) {}

  void feed(std::string_view bytes, double now_s) {
    size_t start = 0;
    for (size_t end; (end = bytes.find('\n', start)) != std::string_view::npos; start = end + 1) {
      if (pending_.empty()) {
        line(bytes.substr(start, end - start), now_s);
      } else {
        pending_.append(bytes.substr(start, end - start));
        line(pending_, now_s);
        pending_.clear();
      }
    }
    pending_.append(bytes.substr(start));
    if (pending_.size() > kMaxLine) answer_.error = "an event of more than 4 MiB";
  }
  bool done() const { return done_; }

 private:
  void line(std::string_view text, double now_s) {
    if (!text.empty() && text.back() == '\r') text.remove_suffix(1);
    if (!text.starts_with("data:")) return;
    text.remove_prefix(text.starts_with("data: ") ? 6 : 5);
    if (text == "[DONE]") {
      done_ = true;
      return;
    }
    simdjson::dom::element event;
    if (parser_.parse(text.data(), text.size()).get(event) != simdjson::SUCCESS) {
      answer_.error = "an event is no JSON: " + std::string(text.substr(0, 100));
      return;
    }
    if (has_content(event)) {
      if (answer_.content_events++ == 0) answer_.times.first_content_s = now_s;
      answer_.times.last_content_s = now_s;
    }
    simdjson::dom::object usage;
    if (event["usage"].get(usage) == simdjson::SUCCESS) {
      read(usage["prompt_tokens"], answer_.prompt_tokens);
      read(usage["completion_tokens"], answer_.completion_tokens);
      read(usage["prompt_cache_hit_tokens"], answer_.cached_tokens);  // DeepSeek's name for it
      read(usage["prompt_tokens_details"]["cached_tokens"], answer_.cached_tokens);
    }
    std::string_view message;
    if (event["error"]["message"].get(message) == simdjson::SUCCESS)
      answer_.error = std::string(message.substr(0, 300));
  }

  static void read(simdjson::simdjson_result<simdjson::dom::element> field, int64_t& value) {
    int64_t number = 0;
    if (field.get(number) == simdjson::SUCCESS) value = number;
  }

  // Text, thought or a tool call; an announcement of the role is none.
  static bool has_content(simdjson::dom::element event) {
    simdjson::dom::array choices;
    if (event["choices"].get(choices) != simdjson::SUCCESS) return false;
    for (const simdjson::dom::element choice : choices) {
      for (const char* key : {"content", "reasoning_content", "reasoning"}) {
        std::string_view text;
        if (choice["delta"][key].get(text) == simdjson::SUCCESS && !text.empty()) return true;
      }
      simdjson::dom::array calls;
      if (choice["delta"]["tool_calls"].get(calls) == simdjson::SUCCESS && calls.size() > 0) return true;
    }
    return false;
  }

  StreamAnswer& answer_;
  simdjson::dom::parser parser_;
  std::string pending_;
  bool done_ = false;
};

struct Connection {
  std::optional<beast::tcp_stream> plain;
  std::optional<beast::ssl_stream<beast::tcp_stream>> tls;
  beast::flat_buffer buffer;

  beast::tcp_stream& lowest() { return tls ? tls->next_layer() : *plain; }
};

auto token(Error& error) { return asio::redirect_error(asio::use_awaitable, error); }

}  // namespace

Result<StreamTarget> parse_stream_target(const std::string& url) {
  const bool bare = url.find("://") == std::string::npos;
  const std::string whole = bare ? "http://" + url : url;
  const auto parsed = boost::urls::parse_uri(whole);
  if (!parsed || parsed->host().empty() || (parsed->scheme() != "http" && parsed->scheme() != "https")) {
    return invalid_argument("\"" + url + "\" is no URL of an API; write http://HOST:PORT or https://HOST/v1");
  }
  StreamTarget target;
  target.tls = parsed->scheme() == "https";
  target.host = parsed->host_type() == boost::urls::host_type::ipv6 ? parsed->host_address() : parsed->host();
  target.port = parsed->has_port() && !parsed->port().empty() ? std::string(parsed->port()) : target.tls ? "443" : "80";
  target.path = parsed->encoded_path();
  while (!target.path.empty() && target.path.back() == '/') target.path.pop_back();
  if (target.path.empty()) target.path = "/v1";
  return target;
}

class StreamClient::Impl {
 public:
  Impl(asio::io_context& context, StreamTarget target, Options options)
      : context_(context),
        target_(std::move(target)),
        options_(std::move(options)),
        ssl_(asio::ssl::context::tls_client) {
    if (!target_.tls) return;
    Error ignored;
    ssl_.set_default_verify_paths(ignored);
    ssl_.set_verify_mode(asio::ssl::verify_peer);
  }

  asio::awaitable<Status> resolve() {
    tcp::resolver resolver(context_);
    Error error;
    endpoints_ = co_await resolver.async_resolve(target_.host, target_.port, token(error));
    if (error) co_return unavailable("cannot find " + target_.host + ": " + error.message());
    co_return Status();
  }

  asio::awaitable<void> prepare() {
    // One for each that has prepared and not yet asked.
    if (idle_.size() >= ++prepared_) co_return;
    Error error;
    std::unique_ptr<Connection> connection = co_await connect(error);
    if (!error) idle_.push_back(std::move(connection));
  }

  asio::awaitable<StreamAnswer> complete(std::string headers, std::string body) {
    std::string head = "POST " + target_.path + "/chat/completions HTTP/1.1\r\nhost: " + authority() +
                       "\r\ncontent-type: application/json\r\naccept: text/event-stream\r\n";
    if (!options_.api_key.empty()) head += "authorization: Bearer " + options_.api_key + "\r\n";
    head += headers + "content-length: " + std::to_string(body.size()) + "\r\n\r\n";
    if (prepared_ > 0) --prepared_;
    StreamAnswer answer;
    for (int attempt = 0; attempt < 2; ++attempt) {
      answer = {};
      std::unique_ptr<Connection> connection;
      const bool kept = !idle_.empty();
      Error error;
      if (kept) {
        connection = std::move(idle_.back());
        idle_.pop_back();
      } else {
        connection = co_await connect(error);
      }
      if (error) {
        answer.times.sent_s = now_s();
        answer.error = "cannot connect: " + error.message();
        break;
      }
      bool reusable = false;
      if (connection->tls) {
        reusable = co_await exchange(*connection->tls, *connection, head, body, answer);
      } else {
        reusable = co_await exchange(*connection->plain, *connection, head, body, answer);
      }
      if (reusable) idle_.push_back(std::move(connection));
      // Servers close idle connections when they like: nothing was read, so it is asked again on a new one.
      if (!kept || answer.status != 0 || answer.error.empty()) break;
      idle_.clear();  // the others are as old
    }
    answer.times.done_s = now_s();
    co_return answer;
  }

 private:
  std::string authority() const {
    const bool is_v6 = target_.host.find(':') != std::string::npos;
    return (is_v6 ? "[" + target_.host + "]" : target_.host) + ":" + target_.port;
  }
  double now_s() const { return std::chrono::duration<double>(Clock::now() - options_.start).count(); }
  std::chrono::nanoseconds timeout() const {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(options_.timeout_s));
  }

  asio::awaitable<std::unique_ptr<Connection>> connect(Error& error) {
    auto connection = std::make_unique<Connection>();
    if (target_.tls) {
      connection->tls.emplace(context_, ssl_);
      connection->tls->set_verify_callback(asio::ssl::host_name_verification(target_.host));
      SSL_set_tlsext_host_name(connection->tls->native_handle(), target_.host.c_str());
    } else {
      connection->plain.emplace(context_);
    }
    beast::tcp_stream& stream = connection->lowest();
    stream.expires_after(timeout());
    co_await stream.async_connect(endpoints_, token(error));
    if (error) co_return nullptr;
    Error ignored;
    stream.socket().set_option(tcp::no_delay(true), ignored);
    if (connection->tls) co_await connection->tls->async_handshake(asio::ssl::stream_base::client, token(error));
    if (error) co_return nullptr;
    co_return connection;
  }

  // True if the connection may be used again.
  template <class Stream>
  asio::awaitable<bool> exchange(Stream& stream, Connection& connection, const std::string& head,
                                 const std::string& body, StreamAnswer& answer) {
    Error error;
    beast::tcp_stream& lowest = connection.lowest();
    lowest.expires_after(timeout());
    answer.times.sent_s = now_s();
    const std::array<asio::const_buffer, 2> bytes{asio::buffer(head), asio::buffer(body)};
    co_await asio::async_write(stream, bytes, token(error));
    if (error) {
      answer.error = "cannot send: " + error.message();
      co_return false;
    }
    http::response_parser<http::buffer_body> parser;
    parser.body_limit(boost::none);
    lowest.expires_after(timeout());
    co_await http::async_read_header(stream, connection.buffer, parser, token(error));
    if (error) {
      answer.error = "no reply: " + error.message();
      co_return false;
    }
    answer.times.first_byte_s = now_s();
    answer.status = static_cast<int>(parser.get().result_int());
    const auto field = parser.get().find(options_.replica_header);
    if (field != parser.get().end()) answer.replica.assign(field->value().data(), field->value().size());
    EventReader events(answer);
    std::string refusal;
    std::array<char, 16384> chunk;
    while (!parser.is_done() && !error) {
      parser.get().body().data = chunk.data();
      parser.get().body().size = chunk.size();
      lowest.expires_after(timeout());
      co_await http::async_read_some(stream, connection.buffer, parser, token(error));
      if (error == http::error::need_buffer) error = {};
      const std::string_view got(chunk.data(), chunk.size() - parser.get().body().size);
      if (answer.status == 200) {
        events.feed(got, now_s());
      } else if (refusal.size() < kMaxErrorBody) {
        refusal.append(got.substr(0, kMaxErrorBody));
      }
    }
    lowest.expires_never();
    if (answer.status != 200) {
      answer.error = "HTTP " + std::to_string(answer.status) + ": " + refusal;
    } else if (error) {
      answer.error = "the stream was cut: " + error.message();
    } else if (answer.error.empty() && !events.done()) {
      answer.error = "the stream ended without [DONE]";
    }
    co_return !error && parser.get().keep_alive();
  }

  asio::io_context& context_;
  const StreamTarget target_;
  const Options options_;
  asio::ssl::context ssl_;
  tcp::resolver::results_type endpoints_;
  std::vector<std::unique_ptr<Connection>> idle_;
  size_t prepared_ = 0;  // callers of prepare() that have not asked yet
};

StreamClient::StreamClient(asio::io_context& context, StreamTarget target, Options options)
    : impl_(std::make_unique<Impl>(context, std::move(target), std::move(options))) {}
StreamClient::~StreamClient() = default;

asio::awaitable<Status> StreamClient::resolve() { return impl_->resolve(); }
asio::awaitable<void> StreamClient::prepare() { return impl_->prepare(); }
asio::awaitable<StreamAnswer> StreamClient::complete(std::string headers, std::string body) {
  return impl_->complete(std::move(headers), std::move(body));
}

}  // namespace warmpath

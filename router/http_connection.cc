// HttpConnection's answering half, and its beginning and end.

#include "router/http_connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <span>
#include <string>
#include <utility>

namespace warmpath {
namespace {

using Framing = HttpResponseHead::Framing;

constexpr size_t kMaxGather = 64;

// A client whose machine or network went away says nothing. The kernel asks it now and then, so that a request in
// prefill or a stream does not work for nobody until TCP gives up by itself, a quarter of an hour later.
void watch_for_silent_death(int socket, int seconds) {
  const int on = 1, probes = 3, interval = std::max(1, seconds / 6), idle = std::max(1, seconds - probes * interval);
  const unsigned int unacknowledged_ms = static_cast<unsigned int>(seconds) * 1000;
  ::setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
  ::setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &unacknowledged_ms, sizeof unacknowledged_ms);
}

bool has_no_body(int status) { return status == 204 || status == 304 || status / 100 == 1; }

}  // namespace

HttpConnection::HttpConnection(std::shared_ptr<HttpIoThread> thread, HttpSocket socket,
                               std::shared_ptr<HttpListenerState> listener, std::string peer)
    : thread_(std::move(thread)),
      socket_(std::move(socket)),
      listener_(std::move(listener)),
      peer_(std::move(peer)),
      scanner_(thread_->limits()) {
  listener_->connections.fetch_add(1, std::memory_order_relaxed);
}

HttpConnection::~HttpConnection() {
  listener_->connections.fetch_sub(1, std::memory_order_relaxed);
  thread_->load().fetch_sub(1, std::memory_order_relaxed);
}

void HttpConnection::start(bool over_limit) {
  boost::system::error_code ec;
  socket_.non_blocking(true, ec);
  socket_.set_option(boost::asio::ip::tcp::no_delay(true), ec);
  watch_for_silent_death(socket_.native_handle(), limits().dead_peer_s);
  counters().accepted.add(1);
  if (over_limit) return refuse(HttpRefusal::kTooManyConnections);
  set_deadline(limits().idle_s);
  arm_read();
}

void HttpConnection::close_if_idle() {
  if (is_idle()) close(false);
}

void HttpConnection::end_drain() {
  if (state_ == State::kHead || state_ == State::kBody) return refuse(HttpRefusal::kStopping);
  if (state_ != State::kBusy) return;
  const std::function<void()> callback = exchange_->take_drain_callback();
  if (callback) callback();
}

void HttpConnection::force_abort() {
  if (state_ == State::kBusy) {
    client_gone();
  } else {
    close(state_ == State::kFlushing);
  }
}

// --- answering

void HttpConnection::choose_keep_alive() {
  bool keep = exchange_->head().keep_alive && !thread_->shared().draining.load(std::memory_order_relaxed) &&
              (limits().max_requests_per_connection == 0 || requests_ < limits().max_requests_per_connection);
  close_after_ = close_after_ || !keep || read_ended_;
}

std::string_view HttpConnection::connection_field() const { return close_after_ ? "close" : std::string_view(); }

void HttpConnection::respond(int status, const HttpHeaders& headers, std::string body) {
  if (state_ != State::kBusy || stream_ != Stream::kNone) return;
  choose_keep_alive();
  send_whole(status, headers, std::move(body));
}

void HttpConnection::send_whole(int status, const HttpHeaders& headers, std::string body) {
  HttpResponseHead head{.status = status,
                        .date = thread_->date_field(),
                        .connection = connection_field(),
                        .framing = has_no_body(status) ? Framing::kNone : Framing::kLength,
                        .content_length = body.size()};
  const bool body_follows = !has_no_body(status) && !is_head_request();
  output_.push(format_http_head(head, headers, body_follows ? std::min<size_t>(body.size(), 4096) : 0));
  if (body_follows) output_.push(std::move(body));
  finish_answer();
}

void HttpConnection::begin_stream(int status, const HttpHeaders& headers) {
  if (state_ != State::kBusy || stream_ != Stream::kNone) return;
  const bool http11 = exchange_->head().http11;
  if (!http11) close_after_ = true;  // only the connection's end ends such an answer
  choose_keep_alive();
  stream_ = has_no_body(status) || is_head_request() ? Stream::kNoBody
            : http11                                 ? Stream::kChunked
                                                     : Stream::kUntilClose;
  HttpResponseHead head{.status = status,
                        .date = thread_->date_field(),
                        .connection = connection_field(),
                        .framing = http11 && !has_no_body(status) ? Framing::kChunked : Framing::kUntilClose};
  output_.push(format_http_head(head, headers, 256));
  schedule_flush();
}

void HttpConnection::write(std::string bytes) {
  if (state_ != State::kBusy || bytes.empty()) return;
  if (stream_ == Stream::kChunked) {
    output_.push(format_http_chunk(bytes));
  } else if (stream_ == Stream::kUntilClose) {
    output_.push(std::move(bytes));
  } else {
    return;
  }
  schedule_flush();
}

void HttpConnection::end() {
  if (state_ != State::kBusy || stream_ == Stream::kNone) return;
  if (stream_ == Stream::kChunked) output_.push(std::string(kLastHttpChunk));
  finish_answer();
}

void HttpConnection::abort_answer() {
  if (state_ != State::kBusy) return;
  // A chunked answer without its last chunk is seen as cut, whatever closes it; so what is queued may still go out.
  // An answer that the connection's end ends must not end in an orderly way.
  if (stream_ == Stream::kChunked && !write_armed_) flush();
  close(stream_ != Stream::kChunked);
}

void HttpConnection::on_dropped() {
  if (state_ != State::kBusy) return;
  if (stream_ != Stream::kNone) return abort_answer();
  refuse(HttpRefusal::kNoAnswer);
}

void HttpConnection::refuse(HttpRefusal refusal) {
  const HttpRefusalRow& row = http_refusal_row(refusal);
  counters().refused[static_cast<size_t>(refusal)].add(1);
  HttpHeaders headers = {{"content-type", "application/json"}};
  if (row.status == 503) headers.emplace_back("retry-after", std::to_string(limits().retry_after_s));
  if (row.status == 426) headers.emplace_back("upgrade", "HTTP/1.1");
  if (row.status == 415) headers.emplace_back("accept-encoding", "identity");
  std::string body =
      http_error_body(row.message, row.status >= 500 ? "server_error" : "invalid_request_error", row.code);
  close_after_ = true;
  HttpResponseHead head{.status = row.status,
                        .date = thread_->date_field(),
                        .connection = row.status == 426 ? "close, upgrade" : "close",
                        .content_length = body.size()};
  output_.push(format_http_head(head, headers, body.size()));
  if (!is_head_request()) output_.push(std::move(body));
  finish_answer();
}

void HttpConnection::finish_answer() {
  std::shared_ptr<HttpServerExchange> exchange = std::exchange(exchange_, nullptr);
  std::function<void()> unused_callback = exchange ? exchange->finish(false) : nullptr;
  timers_.clear();
  decoder_.reset();
  stream_ = Stream::kNone;
  state_ = State::kFlushing;
  deadline_ = HttpClock::time_point::max();
  if (!write_armed_) flush();
}

void HttpConnection::post_after(double delay_s, std::function<void()> task) {
  if (state_ != State::kBusy) return;
  auto timer = timers_.emplace(timers_.end(), thread_->context());
  timer->expires_after(http_seconds(delay_s));
  timer->async_wait([self = shared_from_this(), exchange = exchange_, timer,
                     task = std::move(task)](const boost::system::error_code& ec) {
    // Over: the timer is gone, whether its wait was cancelled or had just ended.
    if (ec || exchange->is_over()) return;
    self->timers_.erase(timer);
    task();
  });
}

// --- sending

void HttpConnection::schedule_flush() {
  const bool too_much = output_.bytes() > limits().max_unsent_bytes;
  if (flush_posted_ || (write_armed_ && !too_much)) return;
  flush_posted_ = true;
  boost::asio::post(thread_->context(), [self = shared_from_this()] {
    self->flush_posted_ = false;
    if (self->state_ == State::kClosed) return;
    if (!self->write_armed_) self->flush();
    if (self->state_ == State::kBusy && self->output_.bytes() > self->limits().max_unsent_bytes) {
      self->counters().slow_readers.add(1);
      self->client_gone();
    }
  });
}

void HttpConnection::flush() {
  bool progress = false;
  while (!output_.empty()) {
    std::array<std::string_view, kMaxGather> views;
    std::array<boost::asio::const_buffer, kMaxGather> buffers;
    size_t count = output_.gather(views);
    for (size_t i = 0; i < count; ++i) buffers[i] = {views[i].data(), views[i].size()};
    boost::system::error_code ec;
    size_t n = socket_.write_some(std::span(buffers.data(), count), ec);
    if (ec == boost::asio::error::would_block) break;
    if (ec) {
      read_ended_ = true;
      // Reported from the loop, never from inside the handler's call.
      boost::asio::post(thread_->context(), [self = shared_from_this()] {
        self->state_ == State::kBusy ? self->client_gone() : self->close(false);
      });
      output_.clear();
      return;
    }
    counters().bytes_out.add(n);
    output_.consume(n);
    progress = true;
  }
  if (output_.empty()) {
    if (state_ == State::kBusy) deadline_ = HttpClock::time_point::max();
    if (state_ == State::kFlushing) after_flush();
    return;
  }
  if (progress || deadline_ == HttpClock::time_point::max()) set_deadline(limits().write_stall_s);
  write_armed_ = true;
  socket_.async_wait(HttpSocket::wait_write, [self = shared_from_this()](const boost::system::error_code&) {
    self->write_armed_ = false;
    if (self->state_ != State::kClosed) self->flush();
  });
}

void HttpConnection::after_flush() {
  if (std::exchange(counted_in_flight_, false)) {
    thread_->shared().in_flight.fetch_sub(1, std::memory_order_relaxed);
  }
  if (close_after_ || thread_->shared().draining.load(std::memory_order_relaxed)) return start_linger();
  state_ = State::kIdle;
  set_deadline(limits().idle_s);
  if (parsing_) return;
  if (!unparsed_.empty()) {
    take_unparsed_later();  // not from inside the handler's respond()
  } else {
    arm_read();
  }
}

// --- ending

void HttpConnection::start_linger() {
  if (read_ended_) return close(false);
  boost::system::error_code ec;
  socket_.shutdown(HttpSocket::shutdown_send, ec);
  state_ = State::kLingering;
  unparsed_.clear();
  linger_ends_ = HttpClock::now() + http_seconds(limits().linger_total_s);
  set_deadline(limits().linger_s);
  arm_read();
}

void HttpConnection::client_gone() {
  counters().clients_gone.add(1);
  std::shared_ptr<HttpServerExchange> exchange = exchange_;
  std::function<void()> callback = exchange->finish(true);
  close(true);
  if (callback) callback();
}

void HttpConnection::close(bool reset) {
  if (state_ == State::kClosed) return;
  auto self = shared_from_this();
  state_ = State::kClosed;
  if (std::exchange(counted_in_flight_, false)) {
    thread_->shared().in_flight.fetch_sub(1, std::memory_order_relaxed);
  }
  std::shared_ptr<HttpServerExchange> exchange = std::exchange(exchange_, nullptr);
  std::function<void()> unused_callback = exchange && !exchange->is_over() ? exchange->finish(false) : nullptr;
  boost::system::error_code ec;
  if (reset) socket_.set_option(boost::asio::socket_base::linger(true, 0), ec);
  socket_.close(ec);
  timers_.clear();
  decoder_.reset();
  output_.clear();
  unparsed_.clear();
  thread_->remove(self);
}

}  // namespace warmpath

// HttpConnection's reading half: from bytes to a request in the handler's hands.

#include <poll.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <exception>
#include <span>
#include <utility>

#include "base/log.h"
#include "router/http_connection.h"

namespace warmpath {
namespace {

// What one connection may read before the others get their turn.
constexpr size_t kBytesPerTurn = 1 << 20;
// And how many of its requests may be answered: pipelined ones are small.
constexpr uint64_t kRequestsPerTurn = 32;

}  // namespace

void HttpConnection::arm_read() {
  if (read_armed_ || read_ended_ || state_ == State::kClosed) return;
  bool waits_for_answer = state_ == State::kBusy || state_ == State::kFlushing;
  reading_paused_ = waits_for_answer && unparsed_.size() >= limits().max_pipelined_bytes;
  if (reading_paused_) return;
  read_armed_ = true;
  socket_.async_wait(HttpSocket::wait_read, [self = shared_from_this()](const boost::system::error_code&) {
    self->read_armed_ = false;
    if (self->state_ != State::kClosed) self->on_readable();
  });
}

// Where the next bytes go. Empty when there is no room for the body.
std::span<char> HttpConnection::read_space() {
  if (state_ == State::kBody && !decoder_) return exchange_->body().room(body_left_);
  std::span<char> scratch = thread_->scratch();
  if (state_ != State::kBusy && state_ != State::kFlushing) return scratch;
  size_t ahead = limits().max_pipelined_bytes - std::min(limits().max_pipelined_bytes, unparsed_.size());
  return scratch.first(std::min(scratch.size(), std::max<size_t>(ahead, 1)));
}

void HttpConnection::on_readable() {
  size_t turn = 0;
  requests_at_turn_ = requests_;
  while (turn < kBytesPerTurn && !turn_is_over()) {
    std::span<char> space = read_space();
    if (space.empty()) {
      refuse(HttpRefusal::kBodiesInFlight);
      break;
    }
    const bool straight = state_ == State::kBody && !decoder_;
    boost::system::error_code ec;
    size_t n = socket_.read_some(boost::asio::buffer(space.data(), space.size()), ec);
    if (ec == boost::asio::error::would_block) break;
    if (ec) {
      on_read_end(ec == boost::asio::error::eof);
      return;
    }
    turn += n;
    counters().bytes_in.add(n);
    if (straight) {
      exchange_->body().commit(n);
      body_left_ -= n;
      set_deadline(limits().body_stall_s);
      if (body_left_ == 0) dispatch();
    } else if (state_ == State::kLingering) {
      lingered_bytes_ += n;
      set_deadline(limits().linger_s);
      deadline_ = std::min(deadline_, linger_ends_);
      if (lingered_bytes_ > limits().linger_bytes) close(false);
    } else {
      take_input({space.data(), n});
    }
    if (state_ == State::kClosed) return;
    if (n < space.size()) break;
    if (state_ == State::kBusy && unparsed_.size() >= limits().max_pipelined_bytes) break;
  }
  turn_is_over() && !unparsed_.empty() ? take_unparsed_later() : arm_read();
}

bool HttpConnection::turn_is_over() const { return requests_ - requests_at_turn_ >= kRequestsPerTurn; }

void HttpConnection::take_unparsed_later() {
  boost::asio::post(thread_->context(), [self = shared_from_this()] {
    if (self->state_ == State::kClosed) return;
    self->requests_at_turn_ = self->requests_;
    self->take_unparsed();
    self->turn_is_over() && !self->unparsed_.empty() ? self->take_unparsed_later() : self->arm_read();
  });
}

void HttpConnection::on_read_end(bool orderly) {
  read_ended_ = true;
  switch (state_) {
    case State::kBusy:
      client_gone();
      return;
    case State::kFlushing:
      // It asked, closed its side and still reads: let it have the answer.
      if (!orderly) break;
      close_after_ = true;
      return;
    case State::kHead:
    case State::kBody:
      counters().truncated.add(1);
      break;
    default:
      break;
  }
  close(false);
}

void HttpConnection::take_input(std::string_view bytes) {
  if (state_ == State::kBusy || state_ == State::kFlushing) {
    unparsed_.append(bytes);
  } else if (!unparsed_.empty()) {
    unparsed_.append(bytes);
    take_unparsed();
  } else {
    size_t used = parse(bytes);
    if (state_ != State::kClosed && state_ != State::kLingering) unparsed_.assign(bytes.substr(used));
  }
}

void HttpConnection::take_unparsed() {
  if (unparsed_.empty() || parsing_) return;
  std::string input = std::exchange(unparsed_, {});
  size_t used = parse(input);
  if (used == input.size() || state_ == State::kClosed || state_ == State::kLingering) return;
  input.erase(0, used);
  unparsed_ = std::move(input);
}

// Takes what it can, request after request as long as each is answered at once. Returns how much.
size_t HttpConnection::parse(std::string_view bytes) {
  parsing_ = true;
  size_t used = 0;
  while (used < bytes.size() && !turn_is_over()) {
    size_t taken = 0;
    if (state_ == State::kBody) {
      taken = take_body(bytes.substr(used));
    } else if (state_ == State::kIdle || state_ == State::kHead) {
      taken = take_head(bytes.substr(used));
    }
    if (taken == 0) break;
    used += taken;
  }
  parsing_ = false;
  return used;
}

size_t HttpConnection::take_head(std::string_view bytes) {
  // An empty line before a request is skipped (RFC 9112 §2.2).
  if (state_ == State::kIdle && bytes[0] == '\r') {
    if (bytes.size() == 1) return 0;
    if (bytes[1] == '\n') return 2;
  }
  if (state_ == State::kIdle) {
    state_ = State::kHead;
    set_deadline(limits().head_read_s);
  }
  switch (scanner_.scan(bytes)) {
    case HttpHeadScanner::Outcome::kNeedMore:
      return 0;
    case HttpHeadScanner::Outcome::kRefused:
      refuse(scanner_.refusal());
      return bytes.size();
    case HttpHeadScanner::Outcome::kComplete:
      break;
  }
  size_t head_bytes = scanner_.head_bytes();
  scanner_.reset();
  begin_request(bytes.substr(0, head_bytes), bytes.size() - head_bytes);
  return head_bytes;
}

void HttpConnection::begin_request(std::string_view head_bytes, size_t bytes_behind) {
  exchange_ = std::make_shared<HttpServerExchange>(thread_, this, head_bytes, peer_);
  HttpRefusal refusal = exchange_->parse(limits());
  const HttpHead& head = exchange_->head();
  if (refusal == HttpRefusal::kNone) {
    counters().requests.add(1);
    ++requests_;
    if (head.content_length > limits().max_body_bytes) {
      refusal = HttpRefusal::kBodyTooLarge;
    } else if (!thread_->shared().bodies->fits(head.content_length)) {
      refusal = HttpRefusal::kBodiesInFlight;
    }
  }
  if (refusal != HttpRefusal::kNone) return refuse(refusal);
  if (!head.chunked && head.content_length == 0) return dispatch();
  if ((head.chunked || head.content_length > limits().large_body_bytes) && refused_by_handler()) return;

  state_ = State::kBody;
  body_began_ = HttpClock::now();
  set_deadline(limits().body_stall_s);
  if (head.chunked) {
    decoder_.emplace(limits(), exchange_->body());
  } else {
    body_left_ = head.content_length;
  }
  if (head.expects_continue && bytes_behind == 0) {
    output_.push("HTTP/1.1 100 Continue\r\n\r\n");
    schedule_flush();
  }
}

bool HttpConnection::refused_by_handler() {
  std::optional<HttpAnswer> answer;
  try {
    answer = listener_->handler->refuse_before_body(exchange_->request());
  } catch (const std::exception& e) {
    log_error("http_handler_threw", {{"what", e.what()}});
    refuse(HttpRefusal::kNoAnswer);
    return true;
  }
  if (!answer) return false;
  close_after_ = true;
  send_whole(answer->status, answer->headers, std::move(answer->body));
  return true;
}

size_t HttpConnection::take_body(std::string_view bytes) {
  if (decoder_) {
    size_t taken = decoder_->feed(bytes);
    if (taken > 0) set_deadline(limits().body_stall_s);
    if (decoder_->refusal() != HttpRefusal::kNone) {
      refuse(decoder_->refusal());
      return bytes.size();
    }
    if (decoder_->done()) dispatch();
    return taken;
  }
  std::string_view mine = bytes.substr(0, static_cast<size_t>(std::min<uint64_t>(bytes.size(), body_left_)));
  if (!exchange_->body().append(mine, body_left_)) {
    refuse(HttpRefusal::kBodiesInFlight);
    return bytes.size();
  }
  body_left_ -= mine.size();
  if (body_left_ == 0) dispatch();
  return mine.size();
}

void HttpConnection::dispatch() {
  state_ = State::kBusy;
  deadline_ = HttpClock::time_point::max();
  decoder_.reset();
  exchange_->seal_body();
  counted_in_flight_ = true;
  thread_->shared().in_flight.fetch_add(1, std::memory_order_relaxed);
  try {
    listener_->handler->handle(exchange_->make_handle());
  } catch (const std::exception& e) {
    // The handle it held is gone with it, which answers 500.
    log_error("http_handler_threw", {{"what", e.what()}});
  }
}

bool HttpConnection::body_is_too_slow(HttpClock::time_point now) const {
  if (state_ != State::kBody || limits().min_body_bytes_per_s == 0) return false;
  double seconds = std::chrono::duration<double>(now - body_began_).count();
  if (seconds <= limits().body_grace_s) return false;
  return static_cast<double>(exchange_->body().size()) < seconds * static_cast<double>(limits().min_body_bytes_per_s);
}

void HttpConnection::on_due(HttpClock::time_point now) {
  if (reading_paused_ && state_ != State::kClosed) {
    // Nothing is read, so the kernel must be asked whether the client is still there.
    pollfd probe{socket_.native_handle(), POLLRDHUP, 0};
    if (::poll(&probe, 1, 0) > 0 && (probe.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0) {
      read_ended_ = true;
      reading_paused_ = false;
      return on_read_end((probe.revents & (POLLHUP | POLLERR)) == 0);
    }
  }
  const bool slow = body_is_too_slow(now);
  if (now < deadline_ && !slow) return;
  switch (state_) {
    case State::kIdle:
      counters().idle_closed.add(1);
      close(false);
      break;
    case State::kHead:
      refuse(HttpRefusal::kHeadTimeout);
      break;
    case State::kBody:
      refuse(HttpRefusal::kBodyTimeout);
      break;
    case State::kBusy:
      counters().slow_readers.add(1);
      client_gone();
      break;
    case State::kFlushing:
      counters().slow_readers.add(1);
      close(true);
      break;
    case State::kLingering:
      close(false);
      break;
    case State::kClosed:
      break;
  }
}

}  // namespace warmpath

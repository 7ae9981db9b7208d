// One client connection of the HTTP server: a state machine over non-blocking reads and writes.
// Internal to http_*.cc: includes Asio.
//
//   idle -> head -> body -> busy (the handler has it) -> flushing -> idle ... or -> lingering -> closed
//
// Reading: the thread's scratch buffer takes headers and small bodies, a body of known length is read straight into its
// own buffer. While busy the socket is still watched, so that a client that leaves is noticed; what it sends ahead
// waits in unparsed_, up to max_pipelined_bytes. Writing: everything goes through output_, which is flushed once per
// turn of the event loop; nothing is ever written from inside write().
//
// Thread safety: on the I/O thread only. Lifetime: kept by its thread's set until closed, and by pending operations.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "router/http.h"
#include "router/http_chunked.h"
#include "router/http_head.h"
#include "router/http_io_thread.h"
#include "router/http_output.h"
#include "router/http_server_exchange.h"

namespace warmpath {

// One listener's handler and its connections' number.
struct HttpListenerState {
  explicit HttpListenerState(HttpHandler* h) : handler(h) {}
  HttpHandler* const handler;
  std::atomic<size_t> connections{0};
};

class HttpConnection : public std::enable_shared_from_this<HttpConnection> {
 public:
  HttpConnection(std::shared_ptr<HttpIoThread> thread, HttpSocket socket, std::shared_ptr<HttpListenerState> listener,
                 std::string peer);
  ~HttpConnection();

  void start(bool over_limit);
  // Between requests, or before the first, with nothing received.
  bool is_idle() const { return state_ == State::kIdle && unparsed_.empty(); }
  HttpClock::time_point deadline() const { return deadline_; }
  void close_if_idle();
  // End of a drain: the handler is told, a request that is still being received is refused.
  void end_drain();
  // Closes now; an answer in flight is aborted and its handler told.
  void force_abort();

  // The sweep of deadlines.
  bool is_due(HttpClock::time_point now) const { return now >= deadline_ || reading_paused_ || state_ == State::kBody; }
  void on_due(HttpClock::time_point now);

  // --- for the exchange in progress
  void respond(int status, const HttpHeaders& headers, std::string body);
  void begin_stream(int status, const HttpHeaders& headers);
  void write(std::string bytes);
  size_t unsent_bytes() const { return output_.bytes(); }
  void end();
  void abort_answer();
  void on_dropped();  // no handler holds it any more, and it is not answered
  void post_after(double delay_s, std::function<void()> task);

 private:
  enum class State { kIdle, kHead, kBody, kBusy, kFlushing, kLingering, kClosed };

  // --- http_connection_input.cc
  void arm_read();
  void on_readable();
  std::span<char> read_space();
  void take_input(std::string_view bytes);
  void take_unparsed();
  void take_unparsed_later();
  bool turn_is_over() const;
  size_t parse(std::string_view bytes);
  size_t take_head(std::string_view bytes);
  void begin_request(std::string_view head, size_t bytes_behind);
  size_t take_body(std::string_view bytes);
  void dispatch();
  void on_read_end(bool orderly);
  void refuse(HttpRefusal refusal);
  bool refused_by_handler();
  void send_whole(int status, const HttpHeaders& headers, std::string body);
  bool body_is_too_slow(HttpClock::time_point now) const;

  // --- http_connection.cc
  HttpThreadCounters& counters() { return thread_->counters(); }
  const HttpLimits& limits() const { return thread_->limits(); }
  void set_deadline(double seconds) { deadline_ = HttpClock::now() + http_seconds(seconds); }
  bool is_head_request() const { return exchange_ && exchange_->head().request.method == "HEAD"; }
  void choose_keep_alive();
  std::string_view connection_field() const;
  void finish_answer();
  void schedule_flush();
  void flush();
  void after_flush();
  void start_linger();
  void client_gone();
  void close(bool reset);

  const std::shared_ptr<HttpIoThread> thread_;
  HttpSocket socket_;
  const std::shared_ptr<HttpListenerState> listener_;
  const std::string peer_;

  State state_ = State::kIdle;
  HttpClock::time_point deadline_ = HttpClock::time_point::max();
  uint64_t requests_ = 0;
  uint64_t requests_at_turn_ = 0;  // requests_ when this turn of the event loop began
  bool read_armed_ = false;
  bool reading_paused_ = false;  // enough was sent ahead
  bool read_ended_ = false;      // the client has closed its side
  bool parsing_ = false;
  bool write_armed_ = false;
  bool flush_posted_ = false;
  bool close_after_ = false;
  bool counted_in_flight_ = false;

  std::string unparsed_;
  HttpHeadScanner scanner_;
  std::shared_ptr<HttpServerExchange> exchange_;
  uint64_t body_left_ = 0;  // of a body of known length
  std::optional<HttpChunkDecoder> decoder_;
  HttpClock::time_point body_began_;
  uint64_t lingered_bytes_ = 0;
  HttpClock::time_point linger_ends_;

  enum class Stream { kNone, kChunked, kUntilClose, kNoBody } stream_ = Stream::kNone;
  HttpOutput output_;
  std::list<HttpTimer> timers_;  // of the exchange in progress
};

}  // namespace warmpath

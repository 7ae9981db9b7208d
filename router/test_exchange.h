// TestExchange: an HttpExchange without a socket. What the handler does is recorded; the test thread waits for it.
// Thread safety: the exchange's methods on the test's I/O queue (one thread), the wait_ and seen_ ones on the test's.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "router/http.h"
#include "router/task_queue.h"

namespace warmpath {

struct SeenAnswer {
  int status = 0;  // 0: nothing yet
  HttpHeaders headers;
  std::string body;  // whole, or all stream bytes so far
  bool streamed = false;
  bool ended = false;    // complete
  bool aborted = false;  // cut

  std::string header(std::string_view name) const;  // "" when absent
  bool over() const { return ended || aborted; }
};

class TestExchange final : public HttpExchange, public std::enable_shared_from_this<TestExchange> {
 public:
  TestExchange(TaskQueue& io, std::string method, std::string target, HttpHeaders headers, std::string body);

  // Hands it to `handler` on the I/O queue.
  void send_to(HttpHandler& handler);
  // The client closes its connection.
  void leave();
  // The gateway's time to drain is over.
  void end_drain();
  // False after five seconds.
  bool wait_until(const std::function<bool(const SeenAnswer&)>& happened);
  // Waits until it is complete or cut.
  SeenAnswer answer();
  SeenAnswer seen() const;

  const HttpRequest& request() const override { return request_; }
  void respond(int status, const HttpHeaders& headers, std::string body) override;
  void begin_stream(int status, const HttpHeaders& headers) override;
  void write(std::string bytes) override;
  size_t unsent_bytes() const override { return 0; }
  void end() override;
  void abort() override;
  void on_client_gone(std::function<void()> callback) override;
  void on_drain_over(std::function<void()> callback) override;
  void post(std::function<void()> task) override;
  void post_after(double delay_s, std::function<void()> task) override;

 private:
  void change(const std::function<void(SeenAnswer&)>& change);

  TaskQueue& io_;
  const std::string method_;
  const std::string target_;
  const HttpHeaders fields_;
  const std::string body_;
  HttpRequest request_;
  std::function<void()> gone_;        // I/O thread only
  std::function<void()> drain_over_;  // I/O thread only

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  SeenAnswer seen_;
};

}  // namespace warmpath

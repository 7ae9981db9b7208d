#include "router/test_exchange.h"

#include <chrono>
#include <future>

#include "base/check.h"

namespace warmpath {

namespace {
constexpr auto kPatience = std::chrono::seconds(5);

std::string with_padding(std::string body) {
  body.reserve(body.size() + 64);
  return body;
}
}  // namespace

std::string SeenAnswer::header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (http_iequals(key, name)) return value;
  }
  return "";
}

TestExchange::TestExchange(TaskQueue& io, std::string method, std::string target, HttpHeaders headers, std::string body)
    : io_(io),
      method_(std::move(method)),
      target_(std::move(target)),
      fields_(std::move(headers)),
      body_(with_padding(std::move(body))) {
  request_.method = method_;
  request_.target = target_;
  const std::string_view target_view = target_;
  const size_t question = target_view.find('?');
  request_.path = target_view.substr(0, question);
  if (question != std::string_view::npos) request_.query = target_view.substr(question + 1);
  for (const auto& [name, value] : fields_) request_.headers.emplace_back(name, value);
  request_.body = body_;
  request_.peer = "127.0.0.1:1";
}

void TestExchange::send_to(HttpHandler& handler) {
  io_.post([self = shared_from_this(), &handler] { handler.handle(self); });
}

void TestExchange::leave() {
  // Until the gateway knows: a test that ends with this must not take the gateway away in the middle of it.
  std::promise<void> told;
  io_.post([this, &told] {
    if (!seen().over()) {
      change([](SeenAnswer& seen) { seen.aborted = true; });
      if (gone_) std::exchange(gone_, nullptr)();
    }
    told.set_value();
  });
  told.get_future().wait();
}

void TestExchange::end_drain() {
  io_.post([self = shared_from_this()] {
    if (!self->seen().over() && self->drain_over_) std::exchange(self->drain_over_, nullptr)();
  });
}

bool TestExchange::wait_until(const std::function<bool(const SeenAnswer&)>& happened) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, kPatience, [&] { return happened(seen_); });
}

SeenAnswer TestExchange::answer() {
  wait_until([](const SeenAnswer& seen) { return seen.over(); });
  return seen();
}

SeenAnswer TestExchange::seen() const {
  const std::lock_guard lock(mutex_);
  return seen_;
}

void TestExchange::change(const std::function<void(SeenAnswer&)>& change) {
  {
    const std::lock_guard lock(mutex_);
    change(seen_);
  }
  changed_.notify_all();
}

void TestExchange::respond(int status, const HttpHeaders& headers, std::string body) {
  change([&](SeenAnswer& seen) {
    WARMPATH_CHECK(seen.status == 0, "an exchange was answered twice");
    seen.status = status;
    seen.headers = headers;
    seen.body = std::move(body);
    seen.ended = true;
  });
  gone_ = drain_over_ = nullptr;
}

void TestExchange::begin_stream(int status, const HttpHeaders& headers) {
  change([&](SeenAnswer& seen) {
    WARMPATH_CHECK(seen.status == 0, "an exchange was answered twice");
    seen.status = status;
    seen.headers = headers;
    seen.streamed = true;
  });
}

void TestExchange::write(std::string bytes) {
  change([&](SeenAnswer& seen) {
    WARMPATH_CHECK(seen.streamed && !seen.ended, "bytes outside a stream");
    seen.body += bytes;
  });
}

void TestExchange::end() {
  change([](SeenAnswer& seen) { seen.ended = true; });
  gone_ = drain_over_ = nullptr;
}

void TestExchange::abort() {
  change([](SeenAnswer& seen) { seen.aborted = true; });
  gone_ = drain_over_ = nullptr;
}

void TestExchange::on_client_gone(std::function<void()> callback) { gone_ = std::move(callback); }

void TestExchange::on_drain_over(std::function<void()> callback) { drain_over_ = std::move(callback); }

void TestExchange::post(std::function<void()> task) {
  io_.post([self = shared_from_this(), task = std::move(task)] { task(); });
}

void TestExchange::post_after(double delay_s, std::function<void()> task) {
  io_.post_after(delay_s, [weak = weak_from_this(), task = std::move(task)] {
    const auto self = weak.lock();
    if (self && !self->seen().over()) task();
  });
}

}  // namespace warmpath

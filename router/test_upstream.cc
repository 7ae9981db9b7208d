#include "router/test_upstream.h"

#include <chrono>

#include "base/check.h"
#include "model_file/synthetic_model.h"

namespace warmpath {

namespace {
constexpr auto kPatience = std::chrono::seconds(5);
constexpr TokenId kFirstByte = 3;
}  // namespace

const std::string& test_model_file() {
  static const std::string kFile = [] {
    const auto bytes = make_synthetic_model("synthetic:llama-1x64");
    WARMPATH_CHECK(bytes.ok(), "no synthetic model");
    return std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  }();
  return kFile;
}

std::string TestCall::prompt_text() const {
  std::string text;
  for (const TokenId token : request_.prompt) {
    if (token >= kFirstByte) text += static_cast<char>(token - kFirstByte);
  }
  return text;
}

void TestCall::push(std::function<void(GenerateListener&)> step) {
  queue_.post([self = shared_from_this(), step = std::move(step)] { step(*self->listener_); });
}

void TestCall::cancel() {
  if (cancelled_.exchange(true)) return;
  done({StatusCode::kCancelled, "cancelled"});
}

void TestCall::update(GenerateUpdate update) {
  push([this, update = std::move(update)](GenerateListener& listener) {
    if (!cancelled_.load()) listener.on_update(update);
  });
}

void TestCall::start(int32_t cached_tokens) {
  GenerateUpdate update_message;
  update_message.start = StartInfo{.cached_device_tokens = cached_tokens, .queue_s = 0.001, .prefill_s = 0.002};
  update(std::move(update_message));
}

void TestCall::text(std::string_view bytes, int32_t choice) {
  GenerateUpdate update_message;
  for (const char byte : bytes) {
    TokenOutput& token = update_message.tokens.emplace_back();
    token.choice = choice;
    token.token = byte_token(byte);
    if (request_.sampling.top_logprobs >= 0) token.logprob = -0.25f;
    if (request_.sampling.top_logprobs > 0) token.top_logprobs = {{byte_token(byte), -0.25f}, {byte_token('?'), -2.0f}};
  }
  tokens_ += static_cast<int32_t>(bytes.size());
  update(std::move(update_message));
}

void TestCall::finish(FinishReason reason, int32_t choice) {
  GenerateUpdate update_message;
  update_message.finished.push_back({.choice = choice, .reason = reason, .completion_tokens = tokens_.exchange(0)});
  update(std::move(update_message));
}

void TestCall::done(Status status) {
  if (done_.exchange(true)) return;
  push([status = std::move(status)](GenerateListener& listener) { listener.on_done(status); });
}

void TestCall::reply(std::string_view bytes, int32_t cached_tokens) {
  start(cached_tokens);
  for (int32_t choice = 0; choice < request_.sampling.n; ++choice) {
    text(bytes, choice);
    finish(FinishReason::kStop, choice);
  }
  GenerateUpdate last;
  last.timings = RequestTimings{.queue_s = 0.001, .prefill_s = 0.002, .decode_s = 0.003, .decode_steps = 1};
  update(std::move(last));
  done({});
}

class TestUpstream::Subscription final : public UpstreamCall, public std::enable_shared_from_this<Subscription> {
 public:
  Subscription(std::shared_ptr<KvEventListener> listener, TaskQueue& queue)
      : listener_(std::move(listener)), queue_(queue) {}
  void cancel() override { close({StatusCode::kCancelled, ""}); }
  void close(Status status) {
    if (closed_.exchange(true)) return;
    queue_.post([self = shared_from_this(), status = std::move(status)] { self->listener_->on_closed(status); });
  }
  void send(KvEventBatch batch) {
    queue_.post([self = shared_from_this(), batch = std::move(batch)] {
      if (!self->closed_.load()) self->listener_->on_batch(batch);
    });
  }

 private:
  const std::shared_ptr<KvEventListener> listener_;
  TaskQueue& queue_;
  std::atomic<bool> closed_{false};
};

TestUpstream::TestUpstream(std::string address) : address_(std::move(address)), queue_("upstream", 1) {
  description_.software = "test";
  description_.boot_epoch = 100 + std::hash<std::string>()(address_) % 1000;
  description_.model = "test-model";
  description_.fingerprint = {1, 2};
  description_.tokenizer_hash = hash128(test_model_file());
  description_.vocabulary = 512;
  description_.context_tokens = 4096;
  description_.device_blocks = 1000;
  description_.max_running = 8;
  description_.max_queued = 8;
  description_.end_tokens = {2};
}

std::shared_ptr<TestCall> TestUpstream::call(size_t number) {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, kPatience, [&] { return calls_.size() > number; })) return nullptr;
  return calls_[number];
}

size_t TestUpstream::calls() const {
  const std::lock_guard lock(mutex_);
  return calls_.size();
}

void TestUpstream::drop_calls() {
  std::vector<std::shared_ptr<TestCall>> dropped;  // destroyed without the lock
  {
    const std::lock_guard lock(mutex_);
    dropped.swap(calls_);
  }
}

ReplicaDescription TestUpstream::description() const {
  const std::lock_guard lock(mutex_);
  return description_;
}

void TestUpstream::change_description(const std::function<void(ReplicaDescription&)>& change) {
  const std::lock_guard lock(mutex_);
  change(description_);
  sequence_ = 0;
}

void TestUpstream::set_stats(const ReplicaStats& stats) {
  const std::lock_guard lock(mutex_);
  stats_ = stats;
}

void TestUpstream::set_down(bool down) {
  std::shared_ptr<Subscription> broken;
  {
    const std::lock_guard lock(mutex_);
    down_ = down;
    if (down) broken = std::move(subscription_);
  }
  if (broken) broken->close(unavailable("connection lost"));
}

void TestUpstream::send_events(std::vector<KvEvent> events) {
  const std::lock_guard lock(mutex_);
  if (!subscription_) return;
  subscription_->send({description_.boot_epoch, ++sequence_, KvEventBatch::Kind::kLive, std::move(events)});
}

void TestUpstream::describe(double, std::function<void(Result<ReplicaDescription>)> done) {
  queue_.post([this, done = std::move(done)] {
    const std::unique_lock lock(mutex_);
    const Result<ReplicaDescription> answer = down_ ? Result<ReplicaDescription>(unavailable("connection refused"))
                                                    : Result<ReplicaDescription>(description_);
    done(answer);
  });
}

void TestUpstream::stats(double, std::function<void(Result<ReplicaStats>)> done) {
  queue_.post([this, done = std::move(done)] {
    const std::unique_lock lock(mutex_);
    ReplicaStats stats = stats_;
    stats.boot_epoch = description_.boot_epoch;
    done(down_ ? Result<ReplicaStats>(unavailable("connection refused")) : Result<ReplicaStats>(stats));
  });
}

void TestUpstream::fetch_tokenizer(double, std::function<void(Result<std::string>)> done) {
  queue_.post([done = std::move(done)] { done(test_model_file()); });
}

std::shared_ptr<UpstreamCall> TestUpstream::generate(const GenerateRequest& request,
                                                     std::shared_ptr<GenerateListener> listener) {
  auto call = std::make_shared<TestCall>(request, std::move(listener), queue_);
  bool down = false;
  {
    const std::lock_guard lock(mutex_);
    calls_.push_back(call);
    down = down_;
  }
  changed_.notify_all();
  if (down) {
    call->done(unavailable("connection refused"));
  } else if (on_generate) {
    queue_.post([this, call] { on_generate(call); });
  }
  return call;
}

void TestUpstream::lose_events() {
  const std::lock_guard lock(mutex_);
  ++sequence_;
}

void TestUpstream::hold_events(bool held) {
  const std::lock_guard lock(mutex_);
  events_held_ = held;
}

std::shared_ptr<UpstreamCall> TestUpstream::subscribe(std::shared_ptr<KvEventListener> listener) {
  auto subscription = std::make_shared<Subscription>(std::move(listener), queue_);
  const std::lock_guard lock(mutex_);
  if (down_) {
    subscription->close(unavailable("connection refused"));
    return subscription;
  }
  subscription_ = subscription;
  if (events_held_) return subscription;
  subscription->send({description_.boot_epoch, sequence_, KvEventBatch::Kind::kSnapshotBegin, {}});
  subscription->send({description_.boot_epoch, sequence_, KvEventBatch::Kind::kSnapshotEnd, {}});
  return subscription;
}

}  // namespace warmpath

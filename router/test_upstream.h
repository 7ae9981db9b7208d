// TestUpstream: a replica that does what a test says. One token is one byte (the synthetic tokenizer), so answers are
// written as plain text. Callbacks come from a thread of its own, as a real upstream's do.
// Thread safety: any thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "router/task_queue.h"
#include "router/upstream.h"

namespace warmpath {

// One generate() call, answered by the test.
class TestCall final : public UpstreamCall, public std::enable_shared_from_this<TestCall> {
 public:
  TestCall(GenerateRequest request, std::shared_ptr<GenerateListener> listener, TaskQueue& queue)
      : request_(std::move(request)), listener_(std::move(listener)), queue_(queue) {}

  const GenerateRequest& request() const { return request_; }
  std::string prompt_text() const;  // byte tokens as text, control tokens left out
  bool cancelled() const { return cancelled_.load(); }
  void cancel() override;

  void update(GenerateUpdate update);
  void start(int32_t cached_tokens);
  void text(std::string_view bytes, int32_t choice = 0);
  void finish(FinishReason reason, int32_t choice = 0);
  void done(Status status);
  // All of it: start, text, finish of every choice, timings, done.
  void reply(std::string_view bytes, int32_t cached_tokens = 0);

 private:
  void push(std::function<void(GenerateListener&)> step);

  const GenerateRequest request_;
  const std::shared_ptr<GenerateListener> listener_;
  TaskQueue& queue_;
  std::atomic<bool> cancelled_{false};
  std::atomic<bool> done_{false};
  std::atomic<int32_t> tokens_{0};
};

class TestUpstream final : public Upstream {
 public:
  explicit TestUpstream(std::string address);
  ~TestUpstream() override { queue_.stop(); }

  // What generate() does, on the upstream's thread. The default keeps the call for the test.
  std::function<void(const std::shared_ptr<TestCall>&)> on_generate;
  // The n-th call; waits for it (five seconds, then null).
  std::shared_ptr<TestCall> call(size_t number);
  size_t calls() const;
  // Calls lead back here (call, listener, replica, upstream): a test lets go of them at its end.
  void drop_calls();

  ReplicaDescription description() const;
  void change_description(const std::function<void(ReplicaDescription&)>& change);
  void set_stats(const ReplicaStats& stats);
  // While down, everything answers kUnavailable. Subscriptions break off.
  void set_down(bool down);
  // New subscriptions hear nothing, not even a snapshot.
  void hold_events(bool held);
  void send_events(std::vector<KvEvent> events);  // one live batch
  void lose_events();                             // one live batch that nobody hears of

  const std::string& address() const override { return address_; }
  void describe(double timeout_s, std::function<void(Result<ReplicaDescription>)> done) override;
  void stats(double timeout_s, std::function<void(Result<ReplicaStats>)> done) override;
  void fetch_tokenizer(double timeout_s, std::function<void(Result<std::string>)> done) override;
  std::shared_ptr<UpstreamCall> generate(const GenerateRequest& request,
                                         std::shared_ptr<GenerateListener> listener) override;
  std::shared_ptr<UpstreamCall> subscribe(std::shared_ptr<KvEventListener> listener) override;

 private:
  class Subscription;

  const std::string address_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  ReplicaDescription description_;
  ReplicaStats stats_;
  bool down_ = false;
  bool events_held_ = false;
  std::vector<std::shared_ptr<TestCall>> calls_;
  std::shared_ptr<Subscription> subscription_;
  uint64_t sequence_ = 0;
  TaskQueue queue_;
};

// A synthetic model's file, whose tokenizer every TestUpstream has; and the id of a byte in it.
const std::string& test_model_file();
constexpr TokenId byte_token(char byte) { return 3 + static_cast<uint8_t>(byte); }

}  // namespace warmpath

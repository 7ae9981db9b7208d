#include "engine/engine_loop.h"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <random>
#include <utility>

#include "base/check.h"
#include "base/log.h"

namespace warmpath {

namespace {

constexpr MonotonicNs kHeartbeatNs = 1'000'000'000;
constexpr double kMaxPinSeconds = 1e7;
// With fewer empty blocks than this part of all, heartbeats announce the next ones to go.
constexpr int64_t kEmptyShare = 20;
constexpr int64_t kEvictSoonBlocks = 64;

uint64_t random_epoch() {
  std::random_device device;
  return (static_cast<uint64_t>(device()) << 32 | device()) | 1;  // never 0: that means unknown on the wire
}

// Tells the loop when a request is over, after the caller's own sink.
class CountedSink final : public RequestSink {
 public:
  CountedSink(std::shared_ptr<RequestSink> sink, std::function<void()> on_over)
      : sink_(std::move(sink)), on_over_(std::move(on_over)) {}
  void on_update(GenerateUpdate update) override { sink_->on_update(std::move(update)); }
  void flush() override { sink_->flush(); }
  void on_done(Status status) override {
    on_over_();
    sink_->on_done(std::move(status));
  }

 private:
  const std::shared_ptr<RequestSink> sink_;
  const std::function<void()> on_over_;
};

}  // namespace

std::unique_ptr<Engine> Engine::create(Backend& backend, const Vocabulary& vocabulary, EngineOptions options,
                                       const Clock& clock) {
  return std::make_unique<EngineLoop>(backend, vocabulary, std::move(options), clock);
}

EngineLoop::EngineLoop(Backend& backend, const Vocabulary& vocabulary, EngineOptions options, const Clock& clock)
    : boot_epoch_(random_epoch()),
      max_queued_(std::max(options.max_queued, 1)),
      clock_(clock),
      core_(backend, vocabulary, options, clock, boot_epoch_),
      grammars_(std::make_unique<GrammarStore>([this, size = backend.vocabulary(), ends = options.end_tokens] {
        return GrammarCompiler::create(core_.text(), size, ends);
      })) {
  publish_stats();
  thread_ = std::thread([this] { run(); });
}

EngineLoop::~EngineLoop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
  grammars_.reset();  // its thread calls into this
}

Status EngineLoop::refuse_locked(const std::string& request_id) const {
  if (stopping_ || draining_) return unavailable("the replica is draining and takes no new requests: use another one");
  if (active_ids_.contains(request_id)) {
    return invalid_argument(fmt::format("request_id \"{}\" is in use by a running request", request_id));
  }
  if (stats_.queued >= max_queued_) {
    return resource_exhausted(
        fmt::format("{} requests wait in this replica's queue, which holds {}: retry later or use another replica",
                    stats_.queued, max_queued_));
  }
  return {};
}

Status EngineLoop::submit(GenerateRequest request, std::shared_ptr<RequestSink> sink) {
  const std::string id = request.request_id;
  uint64_t number;
  {
    const std::lock_guard lock(mutex_);
    WARMPATH_RETURN_IF_ERROR(refuse_locked(id));
    number = ++next_number_;
  }
  auto counted = std::make_shared<CountedSink>(std::move(sink), [this, id] {
    const std::lock_guard lock(mutex_);
    active_ids_.erase(id);
  });
  Result<std::shared_ptr<Generation>> accepted = core_.accept(std::move(request), std::move(counted), number);
  if (!accepted.ok()) return accepted.status();
  const std::shared_ptr<Generation> generation = std::move(*accepted);
  if (!generation->request().grammar.empty()) {
    {
      const std::lock_guard lock(mutex_);
      WARMPATH_RETURN_IF_ERROR(refuse_locked(id));
      active_ids_.insert(id);
      compiling_.emplace(id, generation);
      ++stats_.queued;
    }
    grammars_->get(generation->request().grammar,
                   [this, generation](const GrammarStore::Compiled& compiled) { on_grammar(generation, compiled); });
    return {};
  }
  {
    const std::lock_guard lock(mutex_);
    WARMPATH_RETURN_IF_ERROR(refuse_locked(id));
    active_ids_.insert(id);
    ++stats_.queued;
    inbox_.push_back([this, generation] { core_.start(generation); });
  }
  wake_.notify_one();
  return {};
}

void EngineLoop::cancel(const std::string& request_id) {
  post([this, request_id] {
    const Status why(StatusCode::kCancelled, "the caller cancelled the request");
    if (const auto generation = stop_compiling(request_id)) {
      generation->sink().on_done(why);
    } else {
      core_.cancel(request_id, why);
    }
  });
}

void EngineLoop::on_grammar(const std::shared_ptr<Generation>& generation, const GrammarStore::Compiled& compiled) {
  if (compiled.ok()) generation->constrain(*compiled, core_.text());
  post([this, generation, status = compiled.ok() ? Status() : compiled.status()] {
    if (!stop_compiling(generation->request().request_id, generation.get())) return;  // cancelled meanwhile
    if (status.ok()) {
      core_.start(generation);
    } else {
      generation->sink().on_done(status);
    }
  });
}

std::shared_ptr<Generation> EngineLoop::stop_compiling(const std::string& request_id, const Generation* only) {
  const std::lock_guard lock(mutex_);
  const auto found = compiling_.find(request_id);
  if (found == compiling_.end() || (only != nullptr && found->second.get() != only)) return nullptr;
  std::shared_ptr<Generation> generation = std::move(found->second);
  compiling_.erase(found);
  return generation;
}

void EngineLoop::post(Task task) {
  {
    const std::lock_guard lock(mutex_);
    inbox_.push_back(std::move(task));
  }
  wake_.notify_one();
}

void EngineLoop::run_on_loop(Task task) {
  if (std::this_thread::get_id() == thread_.get_id()) return task();
  std::promise<void> done;
  post([&] {
    task();
    done.set_value();
  });
  done.get_future().wait();
}

int64_t EngineLoop::subscribe(KvEventSink sink) {
  int64_t id;
  {
    const std::lock_guard lock(mutex_);
    id = ++next_subscriber_;
  }
  post([this, id, sink = std::move(sink)] {
    publish_events();  // the snapshot stands between two batches
    for (const KvEventBatch& batch : core_.journal().snapshot(core_.pool())) sink(batch);
    if (subscribers_.empty()) last_heartbeat_ = clock_.now_ns();
    subscribers_.push_back({id, sink, false});
  });
  return id;
}

void EngineLoop::unsubscribe(int64_t id) {
  run_on_loop([this, id] {
    for (Subscriber& subscriber : subscribers_) {
      if (subscriber.id == id) subscriber.gone = true;
    }
  });
}

int32_t EngineLoop::pin(std::span<const Hash128> blocks, double ttl_s) {
  const double ttl = ttl_s > 0 ? std::min(ttl_s, kMaxPinSeconds) : 0;
  int32_t resident = 0;
  run_on_loop([&] { resident = core_.pool().pin(blocks, clock_.now_ns() + static_cast<MonotonicNs>(ttl * 1e9)); });
  return resident;
}

int32_t EngineLoop::release(std::span<const Hash128> blocks) {
  int32_t resident = 0;
  run_on_loop([&] { resident = core_.pool().demote(blocks); });
  return resident;
}

void EngineLoop::drain() {
  const std::lock_guard lock(mutex_);
  draining_ = true;
  stats_.draining = true;
}

ReplicaStats EngineLoop::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

void EngineLoop::publish_stats() {
  ReplicaStats stats = core_.stats();
  const std::lock_guard lock(mutex_);
  stats.draining = draining_;
  // What was submitted since the inbox was taken is queued as well.
  stats.queued = static_cast<int32_t>(active_ids_.size()) - (static_cast<int32_t>(core_.active()) - core_.queued());
  stats_ = stats;
}

void EngineLoop::publish_events() {
  if (std::optional<KvEventBatch> batch = core_.journal().flush()) {
    for (const Subscriber& subscriber : subscribers_) {
      if (!subscriber.gone) subscriber.sink(*batch);
    }
  }
  std::erase_if(subscribers_, [](const Subscriber& subscriber) { return subscriber.gone; });
}

void EngineLoop::heartbeat_if_due() {
  const MonotonicNs now = clock_.now_ns();
  if (subscribers_.empty() || now - last_heartbeat_ < kHeartbeatNs) return;
  last_heartbeat_ = now;
  core_.journal().heartbeat();
  const BlockPool& pool = core_.pool();
  if (pool.empty() >= pool.total() / kEmptyShare) return;
  std::vector<Hash128> next = pool.next_to_go(kEvictSoonBlocks);
  if (!next.empty()) core_.journal().evict_soon(std::move(next));
}

void EngineLoop::wait_for_work() {
  std::unique_lock lock(mutex_);
  const auto has_work = [&] { return stopping_ || !inbox_.empty(); };
  if (core_.idle()) {
    if (subscribers_.empty()) {
      wake_.wait(lock, has_work);
    } else {
      wake_.wait_for(lock, std::chrono::nanoseconds(kHeartbeatNs), has_work);
    }
  }
  tasks_.swap(inbox_);
}

void EngineLoop::run() {
  pthread_setname_np(pthread_self(), "engine");
  for (bool stopping = false; !stopping;) {
    wait_for_work();
    for (const Task& task : tasks_) task();
    tasks_.clear();
    {
      const std::lock_guard lock(mutex_);
      stopping = stopping_ && inbox_.empty();
    }
    if (stopping) {
      const Status why(StatusCode::kCancelled, "the replica is shutting down");
      core_.stop(why);
      std::unordered_map<std::string, std::shared_ptr<Generation>> compiling;
      {
        const std::lock_guard lock(mutex_);
        compiling.swap(compiling_);
      }
      for (const auto& [id, generation] : compiling) generation->sink().on_done(why);
    }
    if (core_.begin_step()) {
      publish_stats();  // who runs now, while it runs
      core_.finish_step();
    }
    heartbeat_if_due();
    publish_events();
    publish_stats();
#ifndef NDEBUG
    if (core_.idle() && !was_idle_) core_.check_integrity();
    was_idle_ = core_.idle();
#endif
  }
}

}  // namespace warmpath

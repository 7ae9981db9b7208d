#include "loadtest/mock_engine.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <random>

#include "base/block_chain.h"
#include "base/log.h"

namespace warmpath {

namespace {

constexpr MonotonicNs kPublishIntervalNs = 2'000'000;
constexpr MonotonicNs kHeartbeatNs = 1'000'000'000;
constexpr MonotonicNs kExitDelayNs = 20'000'000;  // what was said before the "crash" reaches the socket
constexpr int kCrashExitCode = 70;
constexpr int32_t kFixedReplyTokens = 16;  // when max_tokens is absent
constexpr std::string_view kFixedReply = "This is a mock replica, so this answer means nothing. ";

MonotonicNs now_ns() { return SystemClock::instance().now_ns(); }
MonotonicNs to_ns(double seconds) { return static_cast<MonotonicNs>(seconds * 1e9); }
double to_s(MonotonicNs ns) { return static_cast<double>(ns) * 1e-9; }

uint64_t random_epoch() {
  std::random_device device;
  return (static_cast<uint64_t>(device()) << 32 | device()) | 1;
}

}  // namespace

// One request from submit() to on_done().
struct MockEngine::Work {
  GenerateRequest request;
  std::shared_ptr<RequestSink> sink;
  const MockReply* script = nullptr;
  std::vector<TokenId> reply;  // all of it, the end token included
  FinishReason reason = FinishReason::kLength;

  std::vector<TokenId> tokens;  // prompt, output prefix, and what was said
  Hash128 root;
  std::vector<Hash128> identities;  // of the whole blocks of `tokens`
  std::vector<BlockId> blocks;
  size_t committed_blocks = 0;
  int32_t cached_tokens = 0;
  size_t said = 0;  // tokens of `reply`
  MonotonicNs arrived = 0, started = 0, prefilled = 0;
  bool begun = false;  // the first update went out
  bool ended = false;

  size_t unsaid() const { return reply.size() - said; }
  size_t resumed() const { return request.output_prefix.size(); }
};

MockEngine::MockEngine(MockEngineOptions options, MockTimer& timer)
    : options_(std::move(options)),
      timer_(timer),
      boot_epoch_(random_epoch()),
      fixed_reply_(*options_.tokenizer->encode(kFixedReply)),
      journal_(boot_epoch_),
      pool_(options_.kv_blocks, &journal_) {
  if (fixed_reply_.empty()) fixed_reply_.push_back(0);
}

MockEngine::~MockEngine() {
  Deliveries out;
  {
    const std::lock_guard lock(mutex_);
    while (!works_.empty()) end(works_.begin()->second, {StatusCode::kCancelled, "the replica stops"}, out);
  }
  deliver(out);
}

Status MockEngine::check(const GenerateRequest& request) const {
  if (!request.grammar.empty()) {
    return unimplemented("a mock replica writes fixed answers and cannot follow a grammar: ask an engine");
  }
  const int32_t vocabulary = options_.tokenizer->size();
  WARMPATH_RETURN_IF_ERROR(validate(request.sampling, vocabulary));
  for (const auto* tokens : {&request.prompt, &request.output_prefix}) {
    for (const TokenId token : *tokens) {
      if (token < 0 || token >= vocabulary) {
        return invalid_argument(
            fmt::format("the prompt has token {}; this model has tokens 0 to {}", token, vocabulary - 1));
      }
    }
  }
  const int64_t limit = std::min<int64_t>(options_.context_tokens, options_.kv_blocks * kBlockTokens);
  const auto prompt = static_cast<int64_t>(request.prompt.size());
  const int64_t output =
      std::max<int64_t>({request.sampling.max_tokens, static_cast<int64_t>(request.output_prefix.size()), int64_t{1}});
  if (prompt + output > limit) {
    return {
        StatusCode::kContextLengthExceeded,
        fmt::format("the prompt has {} tokens and {} more are asked for; the context has {}", prompt, output, limit)};
  }
  return {};
}

std::shared_ptr<MockEngine::Work> MockEngine::plan(GenerateRequest request, std::shared_ptr<RequestSink> sink,
                                                   const MockReply* script) const {
  auto work = std::make_shared<Work>();
  work->arrived = now_ns();
  const int64_t room = std::min<int64_t>(options_.context_tokens, options_.kv_blocks * kBlockTokens) -
                       static_cast<int64_t>(request.prompt.size());
  const SamplingParams& sampling = request.sampling;
  if (script != nullptr && script->reply) {
    auto reply = options_.tokenizer->encode(*script->reply, SpecialTokens::kParse);
    work->reply = reply.ok() ? *std::move(reply) : fixed_reply_;
    const auto& ends = options_.tokenizer->vocabulary().end_of_generation;
    if (!ends.empty()) work->reply.push_back(ends.front());
    work->reason = FinishReason::kStop;
  } else {
    const int64_t wanted = std::min<int64_t>(sampling.max_tokens > 0 ? sampling.max_tokens : kFixedReplyTokens, room);
    for (int64_t i = 0; i < wanted; ++i) work->reply.push_back(fixed_reply_[i % fixed_reply_.size()]);
  }
  const auto limit = static_cast<size_t>(sampling.max_tokens > 0 ? std::min<int64_t>(sampling.max_tokens, room) : room);
  if (work->reply.size() > limit) {
    work->reply.resize(limit);
    work->reason = FinishReason::kLength;
  }
  // A resumed request has said the beginning already.
  work->said = std::min(work->reply.size(), request.output_prefix.size());

  work->tokens.reserve(request.prompt.size() + request.output_prefix.size() + work->unsaid());
  work->tokens = request.prompt;
  work->tokens.insert(work->tokens.end(), request.output_prefix.begin(), request.output_prefix.end());
  work->root = chain_root(options_.fingerprint, request.salt, "");
  work->identities = chain_of(work->root, work->tokens);
  work->request = std::move(request);
  work->sink = std::move(sink);
  work->script = script;
  return work;
}

Status MockEngine::submit(GenerateRequest request, std::shared_ptr<RequestSink> sink) {
  std::string text;
  if (options_.script != nullptr && options_.script->needs_text()) text = options_.tokenizer->decode(request.prompt);
  return submit(std::move(request), std::move(sink), text);
}

Status MockEngine::submit(GenerateRequest request, std::shared_ptr<RequestSink> sink, std::string_view prompt_text) {
  WARMPATH_RETURN_IF_ERROR(check(request));
  const MockReply* script = options_.script != nullptr ? options_.script->pick(prompt_text) : nullptr;
  if (script != nullptr && script->fault == MockReply::Fault::kRefuse) return script->status;
  const std::shared_ptr<Work> work = plan(std::move(request), std::move(sink), script);
  Deliveries out;
  {
    const std::lock_guard lock(mutex_);
    if (draining_) return unavailable("this replica drains: it takes no new requests; use another one");
    if (works_.contains(work->request.request_id)) {
      return invalid_argument(
          fmt::format("request_id '{}' is in use; give every request its own", work->request.request_id));
    }
    const auto queued = static_cast<int64_t>(works_.size()) - running_;
    if (running_ >= options_.max_running && queued >= options_.max_queued) {
      return resource_exhausted(fmt::format("{} requests wait already, which is the limit; retry later", queued));
    }
    works_.emplace(work->request.request_id, work);
    ++counters_.requests;
    waiting_.push_back(work);
    if (work->request.deadline_s > 0) {
      timer_.at(work->arrived + to_ns(work->request.deadline_s), [this, work] {
        Deliveries late;
        {
          const std::lock_guard again(mutex_);
          if (!work->ended) end(work, {StatusCode::kDeadlineExceeded, "the request's deadline passed"}, late);
        }
        deliver(late);
      });
    }
    start_waiting(out);
  }
  deliver(out);
  return {};
}

void MockEngine::start_waiting(Deliveries& out) {
  while (!waiting_.empty()) {
    const std::shared_ptr<Work> work = waiting_.front();
    if (!work->ended && (running_ >= options_.max_running || !start(work, out))) return;
    waiting_.pop_front();
  }
}

bool MockEngine::start(const std::shared_ptr<Work>& work, Deliveries& out) {
  pool_.advance_clock(now_ns());
  // The last prompt token is always computed: its logits choose the first token.
  const size_t reusable = (work->tokens.size() - 1) / kBlockTokens;
  while (work->blocks.size() < reusable) {
    const size_t index = work->blocks.size();
    BlockContent content{index == 0 ? work->root : work->identities[index - 1], work->identities[index], {}};
    std::copy_n(work->tokens.begin() + static_cast<std::ptrdiff_t>(index * kBlockTokens), kBlockTokens,
                content.tokens.begin());
    const BlockId found = pool_.find(index == 0 ? kNoBlock : work->blocks.back(), content);
    if (found == kNoBlock) break;
    pool_.reference(found);
    work->blocks.push_back(found);
  }
  const size_t length = work->tokens.size() + work->unsaid();
  const size_t hits = work->blocks.size();
  if (!pool_.acquire(static_cast<int64_t>((length + kBlockTokens - 1) / kBlockTokens - hits), work->blocks)) {
    pool_.release(work->blocks);
    work->blocks.clear();
    return false;
  }
  work->committed_blocks = hits;
  work->cached_tokens = static_cast<int32_t>(hits * kBlockTokens);
  work->started = now_ns();
  ++running_;
  counters_.prompt_tokens += static_cast<int64_t>(work->request.prompt.size());
  counters_.cached_tokens += std::min<int64_t>(work->cached_tokens, static_cast<int64_t>(work->request.prompt.size()));
  work->prefilled = work->started;
  if (options_.prefill_tokens_per_s > 0) {
    const auto uncached = static_cast<double>(work->tokens.size() - static_cast<size_t>(work->cached_tokens));
    prefill_free_ = std::max(prefill_free_, work->started) + to_ns(uncached / options_.prefill_tokens_per_s);
    work->prefilled = prefill_free_;
  }
  if (work->prefilled > work->started) {
    schedule(work->prefilled, work);
  } else {
    advance(work, out);
  }
  return true;
}

void MockEngine::schedule(MonotonicNs time, const std::shared_ptr<Work>& work) {
  timer_.at(time, [this, work] {
    Deliveries out;
    {
      const std::lock_guard lock(mutex_);
      if (work->ended) return;
      advance(work, out);
      start_waiting(out);
    }
    deliver(out);
  });
}

// The prefill is done, or a decode step.
void MockEngine::advance(const std::shared_ptr<Work>& work, Deliveries& out) {
  ++counters_.steps;
  GenerateUpdate update;
  if (!work->begun) {
    work->begun = true;
    StartInfo& start = update.start.emplace();
    start.cached_device_tokens = std::min(work->cached_tokens, static_cast<int32_t>(work->request.prompt.size()));
    start.queue_s = to_s(work->started - work->arrived);
    start.prefill_s = to_s(work->prefilled - work->started);
  }
  size_t tokens = options_.decode_step_s > 0 ? std::min<size_t>(1, work->unsaid()) : work->unsaid();
  bool failing = false;
  if (work->script != nullptr && work->script->fault != MockReply::Fault::kNone) {
    const auto last = static_cast<size_t>(work->script->after_tokens);
    tokens = std::min(tokens, last - std::min(last, work->said));
    failing = work->said + tokens >= last;
  }
  say(*work, tokens, update);
  const bool done = !failing && work->unsaid() == 0;
  if (done) finish(*work, update);
  if (done || !update.tokens.empty()) out.push_back({work->sink, std::move(update), std::nullopt});
  if (failing) {
    fail_as_scripted(work, out);
  } else if (done) {
    end(work, {}, out);
  } else {
    schedule(now_ns() + to_ns(options_.decode_step_s), work);
  }
}

void MockEngine::say(Work& work, size_t tokens, GenerateUpdate& update) {
  const SamplingParams& sampling = work.request.sampling;
  update.tokens.reserve(tokens * static_cast<size_t>(sampling.n));
  for (size_t i = 0; i < tokens; ++i) {
    const TokenId token = work.reply[work.said++];
    work.tokens.push_back(token);
    for (int32_t choice = 0; choice < sampling.n; ++choice) {
      TokenOutput& output = update.tokens.emplace_back();
      output.choice = choice;
      output.token = token;
      if (sampling.top_logprobs < 0) continue;
      output.logprob = -1;
      if (sampling.top_logprobs > 0) output.top_logprobs.emplace_back(token, -1.0f);
    }
  }
  counters_.generated_tokens += static_cast<int64_t>(update.tokens.size());
  // The KV of the last token is computed only when the next one is wanted.
  commit_blocks(work, work.tokens.size() - (tokens > 0 ? 1 : 0));
}

void MockEngine::commit_blocks(Work& work, size_t computed_tokens) {
  bool committed = false;
  while ((work.committed_blocks + 1) * kBlockTokens <= computed_tokens) {
    const size_t index = work.committed_blocks++;
    const std::span<const TokenId> tokens =
        std::span(work.tokens).subspan(index * kBlockTokens, static_cast<size_t>(kBlockTokens));
    const Hash128 parent = index == 0 ? work.root : work.identities[index - 1];
    if (index == work.identities.size()) work.identities.push_back(chain_next(parent, tokens));
    BlockContent content{parent, work.identities[index], {}};
    std::copy(tokens.begin(), tokens.end(), content.tokens.begin());
    pool_.commit(work.blocks[index], index == 0 ? kNoBlock : work.blocks[index - 1], content);
    committed = true;
  }
  if (committed) publish_later();
}

void MockEngine::fail_as_scripted(const std::shared_ptr<Work>& work, Deliveries& out) {
  switch (work->script->fault) {
    case MockReply::Fault::kError:
      return end(work, work->script->status, out);
    case MockReply::Fault::kExit:
      log_warn("mock_exit", {{"request", work->request.request_id}, {"reason", "the script says so"}});
      timer_.at(now_ns() + kExitDelayNs, [] { _exit(kCrashExitCode); });
      return;
    default:  // kHang: nothing more, until the caller cancels
      return;
  }
}

void MockEngine::finish(Work& work, GenerateUpdate& update) {
  for (int32_t choice = 0; choice < work.request.sampling.n; ++choice) {
    ChoiceFinish& finished = update.finished.emplace_back();
    finished.choice = choice;
    finished.reason = work.reason;
    finished.completion_tokens = static_cast<int32_t>(work.said);
    if (work.reason == FinishReason::kStop) {
      const auto& ends = options_.tokenizer->vocabulary().end_of_generation;
      if (!ends.empty()) finished.stop_token = ends.front();
    }
  }
  RequestTimings& timings = update.timings.emplace();
  timings.queue_s = to_s(work.started - work.arrived);
  timings.prefill_s = to_s(work.prefilled - work.started);
  timings.decode_s = std::max(0.0, to_s(now_ns() - work.prefilled));
  timings.prefill_tokens = static_cast<int32_t>(work.request.prompt.size() + work.resumed()) - work.cached_tokens;
  timings.decode_steps = std::max(0, static_cast<int32_t>(work.said) - static_cast<int32_t>(work.resumed()) - 1);
  timings.mean_decode_batch = running_;
}

void MockEngine::end(const std::shared_ptr<Work>& work, Status status, Deliveries& out) {
  work->ended = true;
  if (work->started != 0) {
    --running_;
    pool_.release(work->blocks);
    work->blocks.clear();
  }
  if (status.code() == StatusCode::kCancelled) ++counters_.cancelled;
  out.push_back({work->sink, std::nullopt, std::move(status)});
  works_.erase(work->request.request_id);
}

void MockEngine::cancel(const std::string& request_id) {
  Deliveries out;
  {
    const std::lock_guard lock(mutex_);
    const auto found = works_.find(request_id);
    if (found == works_.end()) return;
    end(std::shared_ptr<Work>(found->second), {StatusCode::kCancelled, "the caller cancelled the request"}, out);
    start_waiting(out);
  }
  deliver(out);
}

void MockEngine::deliver(Deliveries& deliveries) {
  for (Delivery& delivery : deliveries) {
    if (delivery.update) delivery.sink->on_update(std::move(*delivery.update));
    if (delivery.done) delivery.sink->on_done(std::move(*delivery.done));
  }
  for (const Delivery& delivery : deliveries) {
    if (!delivery.done) delivery.sink->flush();
  }
}

// ---- KV events ----

void MockEngine::publish_later() {
  if (subscribers_.empty()) return publish();
  if (publish_scheduled_) return;
  publish_scheduled_ = true;
  timer_.at(now_ns() + kPublishIntervalNs, [this] {
    const std::lock_guard lock(mutex_);
    publish_scheduled_ = false;
    publish();
  });
}

void MockEngine::publish() {
  const std::optional<KvEventBatch> batch = journal_.flush();
  if (!batch) return;
  for (const auto& [id, sink] : subscribers_) sink(*batch);
}

void MockEngine::schedule_heartbeat() {
  if (heartbeat_scheduled_) return;
  heartbeat_scheduled_ = true;
  timer_.at(now_ns() + kHeartbeatNs, [this] {
    const std::lock_guard lock(mutex_);
    heartbeat_scheduled_ = false;
    if (subscribers_.empty()) return;
    journal_.heartbeat();
    publish();
    schedule_heartbeat();
  });
}

int64_t MockEngine::subscribe(KvEventSink sink) {
  const std::lock_guard lock(mutex_);
  publish();
  for (const KvEventBatch& batch : journal_.snapshot(pool_)) sink(batch);
  subscribers_.emplace_back(++last_subscriber_, std::move(sink));
  schedule_heartbeat();
  return last_subscriber_;
}

void MockEngine::unsubscribe(int64_t id) {
  const std::lock_guard lock(mutex_);
  std::erase_if(subscribers_, [id](const auto& subscriber) { return subscriber.first == id; });
}

int32_t MockEngine::pin(std::span<const Hash128> blocks, double ttl_s) {
  const std::lock_guard lock(mutex_);
  pool_.advance_clock(now_ns());
  return pool_.pin(blocks, now_ns() + to_ns(std::min(ttl_s, 1e6)));
}

int32_t MockEngine::release(std::span<const Hash128> blocks) {
  const std::lock_guard lock(mutex_);
  return pool_.demote(blocks);
}

void MockEngine::drain() {
  const std::lock_guard lock(mutex_);
  draining_ = true;
}

ReplicaStats MockEngine::stats() const {
  const std::lock_guard lock(mutex_);
  ReplicaStats stats = counters_;
  stats.boot_epoch = boot_epoch_;
  stats.draining = draining_;
  stats.running = running_;
  stats.queued = static_cast<int32_t>(works_.size()) - running_;
  for (const auto& work : waiting_) {
    if (!work->ended) stats.queued_tokens += static_cast<int64_t>(work->request.prompt.size());
  }
  stats.free_blocks = pool_.empty();
  stats.cached_blocks = pool_.cached();
  stats.used_blocks = pool_.used();
  stats.evicted_blocks = pool_.evicted();
  return stats;
}

void MockEngine::check_integrity() const {
  const std::lock_guard lock(mutex_);
  pool_.check_integrity();
}

}  // namespace warmpath

#include "engine/grpc_generate_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "base/log.h"
#include "engine/grpc_server.h"
#include "engine/grpc_status.h"
#include "proto/codec.h"
#include "proto/wire_status.h"

namespace warmpath {

namespace {

// A message of a long prompt leaves this much memory at most to the next ones.
constexpr int kKeptPromptTokens = 64 * 1024;

size_t token_count(const GenerateUpdate& update) {
  size_t count = 0;
  for (const TokenOutput& output : update.tokens) count += 1 + output.top_logprobs.size();
  return count;
}

void append(GenerateUpdate& to, GenerateUpdate from) {
  if (from.start) to.start = from.start;
  if (from.timings) to.timings = from.timings;
  std::move(from.tokens.begin(), from.tokens.end(), std::back_inserter(to.tokens));
  std::move(from.finished.begin(), from.finished.end(), std::back_inserter(to.finished));
}

}  // namespace

class GenerateStream::Call final : public RequestSink, public std::enable_shared_from_this<Call> {
 public:
  Call(std::shared_ptr<GenerateStream> stream, uint64_t number, std::string request_id)
      : stream_(std::move(stream)), number_(number), request_id_(std::move(request_id)) {}

  void on_update(GenerateUpdate update) override { stream_->take(*this, std::move(update)); }
  void flush() override { stream_->flush(); }
  void on_done(Status status) override { stream_->end(*this, status); }

  uint64_t number() const { return number_; }
  const std::string& request_id() const { return request_id_; }

  // Under the stream's lock.
  std::optional<GenerateUpdate> pending;  // became ready since the last message
  size_t pending_tokens = 0;
  std::optional<Status> failure;  // to be sent
  bool is_ready = false;          // stands in `ready_`
  bool stopped = false;           // output is dropped from here on
  bool over = false;              // its last answer is in a message

 private:
  const std::shared_ptr<GenerateStream> stream_;
  const uint64_t number_;
  const std::string request_id_;
};

GenerateStream* GenerateStream::start(Engine& engine) {
  const std::shared_ptr<GenerateStream> stream(new GenerateStream(engine));
  stream->self_ = stream;
  stream->StartRead(&stream->calls_);
  return stream.get();
}

// ---- From the gateway ----

void GenerateStream::OnReadDone(bool ok) {
  if (!ok) {
    // Its half is closed, or everything is: then OnCancel comes too.
    Action action;
    {
      const std::lock_guard lock(mutex_);
      reads_ended_ = true;
      action = next_action();
    }
    perform(action);
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    reading_thread_ = std::this_thread::get_id();
  }
  int longest = 0;
  for (const v1::GenerateCall& call : calls_.calls()) {
    longest = std::max(longest, call.request().prompt_size());
    begin(call);
  }
  for (const uint64_t number : calls_.cancelled()) cancel(number);
  if (longest > kKeptPromptTokens) v1::GenerateCalls().Swap(&calls_);
  Action action;
  bool more;
  {
    const std::lock_guard lock(mutex_);
    reading_thread_ = {};
    action = next_action();
    more = !finished_;
  }
  perform(action);
  if (more) StartRead(&calls_);
}

void GenerateStream::begin(const v1::GenerateCall& message) {
  GenerateRequest request;
  Status status = decode(message.request(), request);
  const auto call = std::make_shared<Call>(shared_from_this(), message.number(), request.request_id);
  bool taken;
  {
    const std::lock_guard lock(mutex_);
    if (gone_) return;
    taken = open_.emplace(call->number(), call).second;
  }
  if (!taken) {
    return leave(invalid_argument(fmt::format("call number {} is in use; give every call its own", call->number())));
  }
  if (status.ok()) status = engine_.submit(std::move(request), call);
  if (!status.ok()) return end(*call, status);  // a refused request has no on_done
  // Nobody else would cancel it, if the caller left before it was submitted.
  bool left;
  {
    const std::lock_guard lock(mutex_);
    left = gone_;
  }
  if (left) engine_.cancel(call->request_id());
}

void GenerateStream::cancel(uint64_t number) {
  std::shared_ptr<Call> call;
  {
    const std::lock_guard lock(mutex_);
    const auto found = open_.find(number);
    if (found == open_.end() || found->second->stopped) return;  // it ended meanwhile
    call = found->second;
    stop(*call, std::nullopt);
  }
  engine_.cancel(call->request_id());
}

void GenerateStream::OnCancel() { leave({StatusCode::kCancelled, "the caller is gone"}); }

void GenerateStream::leave(Status why) {
  std::unordered_map<uint64_t, std::shared_ptr<Call>> calls;
  Action action;
  {
    const std::lock_guard lock(mutex_);
    if (gone_) return;
    gone_ = true;
    end_ = std::move(why);
    calls.swap(open_);
    ready_.clear();
    action = next_action();
  }
  perform(action);
  for (const auto& [number, call] : calls) engine_.cancel(call->request_id());
}

// ---- From the engine ----

void GenerateStream::take(Call& call, GenerateUpdate update) {
  {
    const std::lock_guard lock(mutex_);
    if (gone_ || call.stopped) return;
    call.pending_tokens += token_count(update);
    if (call.pending) {
      append(*call.pending, std::move(update));
    } else {
      call.pending = std::move(update);
    }
    make_ready(call);
    if (call.pending_tokens <= kMaxPendingTokens) return;
    stop(call, resource_exhausted(fmt::format("the reader of this request is more than {} tokens behind; read faster",
                                              kMaxPendingTokens)));
  }
  log_warn("slow_reader", {{"request", call.request_id()}});
  engine_.cancel(call.request_id());
}

void GenerateStream::stop(Call& call, std::optional<Status> failure) {
  call.stopped = true;
  call.pending.reset();
  call.pending_tokens = 0;
  call.failure = std::move(failure);
}

void GenerateStream::end(Call& call, const Status& status) {
  Action action;
  {
    const std::lock_guard lock(mutex_);
    if (gone_ || call.over) return;
    const bool complete = call.pending && call.pending->timings;
    if (!call.failure && !complete) {
      call.failure = status.ok() ? internal_error("the request ended without its timings") : status;
    }
    make_ready(call);
    action = next_action();
  }
  perform(action);
}

void GenerateStream::flush() {
  Action action;
  {
    const std::lock_guard lock(mutex_);
    action = next_action();
  }
  perform(action);
}

void GenerateStream::make_ready(Call& call) {
  if (call.is_ready) return;
  call.is_ready = true;
  ready_.push_back(call.shared_from_this());
}

GenerateStream::Action GenerateStream::next_action() {
  if (writing_ || finished_ || reading_thread_ == std::this_thread::get_id()) return Action::kNothing;
  if (!ready_.empty()) {
    writing_ = true;
    encode_ready();
    return Action::kWrite;
  }
  if (!gone_ && (!reads_ended_ || !open_.empty())) return Action::kNothing;
  finished_ = true;
  return Action::kFinish;
}

void GenerateStream::encode_ready() {
  answers_.Clear();
  size_t tokens = 0, taken = 0;
  for (; taken < ready_.size() && tokens < kMaxPendingTokens; ++taken) {
    Call& call = *ready_[taken];
    call.is_ready = false;
    tokens += std::exchange(call.pending_tokens, 0);
    if (!call.pending && !call.failure) continue;  // cancelled, and the engine has not let go of it yet
    v1::GenerateAnswer& answer = *answers_.add_answers();
    answer.set_number(call.number());
    if (call.pending) {
      encode(*call.pending, *answer.mutable_update());
      call.over = call.pending->timings.has_value();
      call.pending.reset();
    }
    if (call.failure) {
      call.over = true;
      answer.mutable_failure()->set_code(wire_code(call.failure->code()));
      answer.mutable_failure()->set_message(call.failure->message());
    }
    if (!call.over) continue;
    call.stopped = true;
    open_.erase(call.number());
  }
  ready_.erase(ready_.begin(), ready_.begin() + static_cast<std::ptrdiff_t>(taken));
}

void GenerateStream::perform(Action action) {
  if (action == Action::kWrite) StartWrite(&answers_);
  if (action == Action::kFinish) Finish(to_grpc(end_));
}

void GenerateStream::OnWriteDone(bool ok) {
  if (!ok) leave({StatusCode::kCancelled, "the caller is gone"});
  Action action;
  {
    const std::lock_guard lock(mutex_);
    writing_ = false;
    action = next_action();
  }
  perform(action);
}

}  // namespace warmpath

#include "router/dispatch.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <mutex>

#include "base/block_chain.h"
#include "base/log.h"
#include "router/salt_file.h"

namespace warmpath {

namespace {

// The first prompt in the waiting room asks again this often, because other gateways' answers end unseen.
constexpr double kLookEveryS = 0.25;
// A replica that has no room says so at once: a prompt not refused by then has been accepted, and the next may ask.
constexpr double kAcceptedAfterS = 0.02;
// Sessions fall silent without a word: those that wait for their place look this often.
constexpr double kLookAtDeskEveryS = 0.5;

// Unique among all gateways that may talk to one replica.
std::string fresh_call_id() {
  static const std::string kPrefix = bytes_to_hex(random_bytes(6));
  static std::atomic<uint64_t> counter{0};
  return fmt::format("{}-{}", kPrefix, counter.fetch_add(1, std::memory_order_relaxed));
}

double unix_now_s() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

// Collects an upstream's messages and carries them to the I/O thread, many at a time when they come fast. Also keeps
// the replica's books, so that they are right even if the I/O thread is gone.
class Dispatch::Relay final : public GenerateListener, public std::enable_shared_from_this<Relay> {
 public:
  Relay(std::shared_ptr<Dispatch> owner, std::shared_ptr<HttpExchange> exchange, std::shared_ptr<Replica> replica,
        LoadShare share, int attempt)
      : owner_(std::move(owner)),
        exchange_(std::move(exchange)),
        replica_(std::move(replica)),
        share_(share),
        attempt_(attempt) {
    replica_->book_sent(share_);
  }

  void on_update(GenerateUpdate update) override {
    if (!share_.started && (update.start || !update.tokens.empty())) replica_->book_started(share_);
    const std::lock_guard lock(mutex_);
    updates_.push_back(std::move(update));
    wake();
  }

  void on_done(Status status) override {
    replica_->book_finished(share_);
    const std::lock_guard lock(mutex_);
    done_ = std::move(status);
    wake();
  }

 private:
  // REQUIRES mutex_.
  void wake() {
    if (posted_) return;
    posted_ = true;
    exchange_->post([self = shared_from_this()] { self->deliver(); });
  }

  void deliver() {
    std::vector<GenerateUpdate> updates;
    std::optional<Status> done;
    {
      const std::lock_guard lock(mutex_);
      posted_ = false;
      updates.swap(updates_);
      done = done_;
    }
    owner_->on_relayed(attempt_, std::move(updates), done);
  }

  const std::shared_ptr<Dispatch> owner_;
  const std::shared_ptr<HttpExchange> exchange_;
  const std::shared_ptr<Replica> replica_;
  LoadShare share_;  // one upstream call at a time touches it
  const int attempt_;

  std::mutex mutex_;
  std::vector<GenerateUpdate> updates_;
  std::optional<Status> done_;
  bool posted_ = false;
};

Dispatch::Dispatch(Services& services, std::shared_ptr<HttpExchange> exchange,
                   std::shared_ptr<DispatchListener> listener, DispatchJob job)
    : services_(services),
      exchange_(std::move(exchange)),
      listener_(std::move(listener)),
      job_(std::move(job)),
      receipt_(std::make_shared<Receipt>()) {
  receipt_->request_id = job_.request_id;
  receipt_->tenant = std::move(job_.tenant);
  receipt_->model = job_.model->name();
  receipt_->prompt = job_.prompt_number;
  receipt_->prompt_tokens = static_cast<int64_t>(job_.request.prompt.size());
  receipt_->at_s = unix_now_s();
}

double Dispatch::since_arrival_s() const {
  return static_cast<double>(services_.clock.now_ns() - job_.arrived_ns) * 1e-9;
}

void Dispatch::start() {
  const Earlier earlier = job_.model->history().follow(job_.view, job_.chain);
  receipt_->earlier_tokens = earlier.tokens;
  receipt_->rewritten = earlier.rewritten;
  desk_ = job_.model->admission();
  if (desk_->enabled() && !job_.view.session().is_zero()) {
    ask_admission();
  } else {
    desk_ = nullptr;
    begin();
  }
}

AdmissionTurn Dispatch::admission_turn() const {
  AdmissionTurn turn;
  turn.session = job_.view.session();
  turn.tenant = receipt_->tenant;
  turn.prompt_tokens = job_.view.prompt_tokens;
  turn.base_tokens = job_.view.base_tokens;
  turn.chain = job_.chain;
  turn.block_tokens = kBlockTokens;
  return turn;
}

void Dispatch::ask_admission() {
  AdmissionTurn turn = admission_turn();
  const std::vector<AdmissionCapacity> capacities = job_.model->survey(turn);
  asked_ns_ = services_.clock.now_ns();
  const SessionAdmission::Entry entry =
      desk_->arrive(turn, capacities, [weak = weak_from_this(), exchange = exchange_] {
        exchange->post([weak] {
          if (const auto self = weak.lock()) self->on_admitted();
        });
      });
  if (entry.verdict == SessionAdmission::Verdict::kGo) {
    admitted_ = true;
    begin();
  } else if (entry.verdict == SessionAdmission::Verdict::kFull) {
    finish(
        resource_exhausted(fmt::format("The sessions of '{}' fill its replicas' memory, and too many wait for it; "
                                       "try again in {:.0f} s",
                                       job_.model->name(), desk_->retry_after_s())));
  } else {
    ticket_ = entry.ticket;
    services_.metrics.requests_waiting(1);
    wait_for_admission();
  }
}

void Dispatch::wait_for_admission() {
  exchange_->post_after(kLookAtDeskEveryS, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self || self->ticket_ == 0) return;
    const double most_s = self->job_.model->config().admission.most_wait_s;
    if (static_cast<double>(self->services_.clock.now_ns() - self->asked_ns_) * 1e-9 >= most_s) {
      self->finish(resource_exhausted(
          fmt::format("The sessions of '{}' that are running have filled its replicas' memory for {} s",
                      self->job_.model->name(), most_s)));
      return;
    }
    self->desk_->look();
    self->wait_for_admission();
  });
}

void Dispatch::on_admitted() {
  if (ticket_ == 0) return;  // it has left, and said so
  ticket_ = 0;
  admitted_ = true;
  services_.metrics.requests_waiting(-1);
  receipt_->admission_s = static_cast<double>(services_.clock.now_ns() - asked_ns_) * 1e-9;
  begin();
}

// The turn is over, or wanted no more.
void Dispatch::leave_admission() {
  if (!desk_) return;
  if (ticket_ != 0) {
    services_.metrics.requests_waiting(-1);
    receipt_->admission_s = static_cast<double>(services_.clock.now_ns() - asked_ns_) * 1e-9;
    // Woken a moment ago: its session is live, and its turn ends here.
    if (!desk_->leave(std::exchange(ticket_, 0))) desk_->ended(admission_turn(), -1, -1);
  } else if (std::exchange(admitted_, false)) {
    const bool answered = receipt_->first_token_s > 0;
    desk_->ended(admission_turn(), receipt_->delivered_tokens,
                 answered ? receipt_->prompt_tokens + receipt_->completion_tokens : -1);
  }
  desk_ = nullptr;
}

void Dispatch::begin() {
  begin_round();
  if (job_.model->waiting_room().empty()) {
    attempt();
  } else {
    wait_for_room();  // nobody overtakes
  }
}

void Dispatch::begin_round() {
  tried_.clear();
  some_full_ = false;
  attempts_ = 0;
  if (job_.request.grammar.empty()) return;
  for (const std::shared_ptr<Replica>& replica : job_.model->replicas()) {
    if (!replica->description().structured_output) tried_.push_back(replica);
  }
}

void Dispatch::attempt() {
  if (attempts_ >= services_.settings()->limits.max_attempts && !some_full_) {
    finish(last_failure_);
    return;
  }
  RouteQuery query{.chain = job_.chain, .view = job_.view, .avoid = tried_};
  if (admitted_) query.admitted = job_.view.session();
  query.view.tenant = receipt_->tenant;
  query.view.model = job_.asked_model;
  query.view.header = [this](std::string_view name) { return exchange_->request().header(name); };
  Route route = job_.model->route(query);
  describe_route(route, *receipt_);
  if (route.replica) {
    send(std::move(route));
  } else {
    filtered_ = route.decision.reason == "filtered";
    nobody();
  }
}

void Dispatch::send(Route route) {
  ++attempts_;
  receipt_->attempt = attempts_;
  replica_ = route.replica;
  trust_ = route.candidates[route.decision.candidate].trust;
  placed_tokens_ = route.candidates[route.decision.candidate].placed_tokens;
  removals_mark_ = replica_->removals().mark();
  tried_.push_back(replica_);
  waiting_ = false;
  if (place_ != 0) {
    exchange_->post_after(kAcceptedAfterS, [self = shared_from_this(), sent = attempts_] {
      if (self->call_ && self->attempts_ == sent) self->give_up_place();
    });
  }
  job_.request.request_id = fresh_call_id();
  if (job_.deadline_ns != 0) {
    job_.request.deadline_s = std::max(static_cast<double>(job_.deadline_ns - services_.clock.now_ns()) * 1e-9, 0.001);
  }
  const Candidate& chosen = route.candidates[route.decision.candidate];
  const int64_t uncached = receipt_->prompt_tokens - receipt_->predicted_tokens;
  const LoadShare share{.sequences = job_.request.sampling.n,
                        .uncached_tokens = uncached,
                        .prefill_s = chosen.rates.prefill_s(static_cast<double>(uncached),
                                                            static_cast<double>(receipt_->predicted_tokens))};
  auto relay = std::make_shared<Relay>(shared_from_this(), exchange_, replica_, share, attempts_);
  call_ = replica_->upstream().generate(job_.request, std::move(relay));
}

void Dispatch::nobody() {
  if (some_full_ && !resumed_) {
    wait_for_room();
    return;
  }
  if (last_failure_.ok()) {
    last_failure_ = filtered_ ? failed_precondition(fmt::format(
                                    "No replica of '{}' that is ready passes the policy's filters", job_.model->name()))
                              : unavailable(fmt::format("No replica of '{}' is ready", job_.model->name()));
  }
  finish(last_failure_);
}

void Dispatch::wait_for_room() {
  const std::shared_ptr<const LiveSettings> settings = services_.settings();
  const MonotonicNs now = services_.clock.now_ns();
  if (place_ == 0) {
    if (services_.waiting.fetch_add(1) >= settings->limits.max_waiting) {
      services_.waiting.fetch_sub(1);
      finish(resource_exhausted(
          fmt::format("Every replica of '{}' is full, and so is the waiting room", job_.model->name())));
      return;
    }
    services_.metrics.requests_waiting(1);
    waiting_since_ns_ = now;
    place_ = job_.model->waiting_room().enter([weak = weak_from_this(), exchange = exchange_] {
      exchange->post([weak] {
        const auto self = weak.lock();
        if (self && self->waiting_) self->attempt();
      });
    });
  }
  if (static_cast<double>(now - waiting_since_ns_) * 1e-9 >= settings->limits.queue_wait_s) {
    finish(resource_exhausted(fmt::format("Every replica of '{}' has been full for {} s", job_.model->name(),
                                          settings->limits.queue_wait_s)));
    return;
  }
  waiting_ = true;
  begin_round();
  look_for_room_later();
}

void Dispatch::look_for_room_later() {
  if (looking_later_) return;
  looking_later_ = true;
  exchange_->post_after(kLookEveryS, [self = shared_from_this()] {
    self->looking_later_ = false;
    if (!self->waiting_) return;
    if (self->job_.model->waiting_room().is_first(self->place_)) {
      self->attempt();
    } else {
      self->wait_for_room();  // sees to the time limit
    }
  });
}

void Dispatch::give_up_place() {
  waiting_ = false;
  if (place_ == 0) return;
  job_.model->waiting_room().leave(std::exchange(place_, 0));
  services_.waiting.fetch_sub(1);
  services_.metrics.requests_waiting(-1);
}

void Dispatch::on_relayed(int attempt, std::vector<GenerateUpdate> updates, const std::optional<Status>& done) {
  if (!listener_ || attempt != attempts_ || !call_) return;
  for (GenerateUpdate& update : updates) {
    take_update(update);
    if (!listener_) return;  // cancelled by what it was told
  }
  if (!done) return;
  call_ = nullptr;
  if (done->ok()) {
    finish({});
  } else {
    on_failed(*done);
  }
}

void Dispatch::take_update(GenerateUpdate& update) {
  give_up_place();
  if (update.start) {
    receipt_->delivered_tokens = update.start->cached_tokens();
    receipt_->tail_tokens = update.start->tail_tokens;
    receipt_->queue_s = update.start->queue_s;
    receipt_->prefill_s = update.start->prefill_s;
    if (!resumed_) receipt_->first_token_s = since_arrival_s();
    if (resumed_) update.start.reset();  // the client has been told of the first one
  }
  if (job_.request.sampling.n == 1) {
    for (const TokenOutput& output : update.tokens) said_.push_back(output.token);
  }
  for (const ChoiceFinish& finished : update.finished) receipt_->completion_tokens += finished.completion_tokens;
  if (update.timings && !resumed_) {
    job_.model->learn(replica_->index_id(), *update.timings, receipt_->delivered_tokens,
                      receipt_->completion_tokens / job_.request.sampling.n);
  }
  listener_->on_update(job_.prompt_number, update);
}

void Dispatch::on_failed(const Status& status) {
  last_failure_ = status;
  const bool elsewhere = status.code() == StatusCode::kUnavailable || status.code() == StatusCode::kResourceExhausted;
  if (status.code() == StatusCode::kUnavailable) services_.fleet.report_unreachable(replica_, status.message());
  if (elsewhere && listener_->take_back(job_.prompt_number)) {
    said_.clear();
    job_.request.output_prefix.clear();
    resumed_ = false;
  } else if (can_resume(status)) {
    job_.request.output_prefix = said_;
    resumed_ = true;
  } else {
    finish(status);
    return;
  }
  if (status.code() == StatusCode::kResourceExhausted) {
    some_full_ = true;  // no failure: it is asked again after the others, and after a pause
  } else {
    log_warn("failover", {{"request", job_.request_id},
                          {"model", job_.model->name()},
                          {"replica", replica_->name()},
                          {"why", status.message()}});
    close_receipt(status_code_name(status.code()));
    services_.metrics.failover(job_.model->name());
    receipt_ = std::make_shared<Receipt>(*receipt_);
  }
  receipt_->delivered_tokens = 0;
  receipt_->tail_tokens = 0;
  receipt_->completion_tokens = 0;
  receipt_->resumed_tokens = static_cast<int64_t>(job_.request.output_prefix.size());
  if (!resumed_) receipt_->first_token_s = 0;
  attempt();
}

// The client has seen some of it, and another replica can continue. A replica that is full afterwards is passed over
// like one that is gone: the prompt keeps no client waiting in the middle of an answer.
bool Dispatch::can_resume(const Status& status) const {
  const bool gone = status.code() == StatusCode::kUnavailable;
  return (gone || (resumed_ && status.code() == StatusCode::kResourceExhausted)) && job_.request.sampling.n == 1 &&
         !said_.empty();
}

void Dispatch::finish(const Status& status) {
  give_up_place();
  leave_admission();
  close_receipt(status_code_name(status.code()));
  if (attempts_ > 0) job_.model->waiting_room().room_made();
  const std::shared_ptr<DispatchListener> listener = std::move(listener_);
  listener_ = nullptr;
  if (listener) listener->on_finished(job_.prompt_number, status);
}

void Dispatch::close_receipt(std::string_view outcome) {
  receipt_->outcome = outcome;
  receipt_->total_s = since_arrival_s();
  if (outcome == status_code_name(StatusCode::kOk)) explain_loss();
  services_.metrics.prompt_done(*receipt_);
  services_.receipts.add(receipt_);
}

void Dispatch::explain_loss() {
  LossFacts facts{.trust = trust_, .placed_tokens = placed_tokens_};
  const auto missing = static_cast<size_t>(receipt_->delivered_tokens / kBlockTokens);
  if (receipt_->delivered_tokens < receipt_->predicted_tokens && missing < job_.chain.size()) {
    facts.may_have_gone = replica_->removals().may_have_gone(job_.chain[missing], removals_mark_);
  }
  attribute_loss(facts, *receipt_);
}

void Dispatch::cancel(std::string_view outcome) {
  if (!listener_) return;
  if (call_) call_->cancel();
  call_ = nullptr;
  listener_ = nullptr;
  give_up_place();
  leave_admission();
  close_receipt(outcome);
  job_.model->waiting_room().room_made();
}

}  // namespace warmpath

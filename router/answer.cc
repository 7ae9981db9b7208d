#include "router/answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/log.h"
#include "router/random_id.h"
#include "router/session_key.h"

namespace warmpath {

namespace {

// A body this large may hold tens of thousands of tokens that nobody has sent before: tokenizing them here would keep
// this thread's other connections waiting. A hop to a worker and back costs about 20 microseconds.
constexpr size_t kLargeBodyBytes = 64 << 10;

int64_t unix_now() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string_view id_prefix(Wire wire) {
  switch (wire) {
    case Wire::kChat:
      return "chatcmpl-";
    case Wire::kCompletions:
      return "cmpl-";
    case Wire::kMessages:
      return "msg_";
    case Wire::kResponses:
      return "resp_";
  }
  return "";
}

// Names in a header field, with what may not stand there replaced; cut after a few.
std::string header_list(const std::vector<std::string>& names) {
  constexpr size_t kMostBytes = 512;
  std::string list;
  for (const std::string& name : names) {
    if (!list.empty()) list += ", ";
    for (const char byte : name) list += byte > 0x20 && byte < 0x7F && byte != ',' ? byte : '_';
    if (list.size() > kMostBytes) return list.substr(0, kMostBytes) + "...";
  }
  return list;
}

std::unique_ptr<AnswerWriter> make_writer(Wire wire, AnswerHead head) {
  switch (wire) {
    case Wire::kChat:
      return chat_writer(std::move(head));
    case Wire::kCompletions:
      return completion_writer(std::move(head));
    case Wire::kMessages:
      return messages_writer(std::move(head));
    case Wire::kResponses:
      return responses_writer(std::move(head));
  }
  return nullptr;
}

}  // namespace

Answer::Answer(Services& services, std::shared_ptr<HttpExchange> exchange, Wire wire, Identity identity,
               std::string request_id, std::shared_ptr<const LiveSettings> settings)
    : services_(services),
      exchange_(std::move(exchange)),
      wire_(wire),
      identity_(std::move(identity)),
      request_id_(std::move(request_id)),
      settings_(std::move(settings)),
      arrived_ns_(services.clock.now_ns()) {
  const double timeout_s = settings_->limits.request_timeout_s;
  if (timeout_s > 0) deadline_ns_ = arrived_ns_ + static_cast<MonotonicNs>(timeout_s * 1e9);
}

double Answer::since_arrival_s() const { return static_cast<double>(services_.clock.now_ns() - arrived_ns_) * 1e-9; }

void Answer::begin() {
  if (services_.in_progress.fetch_add(1) >= settings_->limits.max_requests) {
    services_.in_progress.fetch_sub(1);
    services_.metrics.refused("too_many_requests");
    fail(too_many_requests(settings_->limits.max_requests));
    return;
  }
  in_progress_ = true;
  services_.metrics.requests_in_progress(1);
  exchange_->on_client_gone([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->client_gone();
  });
  exchange_->on_drain_over([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->drain_over();
  });
  if (exchange_->request().body.size() < kLargeBodyBytes) {
    prepare_body();
    launch();
    return;
  }
  preparing_ = true;
  services_.workers.post([self = shared_from_this()] {
    self->prepare_body();
    self->exchange_->post([self] { self->launch(); });
  });
}

void Answer::prepare_body() {
  prepared_well_ =
      prepare(wire_, exchange_->request().body, identity_.tenant->salt, services_.fleet, prepared_, prepare_error_);
}

void Answer::launch() {
  preparing_ = false;
  if (client_left_) client_gone();
  if (drain_over_) drain_over();
  if (over_) return;
  if (!prepared_well_) {
    fail(prepare_error_);
    return;
  }
  const size_t prompts = prepared_.prompts.size();
  AnswerHead head;
  head.id = random_id(id_prefix(wire_));
  head.created = unix_now();
  head.model = prepared_.asked_model;
  head.fingerprint = prepared_.identity->system_fingerprint;
  head.logprobs = prepared_.options.sampling.top_logprobs >= 0;
  head.include_usage = prepared_.options.include_usage;
  head.tools = prepared_.response_tools;
  writer_ = make_writer(wire_, std::move(head));

  choices_.emplace(prepared_);
  prompts_open_ = prompts;
  for (size_t prompt = 0; prompt < prompts; ++prompt) {
    dispatches_.push_back(std::make_shared<Dispatch>(services_, exchange_, shared_from_this(), job_for(prompt)));
  }
  arm_timer();
  // A dispatch may fail at once and end the answer, which empties the list.
  const std::vector<std::shared_ptr<Dispatch>> dispatches = dispatches_;
  for (const auto& dispatch : dispatches) {
    if (!over_) dispatch->start();
  }
}

DispatchJob Answer::job_for(size_t prompt) {
  PreparedPrompt& from = prepared_.prompts[prompt];
  DispatchJob job;
  job.model = prepared_.model;
  job.prompt_number = static_cast<int>(prompt);
  job.chain = std::move(from.chain);
  job.request.prompt = std::move(from.tokens);
  job.request.sampling = prepared_.options.sampling;
  job.request.sampling.max_tokens = from.max_tokens;
  job.request.grammar = prepared_.grammar;
  job.request.salt = prepared_.salt;
  job.arrived_ns = arrived_ns_;
  job.deadline_ns = deadline_ns_;
  job.request_id = request_id_;
  job.tenant = identity_.tenant->name;
  job.asked_model = prepared_.asked_model;
  job.view.prompt_tokens = static_cast<int64_t>(job.request.prompt.size());
  job.view.base_tokens = from.base_tokens;
  job.view.base_key = base_key_of(job.chain, from.base_tokens);
  job.view.head_key = head_key_of(job.chain);
  job.view.content_key = content_key_of(job.chain, from.base_tokens);
  job.view.session_key =
      session_key_of(exchange_->request(), identity_.tenant->name, prepared_.options.prompt_cache_key);
  job.view.expected_output_tokens =
      std::min(static_cast<double>(from.max_tokens), prepared_.model->mean_output_tokens());
  return job;
}

void Answer::on_update(int prompt, GenerateUpdate& update) {
  choices_->take(prompt, update);
  if (prepared_.options.stream) relay_news();
}

void Answer::relay_news() {
  if (!choices_->has_news()) return;
  open_stream();
  std::string out;
  choices_->write_news(*writer_, out);
  last_write_ns_ = services_.clock.now_ns();
  exchange_->write(std::move(out));
}

bool Answer::take_back(int prompt) { return !over_ && choices_->take_back(prompt); }

void Answer::on_finished(int prompt, const Status& status) {
  if (over_) return;
  if (!status.ok()) {
    WireError error = from_status(status);
    if (error.status == 400 && error.param.empty()) error.param = prompt_field(wire_);
    fail(error);
    return;
  }
  if (const Status ending = choices_->ending(prompt); !ending.ok()) {
    fail(from_status(ending));
    return;
  }
  if (--prompts_open_ == 0) finish_well();
}

void Answer::finish_well() {
  if (prepared_.options.stream) {
    open_stream();
    std::string out;
    writer_->close(out, usage());
    exchange_->write(std::move(out));
    exchange_->end();
  } else {
    const std::vector<AnswerChoice> choices = choices_->take_whole();
    exchange_->respond(200, headers("application/json"), writer_->whole(choices, usage()));
  }
  services_.metrics.calls_done(prepared_.model->name(), choices_->calls(), choices_->malformed_calls());
  over(200, "ok");
}

AnswerUsage Answer::usage() const {
  AnswerUsage usage = choices_->usage();
  for (const auto& dispatch : dispatches_) usage.prompt_tokens += dispatch->receipt().prompt_tokens;
  return usage;
}

void Answer::fail(const WireError& error, std::string_view outcome) {
  if (over_) return;
  const std::string_view cut = outcome.empty() ? "cancelled" : outcome;
  if (!streaming_) {
    HttpHeaders fields = headers("application/json");
    if (error.retry_after_s > 0) fields.emplace_back("retry-after", std::to_string(error.retry_after_s));
    const int status = wire_ == Wire::kMessages ? anthropic_status(error) : error.status;
    exchange_->respond(status, fields,
                       wire_ == Wire::kMessages ? anthropic_error_body(error, request_id_) : error_body(error));
    over(status, !outcome.empty() ? outcome : error.code.empty() ? "refused" : error.code, cut);
    return;
  }
  exchange_->abort();
  services_.metrics.stream_aborted(prepared_.model->name());
  over(error.status, outcome.empty() ? "aborted" : outcome, cut);
}

void Answer::client_gone() {
  if (over_) return;
  if (preparing_) {
    client_left_ = true;
    return;
  }
  if (prepared_.model) services_.metrics.client_gone(prepared_.model->name());
  over(499, "client_gone");
}

void Answer::drain_over() {
  if (preparing_) {
    drain_over_ = true;
    return;
  }
  fail(nobody_to_serve("The gateway is shutting down; the answer was not finished in time", 2), "drain_over");
}

void Answer::over(int status, std::string_view outcome, std::string_view cut) {
  over_ = true;
  const std::shared_ptr<Dispatch> first = dispatches_.empty() ? nullptr : dispatches_.front();
  for (const auto& dispatch : dispatches_) dispatch->cancel(cut);
  dispatches_.clear();
  if (in_progress_) {
    in_progress_ = false;
    services_.in_progress.fetch_sub(1);
    services_.metrics.requests_in_progress(-1);
  }
  static const std::string kNoModel;
  const std::string& model = prepared_.model ? prepared_.model->name() : kNoModel;
  services_.metrics.request_done(model, wire_name(wire_), status, since_arrival_s());
  if (!settings_->log.access || !log_enabled(LogLevel::kInfo)) return;
  static const Receipt kNoReceipt;
  const Receipt& receipt = first ? first->receipt() : kNoReceipt;
  log_info("request", {{"request", request_id_},
                       {"tenant", identity_.tenant->name},
                       {"wire", wire_name(wire_)},
                       {"model", model},
                       {"status", status},
                       {"outcome", outcome},
                       {"stream", prepared_.options.stream},
                       {"replica", receipt.replica},
                       {"policy", receipt.policy},
                       {"attempts", first ? first->attempts() : 0},
                       {"prompt_tokens", receipt.prompt_tokens},
                       {"predicted_cached_tokens", receipt.predicted_tokens},
                       {"delivered_cached_tokens", choices_ ? choices_->cached_tokens() : 0},
                       {"completion_tokens", choices_ ? choices_->completion_tokens() : 0},
                       {"queue_s", receipt.queue_s},
                       {"first_token_s", receipt.first_token_s},
                       {"total_s", since_arrival_s()}});
}

void Answer::arm_timer() {
  const GatewayLimits& limits = settings_->limits;
  double delay_s = deadline_ns_ == 0 ? 3600 : limits.request_timeout_s - since_arrival_s();
  if (prepared_.options.stream) {
    const double beat_s = streaming_ ? limits.keep_alive_s : limits.headers_after_s - since_arrival_s();
    delay_s = std::min(delay_s, beat_s);
  }
  exchange_->post_after(std::max(delay_s, 0.001), [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self && !self->over_) self->on_timer();
  });
}

void Answer::on_timer() {
  const MonotonicNs now = services_.clock.now_ns();
  if (deadline_ns_ != 0 && now >= deadline_ns_) {
    fail(from_status({StatusCode::kDeadlineExceeded,
                      fmt::format("The request took longer than {} s", settings_->limits.request_timeout_s)}));
    return;
  }
  if (prepared_.options.stream) {
    if (!streaming_ && since_arrival_s() >= settings_->limits.headers_after_s) open_stream();
    if (streaming_ && static_cast<double>(now - last_write_ns_) * 1e-9 >= settings_->limits.keep_alive_s * 0.5) {
      last_write_ns_ = now;
      std::string out;
      writer_->keep_alive(out);
      exchange_->write(std::move(out));
    }
  }
  arm_timer();
}

void Answer::open_stream() {
  if (streaming_) return;
  streaming_ = true;
  HttpHeaders fields = headers("text/event-stream");
  fields.emplace_back("cache-control", "no-cache");
  fields.emplace_back("x-accel-buffering", "no");  // an nginx in front must not collect the stream
  exchange_->begin_stream(200, fields);
  std::string out;
  writer_->open(out, static_cast<int>(choices_->size()), usage());
  last_write_ns_ = services_.clock.now_ns();
  if (!out.empty()) exchange_->write(std::move(out));
}

HttpHeaders Answer::headers(std::string_view content_type) const {
  HttpHeaders fields;
  fields.reserve(10);
  fields.emplace_back("content-type", content_type);
  fields.emplace_back("x-request-id", request_id_);
  if (!dispatches_.empty() && !dispatches_.front()->receipt().replica.empty()) {
    const Dispatch& first = *dispatches_.front();
    fields.emplace_back("x-warmpath-replica", first.receipt().replica);
    fields.emplace_back("x-warmpath-policy", first.receipt().policy);
    fields.emplace_back("x-warmpath-trust", trust_name(first.trust()));
    if (first.receipt().admission_s > 0) {
      fields.emplace_back("x-warmpath-admission-wait", fmt::format("{:.3f}", first.receipt().admission_s));
    }
    fields.emplace_back("x-warmpath-predicted-cached-tokens", std::to_string(first.receipt().predicted_tokens));
  }
  if (wire_ == Wire::kMessages) fields.emplace_back("request-id", request_id_);
  if (!prepared_.left_out.empty()) {
    fields.emplace_back("x-warmpath-tools-left-out", header_list(prepared_.left_out));
  }
  if (prepared_.default_tools) fields.emplace_back("x-warmpath-tools", "default-rendering");
  if (prepared_.identity && prepared_.identity->description.synthetic)
    fields.emplace_back("x-warmpath-synthetic", "true");
  return fields;
}

}  // namespace warmpath

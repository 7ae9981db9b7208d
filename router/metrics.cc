#include "router/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "router/fleet.h"

namespace warmpath {

namespace {

using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using prometheus::Histogram;

const Histogram::BucketBoundaries kSeconds = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5,
                                              1,     2.5,    5,     10,   25,    50,   100, 250};

double count(int64_t number) { return static_cast<double>(number); }

// What belongs to a set of label values, made when first asked for. Family::Add() builds and hashes a map of strings
// each time, which a request cannot afford ten times. Thread safety: any thread.
template <typename Series>
class Known {
 public:
  template <typename Make>
  Series& of(std::initializer_list<std::string_view> values, Make make) {
    thread_local std::string key;
    key.clear();
    for (const std::string_view value : values) key.append(value).push_back('\0');
    {
      const std::shared_lock lock(mutex_);
      if (const auto found = series_.find(key); found != series_.end()) return found->second;
    }
    const std::unique_lock lock(mutex_);
    const auto found = series_.find(key);
    return found != series_.end() ? found->second : series_.emplace(key, make()).first->second;
  }

 private:
  std::shared_mutex mutex_;
  std::unordered_map<std::string, Series> series_;
};

// What every prompt and answer of a model counts.
struct ModelSeries {
  Histogram* request_seconds;
  Histogram* first_token_seconds;
  Histogram* decide_seconds;
  Counter* prompt_tokens;
  Counter* predicted;
  Counter* delivered;
  Counter* tail;
  Counter* best;
  Counter* base;
  Counter* completion_tokens;
};

}  // namespace

struct Metrics::Parts {
  prometheus::Registry registry;
  std::vector<std::string> names;

  Family<Counter>& counter(const char* name, const char* help) {
    names.emplace_back(name);
    return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
  }
  Family<Gauge>& gauge(const char* name, const char* help) {
    names.emplace_back(name);
    return prometheus::BuildGauge().Name(name).Help(help).Register(registry);
  }
  Family<Histogram>& histogram(const char* name, const char* help) {
    names.emplace_back(name);
    return prometheus::BuildHistogram().Name(name).Help(help).Register(registry);
  }

  Family<Counter>& requests = counter("warmpath_requests_total", "Completions answered, by HTTP status.");
  Family<Histogram>& request_seconds = histogram("warmpath_request_seconds", "Arrival to last byte.");
  Family<Histogram>& first_token_seconds = histogram("warmpath_first_token_seconds", "Arrival to first token.");
  Family<Histogram>& decide_seconds = histogram("warmpath_decide_seconds", "Looking up the index and deciding.");
  Family<Counter>& prompt_tokens = counter("warmpath_prompt_tokens_total", "Prompt tokens of answered prompts.");
  Family<Counter>& delivered = counter("warmpath_delivered_cached_tokens_total",
                                       "Prompt tokens whose KV the replica found, by its own account.");
  Family<Counter>& tail = counter("warmpath_delivered_tail_tokens_total",
                                  "Prompt tokens beyond those, copied from a block that only begins alike.");
  Family<Counter>& predicted =
      counter("warmpath_predicted_cached_tokens_total", "Prompt tokens the index expected the chosen replica to hold.");
  Family<Counter>& best =
      counter("warmpath_best_cached_tokens_total", "Prompt tokens held by the replica that held most, chosen or not.");
  Family<Counter>& base =
      counter("warmpath_base_cached_tokens_total", "Prompt tokens that every usable replica held when it was routed.");
  Family<Counter>& lost = counter("warmpath_lost_cached_tokens_total",
                                  "Prompt tokens computed although somebody had computed them, by reason.");
  Family<Counter>& completion_tokens = counter("warmpath_completion_tokens_total", "Tokens generated.");
  Family<Counter>& routed = counter("warmpath_routed_total", "Prompts sent to a replica, by outcome.");
  Family<Counter>& shadow_choices =
      counter("warmpath_shadow_choices_total", "What shadow policies would have chosen: the same replica, or another.");
  Family<Counter>& shadow_regret =
      counter("warmpath_shadow_regret_seconds_total",
              "Predicted seconds that a shadow policy's choices would have been cheaper by.");
  Family<Counter>& shadow_avoided =
      counter("warmpath_shadow_avoided_seconds_total",
              "Predicted seconds that a shadow policy's choices would have been dearer by.");
  Family<Counter>& failovers = counter("warmpath_failovers_total", "Prompts sent again to another replica.");
  Family<Counter>& gone = counter("warmpath_client_gone_total", "Clients that left before their answer was complete.");
  Family<Counter>& calls = counter("warmpath_tool_calls_total", "Calls of tools in answers.");
  Family<Counter>& malformed_calls =
      counter("warmpath_malformed_tool_calls_total",
              "Calls that were handed out as text, or whose arguments are no JSON, because the model wrote them so.");
  Family<Counter>& aborted =
      counter("warmpath_streams_aborted_total", "Streams cut after they began: the replica failed, or time was up.");
  Family<Counter>& refusals = counter("warmpath_refused_total", "Requests refused before a replica was asked.");
  Family<Counter>& rendered = counter("warmpath_rendered_messages_total",
                                      "Messages the chat template was run for, or taken over from the session.");
  Family<Counter>& whole_renderings =
      counter("warmpath_whole_renderings_total", "Prompts of known sessions of which nothing could be taken over.");
  Family<Counter>& wrong_renderings =
      counter("warmpath_wrong_renderings_total", "Continued renderings that a sample found to differ from the whole.");
  Family<Counter>& prompt_bytes =
      counter("warmpath_prompt_text_bytes_total", "Bytes of rendered prompts, tokenized now or known.");
  Gauge& in_progress = gauge("warmpath_requests_in_progress", "Completions in progress.").Add({});
  Gauge& waiting = gauge("warmpath_requests_waiting",
                         "Of those, waiting because every replica is full, or for a place of their session.")
                       .Add({});

  Family<Gauge>& live_sessions = gauge("warmpath_admission_live_sessions", "Sessions that hold a place.");
  Family<Gauge>& live_tokens = gauge("warmpath_admission_live_tokens", "Tokens of KV counted for them.");
  Family<Gauge>& admission_waiting = gauge("warmpath_admission_waiting", "Turns that wait for a place.");
  Family<Gauge>& admission_pauses = gauge(
      "warmpath_admission_pauses", "Sessions that had to give up their place between two turns, since the start.");
  Family<Gauge>& over_commit =
      gauge("warmpath_admission_over_commit", "Tokens of live sessions allowed for each token of KV.");

  Family<Gauge>& replica_up = gauge("warmpath_replica_ready", "1 when the replica takes requests.");
  Family<Gauge>& replica_exact = gauge("warmpath_replica_exact", "1 when the index knows exactly what it holds.");
  Family<Gauge>& replica_running = gauge("warmpath_replica_running", "Sequences that hold a slot.");
  Family<Gauge>& replica_queued = gauge("warmpath_replica_queued", "Sequences without a slot yet.");
  Family<Gauge>& replica_used = gauge("warmpath_replica_used_blocks", "KV blocks of running sequences.");
  Family<Gauge>& replica_cached = gauge("warmpath_replica_cached_blocks", "KV blocks kept for reuse.");
  Family<Gauge>& replica_resident =
      gauge("warmpath_replica_resident_blocks", "Block copies the index believes it holds, by tier.");
  Family<Gauge>& replica_gaps = gauge("warmpath_replica_event_gaps", "Gaps seen in its event stream.");
  Gauge& index_bytes = gauge("warmpath_index_bytes", "Memory of the index.").Add({});
  Gauge& index_max_bytes = gauge("warmpath_index_max_bytes", "The most it may take (index.max_bytes).").Add({});
  Gauge& index_saved_at = gauge("warmpath_index_snapshot_time_seconds",
                                "When the index was last written to its file, since 1970; 0: never.")
                              .Add({});
  Gauge& index_save_failures =
      gauge("warmpath_index_snapshot_failures", "Snapshots of the index that could not be written or read.").Add({});
  Gauge& index_placed = gauge("warmpath_index_placed_spans", "Stretches of blocks that are only expected.").Add({});
  Gauge& index_blocks = gauge("warmpath_index_blocks", "Distinct blocks in the index.").Add({});
  Gauge& index_evicted = gauge("warmpath_index_evicted_blocks", "Blocks the index forgot for want of memory.").Add({});

  Gauge& http_connections = gauge("warmpath_http_connections", "Open client connections.").Add({});
  Gauge& http_body_bytes = gauge("warmpath_http_body_bytes", "Request bodies held in memory.").Add({});
  Counter& http_requests = counter("warmpath_http_requests_total", "Requests with a well-formed header.").Add({});
  Family<Counter>& http_refused = counter("warmpath_http_refused_total", "Requests refused as HTTP, by reason.");
  Counter& http_bytes_in = counter("warmpath_http_bytes_in_total", "Bytes received from clients.").Add({});
  Counter& http_bytes_out = counter("warmpath_http_bytes_out_total", "Bytes sent to clients.").Add({});
  Counter& http_slow =
      counter("warmpath_http_slow_readers_total", "Clients cut off because they did not read.").Add({});

  // What was last read of a model's encoder. Another encoder, after the model's replicas changed, counts from nothing.
  struct Encoded {
    std::weak_ptr<PromptEncoder> encoder;
    PromptEncoder::Stats stats;
  };
  std::mutex encoded_mutex;
  std::unordered_map<std::string, Encoded> encoded;

  Known<ModelSeries> models;
  Known<Counter*> requests_by;
  Known<Counter*> routed_by;

  ModelSeries& of_model(const std::string& name);
  void read(const Fleet& fleet);
  void read(const std::string& model, const std::shared_ptr<PromptEncoder>& encoder);
  void read(const HttpCounters& http);
};

Metrics::Metrics() : parts_(std::make_unique<Parts>()) {}
Metrics::~Metrics() = default;

ModelSeries& Metrics::Parts::of_model(const std::string& name) {
  return models.of({name}, [&]() -> ModelSeries {
    const prometheus::Labels model = {{"model", name}};
    return {.request_seconds = &request_seconds.Add(model, kSeconds),
            .first_token_seconds = &first_token_seconds.Add(model, kSeconds),
            .decide_seconds = &decide_seconds.Add(model, kSeconds),
            .prompt_tokens = &prompt_tokens.Add(model),
            .predicted = &predicted.Add(model),
            .delivered = &delivered.Add(model),
            .tail = &tail.Add(model),
            .best = &best.Add(model),
            .base = &base.Add(model),
            .completion_tokens = &completion_tokens.Add(model)};
  });
}

void Metrics::request_done(const std::string& model, std::string_view wire, int status, double seconds) {
  const std::string code = std::to_string(status);
  parts_->requests_by
      .of({model, wire, code},
          [&] {
            return &parts_->requests.Add({{"model", model}, {"wire", std::string(wire)}, {"status", code}});
          })
      ->Increment();
  parts_->of_model(model).request_seconds->Observe(seconds);
}

void Metrics::prompt_done(const Receipt& receipt) {
  if (!receipt.replica.empty()) {
    const std::string& replica = receipt.replica;
    parts_->routed_by
        .of({receipt.model, replica, receipt.outcome},
            [&] {
              return &parts_->routed.Add(
                  {{"model", receipt.model}, {"replica", replica}, {"outcome", std::string(receipt.outcome)}});
            })
        ->Increment();
  }
  for (const ReceiptShadow& shadow : receipt.shadows) {
    prometheus::Labels labels = {{"model", receipt.model}, {"shadow", shadow.policy}};
    if (shadow.regret_s > 0) parts_->shadow_regret.Add(labels).Increment(shadow.regret_s);
    if (shadow.regret_s < 0) parts_->shadow_avoided.Add(labels).Increment(-shadow.regret_s);
    labels["choice"] = shadow.replica == receipt.replica ? "same" : "other";
    parts_->shadow_choices.Add(labels).Increment();
  }
  const ModelSeries& model = parts_->of_model(receipt.model);
  model.decide_seconds->Observe(receipt.decide_s);
  if (receipt.outcome != "ok") return;
  model.first_token_seconds->Observe(receipt.first_token_s);
  model.prompt_tokens->Increment(count(receipt.prompt_tokens));
  model.predicted->Increment(count(receipt.predicted_tokens));
  model.delivered->Increment(count(receipt.delivered_tokens));
  model.tail->Increment(count(receipt.tail_tokens));
  model.best->Increment(count(receipt.best_tokens));
  model.base->Increment(count(receipt.base_tokens));
  model.completion_tokens->Increment(count(receipt.completion_tokens));
  for (size_t reason = 0; reason < kLossReasons; ++reason) {
    if (receipt.lost_tokens[reason] == 0) continue;
    const std::string_view name = loss_reason_name(static_cast<LossReason>(reason));
    parts_->lost.Add({{"model", receipt.model}, {"reason", std::string(name)}})
        .Increment(count(receipt.lost_tokens[reason]));
  }
}

void Metrics::failover(std::string_view model) { parts_->failovers.Add({{"model", std::string(model)}}).Increment(); }
void Metrics::client_gone(std::string_view model) { parts_->gone.Add({{"model", std::string(model)}}).Increment(); }
void Metrics::calls_done(std::string_view model, int64_t calls, int64_t malformed) {
  if (calls > 0) parts_->calls.Add({{"model", std::string(model)}}).Increment(count(calls));
  if (malformed > 0) parts_->malformed_calls.Add({{"model", std::string(model)}}).Increment(count(malformed));
}
void Metrics::stream_aborted(std::string_view model) {
  parts_->aborted.Add({{"model", std::string(model)}}).Increment();
}
void Metrics::refused(std::string_view reason) { parts_->refusals.Add({{"reason", std::string(reason)}}).Increment(); }
void Metrics::requests_in_progress(int change) { parts_->in_progress.Increment(change); }
void Metrics::requests_waiting(int change) { parts_->waiting.Increment(change); }

void Metrics::Parts::read(const std::string& model, const std::shared_ptr<PromptEncoder>& encoder) {
  const std::lock_guard lock(encoded_mutex);
  Encoded& last = encoded[model];
  if (last.encoder.lock() != encoder) last = {encoder, {}};
  const PromptEncoder::Stats now = encoder->stats();
  const auto add = [](Counter& counter, uint64_t total, uint64_t before) {
    if (total > before) counter.Increment(static_cast<double>(total - before));
  };
  add(rendered.Add({{"model", model}, {"by", "template"}}), now.rendered_messages, last.stats.rendered_messages);
  add(rendered.Add({{"model", model}, {"by", "session"}}), now.reused_messages, last.stats.reused_messages);
  add(whole_renderings.Add({{"model", model}}), now.whole_renderings, last.stats.whole_renderings);
  add(wrong_renderings.Add({{"model", model}}), now.wrong_renderings, last.stats.wrong_renderings);
  add(prompt_bytes.Add({{"model", model}, {"tokenized", "now"}}), now.miss_bytes, last.stats.miss_bytes);
  add(prompt_bytes.Add({{"model", model}, {"tokenized", "before"}}), now.hit_bytes, last.stats.hit_bytes);
  last.stats = now;
}

void Metrics::Parts::read(const Fleet& fleet) {
  for (const auto& model : fleet.models()) {
    if (const auto identity = model->identity()) read(model->name(), identity->encoder);
    if (const auto desk = model->admission(); desk->enabled()) {
      const AdmissionDesk::Counts counts = desk->counts();
      const prometheus::Labels of_model = {{"model", model->name()}};
      live_sessions.Add(of_model).Set(static_cast<double>(counts.live_sessions));
      live_tokens.Add(of_model).Set(static_cast<double>(counts.live_tokens));
      admission_waiting.Add(of_model).Set(static_cast<double>(counts.waiting));
      admission_pauses.Add(of_model).Set(static_cast<double>(counts.pauses));
      over_commit.Add(of_model).Set(counts.over_commit);
    }
    for (const auto& replica : model->replicas()) {
      const prometheus::Labels labels = {{"model", model->name()}, {"replica", replica->name()}};
      Candidate load;
      replica->fill(load);
      const ReplicaStats stats = replica->stats();
      replica_up.Add(labels).Set(replica->usable() ? 1 : 0);
      replica_exact.Add(labels).Set(replica->trust() == Trust::kExact ? 1 : 0);
      // Our own books call a prompt running once its first token is there; the replica knows who holds a slot before.
      const int32_t total = load.running + load.queued;
      const int32_t running = std::clamp(stats.running, load.running, total);
      replica_running.Add(labels).Set(running);
      replica_queued.Add(labels).Set(total - running);
      replica_used.Add(labels).Set(count(stats.used_blocks));
      replica_cached.Add(labels).Set(count(stats.cached_blocks));
      const ReplicaId id = replica->index_id();
      const IndexReplicaView view = fleet.index().read(
          [&](const RadixIndex& index) { return index.has_replica(id) ? index.replica_view(id) : IndexReplicaView{}; });
      replica_gaps.Add(labels).Set(static_cast<double>(view.gaps));
      for (int tier = 0; tier < kTiers; ++tier) {
        prometheus::Labels of_tier = labels;
        of_tier["tier"] = tier_name(static_cast<Tier>(tier));
        replica_resident.Add(of_tier).Set(static_cast<double>(view.resident_blocks[static_cast<size_t>(tier)]));
      }
    }
  }
  const IndexStats stats = fleet.index().read([](const RadixIndex& index) { return index.stats(); });
  index_bytes.Set(static_cast<double>(stats.bytes));
  index_max_bytes.Set(static_cast<double>(stats.max_bytes));
  index_placed.Set(static_cast<double>(stats.placed_spans));
  index_saved_at.Set(static_cast<double>(fleet.snapshot_file().saved_at_s()));
  index_save_failures.Set(static_cast<double>(fleet.snapshot_file().failures()));
  index_blocks.Set(static_cast<double>(stats.distinct_blocks));
  index_evicted.Set(static_cast<double>(stats.evicted_blocks));
}

void Metrics::Parts::read(const HttpCounters& http) {
  // The server's counters only grow, and scrapes may overlap: never let one of ours go back.
  const auto follow = [](Counter& counter, uint64_t total) {
    const double behind = static_cast<double>(total) - counter.Value();
    if (behind > 0) counter.Increment(behind);
  };
  http_connections.Set(static_cast<double>(http.active));
  http_body_bytes.Set(static_cast<double>(http.body_bytes));
  follow(http_requests, http.requests);
  follow(http_bytes_in, http.bytes_in);
  follow(http_bytes_out, http.bytes_out);
  follow(http_slow, http.slow_readers);
  for (size_t reason = 0; reason < kHttpRefusals; ++reason) {
    if (http.refused[reason] == 0) continue;
    const HttpRefusalRow& row = http_refusal_row(static_cast<HttpRefusal>(reason));
    follow(http_refused.Add({{"reason", std::string(row.code)}}), http.refused[reason]);
  }
}

std::vector<std::string> Metrics::names() const { return parts_->names; }

std::string Metrics::text(const Fleet& fleet, const HttpCounters* http) {
  parts_->read(fleet);
  if (http != nullptr) parts_->read(*http);
  return prometheus::TextSerializer().Serialize(parts_->registry.Collect());
}

}  // namespace warmpath

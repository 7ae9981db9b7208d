#include "engine/engine_core.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/block_chain.h"
#include "base/check.h"
#include "base/log.h"

namespace warmpath {

namespace {

constexpr double kMaxDeadlineS = 1e7;

Status check_tokens(const char* field, std::span<const TokenId> tokens, TokenId vocabulary) {
  for (size_t index = 0; index < tokens.size(); ++index) {
    if (tokens[index] < 0 || tokens[index] >= vocabulary) {
      return invalid_argument(
          fmt::format("{}[{}] is token {}; this model has tokens 0 to {}: is the caller using "
                      "another model's tokenizer?",
                      field, index, tokens[index], vocabulary - 1));
    }
  }
  return {};
}

SchedulerOptions scheduler_options(const EngineOptions& options, const Backend& backend) {
  SchedulerOptions result;
  result.step_tokens = std::clamp(options.step_tokens, 1, backend.max_step_tokens());
  result.max_running = std::clamp(options.max_running, 1, std::min(backend.max_step_sequences(), result.step_tokens));
  return result;
}

}  // namespace

EngineCore::EngineCore(Backend& backend, const Vocabulary& vocabulary, EngineOptions options, const Clock& clock,
                       uint64_t boot_epoch)
    : backend_(backend),
      options_(std::move(options)),
      clock_(clock),
      boot_epoch_(boot_epoch),
      length_limit_(
          static_cast<int32_t>(std::min<int64_t>(backend.context_tokens(), backend.kv_blocks() * kBlockTokens))),
      text_(vocabulary),
      journal_(boot_epoch),
      pool_(backend.kv_blocks(), options_.prefix_cache ? &journal_ : nullptr, options_.prefix_cache),
      scheduler_(pool_, scheduler_options(options_, backend)),
      sampler_(backend.vocabulary()) {
  if (length_limit_ < backend.context_tokens()) {
    log_warn("kv_smaller_than_context", {{"context_tokens", backend.context_tokens()},
                                         {"kv_tokens", length_limit_},
                                         {"remedy", "give the engine more KV memory, or accept shorter requests"}});
  }
}

EngineCore::~EngineCore() { stop({StatusCode::kCancelled, "the engine was stopped"}); }

Status EngineCore::check(const GenerateRequest& request) const {
  if (request.request_id.empty()) return invalid_argument("request_id is empty");
  if (request.prompt.empty()) return invalid_argument("prompt has no tokens; at least 1 is needed");
  const SamplingParams& sampling = request.sampling;
  WARMPATH_RETURN_IF_ERROR(validate(sampling, backend_.vocabulary()));
  WARMPATH_RETURN_IF_ERROR(validate(request.grammar, backend_.vocabulary()));
  WARMPATH_RETURN_IF_ERROR(check_tokens("prompt", request.prompt, backend_.vocabulary()));
  WARMPATH_RETURN_IF_ERROR(check_tokens("output_prefix", request.output_prefix, backend_.vocabulary()));
  if (!request.output_prefix.empty() && sampling.n != 1) {
    return invalid_argument(
        fmt::format("output_prefix resumes one choice, but n is {}: send one request per choice", sampling.n));
  }
  if (!(request.deadline_s >= 0 && request.deadline_s <= kMaxDeadlineS)) {
    return invalid_argument(
        fmt::format("deadline_s is {}; it must be between 0 (none) and {}", request.deadline_s, kMaxDeadlineS));
  }
  const auto prompt = static_cast<int64_t>(request.prompt.size());
  const char* limit =
      length_limit_ < backend_.context_tokens() ? "this replica's whole KV cache" : "the model's context";
  if (prompt >= length_limit_) {
    return {StatusCode::kContextLengthExceeded,
            fmt::format("the prompt has {} tokens and {} holds {} (prompt and output together): shorten the prompt",
                        prompt, limit, length_limit_)};
  }
  if (sampling.max_tokens > 0 && prompt + sampling.max_tokens > length_limit_) {
    return {StatusCode::kContextLengthExceeded,
            fmt::format("the prompt has {} tokens and max_tokens is {}, {} together, and {} holds {}: shorten the "
                        "prompt or lower max_tokens to at most {}",
                        prompt, sampling.max_tokens, prompt + sampling.max_tokens, limit, length_limit_,
                        length_limit_ - prompt)};
  }
  if (prompt + static_cast<int64_t>(request.output_prefix.size()) > length_limit_) {
    return {StatusCode::kContextLengthExceeded,
            fmt::format("prompt and output_prefix have {} tokens and {} holds {}",
                        prompt + static_cast<int64_t>(request.output_prefix.size()), limit, length_limit_)};
  }
  return {};
}

Result<std::shared_ptr<Generation>> EngineCore::accept(GenerateRequest request, std::shared_ptr<RequestSink> sink,
                                                       uint64_t number) const {
  WARMPATH_RETURN_IF_ERROR(check(request));
  std::shared_ptr<const StopStrings> stop_strings;
  if (!request.sampling.stop.empty()) {
    Result<std::shared_ptr<const StopStrings>> compiled = StopStrings::create(request.sampling.stop);
    if (!compiled.ok()) return compiled.status();
    stop_strings = std::move(*compiled);
  }
  // Without the prefix cache every request is a chain of its own: its choices share, others don't.
  const std::string scope = options_.prefix_cache ? std::string() : fmt::format("request {}", number);
  const Hash128 root = chain_root(options_.fingerprint, request.salt, scope);
  const uint64_t words[2] = {boot_epoch_, number};
  const uint64_t seed = hash128(words, sizeof words).lo;
  return std::make_shared<Generation>(std::move(request), std::move(sink), root, number, seed, std::move(stop_strings),
                                      Generation::Limits{length_limit_, options_.end_tokens}, clock_);
}

void EngineCore::start(std::shared_ptr<Generation> generation) {
  Generation& started = *generation;
  const auto [entry, inserted] = generations_.emplace(started.request().request_id, std::move(generation));
  WARMPATH_CHECK(inserted, "the caller refuses an id that is in use");
  ++queued_;
  ++counters_.requests;
  const MonotonicNs deadline = started.deadline_ns();
  if (deadline != 0 && (next_deadline_ == 0 || deadline < next_deadline_)) next_deadline_ = deadline;
  for (const auto& choice : started.choices()) {
    if (!started.absorb_output_prefix(*choice, text_)) scheduler_.add(choice.get());
  }
  if (!started.done() && started.failure.ok()) return;
  touch(started);
  finish_touched(0);
}

void EngineCore::cancel(const std::string& request_id, const Status& why) {
  const auto entry = generations_.find(request_id);
  if (entry == generations_.end()) return;
  ++counters_.cancelled;
  end(*entry->second, why);
}

void EngineCore::stop(const Status& why) {
  while (!generations_.empty()) cancel(generations_.begin()->first, why);
}

void EngineCore::end(Generation& generation, const Status& status) {
  for (const auto& choice : generation.choices()) scheduler_.remove(choice.get());
  if (!generation.started()) --queued_;
  const auto entry = generations_.find(generation.request().request_id);
  const std::shared_ptr<Generation> keep = std::move(entry->second);
  generations_.erase(entry);
  keep->sink().on_done(status);
}

void EngineCore::drop_expired(MonotonicNs now) {
  if (next_deadline_ == 0 || now < next_deadline_) return;
  next_deadline_ = 0;
  std::vector<Generation*> expired;
  for (const auto& [id, generation] : generations_) {
    const MonotonicNs deadline = generation->deadline_ns();
    if (deadline == 0) continue;
    if (deadline <= now) {
      expired.push_back(generation.get());
    } else if (next_deadline_ == 0 || deadline < next_deadline_) {
      next_deadline_ = deadline;
    }
  }
  for (Generation* generation : expired) {
    end(*generation, {StatusCode::kDeadlineExceeded,
                      fmt::format("the request's deadline of {} s passed {}", generation->request().deadline_s,
                                  generation->started() ? "while it was generating" : "in the queue")});
  }
}

void EngineCore::touch(Generation& generation) {
  if (std::exchange(generation.touched, true)) return;
  touched_.push_back(&generation);
}

bool EngineCore::begin_step() {
  const MonotonicNs now = clock_.now_ns();
  pool_.advance_clock(now);
  drop_expired(now);
  const std::span<const Scheduler::Chunk> chunks = scheduler_.schedule();
  if (chunks.empty()) {
    WARMPATH_CHECK(generations_.empty(), "requests wait and nothing can run");
    return false;
  }
  for (const Scheduler::Chunk& chunk : chunks) begin_chunk(chunk, now);
  ++counters_.steps;
  in_flight_ = backend_.submit(scheduler_.plan());
  return true;
}

void EngineCore::finish_step() {
  const std::span<const Scheduler::Chunk> chunks = scheduler_.chunks();
  const Result<StepResult> result = in_flight_->wait();
  if (result.ok()) {
    scheduler_.commit();
    postprocess(chunks, result->logits);
  } else {
    fail_step(chunks, result.status());
  }
  in_flight_.reset();
  finish_touched(static_cast<int32_t>(chunks.size()));
}

bool EngineCore::step() {
  if (!begin_step()) return false;
  finish_step();
  return true;
}

void EngineCore::begin_chunk(const Scheduler::Chunk& chunk, MonotonicNs now) {
  Generation& generation = static_cast<Choice&>(*chunk.sequence).generation;
  touch(generation);
  const int32_t prompt = generation.prompt().length();
  if (!generation.started()) {
    --queued_;
    generation.on_scheduled(now);
    counters_.prompt_tokens += prompt;
    const int32_t cached = std::clamp(chunk.sequence->cached_tokens(), 0, prompt);
    counters_.cached_tokens += cached;
    counters_.tail_tokens += std::clamp(chunk.sequence->tail_tokens(), 0, prompt - cached);
  }
  generation.on_computed(chunk.tokens, chunk.tokens == 1 && chunk.sequence->computed() >= prompt);
}

void EngineCore::postprocess(std::span<const Scheduler::Chunk> chunks, std::span<const float> logits) {
  const MonotonicNs now = clock_.now_ns();
  const auto vocabulary = static_cast<size_t>(backend_.vocabulary());
  size_t row = 0;
  for (const Scheduler::Chunk& chunk : chunks) {
    if (!chunk.sample) continue;
    const std::span<const float> choice_logits = logits.subspan(row++ * vocabulary, vocabulary);
    Choice& choice = static_cast<Choice&>(*chunk.sequence);
    Generation& generation = choice.generation;
    if (!generation.failure.ok()) continue;
    Result<SampledToken> sampled =
        sampler_.sample(choice_logits, generation.request().sampling, choice.counts, generation.banned(choice),
                        {generation.seed(), choice.choice(), choice.length()},
                        choice.grammar ? choice.grammar->mask() : std::span<const uint32_t>());
    if (!sampled.ok()) {
      generation.failure = sampled.status();
      continue;
    }
    ++counters_.generated_tokens;
    generation.on_token(choice, std::move(*sampled), text_, now);
  }
}

void EngineCore::fail_step(std::span<const Scheduler::Chunk> chunks, const Status& status) {
  log_error("step_failed", {{"error", status.to_string()}, {"sequences", chunks.size()}});
  scheduler_.fail();
  for (const Scheduler::Chunk& chunk : chunks) {
    static_cast<Choice&>(*chunk.sequence).generation.failure = {
        status.code(), fmt::format("the engine's {} backend failed while it computed this request: {}",
                                   backend_.device(), status.message())};
  }
}

void EngineCore::finish_touched(int32_t batch) {
  for (Generation* generation : touched_) {
    generation->touched = false;
    if (!generation->failure.ok()) {
      end(*generation, generation->failure);
      continue;
    }
    for (const auto& choice : generation->choices()) {
      if (choice->finished) scheduler_.remove(choice.get());
    }
    generation->send(batch);
    if (generation->done()) {
      end(*generation, {});
    } else {
      to_flush_.push_back(generation);
    }
  }
  touched_.clear();
  // Only now, so that what one step said of many requests can leave together.
  for (Generation* generation : to_flush_) generation->sink().flush();
  to_flush_.clear();
}

ReplicaStats EngineCore::stats() const {
  ReplicaStats stats = counters_;
  stats.boot_epoch = boot_epoch_;
  stats.running = scheduler_.running();
  stats.queued = queued_;
  stats.queued_tokens = scheduler_.queued_tokens();
  stats.free_blocks = pool_.empty();
  stats.cached_blocks = pool_.cached();
  stats.used_blocks = pool_.used();
  stats.preemptions = scheduler_.preemptions();
  stats.evicted_blocks = pool_.evicted();
  return stats;
}

}  // namespace warmpath

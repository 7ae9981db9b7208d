#include "engine/generation.h"

#include <algorithm>
#include <utility>

namespace warmpath {

namespace {

double seconds(MonotonicNs begin, MonotonicNs end) {
  return begin == 0 || end <= begin ? 0 : static_cast<double>(end - begin) * 1e-9;
}

}  // namespace

Choice::Choice(Generation& owner, const Prompt& prompt, uint64_t arrival, int32_t index,
               std::shared_ptr<const StopStrings> stop_strings)
    : Sequence(prompt, owner.request().priority, arrival, index, owner.request().output_prefix),
      generation(owner),
      counts(owner.request().sampling, prompt.tokens),
      stop(std::move(stop_strings)) {}

Generation::Generation(GenerateRequest request, std::shared_ptr<RequestSink> sink, Hash128 root, uint64_t arrival,
                       uint64_t seed, std::shared_ptr<const StopStrings> stop_strings, Limits limits,
                       const Clock& clock)
    : request_(std::move(request)),
      sink_(std::move(sink)),
      prompt_(request_.prompt, root),
      seed_(request_.sampling.seed.value_or(seed)),
      length_limit_(limits.length),
      stop_tokens_(request_.sampling.stop_tokens),
      unfinished_(request_.sampling.n),
      arrival_ns_(clock.now_ns()),
      deadline_ns_(request_.deadline_s > 0 ? arrival_ns_ + static_cast<MonotonicNs>(request_.deadline_s * 1e9) : 0) {
  if (!request_.sampling.ignore_eos) {
    stop_tokens_.insert(stop_tokens_.end(), limits.end_tokens.begin(), limits.end_tokens.end());
  }
  std::sort(stop_tokens_.begin(), stop_tokens_.end());
  for (int32_t index = 0; index < request_.sampling.n; ++index) {
    choices_.push_back(std::make_unique<Choice>(*this, prompt_, arrival, index, stop_strings));
  }
}

void Generation::constrain(const std::shared_ptr<const CompiledGrammar>& grammar, const TokenText& text) {
  // A stop token that spells text is what the grammar makes of it, and ends the answer where it stands.
  std::vector<TokenId> ends = stop_tokens_;
  std::erase_if(ends, [&](TokenId token) { return !text.of(token).empty(); });
  for (const auto& choice : choices_) choice->grammar = GrammarMatcher::create(grammar, ends);
}

bool Generation::ends(TokenId token) const {
  return std::binary_search(stop_tokens_.begin(), stop_tokens_.end(), token);
}

bool Generation::out_of_room(const Choice& choice) const {
  const auto generated = static_cast<int32_t>(choice.output().size());
  const int32_t max_tokens = request_.sampling.max_tokens;
  return (max_tokens >= 0 && generated >= max_tokens) || choice.length() >= length_limit_;
}

std::span<const TokenId> Generation::banned(const Choice& choice) const {
  const auto generated = static_cast<int32_t>(choice.output().size());
  if (generated < request_.sampling.min_tokens) return stop_tokens_;
  return {};
}

int32_t Generation::matched_stop(const Choice& choice) const {
  const std::vector<std::string>& stops = request_.sampling.stop;
  return static_cast<int32_t>(std::find(stops.begin(), stops.end(), choice.stop.matched()) - stops.begin());
}

void Generation::finish(Choice& choice, FinishReason reason, int32_t stop_string, TokenId stop_token) {
  const auto completion = static_cast<int32_t>(choice.output().size());
  choice.finished = true;
  --unfinished_;
  update_.finished.push_back({choice.choice(), reason, stop_string, stop_token, completion});
}

bool Generation::absorb_output_prefix(Choice& choice, const TokenText& text) {
  const std::vector<TokenId>& output = choice.output();
  std::string passed;
  for (const TokenId token : output) {
    choice.counts.add(token);
    if (choice.grammar && failure.ok() && !ends(token) && !choice.grammar->accept(token)) {
      failure = invalid_argument("output_prefix is not what the grammar allows: resume with the request's own output");
    }
    if (!request_.sampling.stop.empty()) choice.stop.push(text.of(token), passed);
  }
  // The replica that made this output may have died between its last token and its end.
  if (!request_.sampling.stop.empty() && choice.stop.stopped()) {
    finish(choice, FinishReason::kStop, matched_stop(choice));
  } else if (!output.empty() && ends(output.back()) &&
             static_cast<int32_t>(output.size()) > request_.sampling.min_tokens) {
    finish(choice, FinishReason::kStop, -1, output.back());
  } else if (choice.grammar && choice.grammar->must_end()) {
    finish(choice, FinishReason::kStop);
  } else if (out_of_room(choice)) {
    finish(choice, FinishReason::kLength);
  }
  return choice.finished;
}

void Generation::on_scheduled(MonotonicNs now) {
  if (scheduled_ns_ == 0) scheduled_ns_ = now;
}

void Generation::on_computed(int32_t tokens, bool decode) {
  if (decode) {
    decoded_in_step_ = true;
  } else {
    prefill_tokens_ += tokens;
  }
}

void Generation::on_token(Choice& choice, SampledToken sampled, const TokenText& text, MonotonicNs now) {
  const TokenId token = sampled.token;
  if (first_token_ns_ == 0) first_token_ns_ = now;
  last_token_ns_ = now;
  choice.append(token);
  choice.counts.add(token);
  if (ends(token)) return finish(choice, FinishReason::kStop, -1, token);  // carried by the finish, not by the text
  update_.tokens.push_back({choice.choice(), token, sampled.logprob, std::move(sampled.top_logprobs)});
  if (!request_.sampling.stop.empty()) {
    std::string passed;
    if (choice.stop.push(text.of(token), passed)) return finish(choice, FinishReason::kStop, matched_stop(choice));
  }
  if (choice.grammar) {
    if (!choice.grammar->accept(token)) {
      failure = internal_error("the grammar does not take the token that its own mask allowed");
      return;
    }
    if (choice.grammar->must_end()) return finish(choice, FinishReason::kStop);
  }
  if (out_of_room(choice)) finish(choice, FinishReason::kLength);
}

RequestTimings Generation::timings() const {
  RequestTimings timings;
  timings.queue_s = seconds(arrival_ns_, scheduled_ns_);
  timings.prefill_s = seconds(scheduled_ns_, first_token_ns_);
  timings.decode_s = seconds(first_token_ns_, last_token_ns_);
  timings.prefill_tokens = prefill_tokens_;
  timings.decode_steps = decode_steps_;
  timings.mean_decode_batch =
      decode_steps_ == 0 ? 0 : static_cast<double>(decode_batches_) / static_cast<double>(decode_steps_);
  for (const auto& choice : choices_) timings.preemptions += choice->preemptions();
  return timings;
}

void Generation::send(int32_t batch) {
  if (decoded_in_step_) {
    ++decode_steps_;
    decode_batches_ += batch;
    decoded_in_step_ = false;
  }
  if (update_.tokens.empty() && update_.finished.empty()) return;
  if (!start_sent_) {
    start_sent_ = true;
    StartInfo start;
    start.cached_device_tokens = std::clamp(choices_.front()->cached_tokens(), 0, prompt_.length());
    start.tail_tokens = std::clamp(choices_.front()->tail_tokens(), 0, prompt_.length() - start.cached_device_tokens);
    start.queue_s = seconds(arrival_ns_, scheduled_ns_);
    start.prefill_s = seconds(scheduled_ns_, first_token_ns_);
    update_.start = start;
  }
  if (done()) update_.timings = timings();
  sink_->on_update(std::exchange(update_, GenerateUpdate{}));
}

}  // namespace warmpath

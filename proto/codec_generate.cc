// Generate. The other messages: codec_describe.cc, codec_events.cc.
#include <algorithm>

#include "proto/codec.h"
#include "proto/codec_checks.h"
#include "proto/engine.pb.h"

namespace warmpath {

namespace {

using codec::at_most;
using codec::duration;
using codec::not_negative;
using codec::read_tokens;

void encode_sampling(const SamplingParams& value, v1::Sampling& message) {
  static const SamplingParams defaults;
  if (value.temperature != defaults.temperature) message.set_temperature(value.temperature);
  if (value.top_k != defaults.top_k) message.set_top_k(value.top_k);
  if (value.top_p != defaults.top_p) message.set_top_p(value.top_p);
  if (value.min_p != defaults.min_p) message.set_min_p(value.min_p);
  if (value.presence_penalty != defaults.presence_penalty) message.set_presence_penalty(value.presence_penalty);
  if (value.frequency_penalty != defaults.frequency_penalty) message.set_frequency_penalty(value.frequency_penalty);
  if (value.repetition_penalty != defaults.repetition_penalty) {
    message.set_repetition_penalty(value.repetition_penalty);
  }
  for (const auto& [token, bias] : value.logit_bias) {
    message.add_logit_bias_tokens(token);
    message.add_logit_bias_values(bias);
  }
  if (value.seed) message.set_seed(*value.seed);
  if (value.n != defaults.n) message.set_n(value.n);
  if (value.max_tokens != defaults.max_tokens) message.set_max_tokens(value.max_tokens);
  if (value.min_tokens != defaults.min_tokens) message.set_min_tokens(value.min_tokens);
  for (const std::string& stop : value.stop) message.add_stop(stop);
  message.mutable_stop_tokens()->Add(value.stop_tokens.begin(), value.stop_tokens.end());
  if (value.ignore_eos) message.set_ignore_eos(true);
  if (value.top_logprobs != defaults.top_logprobs) message.set_top_logprobs(value.top_logprobs);
}

Status decode_sampling(const v1::Sampling& message, SamplingParams& value) {
  value = {};
  if (message.has_temperature()) value.temperature = message.temperature();
  if (message.has_top_k()) value.top_k = message.top_k();
  if (message.has_top_p()) value.top_p = message.top_p();
  if (message.has_min_p()) value.min_p = message.min_p();
  if (message.has_presence_penalty()) value.presence_penalty = message.presence_penalty();
  if (message.has_frequency_penalty()) value.frequency_penalty = message.frequency_penalty();
  if (message.has_repetition_penalty()) value.repetition_penalty = message.repetition_penalty();
  if (message.logit_bias_tokens_size() != message.logit_bias_values_size()) {
    return invalid_argument(fmt::format("logit_bias_tokens has {} entries and logit_bias_values {}; they go in pairs",
                                        message.logit_bias_tokens_size(), message.logit_bias_values_size()));
  }
  value.logit_bias.reserve(message.logit_bias_tokens_size());
  for (int i = 0; i < message.logit_bias_tokens_size(); ++i) {
    value.logit_bias.emplace_back(message.logit_bias_tokens(i), message.logit_bias_values(i));
  }
  if (message.has_seed()) value.seed = message.seed();
  if (message.has_n()) value.n = message.n();
  if (message.has_max_tokens()) value.max_tokens = message.max_tokens();
  if (message.has_min_tokens()) value.min_tokens = message.min_tokens();
  value.stop.assign(message.stop().begin(), message.stop().end());
  value.stop_tokens.assign(message.stop_tokens().begin(), message.stop_tokens().end());
  value.ignore_eos = message.ignore_eos();
  if (message.has_top_logprobs()) value.top_logprobs = message.top_logprobs();
  return validate(value, INT32_MAX);  // the engine checks again, against its vocabulary
}

Status reserved_field(std::string_view field, std::string_view purpose) {
  return unimplemented(
      fmt::format("the request sets {}, which is reserved for {} and not built yet; leave it empty", field, purpose));
}

void encode_output(const TokenOutput& value, v1::TokenOutput& message) {
  message.set_choice(value.choice);
  message.set_token(value.token);
  message.set_logprob(value.logprob);
  for (const auto& [token, logprob] : value.top_logprobs) {
    message.add_top_tokens(token);
    message.add_top_logprobs(logprob);
  }
}

Status decode_choice(std::string_view field, int32_t choice) {
  if (choice >= 0 && choice < kMaxChoices) return {};
  return invalid_argument(fmt::format("{} is {}; choices are 0 to {}", field, choice, kMaxChoices - 1));
}

Status decode_output(const v1::TokenOutput& message, TokenOutput& value) {
  WARMPATH_RETURN_IF_ERROR(decode_choice("outputs.choice", message.choice()));
  WARMPATH_RETURN_IF_ERROR(not_negative("outputs.token", message.token()));
  if (message.top_tokens_size() != message.top_logprobs_size() || message.top_tokens_size() > kMaxTopLogprobs) {
    return invalid_argument(fmt::format("outputs has {} top_tokens and {} top_logprobs; they go in pairs, at most {}",
                                        message.top_tokens_size(), message.top_logprobs_size(), kMaxTopLogprobs));
  }
  value.choice = message.choice();
  value.token = message.token();
  value.logprob = message.logprob();
  value.top_logprobs.clear();
  for (int i = 0; i < message.top_tokens_size(); ++i) {
    WARMPATH_RETURN_IF_ERROR(not_negative("outputs.top_tokens", message.top_tokens(i)));
    value.top_logprobs.emplace_back(message.top_tokens(i), message.top_logprobs(i));
  }
  return {};
}

v1::FinishReason wire_reason(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return v1::FINISH_REASON_STOP;
    case FinishReason::kLength:
      return v1::FINISH_REASON_LENGTH;
    case FinishReason::kCancelled:
      return v1::FINISH_REASON_CANCELLED;
    case FinishReason::kDeadline:
      return v1::FINISH_REASON_DEADLINE;
    case FinishReason::kError:
      return v1::FINISH_REASON_ERROR;
  }
  return v1::FINISH_REASON_UNSPECIFIED;
}

Status decode_finish(const v1::ChoiceFinish& message, ChoiceFinish& value) {
  WARMPATH_RETURN_IF_ERROR(decode_choice("finished.choice", message.choice()));
  switch (message.reason()) {
    case v1::FINISH_REASON_STOP:
      value.reason = FinishReason::kStop;
      break;
    case v1::FINISH_REASON_LENGTH:
      value.reason = FinishReason::kLength;
      break;
    case v1::FINISH_REASON_CANCELLED:
      value.reason = FinishReason::kCancelled;
      break;
    case v1::FINISH_REASON_DEADLINE:
      value.reason = FinishReason::kDeadline;
      break;
    case v1::FINISH_REASON_ERROR:
      value.reason = FinishReason::kError;
      break;
    default:
      return invalid_argument(
          fmt::format("finished.reason is {}; this version knows no such reason", static_cast<int>(message.reason())));
  }
  if (message.has_stop_string()) {
    WARMPATH_RETURN_IF_ERROR(not_negative("finished.stop_string", message.stop_string()));
  }
  if (message.has_stop_token()) WARMPATH_RETURN_IF_ERROR(not_negative("finished.stop_token", message.stop_token()));
  WARMPATH_RETURN_IF_ERROR(not_negative("finished.completion_tokens", message.completion_tokens()));
  value.choice = message.choice();
  value.stop_string = message.has_stop_string() ? message.stop_string() : -1;
  value.stop_token = message.has_stop_token() ? message.stop_token() : -1;
  value.completion_tokens = message.completion_tokens();
  return {};
}

Status decode_start(const v1::StartInfo& message, StartInfo& value) {
  WARMPATH_RETURN_IF_ERROR(not_negative("start.cached_device_tokens", message.cached_device_tokens()));
  WARMPATH_RETURN_IF_ERROR(not_negative("start.cached_host_tokens", message.cached_host_tokens()));
  WARMPATH_RETURN_IF_ERROR(not_negative("start.cached_disk_tokens", message.cached_disk_tokens()));
  WARMPATH_RETURN_IF_ERROR(not_negative("start.tail_tokens", message.tail_tokens()));
  WARMPATH_RETURN_IF_ERROR(duration("start.queue_s", message.queue_s()));
  WARMPATH_RETURN_IF_ERROR(duration("start.prefill_s", message.prefill_s()));
  if (int64_t{message.cached_device_tokens()} + message.cached_host_tokens() + message.cached_disk_tokens() >
      INT32_MAX) {
    return invalid_argument("start's cached tokens add up to more than 2^31");
  }
  value.cached_device_tokens = message.cached_device_tokens();
  value.cached_host_tokens = message.cached_host_tokens();
  value.cached_disk_tokens = message.cached_disk_tokens();
  value.tail_tokens = message.tail_tokens();
  value.queue_s = message.queue_s();
  value.prefill_s = message.prefill_s();
  return {};
}

Status decode_timings(const v1::RequestTimings& message, RequestTimings& value) {
  WARMPATH_RETURN_IF_ERROR(duration("timings.queue_s", message.queue_s()));
  WARMPATH_RETURN_IF_ERROR(duration("timings.prefill_s", message.prefill_s()));
  WARMPATH_RETURN_IF_ERROR(duration("timings.decode_s", message.decode_s()));
  WARMPATH_RETURN_IF_ERROR(not_negative("timings.prefill_tokens", message.prefill_tokens()));
  WARMPATH_RETURN_IF_ERROR(not_negative("timings.decode_steps", message.decode_steps()));
  WARMPATH_RETURN_IF_ERROR(duration("timings.mean_decode_batch", message.mean_decode_batch()));
  WARMPATH_RETURN_IF_ERROR(not_negative("timings.preemptions", message.preemptions()));
  value.queue_s = message.queue_s();
  value.prefill_s = message.prefill_s();
  value.decode_s = message.decode_s();
  value.prefill_tokens = message.prefill_tokens();
  value.decode_steps = message.decode_steps();
  value.mean_decode_batch = message.mean_decode_batch();
  value.preemptions = message.preemptions();
  return {};
}

}  // namespace

void encode(const GenerateRequest& value, v1::GenerateRequest& message) {
  message.set_request_id(value.request_id);
  message.mutable_prompt()->Add(value.prompt.begin(), value.prompt.end());
  message.mutable_output_prefix()->Add(value.output_prefix.begin(), value.output_prefix.end());
  encode_sampling(value.sampling, *message.mutable_sampling());
  if (!value.grammar.empty()) encode(value.grammar, *message.mutable_grammar());
  message.set_salt(value.salt);
  message.set_priority(value.priority);
  message.set_deadline_s(value.deadline_s);
}

Status decode(const v1::GenerateRequest& message, GenerateRequest& value) {
  if (!message.kv_source().empty()) return reserved_field("kv_source", "prefill and decode on different replicas");
  if (!message.kv_lease().empty()) return reserved_field("kv_lease", "prefill and decode on different replicas");
  if (!message.lora().empty()) return reserved_field("lora", "LoRA adapters");
  if (message.request_id().empty()) return invalid_argument("request_id is empty; give every request its own");
  WARMPATH_RETURN_IF_ERROR(at_most("request_id", message.request_id().size(), kMaxRequestIdBytes));
  WARMPATH_RETURN_IF_ERROR(at_most("salt", message.salt().size(), kMaxSaltBytes));
  if (message.prompt().empty()) return invalid_argument("prompt is empty; it needs at least one token");
  WARMPATH_RETURN_IF_ERROR(read_tokens("prompt", message.prompt(), value.prompt));
  WARMPATH_RETURN_IF_ERROR(read_tokens("output_prefix", message.output_prefix(), value.output_prefix));
  WARMPATH_RETURN_IF_ERROR(duration("deadline_s", message.deadline_s()));
  WARMPATH_RETURN_IF_ERROR(decode_sampling(message.sampling(), value.sampling));
  value.grammar = {};
  if (message.has_grammar()) WARMPATH_RETURN_IF_ERROR(decode(message.grammar(), value.grammar));
  value.request_id = message.request_id();
  value.salt = message.salt();
  value.priority = message.priority();
  value.deadline_s = message.deadline_s();
  return {};
}

void encode(const GenerateUpdate& value, v1::GenerateUpdate& message) {
  if (value.start) {
    v1::StartInfo& start = *message.mutable_start();
    start.set_cached_device_tokens(value.start->cached_device_tokens);
    start.set_cached_host_tokens(value.start->cached_host_tokens);
    start.set_cached_disk_tokens(value.start->cached_disk_tokens);
    start.set_tail_tokens(value.start->tail_tokens);
    start.set_queue_s(value.start->queue_s);
    start.set_prefill_s(value.start->prefill_s);
  }
  const bool plain = std::all_of(value.tokens.begin(), value.tokens.end(), [](const TokenOutput& output) {
    return output.choice == 0 && output.logprob == 0 && output.top_logprobs.empty();
  });
  for (const TokenOutput& output : value.tokens) {
    if (plain) {
      message.add_tokens(output.token);
    } else {
      encode_output(output, *message.add_outputs());
    }
  }
  for (const ChoiceFinish& finish : value.finished) {
    v1::ChoiceFinish& out = *message.add_finished();
    out.set_choice(finish.choice);
    out.set_reason(wire_reason(finish.reason));
    if (finish.stop_string >= 0) out.set_stop_string(finish.stop_string);
    if (finish.stop_token >= 0) out.set_stop_token(finish.stop_token);
    out.set_completion_tokens(finish.completion_tokens);
  }
  if (value.timings) {
    v1::RequestTimings& timings = *message.mutable_timings();
    timings.set_queue_s(value.timings->queue_s);
    timings.set_prefill_s(value.timings->prefill_s);
    timings.set_decode_s(value.timings->decode_s);
    timings.set_prefill_tokens(value.timings->prefill_tokens);
    timings.set_decode_steps(value.timings->decode_steps);
    timings.set_mean_decode_batch(value.timings->mean_decode_batch);
    timings.set_preemptions(value.timings->preemptions);
  }
}

Status decode(const v1::GenerateUpdate& message, GenerateUpdate& value) {
  value = {};
  if (message.has_start()) WARMPATH_RETURN_IF_ERROR(decode_start(message.start(), value.start.emplace()));
  if (message.tokens_size() > 0 && message.outputs_size() > 0) {
    return invalid_argument("an update carries both tokens and outputs; their order would be unknown");
  }
  value.tokens.reserve(message.tokens_size() + message.outputs_size());
  for (const int32_t token : message.tokens()) {
    WARMPATH_RETURN_IF_ERROR(not_negative("tokens", token));
    value.tokens.emplace_back().token = token;
  }
  for (const v1::TokenOutput& output : message.outputs()) {
    WARMPATH_RETURN_IF_ERROR(decode_output(output, value.tokens.emplace_back()));
  }
  value.finished.reserve(message.finished_size());
  for (const v1::ChoiceFinish& finish : message.finished()) {
    WARMPATH_RETURN_IF_ERROR(decode_finish(finish, value.finished.emplace_back()));
  }
  if (message.has_timings()) WARMPATH_RETURN_IF_ERROR(decode_timings(message.timings(), value.timings.emplace()));
  return {};
}

}  // namespace warmpath

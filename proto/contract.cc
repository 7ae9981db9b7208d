#include <fmt/format.h>

#include "proto/generate.h"
#include "proto/kv_event.h"
#include "proto/sampling.h"

namespace warmpath {

namespace {

template <typename T>
Status check_range(const char* field, T value, T low, T high) {
  if (value >= low && value <= high) return {};  // false for NaN
  return invalid_argument(fmt::format("{} is {}; it must be between {} and {}", field, value, low, high));
}

}  // namespace

Status validate(const SamplingParams& params, TokenId vocabulary) {
  WARMPATH_RETURN_IF_ERROR(check_range("temperature", params.temperature, 0.0f, 2.0f));
  WARMPATH_RETURN_IF_ERROR(check_range("top_k", params.top_k, 0, INT32_MAX));
  WARMPATH_RETURN_IF_ERROR(check_range("top_p", params.top_p, 1e-6f, 1.0f));
  WARMPATH_RETURN_IF_ERROR(check_range("min_p", params.min_p, 0.0f, 1.0f));
  WARMPATH_RETURN_IF_ERROR(check_range("presence_penalty", params.presence_penalty, -2.0f, 2.0f));
  WARMPATH_RETURN_IF_ERROR(check_range("frequency_penalty", params.frequency_penalty, -2.0f, 2.0f));
  WARMPATH_RETURN_IF_ERROR(check_range("repetition_penalty", params.repetition_penalty, 1e-3f, 10.0f));
  WARMPATH_RETURN_IF_ERROR(check_range("n", params.n, 1, kMaxChoices));
  WARMPATH_RETURN_IF_ERROR(check_range("max_tokens", params.max_tokens, -1, INT32_MAX));
  WARMPATH_RETURN_IF_ERROR(check_range("min_tokens", params.min_tokens, 0, INT32_MAX));
  WARMPATH_RETURN_IF_ERROR(check_range("top_logprobs", params.top_logprobs, -1, kMaxTopLogprobs));
  if (params.max_tokens == 0) return invalid_argument("max_tokens is 0; it must be at least 1");
  if (params.logit_bias.size() > kMaxLogitBias) {
    return invalid_argument(
        fmt::format("logit_bias has {} entries; at most {} are allowed", params.logit_bias.size(), kMaxLogitBias));
  }
  for (const auto& [token, bias] : params.logit_bias) {
    WARMPATH_RETURN_IF_ERROR(check_range("logit_bias value", bias, -100.0f, 100.0f));
    if (token < 0 || token >= vocabulary) {
      return invalid_argument(
          fmt::format("logit_bias names token {}; this model has tokens 0 to {}", token, vocabulary - 1));
    }
  }
  if (params.stop.size() > kMaxStopStrings) {
    return invalid_argument(
        fmt::format("stop has {} strings; at most {} are allowed", params.stop.size(), kMaxStopStrings));
  }
  for (const std::string& stop : params.stop) {
    if (stop.empty()) return invalid_argument("stop holds an empty string");
    if (stop.size() > kMaxStopStringBytes) {
      return invalid_argument(
          fmt::format("a stop string has {} bytes; at most {} are allowed", stop.size(), kMaxStopStringBytes));
    }
  }
  for (const TokenId token : params.stop_tokens) {
    if (token < 0 || token >= vocabulary) {
      return invalid_argument(
          fmt::format("stop_tokens names token {}; this model has tokens 0 to {}", token, vocabulary - 1));
    }
  }
  return {};
}

std::string_view finish_reason_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kCancelled:
      return "cancelled";
    case FinishReason::kDeadline:
      return "deadline";
    case FinishReason::kError:
      return "error";
  }
  return "unknown";
}

std::string_view tier_name(Tier tier) {
  switch (tier) {
    case Tier::kDevice:
      return "device";
    case Tier::kHost:
      return "host";
    case Tier::kDisk:
      return "disk";
  }
  return "unknown";
}

uint64_t residency_term(Hash128 identity, Tier tier) {
  const uint64_t words[3] = {identity.hi, identity.lo, static_cast<uint64_t>(tier)};
  return hash128(words, sizeof words).lo;
}

}  // namespace warmpath

#include "router/wire/generation_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/unordered/unordered_flat_map.hpp>
#include <charconv>
#include <limits>

#include "router/wire/json_reader.h"

namespace warmpath {

namespace {

constexpr int64_t kMaxInt32 = std::numeric_limits<int32_t>::max();
constexpr size_t kMaxNameBytes = 512;  // of model names and cache keys

using Reader = bool (*)(const JsonField&, GenerationOptions&);

template <typename Target>
bool read_number_into(const JsonField& field, double low, double high, Target& target) {
  double number = 0;
  if (!field.number(low, high, number)) return false;
  target = static_cast<Target>(number);
  return true;
}

bool read_int32_into(const JsonField& field, int64_t low, int64_t high, int32_t& target) {
  int64_t number = 0;
  if (!field.integer(low, high, number)) return false;
  target = static_cast<int32_t>(number);
  return true;
}

bool read_name_into(const JsonField& field, std::string& target) {
  if (!field.text(target)) return false;
  if (target.size() > kMaxNameBytes) return field.refuse(fmt::format("is longer than {} bytes", kMaxNameBytes));
  return true;
}

bool read_stop_token_ids(const JsonField& field, GenerationOptions& options) {
  options.sampling.stop_tokens.clear();
  return field.elements([&](JsonValue& value, size_t position) {
    if (position == kMaxLogitBias) return field.refuse(fmt::format("has more than {} tokens", kMaxLogitBias));
    int32_t token = 0;
    if (!read_int32_into(field.item(value), 0, kMaxInt32, token)) return false;
    options.sampling.stop_tokens.push_back(token);
    return true;
  });
}

bool read_logit_bias(const JsonField& field, GenerationOptions& options) {
  auto& biases = options.sampling.logit_bias;
  biases.clear();
  return field.members([&](std::string_view key, JsonValue& value) {
    int32_t token = -1;
    const auto [end, code] = std::from_chars(key.data(), key.data() + key.size(), token);
    if (code != std::errc() || end != key.data() + key.size() || token < 0) {
      return field.refuse("must map token ids, written as strings, to numbers between -100 and 100");
    }
    double bias = 0;
    if (!field.item(value).number(-100, 100, bias)) return false;
    if (biases.size() == kMaxLogitBias) {
      return field.refuse(fmt::format("has more than {} entries", kMaxLogitBias));
    }
    biases.emplace_back(token, static_cast<float>(bias));
    return true;
  });
}

bool read_seed(const JsonField& field, GenerationOptions& options) {
  int64_t seed = 0;
  if (!field.integer(std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max(), seed)) return false;
  options.sampling.seed = static_cast<uint64_t>(seed);
  return true;
}

bool read_stream_options(const JsonField& field, GenerationOptions& options) {
  return field.members([&](std::string_view key, JsonValue& value) {
    if (key != "include_usage") return true;
    JsonType type{};
    const JsonField member{value, "stream_options.include_usage", field.failure};
    if (!member.type(type)) return false;
    return type == JsonType::null || member.boolean(options.include_usage);
  });
}

const boost::unordered_flat_map<std::string_view, Reader>& readers() {
  static const boost::unordered_flat_map<std::string_view, Reader> kReaders = {
      {"model", [](const JsonField& f, GenerationOptions& o) { return read_name_into(f, o.model); }},
      {"stream", [](const JsonField& f, GenerationOptions& o) { return f.boolean(o.stream); }},
      {"stream_options", read_stream_options},
      {"temperature",
       [](const JsonField& f, GenerationOptions& o) { return read_number_into(f, 0, 2, o.sampling.temperature); }},
      {"top_p",
       [](const JsonField& f, GenerationOptions& o) {
         if (!read_number_into(f, 0, 1, o.sampling.top_p)) return false;
         // 0 is a usual way to say "only the likeliest token".
         o.sampling.top_p = std::max(o.sampling.top_p, 1e-6f);
         return true;
       }},
      {"min_p", [](const JsonField& f, GenerationOptions& o) { return read_number_into(f, 0, 1, o.sampling.min_p); }},
      {"top_k",
       [](const JsonField& f, GenerationOptions& o) {
         if (!read_int32_into(f, -1, kMaxInt32, o.sampling.top_k)) return false;
         o.sampling.top_k = std::max(o.sampling.top_k, 0);  // -1: off, as vLLM has it
         return true;
       }},
      {"presence_penalty",
       [](const JsonField& f, GenerationOptions& o) {
         return read_number_into(f, -2, 2, o.sampling.presence_penalty);
       }},
      {"frequency_penalty",
       [](const JsonField& f, GenerationOptions& o) {
         return read_number_into(f, -2, 2, o.sampling.frequency_penalty);
       }},
      {"repetition_penalty",
       [](const JsonField& f, GenerationOptions& o) {
         return read_number_into(f, 1e-3, 10, o.sampling.repetition_penalty);
       }},
      {"logit_bias", read_logit_bias},
      {"seed", read_seed},
      {"n", [](const JsonField& f, GenerationOptions& o) { return read_int32_into(f, 1, kMaxChoices, o.sampling.n); }},
      {"stop", read_stop},
      {"stop_token_ids", read_stop_token_ids},
      {"min_tokens", [](const JsonField& f,
                        GenerationOptions& o) { return read_int32_into(f, 0, kMaxInt32, o.sampling.min_tokens); }},
      {"ignore_eos", [](const JsonField& f, GenerationOptions& o) { return f.boolean(o.sampling.ignore_eos); }},
      {"cache_salt", [](const JsonField& f, GenerationOptions& o) { return read_name_into(f, o.cache_salt); }},
      {"prompt_cache_key",
       [](const JsonField& f, GenerationOptions& o) { return read_name_into(f, o.prompt_cache_key); }},
  };
  return kReaders;
}

// Known fields that would change the answer and are not built. Each is fine while it holds its neutral value.
struct Refused {
  std::string_view name;
  std::optional<double> neutral = {};
};
constexpr Refused kRefused[] = {
    {"best_of", 1},
    {"use_beam_search"},
    {"length_penalty", 1},
    {"typical_p", 1},
    {"top_a", 0},
    {"tfs_z", 1},
    {"mirostat", 0},
    {"dry_multiplier", 0},
    {"xtc_probability", 0},
    {"bad_words"},
    {"allowed_token_ids"},
    {"logits_processors"},
    {"include_stop_str_in_output"},
    {"prompt_logprobs"},
    {"truncate_prompt_tokens"},
    {"kv_transfer_params"},
};

}  // namespace

bool read_stop(const JsonField& field, GenerationOptions& options) {
  std::vector<std::string>& stop = options.sampling.stop;
  stop.clear();
  JsonType type{};
  if (!field.type(type)) return false;
  const auto add = [&](const JsonField& item) {
    std::string text;
    if (!item.text(text)) return false;
    if (text.empty()) return item.refuse("must not be an empty string");
    if (text.size() > kMaxStopStringBytes) {
      return item.refuse(
          fmt::format("holds a string of {} bytes; at most {} are allowed", text.size(), kMaxStopStringBytes));
    }
    if (stop.size() == kMaxStopStrings) {
      return item.refuse(fmt::format("has too many strings; at most {} are allowed", kMaxStopStrings));
    }
    stop.push_back(std::move(text));
    return true;
  };
  if (type == JsonType::string) return add(field);
  if (type != JsonType::array) return field.refuse("must be a string or an array of strings");
  return field.elements([&](JsonValue& value, size_t) { return add(field.item(value)); });
}

bool read_neutral(const JsonField& field, std::optional<double> neutral, std::string_view why) {
  JsonType type{};
  if (!field.type(type)) return false;
  bool fine = false;
  if (type == JsonType::boolean) {
    bool flag = false;
    if (!field.boolean(flag)) return false;
    fine = !flag;
  } else if (type == JsonType::number) {
    double number = 0;
    if (!field.number(-std::numeric_limits<double>::max(), std::numeric_limits<double>::max(), number)) return false;
    fine = neutral && number == *neutral;
  } else if (type == JsonType::string) {
    std::string_view text;
    if (!field.text(text)) return false;
    fine = text.empty();
  } else {
    std::string_view raw;
    if (!field.raw(raw)) return false;
    fine = raw.find_first_not_of(" \t\r\n[]{}") == std::string_view::npos;
  }
  if (fine) return true;
  return field.refuse(unsupported(
      field.name, fmt::format("'{}' is not supported by this server{}{}", field.name, why.empty() ? "" : ": ", why)));
}

FieldOutcome read_shared_field(const JsonField& field, GenerationOptions& options) {
  if (const auto found = readers().find(field.name); found != readers().end()) {
    return found->second(field, options) ? FieldOutcome::kRead : FieldOutcome::kRefused;
  }
  bool is_rule = false;
  if (read_guided(field, options.rules, is_rule)) return FieldOutcome::kRead;
  if (is_rule) return FieldOutcome::kRefused;
  for (const Refused& refused : kRefused) {
    if (field.name == refused.name) {
      return read_neutral(field, refused.neutral, "") ? FieldOutcome::kRead : FieldOutcome::kRefused;
    }
  }
  return FieldOutcome::kUnknown;
}

}  // namespace warmpath

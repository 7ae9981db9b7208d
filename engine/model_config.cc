#include "engine/model_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace warmpath {

namespace {

constexpr std::array<std::string_view, 3> kArchitectures = {"llama", "qwen2", "qwen3"};

// Numbers that change what a model computes in ways that the forward pass does not know. A file may have such a key if
// its value is the one that changes nothing.
struct Neutral {
  std::string_view key;
  double value;
  std::string_view what;
};
constexpr Neutral kNeutral[] = {
    {"expert_count", 0, "mixtures of experts"},
    {"attn_logit_softcapping", 0, "capped attention scores"},
    {"final_logit_softcapping", 0, "capped logits"},
    {"router_logit_softcapping", 0, "capped logits"},
    {"attention.max_alibi_bias", 0, "ALiBi"},
    {"attention.clamp_kqv", 0, "clamped projections"},
    {"attention.temperature_scale", 0, "a temperature by position"},
    {"attention.temperature_length", 0, "a temperature by position"},
    {"embedding_scale", 1, "scaled embeddings"},
    {"residual_scale", 1, "scaled residuals"},
    {"logit_scale", 1, "scaled logits"},
    {"rope.scaling.yarn_log_multiplier", 0, "YaRN's logarithmic multiplier"},
    {"pooling_type", 0, "pooled embeddings"},
};
struct NeutralFlag {
  std::string_view key;
  bool value;
  std::string_view what;
};
constexpr NeutralFlag kNeutralFlags[] = {
    {"attention.causal", true, "attention to later tokens"},
    {"use_parallel_residual", false, "parallel residuals"},
};

// The keys that are read here and in rotation.cc, and those that say nothing about what is computed.
constexpr std::string_view kKnown[] = {"block_count",
                                       "context_length",
                                       "embedding_length",
                                       "feed_forward_length",
                                       "vocab_size",
                                       "tensor_data_layout",
                                       "attention.head_count",
                                       "attention.head_count_kv",
                                       "attention.key_length",
                                       "attention.value_length",
                                       "attention.layer_norm_rms_epsilon",
                                       "attention.layer_norm_epsilon",
                                       "attention.sliding_window",
                                       "rope.freq_base",
                                       "rope.dimension_count",
                                       "rope.scale_linear",
                                       "rope.scaling.type",
                                       "rope.scaling.factor",
                                       "rope.scaling.finetuned",
                                       "rope.scaling.original_context_length",
                                       "rope.scaling.attn_factor",
                                       "rope.scaling.yarn_ext_factor",
                                       "rope.scaling.yarn_beta_fast",
                                       "rope.scaling.yarn_beta_slow"};

// Reads the architecture's keys and remembers the first thing that is wrong.
class ConfigReader {
 public:
  ConfigReader(const GgufFile& file, std::string_view architecture) : file_(file), architecture_(architecture) {}

  // REQUIRES the key; refuses a value outside [low, high].
  int32_t count(std::string_view key, int64_t low, int64_t high) {
    return check(key, file_.get_uint(full(key)), low, high);
  }
  int32_t count_or(std::string_view key, uint64_t fallback, int64_t low, int64_t high) {
    return check(key, file_.get_uint_or(full(key), fallback), low, high);
  }
  double number(std::string_view key, Result<double> value) {
    if (!value.ok()) {
      fail(value.status());
      return 1;
    }
    if (!std::isfinite(*value) || *value <= 0) refuse(key, fmt::format("{} is not a positive number", *value));
    return *value;
  }
  Result<double> get(std::string_view key) const { return file_.get_float(full(key)); }

  // Refuses a value other than the one that changes nothing.
  void require(const Neutral& neutral) {
    const Result<double> value = file_.get_float_or(full(neutral.key), neutral.value);
    if (!value.ok()) return fail(value.status());
    // Zero stands for "not scaled" too.
    if (*value != neutral.value && *value != 0) refuse_feature(neutral.key, fmt::to_string(*value), neutral.what);
  }
  void require(const NeutralFlag& neutral) {
    const Result<bool> value = file_.get_bool_or(full(neutral.key), neutral.value);
    if (!value.ok()) return fail(value.status());
    if (*value != neutral.value) refuse_feature(neutral.key, fmt::to_string(*value), neutral.what);
  }
  void refuse_feature(std::string_view key, std::string_view value, std::string_view what) {
    fail(unimplemented(fmt::format("{}: key '{}': {} is not supported ({})", file_.name(), full(key), value, what)));
  }

  void refuse(std::string_view key, std::string_view problem) {
    fail(invalid_argument(fmt::format("{}: key '{}': {}", file_.name(), full(key), problem)));
  }
  void fail(Status status) {
    if (status_.ok()) status_ = std::move(status);
  }
  const Status& status() const { return status_; }

  std::string full(std::string_view key) const { return fmt::format("{}.{}", architecture_, key); }

 private:
  int32_t check(std::string_view key, const Result<uint64_t>& value, int64_t low, int64_t high) {
    if (!value.ok()) {
      fail(value.status());
      return static_cast<int32_t>(low);
    }
    if (static_cast<int64_t>(*value) < low || static_cast<int64_t>(*value) > high) {
      refuse(key, fmt::format("{} is not in [{}, {}]", *value, low, high));
      return static_cast<int32_t>(low);
    }
    return static_cast<int32_t>(*value);
  }

  const GgufFile& file_;
  const std::string_view architecture_;
  Status status_;
};

Result<std::string_view> read_architecture(const GgufFile& file) {
  const Result<std::string_view> type = file.get_string_or("general.type", "model");
  if (!type.ok()) return type.status();
  if (*type != "model") {
    return unimplemented(fmt::format("{}: key 'general.type': '{}' is no model", file.name(), printable(*type)));
  }
  const Result<std::string_view> architecture = file.get_string("general.architecture");
  if (!architecture.ok()) return architecture.status();
  if (std::ranges::find(kArchitectures, *architecture) == kArchitectures.end()) {
    return unimplemented(fmt::format("{}: key 'general.architecture': '{}' is not supported; supported: {}",
                                     file.name(), printable(*architecture), supported_architectures()));
  }
  // A split model must have been opened with all of its parts (model_file/split_gguf.h).
  const Result<uint64_t> parts = file.get_uint_or("split.count", 1);
  if (!parts.ok()) return parts.status();
  const Result<uint64_t> tensors = file.get_uint_or("split.tensors.count", 0);
  if (!tensors.ok()) return tensors.status();
  if (*parts > 1 && *tensors != file.tensors().size()) {
    return invalid_argument(fmt::format("{}: key 'split.tensors.count': {}, but its {} parts have {}", file.name(),
                                        *tensors, *parts, file.tensors().size()));
  }
  return architecture;
}

void check_heads(const ModelShape& config, int32_t value_dim, ConfigReader& reader) {
  if (config.heads % config.kv_heads != 0) {
    reader.refuse("attention.head_count_kv",
                  fmt::format("{} heads do not divide among {} KV heads", config.heads, config.kv_heads));
  }
  if (config.head_dim % 16 != 0) {
    reader.refuse("attention.key_length", fmt::format("{} is no multiple of 16", config.head_dim));
  }
  if (value_dim != config.head_dim) {
    reader.refuse("attention.value_length",
                  fmt::format("{} differs from the key length {}", value_dim, config.head_dim));
  }
}

}  // namespace

std::string_view supported_architectures() { return "llama, qwen2, qwen3"; }

bool is_known_key(std::string_view key) {
  return std::ranges::find(kKnown, key) != std::end(kKnown) ||
         std::ranges::find(kNeutral, key, &Neutral::key) != std::end(kNeutral) ||
         std::ranges::find(kNeutralFlags, key, &NeutralFlag::key) != std::end(kNeutralFlags);
}

Result<ModelShape> read_model_config(const GgufFile& file) {
  const Result<std::string_view> architecture = read_architecture(file);
  if (!architecture.ok()) return architecture.status();
  ConfigReader reader(file, *architecture);
  for (const Neutral& neutral : kNeutral) reader.require(neutral);
  for (const NeutralFlag& neutral : kNeutralFlags) reader.require(neutral);
  ModelShape config;
  config.architecture = *architecture;
  if (const auto name = file.get_string_or("general.name", "unnamed"); name.ok()) config.name = *name;
  config.layers = reader.count("block_count", 1, 1024);
  config.width = reader.count("embedding_length", 16, 65536);
  config.heads = reader.count("attention.head_count", 1, 1024);
  config.kv_heads = reader.count_or("attention.head_count_kv", static_cast<uint64_t>(config.heads), 1, 1024);
  config.ffn = reader.count("feed_forward_length", 16, 1 << 20);
  config.context = reader.count("context_length", 1, 1 << 24);
  config.norm_eps = static_cast<float>(
      reader.number("attention.layer_norm_rms_epsilon", reader.get("attention.layer_norm_rms_epsilon")));
  if (!reader.status().ok()) return reader.status();
  config.head_dim =
      reader.count_or("attention.key_length", static_cast<uint64_t>(config.width / config.heads), 1, 1024);
  const int32_t value_dim = reader.count_or("attention.value_length", static_cast<uint64_t>(config.head_dim), 1, 1024);
  const int32_t rotated = reader.count_or("rope.dimension_count", static_cast<uint64_t>(config.head_dim), 2, 1024);
  check_heads(config, value_dim, reader);
  if (rotated > config.head_dim || rotated % 2 != 0) {
    reader.refuse("rope.dimension_count", fmt::format("{} of a head of {}", rotated, config.head_dim));
  }
  // A window as long as the context hides nothing.
  const int32_t window = reader.count_or("attention.sliding_window", 0, 0, std::numeric_limits<int32_t>::max());
  if (window != 0 && window < config.context) {
    reader.refuse_feature("attention.sliding_window", fmt::to_string(window), "sliding windows");
  }
  config.head_norms = *architecture == "qwen3";
  if (!reader.status().ok()) return reader.status();
  Result<Rotation> rotation = read_rotation(file, *architecture, rotated, config.context);
  if (!rotation.ok()) return rotation.status();
  config.rotation = *std::move(rotation);

  const GgufTensor* embedding = file.find_tensor("token_embd.weight");
  if (embedding == nullptr) return not_found(fmt::format("{}: tensor 'token_embd.weight' is missing", file.name()));
  if (embedding->rows() < 1 || embedding->rows() > (1 << 24)) {
    return invalid_argument(fmt::format("{}: tensor 'token_embd.weight' at byte {}: a vocabulary of {}", file.name(),
                                        embedding->offset, embedding->rows()));
  }
  config.vocabulary = static_cast<int32_t>(embedding->rows());
  return config;
}

}  // namespace warmpath

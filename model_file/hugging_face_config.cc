#include "model_file/hugging_face_config.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <optional>
#include <vector>

#include "model_file/gguf_file.h"
#include "model_file/safetensors_folder.h"

namespace warmpath {

namespace {

using simdjson::dom::element;

struct ModelType {
  std::string_view type;
  std::string_view class_name;  // of `architectures`
  std::string_view architecture;
  int64_t default_kv_heads;  // 0: as many as heads
  int64_t default_head_dim;  // 0: width / heads
};
// Defaults of transformers' configuration classes.
constexpr ModelType kModelTypes[] = {{"llama", "LlamaForCausalLM", "llama", 0, 0},
                                     {"mistral", "MistralForCausalLM", "llama", 8, 0},
                                     {"qwen2", "Qwen2ForCausalLM", "qwen2", 32, 0},
                                     {"qwen3", "Qwen3ForCausalLM", "qwen3", 32, 128}};

// Keys with which other computations are asked for; null, false, zero and one stand for none of it.
constexpr std::string_view kRefused[] = {"quantization_config",
                                         "num_experts",
                                         "num_local_experts",
                                         "attn_logit_softcapping",
                                         "final_logit_softcapping",
                                         "logits_soft_cap",
                                         "query_pre_attn_scalar",
                                         "embedding_multiplier",
                                         "residual_multiplier",
                                         "attention_multiplier",
                                         "logits_scaling",
                                         "logit_scale",
                                         "use_parallel_residual",
                                         "alibi",
                                         "clip_qkv",
                                         "no_rope_layers",
                                         "attention_chunk_size"};

class ConfigTranslator {
 public:
  ConfigTranslator(element root, std::string_view name, GgufWriter& writer)
      : root_(root), name_(name), writer_(writer) {}

  Result<HuggingFaceConfig> translate() {
    WARMPATH_RETURN_IF_ERROR(find_type());
    WARMPATH_RETURN_IF_ERROR(refuse_others());
    writer_.add_string("general.architecture", type_->architecture);
    writer_.add_string(kRopePairsKey, kRopePairsHalves);
    WARMPATH_RETURN_IF_ERROR(translate_shape());
    WARMPATH_RETURN_IF_ERROR(translate_windows());
    WARMPATH_RETURN_IF_ERROR(translate_rotation());
    writer_.add_uint32(full("context_length"), static_cast<uint32_t>(std::min<double>(context_, 1 << 24)));
    HuggingFaceConfig config{std::string(type_->architecture)};
    const Result<bool> tied = flag_or("tie_word_embeddings", false);
    if (!tied.ok()) return tied.status();
    config.tied = *tied;
    return config;
  }

 private:
  Status refuse(std::string_view key, std::string_view problem) const {
    return unimplemented(fmt::format("{}: key '{}': {}", name_, key, problem));
  }
  Status malformed(std::string_view key, std::string_view problem) const {
    return invalid_argument(fmt::format("{}: key '{}': {}", name_, key, problem));
  }
  std::string full(std::string_view key) const { return fmt::format("{}.{}", type_->architecture, key); }

  // nullopt when the key is missing or null.
  static std::optional<element> find(element object, std::string_view key) {
    element value;
    if (!object.is_object() || object[key].get(value) || value.is_null()) return std::nullopt;
    return value;
  }
  std::optional<element> find(std::string_view key) const { return find(root_, key); }
  static std::string text_of(element value) {
    std::string text = simdjson::minify(value);
    if (text.size() > 60) text = text.substr(0, 60) + "...";
    return printable(text);
  }

  Result<int64_t> integer(std::string_view key, std::optional<int64_t> fallback = {}) const {
    const auto value = find(key);
    if (!value && fallback) return *fallback;
    if (!value) return malformed(key, "is missing");
    int64_t number = 0;
    if (value->get_int64().get(number) || number < 0 || number > UINT32_MAX) {
      return malformed(key, fmt::format("{} is no such number", text_of(*value)));
    }
    return number;
  }
  Result<double> number(element object, std::string_view key, std::optional<double> fallback = {}) const {
    const auto value = find(object, key);
    if (!value && fallback) return *fallback;
    if (!value) return malformed(key, "is missing");
    double number = 0;
    if (value->get_double().get(number) || !std::isfinite(number) || number <= 0) {
      return malformed(key, fmt::format("{} is not a positive number", text_of(*value)));
    }
    return number;
  }
  Result<bool> flag_or(std::string_view key, bool fallback) const {
    const auto value = find(key);
    bool flag = fallback;
    if (value && value->get_bool().get(flag)) return malformed(key, fmt::format("{} is not a flag", text_of(*value)));
    return flag;
  }

  Status find_type() {
    const auto type = find("model_type");
    std::string_view name;
    if (!type || type->get_string().get(name)) return malformed("model_type", "is missing");
    const auto* found = std::ranges::find(kModelTypes, name, &ModelType::type);
    if (found == std::end(kModelTypes)) {
      return refuse("model_type",
                    fmt::format("'{}' is not supported; supported: llama, mistral, qwen2, qwen3", printable(name)));
    }
    type_ = found;
    simdjson::dom::array classes;
    const auto architectures = find("architectures");
    if (!architectures || architectures->get_array().get(classes)) return {};
    for (const element item : classes) {
      std::string_view class_name;
      if (item.get_string().get(class_name) || class_name != type_->class_name) {
        return refuse("architectures",
                      fmt::format("{} is not supported; supported: {}", text_of(item), type_->class_name));
      }
    }
    return {};
  }

  Status refuse_others() const {
    for (const std::string_view key : kRefused) {
      const auto value = find(key);
      double number = 0;
      bool flag = false;
      if (!value) continue;
      if (!value->get_bool().get(flag) && !flag) continue;
      if (!value->get_double().get(number) && (number == 0 || number == 1)) continue;
      return refuse(key, fmt::format("{} is not supported", text_of(*value)));
    }
    const auto activation = find("hidden_act");
    std::string_view name;
    if (activation && (activation->get_string().get(name) || (name != "silu" && name != "swish"))) {
      return refuse("hidden_act", fmt::format("{} is not supported; supported: silu", text_of(*activation)));
    }
    return {};
  }

  Status translate_shape() {
    const auto copy = [&](std::string_view key, std::string_view to, std::optional<int64_t> fallback = {}) -> Status {
      const Result<int64_t> value = integer(key, fallback);
      if (!value.ok()) return value.status();
      writer_.add_uint32(full(to), static_cast<uint32_t>(*value));
      return {};
    };
    const Result<int64_t> heads = integer("num_attention_heads");
    if (!heads.ok()) return heads.status();
    const Result<int64_t> width = integer("hidden_size");
    if (!width.ok()) return width.status();
    if (*heads == 0) return malformed("num_attention_heads", "0 heads");
    WARMPATH_RETURN_IF_ERROR(copy("num_hidden_layers", "block_count"));
    WARMPATH_RETURN_IF_ERROR(copy("hidden_size", "embedding_length"));
    WARMPATH_RETURN_IF_ERROR(copy("intermediate_size", "feed_forward_length"));
    WARMPATH_RETURN_IF_ERROR(copy("num_attention_heads", "attention.head_count"));
    WARMPATH_RETURN_IF_ERROR(copy("num_key_value_heads", "attention.head_count_kv",
                                  type_->default_kv_heads != 0 ? type_->default_kv_heads : *heads));
    const Result<int64_t> head_dim =
        integer("head_dim", type_->default_head_dim != 0 ? type_->default_head_dim : *width / *heads);
    if (!head_dim.ok()) return head_dim.status();
    head_dim_ = *head_dim;
    writer_.add_uint32(full("attention.key_length"), static_cast<uint32_t>(head_dim_));
    writer_.add_uint32(full("attention.value_length"), static_cast<uint32_t>(head_dim_));
    const Result<double> eps = number(root_, "rms_norm_eps", 1e-6);
    if (!eps.ok()) return eps.status();
    writer_.add_float32(full("attention.layer_norm_rms_epsilon"), static_cast<float>(*eps));
    const Result<double> context = number(root_, "max_position_embeddings");
    if (!context.ok()) return context.status();
    context_ = *context;
    return {};
  }

  // A window counts when it is switched on (qwen) or given at all (the others).
  Status translate_windows() {
    const Result<bool> used = flag_or("use_sliding_window", !type_->architecture.starts_with("qwen"));
    if (!used.ok()) return used.status();
    const Result<int64_t> window = integer("sliding_window", 0);
    if (!window.ok()) return window.status();
    if (*used && *window > 0 && static_cast<double>(*window) < context_) {
      return refuse("sliding_window", fmt::format("{} is not supported (sliding windows)", *window));
    }
    simdjson::dom::array kinds;
    const auto layers = find("layer_types");
    if (!layers || layers->get_array().get(kinds)) return {};
    for (const element kind : kinds) {
      std::string_view name;
      if (kind.get_string().get(name) || name != "full_attention") {
        return refuse("layer_types", fmt::format("{} is not supported; supported: full_attention", text_of(kind)));
      }
    }
    return {};
  }

  Status translate_rotation() {
    element scaling = root_;  // where RoPE's own keys are
    bool scaled = false;
    for (const std::string_view key : {"rope_scaling", "rope_parameters"}) {
      if (const auto found = find(key)) {
        if (!found->is_object()) return malformed(key, "is no object");
        scaling = *found;
        scaled = true;
        rope_key_ = key;
      }
    }
    const Result<double> outer = number(root_, "rope_theta", 10000);
    if (!outer.ok()) return outer.status();
    const Result<double> base = scaled ? number(scaling, "rope_theta", *outer) : outer;
    if (!base.ok()) return base.status();
    writer_.add_float32(full("rope.freq_base"), static_cast<float>(*base));
    const Result<double> whole = number(root_, "partial_rotary_factor", 1);
    if (!whole.ok()) return whole.status();
    const Result<double> part = scaled ? number(scaling, "partial_rotary_factor", *whole) : whole;
    if (!part.ok()) return part.status();
    rotated_ = static_cast<int64_t>(static_cast<double>(head_dim_) * *part);
    writer_.add_uint32(full("rope.dimension_count"), static_cast<uint32_t>(rotated_));
    if (!scaled) return {};

    std::string_view type = "default";
    for (const std::string_view key : {"type", "rope_type"}) {
      if (const auto found = find(scaling, key); found && found->get_string().get(type)) {
        return malformed(key, "is no text");
      }
    }
    if (type == "default") {
      // One object a kind of layer: models that mix them.
      simdjson::dom::object entries;
      if (scaling.get_object().get(entries)) return malformed(rope_key_, "is no object");
      for (const auto& [key, value] : entries) {
        if (value.is_object()) return refuse(rope_key_, fmt::format("'{}' apart is not supported", printable(key)));
      }
      return {};
    }
    if (type == "linear") return translate_linear(scaling);
    if (type == "yarn") return translate_yarn(scaling);
    if (type == "llama3") return translate_llama3(scaling, *base);
    return refuse(fmt::format("{}.rope_type", rope_key_),
                  fmt::format("'{}' is not supported; supported: default, linear, yarn, llama3", printable(type)));
  }

  Status translate_linear(element scaling) {
    const Result<double> factor = number(scaling, "factor");
    if (!factor.ok()) return factor.status();
    writer_.add_string(full("rope.scaling.type"), "linear");
    writer_.add_float32(full("rope.scaling.factor"), static_cast<float>(*factor));
    return {};
  }

  Status translate_yarn(element scaling) {
    for (const std::string_view key : {"mscale", "mscale_all_dim"}) {
      if (const auto value = find(scaling, key)) {
        return refuse(fmt::format("{}.{}", rope_key_, key), fmt::format("{} is not supported", text_of(*value)));
      }
    }
    bool truncate = true;
    if (const auto value = find(scaling, "truncate"); value && (value->get_bool().get(truncate) || !truncate)) {
      return refuse(fmt::format("{}.truncate", rope_key_), fmt::format("{} is not supported", text_of(*value)));
    }
    const Result<double> factor = number(scaling, "factor");
    if (!factor.ok()) return factor.status();
    const Result<double> original = number(scaling, "original_max_position_embeddings", context_);
    if (!original.ok()) return original.status();
    writer_.add_string(full("rope.scaling.type"), "yarn");
    writer_.add_float32(full("rope.scaling.factor"), static_cast<float>(*factor));
    writer_.add_uint32(full("rope.scaling.original_context_length"),
                       static_cast<uint32_t>(std::min<double>(*original, UINT32_MAX)));
    const std::pair<std::string_view, std::string_view> betas[] = {{"beta_fast", "rope.scaling.yarn_beta_fast"},
                                                                   {"beta_slow", "rope.scaling.yarn_beta_slow"}};
    for (const auto& [key, to] : betas) {
      if (!find(scaling, key)) continue;
      const Result<double> beta = number(scaling, key);
      if (!beta.ok()) return beta.status();
      writer_.add_float32(full(to), static_cast<float>(*beta));
    }
    // GGUF's factor comes on top of the usual one; transformers' stands alone.
    const double usual = *factor > 1 ? 1 + 0.1 * std::log(*factor) : 1;
    const Result<double> attention = number(scaling, "attention_factor", usual);
    if (!attention.ok()) return attention.status();
    if (*attention != usual) {
      writer_.add_float32(full("rope.scaling.attn_factor"), static_cast<float>(*attention / usual));
    }
    context_ = std::max(context_, *original * *factor);
    return {};
  }

  // Llama 3.1: slow pairs are divided by the factor, fast ones kept, those between interpolated (transformers,
  // _compute_llama3_parameters). As divisors, in the tensor that GGUF files have.
  Status translate_llama3(element scaling, double base) {
    double values[4] = {};
    const std::string_view keys[] = {"factor", "low_freq_factor", "high_freq_factor",
                                     "original_max_position_embeddings"};
    for (size_t index = 0; index < 4; ++index) {
      const Result<double> value = number(scaling, keys[index]);
      if (!value.ok()) return value.status();
      values[index] = *value;
    }
    const auto [factor, low, high, original] = values;
    if (high <= low) return malformed(fmt::format("{}.high_freq_factor", rope_key_), "is not above low_freq_factor");
    if (rotated_ < 2 || rotated_ > 1024) return malformed("head_dim", fmt::format("{} dimensions turn", rotated_));
    std::vector<float> divisors;
    for (int64_t i = 0; i < rotated_ / 2; ++i) {
      const double wavelength =
          2 * std::numbers::pi * std::pow(base, 2.0 * static_cast<double>(i) / static_cast<double>(rotated_));
      if (wavelength < original / high) {
        divisors.push_back(1);
      } else if (wavelength > original / low) {
        divisors.push_back(static_cast<float>(factor));
      } else {
        const double smooth = (original / wavelength - low) / (high - low);
        divisors.push_back(static_cast<float>(1 / ((1 - smooth) / factor + smooth)));
      }
    }
    std::vector<std::byte> bytes(divisors.size() * sizeof(float));
    std::memcpy(bytes.data(), divisors.data(), bytes.size());
    writer_.add_tensor("rope_freqs.weight", TensorType::kF32, {divisors.size()}, std::move(bytes));
    return {};
  }

  const element root_;
  const std::string_view name_;
  GgufWriter& writer_;
  const ModelType* type_ = nullptr;
  int64_t head_dim_ = 0;
  int64_t rotated_ = 0;
  double context_ = 0;
  std::string rope_key_;
};

struct Renamed {
  std::string_view from, to;
};
constexpr Renamed kGlobal[] = {{"model.embed_tokens.weight", "token_embd.weight"},
                               {"model.norm.weight", "output_norm.weight"},
                               {"lm_head.weight", "output.weight"}};
constexpr Renamed kLayer[] = {{"input_layernorm", "attn_norm"},    {"self_attn.q_proj", "attn_q"},
                              {"self_attn.k_proj", "attn_k"},      {"self_attn.v_proj", "attn_v"},
                              {"self_attn.o_proj", "attn_output"}, {"self_attn.q_norm", "attn_q_norm"},
                              {"self_attn.k_norm", "attn_k_norm"}, {"post_attention_layernorm", "ffn_norm"},
                              {"mlp.gate_proj", "ffn_gate"},       {"mlp.up_proj", "ffn_up"},
                              {"mlp.down_proj", "ffn_down"}};

}  // namespace

Result<HuggingFaceConfig> translate_config(std::span<const std::byte> json, std::string_view name, GgufWriter& writer) {
  simdjson::dom::parser parser;
  element root;
  if (const auto error = parser.parse(reinterpret_cast<const char*>(json.data()), json.size()).get(root)) {
    return invalid_argument(fmt::format("{}: not valid JSON: {}", name, simdjson::error_message(error)));
  }
  if (!root.is_object()) return invalid_argument(fmt::format("{}: is no JSON object", name));
  return ConfigTranslator(root, name, writer).translate();
}

std::string gguf_tensor_name(std::string_view name) {
  for (const Renamed& global : kGlobal) {
    if (name == global.from) return std::string(global.to);
  }
  constexpr std::string_view kPrefix = "model.layers.";
  const size_t dot = name.starts_with(kPrefix) ? name.find('.', kPrefix.size()) : std::string_view::npos;
  const size_t kind = name.rfind('.');
  if (dot == std::string_view::npos || kind <= dot) return std::string(name);
  const std::string_view middle = name.substr(dot + 1, kind - dot - 1);
  for (const Renamed& layer : kLayer) {
    if (middle == layer.from) {
      return fmt::format("blk.{}.{}{}", name.substr(kPrefix.size(), dot - kPrefix.size()), layer.to, name.substr(kind));
    }
  }
  return std::string(name);
}

}  // namespace warmpath

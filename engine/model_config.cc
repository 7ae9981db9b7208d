#include "engine/model_config.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

namespace warmpath {

namespace {

constexpr std::string_view kArchitecture = "llama";

// Reads llama.* keys and remembers the first thing that is wrong.
class ConfigReader {
 public:
  explicit ConfigReader(const GgufFile& file) : file_(file) {}

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
  Result<double> get_or(std::string_view key, double fallback) const { return file_.get_float_or(full(key), fallback); }

  void refuse(std::string_view key, std::string_view problem) {
    fail(invalid_argument(fmt::format("{}: key '{}': {}", file_.name(), full(key), problem)));
  }
  void fail(Status status) {
    if (status_.ok()) status_ = std::move(status);
  }
  const Status& status() const { return status_; }

  static std::string full(std::string_view key) { return fmt::format("{}.{}", kArchitecture, key); }

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
  Status status_;
};

Status check_supported(const GgufFile& file) {
  const Result<std::string_view> architecture = file.get_string("general.architecture");
  if (!architecture.ok()) return architecture.status();
  if (*architecture != kArchitecture) {
    return unimplemented(fmt::format("{}: architecture '{}' is not supported; supported: {}", file.name(),
                                     printable(*architecture), kArchitecture));
  }
  const Result<uint64_t> parts = file.get_uint_or("split.count", 1);
  if (!parts.ok()) return parts.status();
  if (*parts > 1) {
    return unimplemented(
        fmt::format("{}: one of {} split files; merge them with llama-gguf-split --merge", file.name(), *parts));
  }
  const Result<uint64_t> experts = file.get_uint_or(ConfigReader::full("expert_count"), 0);
  if (!experts.ok()) return experts.status();
  if (*experts > 0) return unimplemented(fmt::format("{}: mixtures of experts are not supported", file.name()));
  return {};
}

// base^(-2i/dimensions), slowed down as the file asks: "linear" divides every frequency by one factor; Llama 3's
// scaling is in the tensor rope_freqs.weight as one divisor a pair.
void read_rotation(const GgufFile& file, int32_t dimensions, ConfigReader& reader, ModelConfig& config) {
  const double base = reader.number("rope.freq_base", reader.get_or("rope.freq_base", 10000));
  const Result<std::string_view> scaling = file.get_string_or(ConfigReader::full("rope.scaling.type"), "none");
  if (!scaling.ok()) return reader.fail(scaling.status());
  double divisor = 1;
  if (*scaling == "linear") {
    divisor = reader.number("rope.scaling.factor", reader.get("rope.scaling.factor"));
  } else if (*scaling != "none") {
    return reader.fail(
        unimplemented(fmt::format("{}: RoPE scaling '{}' is not supported; supported: none, linear, and Llama 3's",
                                  file.name(), printable(*scaling))));
  }
  const auto half = static_cast<size_t>(dimensions / 2);
  std::vector<float> factors(half, 1.0f);
  if (const GgufTensor* tensor = file.find_tensor("rope_freqs.weight"); tensor != nullptr) {
    if (tensor->type != TensorType::kF32 || tensor->elements != half) {
      return reader.fail(invalid_argument(
          fmt::format("{}: tensor 'rope_freqs.weight' at byte {}: {} {} values instead of {} F32", file.name(),
                      tensor->offset, tensor->elements, tensor_type_name(tensor->type), half)));
    }
    std::memcpy(factors.data(), tensor->data.data(), half * sizeof(float));
  }
  config.inv_freq.resize(half);
  for (size_t pair = 0; pair < half; ++pair) {
    const double frequency = std::pow(base, -2.0 * static_cast<double>(pair) / dimensions);
    config.inv_freq[pair] = static_cast<float>(frequency / (divisor * static_cast<double>(factors[pair])));
  }
}

}  // namespace

Result<ModelConfig> read_model_config(const GgufFile& file) {
  WARMPATH_RETURN_IF_ERROR(check_supported(file));
  ConfigReader reader(file);
  ModelConfig config;
  if (const auto name = file.get_string_or("general.name", "unnamed"); name.ok()) config.name = *name;
  config.layers = reader.count("block_count", 1, 1024);
  config.width = reader.count("embedding_length", 16, 65536);
  config.heads = reader.count("attention.head_count", 1, 1024);
  config.kv_heads = reader.count_or("attention.head_count_kv", static_cast<uint64_t>(config.heads), 1, 1024);
  config.ffn = reader.count("feed_forward_length", 16, 1 << 20);
  config.context = reader.count("context_length", 1, 1 << 24);
  config.norm_eps = static_cast<float>(
      reader.number("attention.layer_norm_rms_epsilon", reader.get("attention.layer_norm_rms_epsilon")));
  config.head_dim =
      reader.count_or("attention.key_length", static_cast<uint64_t>(config.width / config.heads), 1, 1024);
  const int32_t value_dim = reader.count_or("attention.value_length", static_cast<uint64_t>(config.head_dim), 1, 1024);
  const int32_t rotated = reader.count_or("rope.dimension_count", static_cast<uint64_t>(config.head_dim), 2, 1024);
  if (config.heads % config.kv_heads != 0) {
    reader.refuse("attention.head_count_kv",
                  fmt::format("{} heads do not divide among {} KV heads", config.heads, config.kv_heads));
  }
  if (config.head_dim % 16 != 0)
    reader.refuse("attention.key_length", fmt::format("{} is no multiple of 16", config.head_dim));
  if (value_dim != config.head_dim) reader.refuse("attention.value_length", "differs from the key length");
  if (rotated > config.head_dim || rotated % 2 != 0) {
    reader.refuse("rope.dimension_count", fmt::format("{} of a head of {}", rotated, config.head_dim));
  }
  read_rotation(file, rotated, reader, config);
  if (!reader.status().ok()) return reader.status();

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

#include "engine/rotation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "kernels/quant_block.h"
#include "model_file/safetensors_folder.h"

namespace warmpath {

namespace {

class RotationReader {
 public:
  RotationReader(const GgufFile& file, std::string_view architecture, int32_t dimensions, int32_t context)
      : file_(file), architecture_(architecture), dimensions_(dimensions), context_(context) {}

  Result<Rotation> read() {
    Rotation rotation;
    WARMPATH_RETURN_IF_ERROR(read_style(rotation));
    WARMPATH_RETURN_IF_ERROR(positive("rope.freq_base", 10000, base_));
    const auto half = static_cast<size_t>(dimensions_ / 2);
    std::vector<double> speeds(half);
    for (size_t pair = 0; pair < half; ++pair) {
      speeds[pair] = std::pow(base_, -2.0 * static_cast<double>(pair) / dimensions_);
    }
    WARMPATH_RETURN_IF_ERROR(divide_by_factors(speeds));
    const Result<std::string_view> type = file_.get_string_or(full("rope.scaling.type"), "none");
    if (!type.ok()) return type.status();
    double factor = 1;
    // Files from before "rope.scaling" have the linear factor alone.
    WARMPATH_RETURN_IF_ERROR(positive("rope.scale_linear", 1, factor));
    if (*type == "linear" || *type == "yarn") {
      if (!file_.has(full("rope.scaling.factor"))) {
        return not_found(fmt::format("{}: key '{}' is missing", file_.name(), full("rope.scaling.factor")));
      }
      WARMPATH_RETURN_IF_ERROR(positive("rope.scaling.factor", 1, factor));
    } else if (*type != "none") {
      return unimplemented(
          fmt::format("{}: key '{}': '{}' is not supported; supported: none, linear, yarn, and the "
                      "factors of Llama 3",
                      file_.name(), full("rope.scaling.type"), printable(*type)));
    }
    if (*type == "yarn") {
      WARMPATH_RETURN_IF_ERROR(apply_yarn(factor, speeds, rotation.scale));
    } else {
      for (double& speed : speeds) speed /= factor;
    }
    rotation.inv_freq.assign(speeds.begin(), speeds.end());
    return rotation;
  }

 private:
  std::string full(std::string_view key) const { return fmt::format("{}.{}", architecture_, key); }

  Status read_style(Rotation& rotation) const {
    // llama's GGUF converters reorder the rows of q and k so that pairs are neighbours; a safetensors folder says that
    // its rows are as Hugging Face has them.
    const Result<std::string_view> pairs =
        file_.get_string_or(kRopePairsKey, architecture_ == "llama" ? "adjacent" : kRopePairsHalves);
    if (!pairs.ok()) return pairs.status();
    rotation.style = *pairs == kRopePairsHalves ? RopeStyle::kHalves : RopeStyle::kAdjacent;
    return {};
  }

  Status positive(std::string_view key, double fallback, double& out) const {
    const Result<double> value = file_.get_float_or(full(key), fallback);
    if (!value.ok()) return value.status();
    if (!std::isfinite(*value) || *value <= 0) {
      return invalid_argument(
          fmt::format("{}: key '{}': {} is not a positive number", file_.name(), full(key), *value));
    }
    out = *value;
    return {};
  }

  Status divide_by_factors(std::vector<double>& speeds) const {
    for (const std::string_view name : {"rope_factors_long.weight", "rope_factors_short.weight"}) {
      if (file_.find_tensor(name) != nullptr) {
        return unimplemented(
            fmt::format("{}: tensor '{}': the RoPE scaling 'longrope' is not supported", file_.name(), name));
      }
    }
    const GgufTensor* tensor = file_.find_tensor("rope_freqs.weight");
    if (tensor == nullptr) return {};
    if (tensor->type != TensorType::kF32 || tensor->elements != speeds.size()) {
      return invalid_argument(fmt::format("{}: tensor 'rope_freqs.weight' at byte {}: {} {} values instead of {} F32",
                                          file_.name(), tensor->offset, tensor->elements,
                                          tensor_type_name(tensor->type), speeds.size()));
    }
    std::vector<float> factors(speeds.size());
    dequantize_row(tensor->type, tensor->data.data(), static_cast<int64_t>(factors.size()), factors.data());
    for (size_t pair = 0; pair < speeds.size(); ++pair) {
      if (!std::isfinite(factors[pair]) || factors[pair] <= 0) {
        return invalid_argument(fmt::format("{}: tensor 'rope_freqs.weight' at byte {}: factor {} is {}", file_.name(),
                                            tensor->offset, pair, factors[pair]));
      }
      speeds[pair] /= static_cast<double>(factors[pair]);
    }
    return {};
  }

  // The pair (a fraction) that turns `rotations` times over the original context.
  double pair_of(double rotations, double original) const {
    return dimensions_ * std::log(original / (rotations * 2 * std::numbers::pi)) / (2 * std::log(base_));
  }

  // Fast pairs keep their speed, slow ones are divided by the factor, and between them the two are mixed.
  Status apply_yarn(double factor, std::vector<double>& speeds, float& scale) const {
    double beta_fast = 0;
    double beta_slow = 0;
    double original = 0;
    double attention = 0;
    double extrapolation = 0;
    WARMPATH_RETURN_IF_ERROR(positive("rope.scaling.yarn_beta_fast", 32, beta_fast));
    WARMPATH_RETURN_IF_ERROR(positive("rope.scaling.yarn_beta_slow", 1, beta_slow));
    WARMPATH_RETURN_IF_ERROR(positive("rope.scaling.original_context_length", context_, original));
    WARMPATH_RETURN_IF_ERROR(positive("rope.scaling.attn_factor", 1, attention));
    WARMPATH_RETURN_IF_ERROR(positive("rope.scaling.yarn_ext_factor", 1, extrapolation));
    const double low = std::max(0.0, std::floor(pair_of(beta_fast, original)));
    const double high = std::min<double>(dimensions_ - 1, std::ceil(pair_of(beta_slow, original)));
    for (size_t pair = 0; pair < speeds.size(); ++pair) {
      const double ramp = std::clamp((static_cast<double>(pair) - low) / std::max(0.001, high - low), 0.0, 1.0);
      const double kept = (1 - ramp) * extrapolation;
      speeds[pair] = speeds[pair] / factor * (1 - kept) + speeds[pair] * kept;
    }
    scale = static_cast<float>(attention * (factor > 1 ? 1 + 0.1 * std::log(factor) : 1));
    return {};
  }

  const GgufFile& file_;
  const std::string_view architecture_;
  const int32_t dimensions_;
  const int32_t context_;
  double base_ = 0;
};

}  // namespace

Result<Rotation> read_rotation(const GgufFile& file, std::string_view architecture, int32_t dimensions,
                               int32_t context) {
  return RotationReader(file, architecture, dimensions, context).read();
}

}  // namespace warmpath

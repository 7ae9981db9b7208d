#include "engine/model_tensors.h"

#include <fmt/format.h>

#include <unordered_set>

namespace warmpath {

namespace {

bool is_plain_float(TensorType type) {
  return type == TensorType::kF32 || type == TensorType::kF16 || type == TensorType::kBF16;
}

// Numbers that every reader computes for itself.
bool is_derived(std::string_view name) {
  return name == "rope_freqs.weight" || name.ends_with(".attn_rot_embd") || name.ends_with("rotary_emb.inv_freq");
}

Status check(const GgufFile& file, const ExpectedTensor& expected) {
  const GgufTensor* tensor = file.find_tensor(expected.name);
  if (tensor == nullptr) {
    if (expected.optional) return {};
    return not_found(fmt::format("{}: tensor '{}' is missing", file.name(), expected.name));
  }
  const auto fail = [&](StatusCode code, std::string_view problem) {
    return Status(code,
                  fmt::format("{}: tensor '{}' at byte {}: {}", file.name(), tensor->name, tensor->offset, problem));
  };
  const bool vector = expected.columns == 0;
  const auto columns = static_cast<uint64_t>(vector ? expected.rows : expected.columns);
  const auto rows = static_cast<uint64_t>(vector ? 1 : expected.rows);
  if (tensor->columns() != columns || tensor->rows() != rows || tensor->shape.size() > 2) {
    return fail(StatusCode::kInvalidArgument,
                fmt::format("{} x {} instead of {} x {}", tensor->columns(), tensor->rows(), columns, rows));
  }
  if (vector ? !is_plain_float(tensor->type) : !is_supported(tensor->type)) {
    return fail(StatusCode::kUnimplemented,
                fmt::format("type {} is not supported here; supported: {}", tensor_type_name(tensor->type),
                            vector ? "F32, F16, BF16" : supported_tensor_types()));
  }
  return {};
}

}  // namespace

std::vector<ExpectedTensor> expected_tensors(const ModelShape& config) {
  std::vector<ExpectedTensor> tensors = {{"token_embd.weight", config.vocabulary, config.width},
                                         {"output_norm.weight", config.width},
                                         {"output.weight", config.vocabulary, config.width, true}};
  for (int32_t layer = 0; layer < config.layers; ++layer) {
    const auto add = [&](std::string_view name, int64_t rows, int64_t columns) {
      tensors.push_back({fmt::format("blk.{}.{}.weight", layer, name), rows, columns});
      if (columns != 0) tensors.push_back({fmt::format("blk.{}.{}.bias", layer, name), rows, 0, true});
    };
    add("attn_norm", config.width, 0);
    add("attn_q", config.q_width(), config.width);
    add("attn_k", config.kv_width(), config.width);
    add("attn_v", config.kv_width(), config.width);
    if (config.head_norms) {
      add("attn_q_norm", config.head_dim, 0);
      add("attn_k_norm", config.head_dim, 0);
    }
    add("attn_output", config.width, config.q_width());
    add("ffn_norm", config.width, 0);
    add("ffn_gate", config.ffn, config.width);
    add("ffn_up", config.ffn, config.width);
    add("ffn_down", config.width, config.ffn);
  }
  return tensors;
}

Status check_model_tensors(const GgufFile& file, const ModelShape& config) {
  std::unordered_set<std::string> known;
  for (ExpectedTensor& expected : expected_tensors(config)) {
    WARMPATH_RETURN_IF_ERROR(check(file, expected));
    known.insert(std::move(expected.name));
  }
  for (const GgufTensor& tensor : file.tensors()) {
    if (is_derived(tensor.name) || known.contains(std::string(tensor.name))) continue;
    return unimplemented(
        fmt::format("{}: is not part of a {} model as this engine knows it", file.place(tensor), config.architecture));
  }
  return {};
}

}  // namespace warmpath

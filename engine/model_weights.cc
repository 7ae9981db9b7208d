#include "engine/model_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "base/log.h"
#include "engine/model_tensors.h"
#include "kernels/quant_block.h"

namespace warmpath {

namespace {

// Loads tensors by name; check_model_tensors() has passed.
class WeightLoader {
 public:
  WeightLoader(const GgufFile& file, Precision precision) : file_(file), precision_(precision) {}

  Status vector(const std::string& name, int64_t size, std::vector<float>& out) const {
    const GgufTensor* tensor = file_.find_tensor(name);
    if (tensor == nullptr) return missing(name);
    out.resize(static_cast<size_t>(size));
    dequantize_row(tensor->type, tensor->data.data(), size, out.data());
    return {};
  }

  Status matrix(const std::string& name, int64_t rows, PackedMatrix& out) const {
    MatrixPart part;
    WARMPATH_RETURN_IF_ERROR(find_part(name, rows, part));
    const auto columns = static_cast<int64_t>(file_.find_tensor(name)->columns());
    Result<PackedMatrix> packed = PackedMatrix::pack(part, columns, precision_);
    if (!packed.ok()) return at(name, packed.status());
    out = std::move(*packed);
    return {};
  }

  struct Part {
    std::string name;  // without ".weight"
    int64_t rows;
  };

  Status projection(const std::vector<Part>& wanted, int64_t columns, Projection& out) const {
    std::vector<MatrixPart> parts(wanted.size());
    for (size_t index = 0; index < wanted.size(); ++index) {
      WARMPATH_RETURN_IF_ERROR(find_part(wanted[index].name + ".weight", wanted[index].rows, parts[index]));
    }
    // Neighbours that become the same kind of panel share a matrix.
    const auto kind = [&](size_t index) { return PackedMatrix::panel_kind(parts[index].type, precision_); };
    for (size_t first = 0, end = 0; first < parts.size(); first = end) {
      while (end < parts.size() && kind(end) == kind(first)) ++end;
      Result<PackedMatrix> packed =
          PackedMatrix::pack(std::span(parts).subspan(first, end - first), columns, precision_);
      if (!packed.ok()) return at(wanted[first].name, packed.status());
      out.matrices.push_back(std::move(*packed));
    }
    return biases(wanted, out);
  }

  bool has(std::string_view name) const { return file_.find_tensor(name) != nullptr; }

 private:
  Status biases(const std::vector<Part>& wanted, Projection& out) const {
    bool any = false;
    for (const Part& part : wanted) any = any || has(part.name + ".bias");
    if (!any) return {};
    for (const Part& part : wanted) {
      std::vector<float> bias(static_cast<size_t>(part.rows), 0.0f);
      if (has(part.name + ".bias")) WARMPATH_RETURN_IF_ERROR(vector(part.name + ".bias", part.rows, bias));
      out.bias.insert(out.bias.end(), bias.begin(), bias.end());
    }
    return {};
  }

  Status find_part(const std::string& name, int64_t rows, MatrixPart& part) const {
    const GgufTensor* tensor = file_.find_tensor(name);
    if (tensor == nullptr) return missing(name);
    part = {tensor->type, tensor->data, rows};
    return {};
  }

  Status missing(std::string_view name) const {
    return not_found(fmt::format("{}: tensor '{}' is missing", file_.name(), name));
  }
  Status at(std::string_view name, const Status& status) const {
    return {status.code(), fmt::format("{}: tensor '{}': {}", file_.name(), name, status.message())};
  }

  const GgufFile& file_;
  const Precision precision_;
};

// Says in the log how far a slow load is.
class LoadProgress {
 public:
  explicit LoadProgress(int32_t parts) : parts_(parts) {}
  void one_more() {
    ++done_;
    const auto now = std::chrono::steady_clock::now();
    if (now - said_ < kInterval || done_ == parts_) return;
    said_ = now;
    log_info("loading_weights",
             {{"done", done_}, {"of", parts_}, {"seconds", std::chrono::duration<double>(now - start_).count()}});
  }

 private:
  static constexpr std::chrono::seconds kInterval{3};
  const int32_t parts_;
  int32_t done_ = 0;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point said_ = start_;
};

Status load_layer(const WeightLoader& loader, const ModelShape& config, int32_t index, LayerWeights& layer) {
  const std::string prefix = fmt::format("blk.{}.", index);
  WARMPATH_RETURN_IF_ERROR(loader.vector(prefix + "attn_norm.weight", config.width, layer.attention_norm));
  WARMPATH_RETURN_IF_ERROR(loader.projection({{prefix + "attn_q", config.q_width()},
                                              {prefix + "attn_k", config.kv_width()},
                                              {prefix + "attn_v", config.kv_width()}},
                                             config.width, layer.qkv));
  if (config.head_norms) {
    WARMPATH_RETURN_IF_ERROR(loader.vector(prefix + "attn_q_norm.weight", config.head_dim, layer.q_norm));
    WARMPATH_RETURN_IF_ERROR(loader.vector(prefix + "attn_k_norm.weight", config.head_dim, layer.k_norm));
  }
  WARMPATH_RETURN_IF_ERROR(
      loader.projection({{prefix + "attn_output", config.width}}, config.q_width(), layer.attention_output));
  WARMPATH_RETURN_IF_ERROR(loader.vector(prefix + "ffn_norm.weight", config.width, layer.ffn_norm));
  WARMPATH_RETURN_IF_ERROR(loader.projection({{prefix + "ffn_gate", config.ffn}, {prefix + "ffn_up", config.ffn}},
                                             config.width, layer.gate_up));
  return loader.projection({{prefix + "ffn_down", config.width}}, config.ffn, layer.down);
}

}  // namespace

int64_t Projection::rows() const {
  int64_t sum = 0;
  for (const PackedMatrix& matrix : matrices) sum += matrix.rows();
  return sum;
}

int64_t Projection::bytes() const {
  int64_t sum = 0;
  for (const PackedMatrix& matrix : matrices) sum += matrix.bytes();
  return sum;
}

int64_t ModelWeights::bytes() const {
  int64_t sum = embedding.bytes() + output_matrix.bytes();
  for (const LayerWeights& layer : layers) {
    sum += layer.qkv.bytes() + layer.attention_output.bytes() + layer.gate_up.bytes() + layer.down.bytes();
  }
  return sum;
}

Result<ModelWeights> load_model_weights(const GgufFile& file, const ModelShape& config, Precision precision,
                                        int32_t threads) {
  WARMPATH_RETURN_IF_ERROR(check_model_tensors(file, config));
  const WeightLoader loader(file, precision);
  ModelWeights weights;
  weights.tied = !loader.has("output.weight");
  weights.layers.resize(static_cast<size_t>(config.layers));

  // One part a layer, then the two large tables.
  const auto load_part = [&](int32_t part) -> Status {
    if (part < config.layers) return load_layer(loader, config, part, weights.layers[static_cast<size_t>(part)]);
    if (part == config.layers) {
      return loader.matrix("token_embd.weight", config.vocabulary, weights.embedding);
    }
    return weights.tied ? Status() : loader.matrix("output.weight", config.vocabulary, weights.output_matrix);
  };
  const int32_t parts = config.layers + 2;
  LoadProgress progress(parts);
  std::atomic<int32_t> next = 0;
  std::mutex mutex;
  Status first_problem;
  const auto work = [&] {
    for (int32_t part = 0; (part = next.fetch_add(1)) < parts;) {
      const Status status = load_part(part);
      file.drop_pages();  // what is packed is not read again: the file does not stand in memory beside the weights
      const std::lock_guard lock(mutex);
      if (!status.ok()) {
        if (first_problem.ok()) first_problem = status;
        next = parts;
        return;
      }
      progress.one_more();
    }
  };
  {
    std::vector<std::jthread> helpers;
    for (int32_t helper = 1; helper < std::min(threads, parts); ++helper) helpers.emplace_back(work);
    work();
  }
  if (!first_problem.ok()) return first_problem;
  WARMPATH_RETURN_IF_ERROR(loader.vector("output_norm.weight", config.width, weights.output_norm));
  return weights;
}

}  // namespace warmpath

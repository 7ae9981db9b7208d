// ModelConfig: the hyper-parameters of one model, read from its file and checked against each other, so that the
// forward pass can trust them. Thread safety: a value.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "kernels/kv_layout.h"
#include "model_file/gguf_file.h"

namespace warmpath {

struct ModelConfig {
  std::string name;  // general.name, for people
  int32_t layers = 0;
  int32_t width = 0;  // of the residual stream ("d")
  int32_t heads = 0;  // query heads; a multiple of kv_heads
  int32_t kv_heads = 0;
  int32_t head_dim = 0;  // a multiple of 16
  int32_t ffn = 0;
  int32_t vocabulary = 0;
  int32_t context = 0;  // tokens
  float norm_eps = 0;
  // Rotation speed of each pair of dimensions, scaling included: angle = position * inv_freq[i].
  std::vector<float> inv_freq;

  int32_t q_width() const { return heads * head_dim; }
  int32_t kv_width() const { return kv_heads * head_dim; }
  int32_t qkv_width() const { return q_width() + 2 * kv_width(); }
  KvLayout kv_layout(KvType type) const { return {layers, kv_heads, head_dim, type}; }
};

// Reads `file`. Architectures other than `llama` and what the forward pass cannot do (experts, YaRN, split files) are
// refused by name.
Result<ModelConfig> read_model_config(const GgufFile& file);

}  // namespace warmpath

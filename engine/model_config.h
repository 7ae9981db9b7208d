// ModelShape: the hyper-parameters of one model, read from its file and checked against each other, so that the
// forward pass can trust them. Thread safety: a value.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "engine/rotation.h"
#include "kernels/kv_layout.h"
#include "model_file/gguf_file.h"

namespace warmpath {

struct ModelShape {
  std::string architecture;  // llama, qwen2 or qwen3
  std::string name;          // general.name, for people
  int32_t layers = 0;
  int32_t width = 0;  // of the residual stream ("d")
  int32_t heads = 0;  // query heads; a multiple of kv_heads
  int32_t kv_heads = 0;
  int32_t head_dim = 0;  // a multiple of 16; heads * head_dim may differ from the width
  int32_t ffn = 0;
  int32_t vocabulary = 0;
  int32_t context = 0;  // tokens
  float norm_eps = 0;
  bool head_norms = false;  // q and k are normalized head by head before they turn (qwen3)
  Rotation rotation;

  int32_t q_width() const { return heads * head_dim; }
  int32_t kv_width() const { return kv_heads * head_dim; }
  int32_t qkv_width() const { return q_width() + 2 * kv_width(); }
  KvLayout kv_layout(KvType type) const { return {layers, kv_heads, head_dim, type}; }
};

// "llama, qwen2, qwen3", for messages.
std::string_view supported_architectures();

// Whether read_model_config() reads the key `ARCHITECTURE.key` or knows that it says nothing about what is computed.
bool is_known_key(std::string_view key);

// Reads `file`. Other architectures and whatever the forward pass cannot do (experts, sliding windows, capped logits,
// ...) are refused, naming the key and its value: docs/formats.md lists them.
Result<ModelShape> read_model_config(const GgufFile& file);

}  // namespace warmpath

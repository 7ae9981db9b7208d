// Synthetic models: random weights of any shape in a complete GGUF file, made in memory, so that the whole product runs
// (and can be measured) without a download. Their output is noise, and they are always called `synthetic:...`.
//
//   synthetic:FAMILY-LAYERSxWIDTH[,key=value]...     families: llama, qwen2, qwen3
//                                                    keys: heads kv_heads head_dim ffn vocab context seed weights
//   synthetic:llama-2x64                             a toy
//   synthetic:llama-30x576,ffn=1536,vocab=49152      the shape of the default model
//   synthetic:qwen3-36x4096,heads=32,kv_heads=8,head_dim=128,ffn=12288,vocab=151936,weights=q4_k_m    an 8B
//
// Defaults: head size 64 (16 when WIDTH is no multiple of 64, or below 256), heads = WIDTH / head size, kv_heads = a
// third of them if that divides, else half, else all; ffn = 8/3 WIDTH rounded up to 32 (256 for K types); vocab 512;
// context 8192; seed 1; weights q4_1. `weights` is a tensor type that kernels know, in lower case, or q4_k_m: Q4_K with
// Q6_K for the values and the way down.
//
// The file is like the default model's: matrices of that type, token_embd and output Q8_0 (of 16 or 32-bit weights: the
// same), norms F32; qwen2 with biases, qwen3 with head norms; a byte-level `gpt2` tokenizer without merges: token 0
// <|endoftext|>, 1 <|im_start|>, 2 <|im_end|> (the end token), then one token for each byte value (byte b is token
// 3 + b), then unused ones; a ChatML template. The same spec makes the same bytes everywhere. Thread safety: pure
// functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace warmpath {

inline constexpr std::string_view kSyntheticPrefix = "synthetic:";

struct SyntheticShape {
  std::string_view family = "llama";
  std::string_view weights = "q4_1";
  uint32_t layers = 0;
  uint32_t width = 0;
  uint32_t heads = 0;
  uint32_t kv_heads = 0;
  uint32_t head_dim = 0;
  uint32_t ffn = 0;
  uint32_t vocabulary = 0;
  uint32_t context = 0;
  uint32_t seed = 0;

  uint64_t parameters() const;
};

// `spec` with the prefix; the result's texts are views of constants. Errors name the field and what it may be.
Result<SyntheticShape> parse_synthetic_shape(std::string_view spec);

// A complete GGUF file, whose general.name is `spec`.
Result<std::vector<std::byte>> make_synthetic_model(std::string_view spec);

}  // namespace warmpath

// Synthetic models: random weights of any shape in a complete GGUF file, made in memory, so that the whole product runs
// (and can be measured) without a download. Their output is noise, and they are always called `synthetic:...`.
//
//   synthetic:llama-LAYERSxWIDTH[,key=value]...      keys: heads kv_heads ffn vocab context seed
//   synthetic:llama-2x64                             a toy
//   synthetic:llama-30x576,ffn=1536,vocab=49152      the shape of the default model
//
// Defaults: head size 64 (16 when WIDTH is no multiple of 64, or below 256), heads = WIDTH / head size, kv_heads = a
// third of them if that divides, else half, else all; ffn = 8/3 WIDTH rounded up to 32; vocab 512; context 8192;
// seed 1.
//
// The file is like the default model's: matrices Q4_1, token_embd and output Q8_0, norms F32; a byte-level `gpt2`
// tokenizer without merges: token 0 <|endoftext|>, 1 <|im_start|>, 2 <|im_end|> (the end token), then one token for
// each byte value (byte b is token 3 + b), then unused ones; a ChatML template. The same spec makes the same bytes
// everywhere. Thread safety: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace warmpath {

inline constexpr std::string_view kSyntheticPrefix = "synthetic:";

struct SyntheticShape {
  uint32_t layers = 0;
  uint32_t width = 0;
  uint32_t heads = 0;
  uint32_t kv_heads = 0;
  uint32_t ffn = 0;
  uint32_t vocabulary = 0;
  uint32_t context = 0;
  uint32_t seed = 0;

  uint64_t parameters() const;
};

// `spec` with the prefix. Errors name the field and what it may be.
Result<SyntheticShape> parse_synthetic_shape(std::string_view spec);

// A complete GGUF file, whose general.name is `spec`.
Result<std::vector<std::byte>> make_synthetic_model(std::string_view spec);

}  // namespace warmpath

// config.json of a Hugging Face folder, said in the keys of a GGUF file.
//
// Model types: llama, mistral (a llama), qwen2, qwen3. Both spellings of RoPE's parameters are read: rope_theta with
// rope_scaling, and rope_parameters. What no key can say is refused, naming the key and its value. Untrusted bytes.
// Thread safety: pure functions.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "model_file/gguf_writer.h"

namespace warmpath {

struct HuggingFaceConfig {
  std::string architecture;  // as GGUF names it
  bool tied = false;         // the embedding is the output matrix too
};

// Adds the keys, and the tensor rope_freqs.weight for Llama 3's scaling, to `writer`. `name` stands for the file in
// messages.
Result<HuggingFaceConfig> translate_config(std::span<const std::byte> json, std::string_view name, GgufWriter& writer);

// "model.layers.3.self_attn.q_proj.weight" -> "blk.3.attn_q.weight"; a name that is none of a Llama model's, as it is.
std::string gguf_tensor_name(std::string_view name);

}  // namespace warmpath

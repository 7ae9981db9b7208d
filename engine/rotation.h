// Rotation: how a model turns queries and keys by their position (RoPE), scaling included.
//
// Scalings: none; "linear" (positions divided by a factor); "yarn" (Peng et al. 2023, arXiv:2309.00071, as llama.cpp
// and transformers compute it); Llama 3's, which GGUF files hold as one divisor a pair in the tensor rope_freqs.weight.
// Thread safety: a value.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "kernels/ops.h"
#include "model_file/gguf_file.h"

namespace warmpath {

struct Rotation {
  RopeStyle style = RopeStyle::kAdjacent;
  // Speed of each pair of dimensions: angle = position * inv_freq[i].
  std::vector<float> inv_freq;
  float scale = 1;  // of cosine and sine: YaRN's attention factor
};

// Reads `ARCHITECTURE.rope.*` for heads of which `dimensions` turn. What is not supported is refused by key and value.
Result<Rotation> read_rotation(const GgufFile& file, std::string_view architecture, int32_t dimensions,
                               int32_t context);

}  // namespace warmpath

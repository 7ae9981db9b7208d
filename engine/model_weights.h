// ModelWeights: a Llama model's matrices, repacked for the kernels, and its norms. Shapes are checked against the
// config.
//
// Matrices that read the same input lie in one PackedMatrix (q, k and v; gate and up), so a layer is four products.
// Thread safety: immutable once loaded.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "engine/model_config.h"
#include "kernels/packed_matrix.h"
#include "model_file/gguf_file.h"

namespace warmpath {

// One or more matrices with a common input, their outputs side by side: y = [x W0^T, x W1^T, ...] (+ bias). One matrix
// unless the file quantizes the parts differently.
struct Projection {
  std::vector<PackedMatrix> matrices;
  std::vector<float> bias;  // [rows()] or empty

  int64_t rows() const;
  int64_t bytes() const;
};

struct LayerWeights {
  std::vector<float> attention_norm;  // [width]
  Projection qkv;                     // [q_width + 2 kv_width][width]
  std::vector<float> q_norm;          // [head_dim], as k_norm; empty without head_norms
  std::vector<float> k_norm;
  Projection attention_output;  // [width][q_width]
  std::vector<float> ffn_norm;  // [width]
  Projection gate_up;           // [2 ffn][width]
  Projection down;              // [width][ffn]
};

struct ModelWeights {
  PackedMatrix embedding;  // [vocabulary][width]
  std::vector<LayerWeights> layers;
  std::vector<float> output_norm;  // [width]
  PackedMatrix output_matrix;      // [vocabulary][width]; unused when `tied`
  bool tied = false;               // the embedding is the output matrix too

  const PackedMatrix& output() const { return tied ? embedding : output_matrix; }
  int64_t bytes() const;  // of the packed matrices
};

// An unsupported tensor type, a missing tensor or a wrong shape is refused by name. Layers are packed by `threads`
// threads; a load that takes longer than a few seconds says how far it is in the log.
Result<ModelWeights> load_model_weights(const GgufFile& file, const ModelShape& config, Precision precision,
                                        int32_t threads = 1);

}  // namespace warmpath

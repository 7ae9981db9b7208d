// The model fingerprint: equal on two replicas exactly when a KV block of one is good for the other. It is the root of
// every block identity (base/block_chain.h).
//
//   XXH3-128(XXH3-128(model file) 16 B | text "kv LAYERS KV_HEADS HEAD_DIM f16|f32|int16 BLOCK_TOKENS precision
//   float|fast")
//
// The whole file counts: weights, hyper-parameters and tokenizer. It is hashed at start, at memory speed (98 MB: 10 ms;
// the pages are needed for loading anyway). Thread safety: a pure function.
#pragma once

#include "base/hash128.h"
#include "kernels/kv_layout.h"
#include "kernels/packed_matrix.h"
#include "model_file/gguf_file.h"

namespace warmpath {

Hash128 model_fingerprint(const GgufFile& file, const KvLayout& layout, Precision precision);

}  // namespace warmpath

// The model fingerprint: equal on two replicas exactly when a KV block of one is good for the other. It is the root of
// every block identity (base/block_chain.h).
//
//   XXH3-128(content 16 B | text "kv LAYERS KV_HEADS HEAD_DIM f32|f16|int16 BLOCK_TOKENS precision float|fast")
//
// The content is the whole model: weights, hyper-parameters and tokenizer; XXH3-128 of a GGUF file, of a folder that of
// its parts' hashes. Files from 16 MB on are read once, at memory or disk speed, and remembered
// (model_file/file_hash.h). Thread safety: a pure function.
#pragma once

#include "base/hash128.h"
#include "kernels/kv_layout.h"
#include "kernels/packed_matrix.h"
#include "model_file/gguf_file.h"

namespace warmpath {

Hash128 model_fingerprint(const GgufFile& file, const KvLayout& layout, Precision precision);

}  // namespace warmpath

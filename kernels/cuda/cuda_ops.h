// CUDA operations: the names and argument structs of kernels/ops.h, with pointers to device memory and a stream.
//
// State: two operations. Their sources compile for sm_80 and sm_90 with nvcc and run under the shim on the CPU, where
// tests compare them with CpuOps under several thread orders. THEY HAVE NEVER RUN ON A GPU: speed is unmeasured, and
// nothing dispatches to them.
//
// Batch invariant as ops.h asks: a block of threads sees one row, and contexts are split every kAttentionSplit tokens.
// Thread safety: as for CUDA launches on one stream.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/ops.h"

namespace warmpath {

// `stream` is a cudaStream_t.
void cuda_rms_norm(const RmsNormArgs& args, void* stream);

// Attention over f16 or f32 caches. `rows` is the number of query rows of all sequences together, `longest` the largest
// position + rows among them (both known to the host, which cannot read args.sequences).
// `workspace` holds cuda_attention_workspace_bytes().
// REQUIRES heads / kv_heads <= 8.
size_t cuda_attention_workspace_bytes(const AttentionArgs& args, int32_t rows, int32_t longest);
void cuda_attention(const AttentionArgs& args, int32_t rows, int32_t longest, void* workspace, void* stream);

}  // namespace warmpath

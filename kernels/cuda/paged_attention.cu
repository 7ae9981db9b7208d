// Causal attention over paged blocks, in two kernels:
//
//   split  one block of threads per (query row, kv head, split of kAttentionSplit tokens): the softmax's partial state
//          (sum of 2^(s - max) * v, max, sum of 2^(s - max)) of the heads that share the kv head
//   merge  one block of threads per (query row, head): absorbs the splits in order
//
// K planes are transposed (kv_layout.h), so in the scores a lane is a token and needs no reduction; in the values a
// thread is a dimension. Workspace: [row][head][split][head_dim + 2] floats.
#include <cstddef>

#include "kernels/cuda/cuda_ops.h"
#include "kernels/cuda/gpu_port.cuh"
#include "kernels/cuda/reduce.cuh"

namespace warmpath {
namespace {

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / 32;
constexpr int kMaxGroup = 8;
constexpr float kLog2E = 1.44269504088896341f;

__device__ __forceinline__ float element(const float* plane, int index) { return plane[index]; }
__device__ __forceinline__ float element(const uint16_t* plane, int index) { return half_bits_to_float(plane[index]); }

// Which sequence `row` belongs to: the last that starts at or before it.
__device__ __forceinline__ const SequenceRows& sequence_of_row(const AttentionArgs& args, int row) {
  int low = 0;
  int high = args.sequence_count;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    if (args.sequences[middle].first_row <= row) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return args.sequences[low];
}

// Tokens that a row sees: itself and all before it.
__device__ __forceinline__ int tokens_of_row(const SequenceRows& sequence, int row) {
  return sequence.position + row - sequence.first_row + 1;
}

template <typename Element>
__device__ __forceinline__ const Element* plane_of(const AttentionArgs& args, const SequenceRows& sequence, int token,
                                                   int64_t offset) {
  const int64_t block = sequence.block_table[token / KvLayout::kTokens];
  return reinterpret_cast<const Element*>(args.kv.base + block * args.kv.layout.block_bytes() + offset);
}

template <typename Element>
__global__ void __launch_bounds__(kThreads) split_kernel(AttentionArgs args, int splits, float* workspace) {
  GPU_DYNAMIC_SHARED(float, shared);
  const int dim = args.kv.layout.head_dim;
  const int group = args.heads / args.kv.layout.kv_heads;
  const int kv_head = static_cast<int>(blockIdx.y);
  const int split = static_cast<int>(blockIdx.z);
  const int row = args.sequences[0].first_row + static_cast<int>(blockIdx.x);
  const SequenceRows& sequence = sequence_of_row(args, row);
  const int start = split * kAttentionSplit;
  const int rest = tokens_of_row(sequence, row) - start;
  const int tokens = rest < kAttentionSplit ? rest : kAttentionSplit;
  if (tokens <= 0) return;  // the whole block

  float* q = shared;                     // [group][dim]
  float* scores = shared + group * dim;  // [group][kAttentionSplit]
  const float* q_row = args.q + row * args.q_stride + kv_head * group * dim;
  for (int i = static_cast<int>(threadIdx.x); i < group * dim; i += kThreads) q[i] = q_row[i] * (args.scale * kLog2E);
  __syncthreads();

  const int64_t k_offset = args.kv.layout.k_offset(args.layer, kv_head);
  for (int token = static_cast<int>(threadIdx.x); token < kAttentionSplit; token += kThreads) {
    float sum[kMaxGroup] = {};
    if (token < tokens) {
      const Element* k =
          plane_of<Element>(args, sequence, start + token, k_offset) + (start + token) % KvLayout::kTokens;
      for (int d = 0; d < dim; ++d) {
        const float key = element(k, d * KvLayout::kTokens);
#pragma unroll
        for (int g = 0; g < kMaxGroup; ++g) {
          if (g < group) sum[g] += q[g * dim + d] * key;
        }
      }
    }
#pragma unroll
    for (int g = 0; g < kMaxGroup; ++g) {
      if (g < group) scores[g * kAttentionSplit + token] = token < tokens ? sum[g] : -INFINITY;
    }
  }
  __syncthreads();

  // A warp a head.
  const int lane = static_cast<int>(threadIdx.x % 32);
  float* states =
      workspace + (((static_cast<int64_t>(blockIdx.x) * args.heads + kv_head * group) * splits + split) * (dim + 2));
  const int64_t head_stride = static_cast<int64_t>(splits) * (dim + 2);
  for (int g = static_cast<int>(threadIdx.x / 32); g < group; g += kWarps) {
    float* p = scores + g * kAttentionSplit;
    float largest = -INFINITY;
    for (int t = lane; t < kAttentionSplit; t += 32) largest = fmaxf(largest, p[t]);
    largest = warp_max(largest);
    float sum = 0;
    for (int t = lane; t < kAttentionSplit; t += 32) {
      p[t] = exp2f(p[t] - largest);
      sum += p[t];
    }
    sum = warp_sum(sum);
    if (lane == 0) {
      states[g * head_stride + dim] = largest;
      states[g * head_stride + dim + 1] = sum;
    }
  }
  __syncthreads();

  const int64_t v_offset = args.kv.layout.v_offset(args.layer, kv_head);
  for (int i = static_cast<int>(threadIdx.x); i < group * dim; i += kThreads) {
    const float* p = scores + i / dim * kAttentionSplit;
    const int d = i % dim;
    float sum = 0;
    for (int first = 0; first < tokens; first += KvLayout::kTokens) {
      const Element* v = plane_of<Element>(args, sequence, start + first, v_offset) + d;
      const int count = tokens - first < KvLayout::kTokens ? tokens - first : KvLayout::kTokens;
      for (int t = 0; t < count; ++t) sum += p[first + t] * element(v, t * dim);
    }
    states[i / dim * head_stride + d] = sum;
  }
}

__global__ void __launch_bounds__(kThreads) merge_kernel(AttentionArgs args, int splits, const float* workspace) {
  const int dim = args.kv.layout.head_dim;
  const int row = args.sequences[0].first_row + static_cast<int>(blockIdx.x);
  const int tokens = tokens_of_row(sequence_of_row(args, row), row);
  const int head = static_cast<int>(blockIdx.y);
  const float* states = workspace + (static_cast<int64_t>(blockIdx.x) * args.heads + head) * splits * (dim + 2);
  for (int d = static_cast<int>(threadIdx.x); d < dim; d += kThreads) {
    float max = states[dim];
    float sum = states[dim + 1];
    float out = states[d];
    for (int split = 1; split * kAttentionSplit < tokens; ++split) {
      const float* next = states + split * (dim + 2);
      const float both = fmaxf(max, next[dim]);
      const float old_factor = exp2f(max - both);
      const float next_factor = exp2f(next[dim] - both);
      out = out * old_factor + next[d] * next_factor;
      sum = sum * old_factor + next[dim + 1] * next_factor;
      max = both;
    }
    args.y[row * args.y_stride + head * dim + d] = out / sum;
  }
}

int splits_of(int32_t tokens) { return (tokens + kAttentionSplit - 1) / kAttentionSplit; }

}  // namespace

size_t cuda_attention_workspace_bytes(const AttentionArgs& args, int32_t rows, int32_t longest) {
  return sizeof(float) * static_cast<size_t>(rows) * args.heads * splits_of(longest) * (args.kv.layout.head_dim + 2);
}

void cuda_attention(const AttentionArgs& args, int32_t rows, int32_t longest, void* workspace, void* stream) {
  if (rows <= 0) return;
  const int group = args.heads / args.kv.layout.kv_heads;
  const int splits = splits_of(longest);
  auto* states = static_cast<float*>(workspace);
  auto cuda_stream = static_cast<cudaStream_t>(stream);
  const size_t shared = sizeof(float) * group * static_cast<size_t>(args.kv.layout.head_dim + kAttentionSplit);
  const dim3 grid(static_cast<unsigned>(rows), static_cast<unsigned>(args.kv.layout.kv_heads),
                  static_cast<unsigned>(splits));
  if (args.kv.layout.type == KvType::kF16) {
    gpu_launch(split_kernel<uint16_t>, grid, dim3(kThreads), shared, cuda_stream, args, splits, states);
  } else {
    gpu_launch(split_kernel<float>, grid, dim3(kThreads), shared, cuda_stream, args, splits, states);
  }
  gpu_launch(merge_kernel, dim3(static_cast<unsigned>(rows), static_cast<unsigned>(args.heads)), dim3(kThreads), 0,
             cuda_stream, args, splits, static_cast<const float*>(states));
}

}  // namespace warmpath

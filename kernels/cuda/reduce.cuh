// Sums and maxima over a warp or a block, in a fixed order. Every thread of the warp (block) takes part and gets the
// result.
#pragma once

#include "kernels/cuda/gpu_port.cuh"

namespace warmpath {

__device__ __forceinline__ float warp_sum(float value) {
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) value += __shfl_xor_sync(0xffffffffu, value, lanes);
  return value;
}

__device__ __forceinline__ float warp_max(float value) {
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, lanes));
  return value;
}

// REQUIRES whole warps, at most 32 of them; `partial` is shared memory for 33 floats.
__device__ __forceinline__ float block_sum(float value, float* partial) {
  const unsigned warp = threadIdx.x / 32;
  const unsigned lane = threadIdx.x % 32;
  value = warp_sum(value);
  if (lane == 0) partial[warp] = value;
  __syncthreads();
  if (warp == 0) {
    const float total = warp_sum(lane < blockDim.x / 32 ? partial[lane] : 0.0f);
    if (lane == 0) partial[32] = total;
  }
  __syncthreads();
  return partial[32];
}

}  // namespace warmpath

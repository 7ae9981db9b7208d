// CUDA's words for kernels compiled by g++: what of the device language our kernels use, on top of fiber_grid.h.
//
// Not covered: wgmma and TMA, asynchrony of copies, memory-model races between blocks, bank conflicts, occupancy,
// register limits, warp-synchronous code without *_sync, streams and graphs. A kernel that passes here still has to run
// on a GPU.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/cuda/shim/fiber_grid.h"
#include "kernels/half.h"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
// One block runs at a time on an OS thread, so this is the block's memory.
#define __shared__ static thread_local
#define GPU_DYNAMIC_SHARED(type, name) type* name = reinterpret_cast<type*>(::warmpath::cuda_shim::dynamic_shared())

#define threadIdx (::warmpath::cuda_shim::thread_index())
#define blockIdx (::warmpath::cuda_shim::block_index())
#define blockDim (::warmpath::cuda_shim::block_size())
#define gridDim (::warmpath::cuda_shim::grid_size())

using cudaStream_t = void*;

inline void __syncthreads() { ::warmpath::cuda_shim::block_barrier(); }

template <typename T>
T __shfl_sync(uint32_t mask, T value, int source) {
  static_assert(sizeof(T) <= 8 && std::is_trivially_copyable_v<T>);
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  bits = ::warmpath::cuda_shim::warp_exchange(mask, bits, static_cast<unsigned>(source) & 31u);
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
template <typename T>
T __shfl_xor_sync(uint32_t mask, T value, int lanes) {
  return __shfl_sync(mask, value, static_cast<int>(::warmpath::cuda_shim::lane()) ^ lanes);
}
inline unsigned __ballot_sync(uint32_t mask, int value) { return ::warmpath::cuda_shim::warp_ballot(mask, value != 0); }

inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }

namespace warmpath {

__device__ __forceinline__ float half_bits_to_float(uint16_t bits) { return half_to_float(bits); }

template <typename... Parameters, typename... Arguments>
void gpu_launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t,
                Arguments... arguments) {
  cuda_shim::run_grid(grid, block, shared_bytes, [&] { kernel(static_cast<Parameters>(arguments)...); });
}

}  // namespace warmpath

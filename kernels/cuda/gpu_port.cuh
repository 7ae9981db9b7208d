// The one header that a kernel file includes: CUDA under nvcc, the shim (shim/cuda_shim.h) under g++.
#pragma once

#if defined(__CUDACC__)

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

#define GPU_DYNAMIC_SHARED(type, name)                            \
  extern __shared__ __align__(16) unsigned char gpu_shared_raw[]; \
  type* name = reinterpret_cast<type*>(gpu_shared_raw)

namespace warmpath {

__device__ __forceinline__ float half_bits_to_float(uint16_t bits) { return __half2float(__ushort_as_half(bits)); }

template <typename... Parameters, typename... Arguments>
void gpu_launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream,
                Arguments... arguments) {
  if (shared_bytes > 48 * 1024) {
    cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), cudaFuncAttributeMaxDynamicSharedMemorySize,
                         static_cast<int>(shared_bytes));
  }
  kernel<<<grid, block, shared_bytes, stream>>>(static_cast<Parameters>(arguments)...);
}

}  // namespace warmpath

#else
#include "kernels/cuda/shim/cuda_shim.h"
#endif

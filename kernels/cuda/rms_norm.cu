// y = x / sqrt(mean(x^2) + eps) * weight: one block of threads a row.
#include "kernels/cuda/cuda_ops.h"
#include "kernels/cuda/gpu_port.cuh"
#include "kernels/cuda/reduce.cuh"

namespace warmpath {
namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads) rms_norm_kernel(RmsNormArgs args) {
  __shared__ float partial[33];
  const float* x = args.x + blockIdx.x * args.x_stride;
  float* y = args.y + blockIdx.x * args.y_stride;
  float squares = 0;
  for (int i = static_cast<int>(threadIdx.x); i < args.width; i += kThreads) squares += x[i] * x[i];
  const float factor = rsqrtf(block_sum(squares, partial) / static_cast<float>(args.width) + args.eps);
  for (int i = static_cast<int>(threadIdx.x); i < args.width; i += kThreads) y[i] = x[i] * factor * args.weight[i];
}

}  // namespace

void cuda_rms_norm(const RmsNormArgs& args, void* stream) {
  if (args.rows <= 0) return;
  gpu_launch(rms_norm_kernel, dim3(static_cast<unsigned>(args.rows)), dim3(kThreads), 0,
             static_cast<cudaStream_t>(stream), args);
}

}  // namespace warmpath

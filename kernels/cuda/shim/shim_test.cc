// The shim itself: it must run correct kernels right and show wrong ones.
#include <gtest/gtest.h>

#include <vector>

#include "kernels/cuda/gpu_port.cuh"

namespace warmpath {
namespace {

// Each thread takes its left neighbour's number; without the barrier only ascending order is right.
__global__ void neighbour_kernel(float* x, bool barrier) {
  __shared__ float copy[96];
  copy[threadIdx.x] = x[threadIdx.x];
  if (barrier) __syncthreads();
  const float left = threadIdx.x == 0 ? 0.0f : copy[threadIdx.x - 1];
  x[threadIdx.x] = left;
}

// Static shared memory keeps the last block's values, so every call has its own.
bool neighbours_are_right(bool barrier, uint64_t seed) {
  static float base = 0;
  base += 1000;
  cuda_shim::options().seed = seed;
  std::vector<float> x(96);
  for (size_t i = 0; i < x.size(); ++i) x[i] = base + static_cast<float>(i + 1);
  gpu_launch(neighbour_kernel, dim3(1), dim3(96), 0, nullptr, x.data(), barrier);
  bool right = x[0] == 0.0f;
  for (size_t i = 1; i < x.size(); ++i) right = right && x[i] == base + static_cast<float>(i);
  return right;
}

TEST(CudaShim, AMissingBarrierShowsWhenThreadsAreShuffled) {
  for (uint64_t seed = 0; seed < 4; ++seed) EXPECT_TRUE(neighbours_are_right(true, seed)) << seed;
  EXPECT_TRUE(neighbours_are_right(false, 0));  // luck: ascending order hides it
  EXPECT_FALSE(neighbours_are_right(false, 1));
  EXPECT_FALSE(neighbours_are_right(false, 2));
  cuda_shim::options().seed = 0;
}

__global__ void warp_kernel(unsigned* ballots, int* rotated) {
  ballots[threadIdx.x] = __ballot_sync(0xffffffffu, threadIdx.x % 3 == 0);
  rotated[threadIdx.x] =
      __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x), static_cast<int>(threadIdx.x + 1) % 32);
}

TEST(CudaShim, WarpCollectivesExchangeLanes) {
  std::vector<unsigned> ballots(32);
  std::vector<int> rotated(32);
  for (uint64_t seed : {0, 5}) {
    cuda_shim::options().seed = seed;
    gpu_launch(warp_kernel, dim3(1), dim3(32), 0, nullptr, ballots.data(), rotated.data());
    for (int i = 0; i < 32; ++i) {
      EXPECT_EQ(ballots[static_cast<size_t>(i)], 0x49249249u);
      EXPECT_EQ(rotated[static_cast<size_t>(i)], (i + 1) % 32);
    }
  }
  cuda_shim::options().seed = 0;
}

__global__ void divergent_kernel() {
  if (threadIdx.x < 16) {
    __syncthreads();
  } else {
    __ballot_sync(0xffffffffu, 1);
  }
}

TEST(CudaShimDeathTest, DivergentBarriersAbortWithThePlace) {
  EXPECT_DEATH(gpu_launch(divergent_kernel, dim3(1), dim3(32), 0, nullptr),
               "divergent __syncthreads.*block 0,0,0 thread");
}

__global__ void shared_kernel(float* out) {
  GPU_DYNAMIC_SHARED(float, shared);
  out[blockIdx.x] = shared[threadIdx.x];
  shared[threadIdx.x] = 1;
}

TEST(CudaShim, FreshSharedMemoryIsPoisoned) {
  std::vector<float> out(3);
  gpu_launch(shared_kernel, dim3(3), dim3(1), 4, nullptr, out.data());
  for (float value : out) EXPECT_TRUE(std::isnan(value));
}

}  // namespace
}  // namespace warmpath

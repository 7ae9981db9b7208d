// Runs a CUDA grid on the host: the scheduler of the shim (cuda_shim.h gives its operations their CUDA names).
//
// The threads of a block are fibers on one OS thread. A fiber is suspended only at a barrier or a warp collective, so a
// kernel without them is a plain loop; blocks are spread over OS threads. What CUDA leaves open is made variable: the
// order of a block's threads is ascending with seed 0 and shuffled with others, so that a missing barrier shows.
//
// Errors in a kernel (divergent barriers, a lane outside its own mask) print block and thread, and abort.
// Thread safety: run_grid may be called from one thread at a time; the rest only from inside a kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

struct dim3 {
  unsigned x = 1;
  unsigned y = 1;
  unsigned z = 1;
  constexpr dim3(unsigned x_size = 1, unsigned y_size = 1, unsigned z_size = 1) : x(x_size), y(y_size), z(z_size) {}
};

namespace warmpath::cuda_shim {

struct Options {
  unsigned os_threads = 1;
  uint64_t seed = 0;
  size_t stack_bytes = 64 * 1024;  // of a fiber
};
Options& options();

// Of the running kernel thread.
const dim3& thread_index();
const dim3& block_index();
const dim3& block_size();
const dim3& grid_size();
unsigned lane();
unsigned char* dynamic_shared();

// __syncthreads()
void block_barrier();
// The lanes of `mask` give a value each and receive that of lane `source`; all ones when that lane takes no part.
uint64_t warp_exchange(uint32_t mask, uint64_t value, unsigned source);
// The lanes of `mask` whose value is not zero.
uint32_t warp_ballot(uint32_t mask, bool value);

// `shared_bytes` of dynamic shared memory a block, exactly, filled with NaNs before each block.
void run_grid(dim3 grid, dim3 block, size_t shared_bytes, const std::function<void()>& kernel);

}  // namespace warmpath::cuda_shim

// The CUDA kernel, compiled by g++ over the shim.
#include "kernels/cuda/paged_attention.cu"

// The CUDA kernel, compiled by g++ over the shim.
#include "kernels/cuda/rms_norm.cu"

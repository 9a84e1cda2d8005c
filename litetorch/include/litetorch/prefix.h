/* prefix.h - precompiled and put in front of every translation unit: what torch/extension.h and nvcc bring in. */
#include <cuda_runtime.h>
#include <torch/extension.h>

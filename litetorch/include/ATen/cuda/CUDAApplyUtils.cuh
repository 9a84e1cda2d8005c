/* ATen/cuda/CUDAApplyUtils.cuh as candidates include it. */
#pragma once
#include "litetorch/cuda.h"

/* ATen/cuda/detail/TensorInfo.cuh as candidates include it. */
#pragma once
#include "litetorch/cuda.h"

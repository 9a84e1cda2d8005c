/* ATen/cuda/CUDAUtils.h as candidates include it. */
#pragma once
#include "litetorch/cuda.h"

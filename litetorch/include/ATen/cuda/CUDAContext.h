/* ATen/cuda/CUDAContext.h as candidates include it. */
#pragma once
#include "litetorch/cuda.h"

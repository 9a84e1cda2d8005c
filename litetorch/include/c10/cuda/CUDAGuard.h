/* c10/cuda/CUDAGuard.h as candidates include it. */
#pragma once
#include "litetorch/cuda.h"

/* c10/cuda/CUDAException.h as candidates include it. */
#pragma once
#include "litetorch/cuda.h"

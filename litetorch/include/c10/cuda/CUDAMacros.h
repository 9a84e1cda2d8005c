/* c10/cuda/CUDAMacros.h as candidates include it. */
#pragma once
#include "litetorch/cuda.h"

/* c10/cuda/CUDAFunctions.h as candidates include it. */
#pragma once
#include "litetorch/cuda.h"

/* c10/cuda/CUDAStream.h as candidates include it. */
#pragma once
#include "litetorch/cuda.h"

/* ATen/cuda/CUDAContextLight.h as candidates include it. */
#pragma once
#include "litetorch/cuda.h"

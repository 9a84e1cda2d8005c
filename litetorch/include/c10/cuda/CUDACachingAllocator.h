/* c10/cuda/CUDACachingAllocator.h as candidates include it. */
#pragma once
#include "litetorch/cuda.h"

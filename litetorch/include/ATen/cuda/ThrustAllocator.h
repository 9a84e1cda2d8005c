/* ATen/cuda/ThrustAllocator.h as candidates include it. */
#pragma once
#include "litetorch/cuda.h"

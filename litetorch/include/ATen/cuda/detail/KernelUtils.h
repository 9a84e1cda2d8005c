/* ATen/cuda/detail/KernelUtils.h as candidates include it. */
#pragma once
#include "litetorch/cuda.h"

/* ATen/cuda/detail/IndexUtils.cuh as candidates include it. */
#pragma once
#include "litetorch/cuda.h"

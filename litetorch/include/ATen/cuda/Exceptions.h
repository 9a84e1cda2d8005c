/* ATen/cuda/Exceptions.h as candidates include it. */
#pragma once
#include "litetorch/cuda.h"

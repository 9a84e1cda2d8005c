/* murand_kernel.h - random numbers in kernels under MUSA's names. */
#pragma once
#include "litetorch/musa.h"

#include <curand_kernel.h>

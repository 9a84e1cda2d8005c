/* musa_fp8.h - eight-bit floats under MUSA's names. */
#pragma once
#include "litetorch/musa.h"

#if LT_MUSA_ARCH < 310
#error "eight-bit floats begin with mp_31"
#endif
#include <cuda_fp8.h>

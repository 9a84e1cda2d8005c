/* musa_bf16.h - bfloat16 as mt_bfloat16 and __mt_bfloat16. */
#pragma once
#include "litetorch/musa.h"

#include <cuda_bf16.h>

#if LT_MUSA_ARCH < 220
#error "bfloat16 begins with mp_22"
#endif

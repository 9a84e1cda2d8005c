/* musa_fp16.h - half precision under MUSA's names, which are CUDA's but for what mp_22 and older lack. */
#pragma once
#include "litetorch/musa.h"

#include <cuda_fp16.h>

#if LT_MUSA_ARCH < 310
#define hexp2 hexp2_begins_with_mp_31
#define h2exp2 h2exp2_begins_with_mp_31
#define htrunc htrunc_begins_with_mp_31
#define hsin hsin_begins_with_mp_31
#define h2sin h2sin_begins_with_mp_31
#endif

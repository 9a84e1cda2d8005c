/* musa.h - in front of a MUSA source's device half where mcc reads it: its own names, nothing aliased, and the small
 * headers that torch brings in and kernels use without asking. */
#ifndef LITETORCH_MUSA_H
#define LITETORCH_MUSA_H

#include <cfloat>
#include <climits>
#include <cmath>
#include <cstdint>

#include <musa_runtime.h>
#ifdef LT_USE_HALF
#include <musa_fp16.h>
#endif
#ifdef LT_USE_BFLOAT16
#include <musa_bf16.h>
#endif

#endif

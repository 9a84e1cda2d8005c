/* c10/cuda/CUDAMathCompat.h as candidates include it. */
#pragma once
#include "litetorch/cuda.h"

namespace c10 { namespace cuda { namespace compat {
using std::abs, std::exp, std::ceil, std::floor, std::log, std::log1p, std::max, std::min, std::pow, std::sqrt,
    std::tan, std::tanh;
inline float rsqrt(float x) { return 1.0f / sqrtf(x); }
inline double rsqrt(double x) { return 1.0 / ::sqrt(x); }
} } }

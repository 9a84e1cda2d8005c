/* std.h - the standard headers that torch/extension.h brings in and candidates rely on.
 *
 * nvcc reads every header twice and cannot precompile: two thirds of a small build are these. So the compile stage
 * defines LT_LEAN and one LT_USE_x for each group that a name in the candidate's text asks for
 * (src/eval/build/build_cuda.c), and builds once more without LT_LEAN if that does not compile.
 * LT_GPU: a real CUDA toolkit's headers are behind <cuda_runtime.h>, not the emulator's. */
#ifndef LITETORCH_STD_H
#define LITETORCH_STD_H

#ifndef LT_LEAN
#define LT_USE_ALGORITHM
#define LT_USE_BFLOAT16
#define LT_USE_COMPLEX
#define LT_USE_CONTAINERS
#define LT_USE_FUNCTIONAL
#define LT_USE_HALF
#define LT_USE_MEMORY
#define LT_USE_MODULE
#define LT_USE_MUTEX
#define LT_USE_STREAM
#endif

#include <array>
#include <cassert>
#include <cfloat>
#include <climits>
#include <cmath>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#ifdef LT_USE_ALGORITHM
#include <algorithm>
#include <numeric>
#endif
#ifdef LT_USE_COMPLEX
#include <complex>
#endif
#ifdef LT_USE_CONTAINERS
#include <deque>
#include <list>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>
#endif
#ifdef LT_USE_FUNCTIONAL
#include <functional>
#endif
#ifdef LT_USE_MEMORY
#include <memory>
#endif
#ifdef LT_USE_MUTEX
#include <atomic>
#include <chrono>
#include <mutex>
#endif
#ifdef LT_USE_STREAM
#include <iomanip>
#include <iostream>
#include <sstream>
#endif

#ifdef LT_GPU
#include <cuda_runtime.h>
#endif
#ifdef LT_USE_HALF
#include <cuda_fp16.h>
#endif
#ifdef LT_USE_BFLOAT16
#include <cuda_bf16.h>
#endif

namespace lt {

/* What an ostringstream is to c10::str, without its header. */
struct text {
    std::string s;
    text &operator<<(const char *c) { return s += c, *this; }
    text &operator<<(const std::string &c) { return s += c, *this; }
    text &operator<<(char c) { return s += c, *this; }
    text &operator<<(const void *p) { return print("%p", p); }
    template <class T, std::enable_if_t<std::is_arithmetic<T>::value, int> = 0>
    text &operator<<(T v)
    {
        if constexpr (std::is_floating_point<T>::value)
            return print("%g", double(v));
        else if constexpr (std::is_unsigned<T>::value)
            return print("%llu", static_cast<unsigned long long>(v));
        else
            return print("%lld", static_cast<long long>(v));
    }
    std::string str() const { return s; }

private:
    template <class T>
    text &print(const char *format, T v)
    {
        char b[48];
        snprintf(b, sizeof b, format, v);
        return s += b, *this;
    }
};

/* What our types' operator<< writes to. */
#ifdef LT_USE_STREAM
using ostream = std::ostream;
using string_stream = std::ostringstream;
#else
using ostream = text;
using string_stream = text;
#endif

} // namespace lt

#endif

/* all.h - cuda::std as the host's standard library, for the headers of this folder. */
#ifndef SIMT_CUDA_STD_ALL_H
#define SIMT_CUDA_STD_ALL_H

#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>

#include "cuda/atomic"

namespace cuda {
namespace std {
using namespace ::std;
}
} // namespace cuda

#endif

/* torch/extension.h as candidates include it. */
#pragma once
#include "litetorch/tensor.h"
#include "litetorch/dispatch.h"
#ifdef LT_USE_MODULE
#include "litetorch/module.h"
#endif

namespace torch {
using namespace at;
using at::Tensor;
using Dtype = at::ScalarType;
inline constexpr auto kU8 = at::kByte, kI8 = at::kChar, kI16 = at::kShort, kI32 = at::kInt, kI64 = at::kLong, kF16 =
    at::kHalf,
                      kF32 = at::kFloat, kF64 = at::kDouble;
namespace indexing {}
namespace nn { namespace functional { using namespace at; } }
namespace autograd { // declared to be missed by name (build_lack.h): gradients of programs in C++
struct AutogradContext;
template <class T> struct Function;
using Variable = at::Tensor;
using variable_list = std::vector<at::Tensor>;
}
namespace cuda {
inline bool is_available() { return true; }
inline size_t device_count() { return 1; }
inline void synchronize(int64_t = -1) { cudaDeviceSynchronize(); }
}
}

/* EmptyTensor.h - at::detail::empty_cuda, which at::empty dispatches to in PyTorch. */
#pragma once
#include <torch/extension.h>

namespace at {
namespace detail {
template <class D, class... Rest> inline Tensor empty_cuda(IntArrayRef size, ScalarType type, D device, Rest...)
{
    return at::empty(size, TensorOptions().dtype(type).device(device));
}
} // namespace detail
} // namespace at

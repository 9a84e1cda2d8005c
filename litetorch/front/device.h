/* device.h - inside of litetorch/front: what torch's "cuda" (device.cc) and the operators that the executor carries out
 * (plumbing.cc) share. */
#ifndef LITETORCH_FRONT_DEVICE_H
#define LITETORCH_FRONT_DEVICE_H

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/Allocator.h>
#include <torch/library.h>

#include "front.h"

namespace front {

extern c10::Allocator *const allocator;

inline c10::Device cuda0() { return c10::Device(c10::DeviceType::CUDA, 0); }

/* Throws torch's error for a code of front.h; nothing for 0. */
void check(int code, const char *what);
/* In a forward: notes the operator and throws. Elsewhere it returns: the caller works on the CPU. */
void allow_operators(int how); /* 0: refused, 1: not, 2: after the first few */
bool operators_may_run(); // now: torch's arithmetic on tensors of the device
void refuse(const char *op, const char *why = nullptr);
/* A tensor on the device of this layout over a storage, without dispatch. */
at::Tensor tensor_over(c10::Storage s, at::ScalarType dtype, at::IntArrayRef sizes, at::IntArrayRef strides,
                       int64_t offset);
c10::Storage new_storage(size_t bytes);
/* A storage gets other memory, of so many bytes; what it held is gone. */
void grow(const c10::Storage &s, size_t bytes);
/* Runs the operator's CPU kernel on copies of its device tensors, and takes back what it made or changed. */
void on_cpu(const c10::OperatorHandle &op, torch::jit::Stack *stack);
/* The operator is none of the plumbing: a forward ends here, by its name. Elsewhere the CPU does it on copies. */
void refused(const c10::OperatorHandle &op, torch::jit::Stack *stack);
/* The same on tensors that only pretend: for operators that look at sizes and strides alone. */
void as_view(const c10::OperatorHandle &op, torch::jit::Stack *stack);
/* Registers the operators of plumbing.cc. */
void register_plumbing(torch::Library *aten);

} // namespace front

#endif

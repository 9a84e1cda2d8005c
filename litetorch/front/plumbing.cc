/* plumbing.cc - the operators that the executor carries out for torch's "cuda": allocate, copy, fill, arange, random
 * fills, casts, and the few that read the device: item, equal, allclose, asserts.
 *
 * Casts are exact or between floating types: a cast that drops what it cannot hold (trunc, modulo) is arithmetic, and
 * a conjugate or negative bit is never made real. What a row cannot do is refused by name in a forward, and done by
 * the CPU's kernel before. */
#include <ATen/Context.h>
#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/core/Generator.h>
#include <ATen/EmptyTensor.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "device.h"

extern "C" {
#define _Alignas(N) __attribute__((aligned(N)))
#define _Static_assert static_assert
#include "exec/client.h"
}

namespace front {

namespace {

using at::ScalarType;
using at::Tensor;

// as base/dtype.h
enum { DT_BOOL, DT_U8, DT_I8, DT_I16, DT_I32, DT_I64, DT_F16, DT_BF16, DT_F32, DT_F64, DT_C64, DT_C128,
       DT_F8E4, DT_F8E5 };

int wire_dtype(ScalarType t)
{
    switch (t) {
    case ScalarType::Bool: return DT_BOOL;
    case ScalarType::Byte: return DT_U8;
    case ScalarType::Char: return DT_I8;
    case ScalarType::Short: return DT_I16;
    case ScalarType::Int: return DT_I32;
    case ScalarType::Long: return DT_I64;
    case ScalarType::Half: return DT_F16;
    case ScalarType::BFloat16: return DT_BF16;
    case ScalarType::Float: return DT_F32;
    case ScalarType::Double: return DT_F64;
    case ScalarType::ComplexFloat: return DT_C64;
    case ScalarType::ComplexDouble: return DT_C128;
    case ScalarType::Float8_e4m3fn: return DT_F8E4;
    case ScalarType::Float8_e5m2: return DT_F8E5;
    default: return -1;
    }
}

/* A type of as many bytes, for copies that change nothing. */
int bytes_dtype(size_t n)
{
    return n == 1 ? DT_U8 : n == 2 ? DT_I16 : n == 4 ? DT_I32 : n == 8 ? DT_I64 : n == 16 ? DT_C128 : -1;
}

uint32_t stream()
{
    return uint32_t(reinterpret_cast<uintptr_t>(front_stream()));
}

uint64_t address(const Tensor &t)
{
    return reinterpret_cast<uint64_t>(t.unsafeGetTensorImpl()->data());
}

client_view view_of(const Tensor &t, int dtype)
{
    return {address(t), uint32_t(dtype), uint32_t(t.dim()), t.sizes().data(), t.strides().data()};
}

at::TensorOptions on_host(const Tensor &like)
{
    return at::TensorOptions().dtype(like.dtype()).device(at::kCPU);
}

/* Is the memory that a tensor touches one run without holes or overlaps? */
bool dense(const Tensor &t)
{
    return t.is_non_overlapping_and_dense();
}

bool plain(const Tensor &t)
{
    return !t.is_sparse() && !t.is_conj() && !t.is_neg();
}

/* ---- allocation ---- */

Tensor empty_memory_format(at::IntArrayRef size, std::optional<ScalarType> dtype, std::optional<at::Layout>,
                           std::optional<at::Device> device, std::optional<bool>,
                           std::optional<at::MemoryFormat> format)
{
    auto type = dtype.value_or(at::typeMetaToScalarType(at::get_default_dtype()));

    TORCH_CHECK(!device || device->index() <= 0, "CUDA error: invalid device ordinal");
    return at::detail::empty_generic(size, allocator, c10::DispatchKeySet(c10::DispatchKey::CUDA), type, format);
}

Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride, std::optional<ScalarType> dtype,
                     std::optional<at::Layout>, std::optional<at::Device> device, std::optional<bool>)
{
    auto type = dtype.value_or(at::typeMetaToScalarType(at::get_default_dtype()));

    TORCH_CHECK(!device || device->index() <= 0, "CUDA error: invalid device ordinal");
    return at::detail::empty_strided_generic(size, stride, allocator, c10::DispatchKeySet(c10::DispatchKey::CUDA),
                                             type);
}

const Tensor &resize_(const Tensor &self, at::IntArrayRef size, std::optional<at::MemoryFormat> format)
{
    auto *impl = self.unsafeGetTensorImpl();
    size_t need, had = self.storage().nbytes();

    if (self.sizes() == size && !format)
        return self;
    impl->set_sizes_contiguous(size);
    if (format)
        impl->empty_tensor_restride(*format);
    need = size_t(impl->storage_offset() + impl->numel()) * impl->itemsize();
    if (impl->numel() && need > had) {
        c10::Storage s = new_storage(need);

        if (had)
            check(front_copy(s.mutable_data(), self.storage().data(), had, front_stream()), "resize_");
        c10::StorageImpl *mine = self.storage().unsafeGetStorageImpl();
        mine->set_data_ptr_noswap(s.unsafeGetStorageImpl()->set_data_ptr(c10::DataPtr(nullptr, cuda0())));
        mine->set_nbytes(need);
    }
    return self;
}

/* ---- copies ---- */

bool castable(ScalarType to, ScalarType from)
{
    if (to == from)
        return true;
    if (wire_dtype(to) < 0 || wire_dtype(from) < 0 || to == ScalarType::Bool)
        return false;
    if (from == ScalarType::Bool)
        return true;
    if (at::isFloatingType(from))
        return at::isFloatingType(to) || at::isComplexType(to);
    if (at::isComplexType(from))
        return at::isComplexType(to);
    return true; // from integers: elements that change are counted
}

/* from, with the strides that make it look like sizes. */
Tensor expanded(const Tensor &from, at::IntArrayRef sizes)
{
    auto geometry = at::inferExpandGeometry_dimvector(from.sizes(), from.strides(), sizes);

    return from.sizes() == sizes
               ? from
               : tensor_over(from.storage(), from.scalar_type(), geometry.sizes, geometry.strides,
                             from.storage_offset());
}

void copy_on_device(const Tensor &to, const Tensor &from)
{
    const bool same = to.scalar_type() == from.scalar_type();
    Tensor source = expanded(from, to.sizes());
    int a = same ? bytes_dtype(to.itemsize()) : wire_dtype(to.scalar_type());
    int b = same ? a : wire_dtype(from.scalar_type());

    if (same && dense(to) && dense(source) && to.strides() == source.strides()) {
        check(client_copy(front_client(), address(to), address(source), to.nbytes(), stream()), "copy_");
        return;
    }
    TORCH_CHECK(a >= 0 && b >= 0 && to.dim() <= WIRE_DIMS, "copy_: this type, or so many dimensions, cannot be copied");
    client_view v = view_of(to, a), w = view_of(source, b);
    check(client_strided(front_client(), &v, &w, stream()), "copy_");
}

/* A device tensor of to's elements without holes; to itself where it has none. */
Tensor packed_like(const Tensor &to)
{
    if (dense(to))
        return to;
    return at::detail::empty_generic(to.sizes(), allocator, c10::DispatchKeySet(c10::DispatchKey::CUDA),
                                     to.scalar_type(), {});
}

void copy_up(const Tensor &to, const Tensor &from)
{
    Tensor there = packed_like(to);
    Tensor here = at::empty_strided(there.sizes(), there.strides(), on_host(to));

    here.copy_(from);
    check(front_copy(const_cast<void *>(there.unsafeGetTensorImpl()->data()), here.data_ptr(), to.nbytes(),
                     front_stream()), "copy to the device");
    if (!there.is_same(to))
        copy_on_device(to, there);
}

void copy_down(const Tensor &to, const Tensor &from)
{
    Tensor there = packed_like(from);
    Tensor here = at::empty_strided(there.sizes(), there.strides(), on_host(from));

    if (!there.is_same(from))
        copy_on_device(there, from);
    check(front_copy(here.data_ptr(), there.unsafeGetTensorImpl()->data(), from.nbytes(), front_stream()),
          "copy to the host");
    to.copy_(here);
}

Tensor &copy_(Tensor &self, const Tensor &from, bool)
{
    if (!self.numel() || self.is_same(from))
        return self;
    TORCH_CHECK(at::has_internal_overlap(self) != at::MemOverlap::Yes, "unsupported operation: more than one element "
                                                                       "of "
                "the written-to tensor refers to a single memory location. Please clone() the tensor before performing "
                "the "
                "operation.");
    at::inferExpandGeometry_dimvector(from.sizes(), from.strides(), self.sizes()); // or it throws
    if (!plain(self) || !plain(from)) {
        refuse("aten::copy_", "a conjugate or negative view is not made real");
        TORCH_CHECK(false, "copy_: conjugate and negative views are not supported on this device");
    }
    if (!from.is_cuda()) {
        copy_up(self, from);
    } else if (!self.is_cuda()) {
        copy_down(self, from);
    } else if (castable(self.scalar_type(), from.scalar_type())) {
        copy_on_device(self, from);
    } else {
        refuse("aten::_to_copy", "this cast drops what its type cannot hold, which is arithmetic");
        Tensor host = at::empty(from.sizes(), on_host(from));
        copy_down(host, from);
        copy_up(self, host);
    }
    return self;
}

/* Tensors of one type and kind, next to each other: copies. Others (promotion, host tensors) are refused as before. */
void cat(const c10::OperatorHandle &op, torch::jit::Stack *stack)
{
    auto list = stack->at(stack->size() - 2).toTensorVector();
    int64_t dim = stack->back().toInt(), at = 0;
    std::vector<Tensor> parts;
    bool alike = true;

    for (const Tensor &t : list) {
        if (t.dim() == 1 && !t.numel())
            continue; // torch skips these, whatever the others' shapes
        alike = alike && t.is_cuda() && plain(t) && t.dim() && t.scalar_type() == list[0].scalar_type() &&
                t.dim() == (parts.empty() ? t.dim() : parts[0].dim());
        parts.push_back(t);
    }
    if (!alike || parts.empty())
        return refused(op, stack);
    dim = c10::maybe_wrap_dim(dim, parts[0].dim());
    auto sizes = parts[0].sizes().vec();
    sizes[dim] = 0;
    for (const Tensor &t : parts) {
        for (int64_t d = 0; d < t.dim(); d++)
            TORCH_CHECK(d == dim || t.size(d) == sizes[d], "Sizes of tensors must match except in dimension ", dim);
        sizes[dim] += t.size(dim);
    }
    Tensor out = at::empty(sizes, parts[0].options());
    for (const Tensor &t : parts) {
        Tensor there = out.narrow(dim, at, t.size(dim));
        copy_(there, t, false);
        at += t.size(dim);
    }
    torch::jit::drop(stack, 2);
    stack->push_back(out);
}

/* Dropout outside of training is its input. */
void dropout(const c10::OperatorHandle &op, torch::jit::Stack *stack)
{
    if (stack->back().toBool() && stack->at(stack->size() - 2).toDouble() != 0)
        return refused(op, stack);
    torch::jit::drop(stack, 2);
}

/* ---- fills ---- */

Tensor &fill_scalar(Tensor &self, const at::Scalar &value)
{
    Tensor one = at::empty({}, on_host(self));
    int dtype = bytes_dtype(self.itemsize());
    unsigned char bytes[16] = {0};

    if (!self.numel())
        return self;
    TORCH_CHECK(plain(self) && dtype >= 0 && self.dim() <= WIRE_DIMS, "fill_: this tensor cannot be filled here");
    one.fill_(value);
    memcpy(bytes, one.data_ptr(), self.itemsize());
    if (dense(self)) {
        check(client_memset(front_client(), address(self), bytes, uint32_t(self.itemsize()), uint64_t(self.numel()),
                            stream()), "fill_");
    } else {
        client_view v = view_of(self, dtype);
        check(client_fill(front_client(), &v, bytes, stream()), "fill_");
    }
    return self;
}

Tensor &zero_(Tensor &self)
{
    return fill_scalar(self, 0);
}

Tensor &fill_tensor(Tensor &self, const Tensor &value)
{
    TORCH_CHECK(value.dim() == 0, "fill_ only supports 0-dimension value tensor but got tensor with ", value.dim(),
                " dimensions.");
    return copy_(self, value, false);
}

/* ---- arange, random ---- */

Tensor &arange(const at::Scalar &start, const at::Scalar &end, const at::Scalar &step, Tensor &out)
{
    double a = start.toDouble(), b = end.toDouble(), s = step.toDouble();
    int dtype = wire_dtype(out.scalar_type());

    TORCH_CHECK(s != 0 && std::isfinite(a) && std::isfinite(b), "arange: step must be nonzero and bounds finite");
    TORCH_CHECK((s > 0) == (b >= a) || a == b, "upper bound and lower bound inconsistent with step sign");
    TORCH_CHECK(dtype >= 0, "arange: this type is not supported");
    int64_t n = int64_t(std::ceil((b - a) / s));
    if (out.numel() != n)
        resize_(out, {n}, std::nullopt);
    if (n == 0)
        return out;
    bool whole = start.isIntegral(false) && step.isIntegral(false);
    TORCH_CHECK(out.is_contiguous(), "arange: out must be contiguous");
    check(client_arange(front_client(), address(out), uint64_t(n), uint32_t(dtype), a, s,
                        whole ? start.toLong() : int64_t(a), whole ? step.toLong() : int64_t(s), stream()), "arange");
    return out;
}

/* One sequence a process; torch.manual_seed starts it again. */
void random_fill(Tensor &self, uint32_t kind, double a, double b, int64_t lo, int64_t hi)
{
    static uint64_t seed, offset;
    uint64_t now = at::detail::getDefaultCPUGenerator().current_seed();
    int dtype = wire_dtype(self.scalar_type());
    wire_random r = {};

    if (!self.numel())
        return;
    TORCH_CHECK(dtype >= 0 && plain(self), "a random fill of this type is not supported");
    if (now != seed)
        seed = now, offset = 0;
    Tensor there = packed_like(self);
    r.addr = address(there), r.count = uint64_t(self.numel()), r.seed = seed, r.offset = offset;
    r.a = a, r.b = b, r.lo = lo, r.hi = hi, r.dtype = uint32_t(dtype), r.kind = kind, r.stream = stream();
    offset += uint64_t(self.numel());
    check(client_random(front_client(), &r), "random fill");
    if (!there.is_same(self))
        copy_on_device(self, there);
}

Tensor &uniform_(Tensor &self, double from, double to, std::optional<at::Generator>)
{
    random_fill(self, WIRE_UNIFORM, from, to, 0, 0);
    return self;
}

Tensor &normal_(Tensor &self, double mean, double deviation, std::optional<at::Generator>)
{
    TORCH_CHECK(deviation >= 0, "normal expects std >= 0.0, but found std ", deviation);
    random_fill(self, WIRE_NORMAL, mean, deviation, 0, 0);
    return self;
}

/* As many values as the type holds exactly. */
int64_t random_end(ScalarType t)
{
    switch (t) {
    case ScalarType::Bool: return 2;
    case ScalarType::Byte: return 256;
    case ScalarType::Char: return 128;
    case ScalarType::Short: return 1 << 15;
    case ScalarType::Int: return int64_t(1) << 31;
    case ScalarType::Half: return (1 << 11) + 1;
    case ScalarType::BFloat16: return (1 << 8) + 1;
    case ScalarType::Float: return (1 << 24) + 1;
    case ScalarType::Double: return (int64_t(1) << 53) + 1;
    default: return INT64_MAX;
    }
}

Tensor &random_from(Tensor &self, int64_t from, std::optional<int64_t> to, std::optional<at::Generator>)
{
    random_fill(self, WIRE_INTEGERS, 0, 0, from, to ? *to : random_end(self.scalar_type()));
    return self;
}

Tensor &random_to(Tensor &self, int64_t to, std::optional<at::Generator> g)
{
    return random_from(self, 0, to, g);
}

Tensor &random_all(Tensor &self, std::optional<at::Generator> g)
{
    return random_from(self, 0, std::nullopt, g);
}

/* ---- reads ---- */

at::Scalar item(const Tensor &self)
{
    Tensor host = at::empty({}, on_host(self));

    TORCH_CHECK(self.numel() == 1, "a Tensor with ", self.numel(), " elements cannot be converted to Scalar");
    copy_down(host.view(self.sizes()), self);
    return host.item();
}

/* A whole number on the device that the host counts up, as a batch norm counts its batches: read, and filled anew. */
void count_up(const c10::OperatorHandle &op, torch::jit::Stack *stack)
{
    Tensor self = stack->at(stack->size() - 3).toTensor(), by = stack->at(stack->size() - 2).toTensor();

    if (!self.is_cuda() || self.dim() || by.is_cuda() || by.dim() || !at::isIntegralType(self.scalar_type(), false) ||
        !at::isIntegralType(by.scalar_type(), false))
        return refused(op, stack);
    fill_scalar(self, item(self).toLong() + by.item<int64_t>() * stack->back().toScalar().toLong());
    torch::jit::drop(stack, 3);
    stack->push_back(self);
}

bool close_to(const Tensor &a, const Tensor &b, double rtol, double atol, bool equal_nan)
{
    int da = wire_dtype(a.scalar_type()), db = wire_dtype(b.scalar_type()), equal = 0;
    Tensor other = expanded(b, a.sizes());

    TORCH_CHECK(da >= 0 && db >= 0 && a.dim() <= WIRE_DIMS && plain(a) && plain(b),
                "these tensors cannot be compared here");
    client_view v = view_of(a, da), w = view_of(other, db);
    check(client_close_to(front_client(), &v, &w, rtol, atol, equal_nan, &equal), "comparison");
    return equal;
}

bool equal(const Tensor &a, const Tensor &b)
{
    TORCH_CHECK(a.is_cuda() && b.is_cuda(), "Cannot compare two tensors on different devices.");
    if (a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type())
        return false;
    return !a.numel() || close_to(a, b, 0, 0, false);
}

bool allclose(const Tensor &a, const Tensor &b, double rtol, double atol, bool equal_nan)
{
    TORCH_CHECK(a.scalar_type() == b.scalar_type() && a.is_cuda() && b.is_cuda(),
                "allclose: tensors of one type and device");
    return !a.numel() || close_to(a, b, rtol, atol, equal_nan);
}

void assert_async(const Tensor &self)
{
    TORCH_CHECK(item(self).toDouble() != 0, "Assertion is failed");
}

void assert_async_msg(const Tensor &self, std::string_view message)
{
    TORCH_CHECK(item(self).toDouble() != 0, message);
}

void record_stream(Tensor &, at::Stream) {}

/* Padding by what is there: slices of the input, side by side. Axes from the last one on. */
Tensor padded(Tensor t, at::IntArrayRef pad, bool reflects)
{
    for (size_t k = 0; k < pad.size() / 2; k++) {
        int64_t d = t.dim() - 1 - int64_t(k), n = t.size(d), low = pad[2 * k], high = pad[2 * k + 1];
        std::vector<Tensor> parts;

        TORCH_CHECK(low >= 0 && high >= 0 && (!reflects || std::max(low, high) < n),
                    "Padding size should be less than the corresponding input dimension");
        for (int64_t i = low; i > 0; i--)
            parts.push_back(t.narrow(d, reflects ? i : 0, 1));
        parts.push_back(t);
        for (int64_t i = 1; i <= high; i++)
            parts.push_back(t.narrow(d, reflects ? n - 1 - i : n - 1, 1));
        t = parts.size() > 1 ? at::cat(parts, d) : t;
    }
    return t.is_contiguous() ? t : t.contiguous();
}

Tensor reflection_pad(const Tensor &t, at::IntArrayRef pad)
{
    return padded(t, pad, true);
}

Tensor replication_pad(const Tensor &t, at::IntArrayRef pad)
{
    return padded(t, pad, false);
}

} // namespace

void register_plumbing(torch::Library *m)
{
    m->impl("empty.memory_format", TORCH_FN(empty_memory_format));
    m->impl("empty_strided", TORCH_FN(empty_strided));
    m->impl("resize_", TORCH_FN(resize_));
    m->impl("copy_", TORCH_FN(copy_));
    m->impl("fill_.Scalar", TORCH_FN(fill_scalar));
    m->impl("fill_.Tensor", TORCH_FN(fill_tensor));
    m->impl("zero_", TORCH_FN(zero_));
    m->impl("arange.start_out", TORCH_FN(arange));
    m->impl("uniform_", TORCH_FN(uniform_));
    m->impl("normal_", TORCH_FN(normal_));
    m->impl("random_", TORCH_FN(random_all));
    m->impl("random_.to", TORCH_FN(random_to));
    m->impl("random_.from", TORCH_FN(random_from));
    m->impl("_local_scalar_dense", TORCH_FN(item));
    m->impl("equal", TORCH_FN(equal));
    m->impl("allclose", TORCH_FN(allclose));
    m->impl("_assert_async", TORCH_FN(assert_async));
    m->impl("_assert_async.msg", TORCH_FN(assert_async_msg));
    m->impl("record_stream", TORCH_FN(record_stream));
    for (const char *name : {"reflection_pad1d", "reflection_pad2d", "reflection_pad3d"})
        m->impl(name, TORCH_FN(reflection_pad));
    for (const char *name : {"replication_pad1d", "replication_pad2d", "replication_pad3d"})
        m->impl(name, TORCH_FN(replication_pad));
    m->impl("cat", torch::CppFunction::makeFromBoxedFunction<&cat>());
    m->impl("add_.Tensor", torch::CppFunction::makeFromBoxedFunction<&count_up>());
    for (const char *name : {"dropout", "alpha_dropout", "feature_dropout"})
        m->impl(name, torch::CppFunction::makeFromBoxedFunction<&dropout>());
}

} // namespace front

/* api.cc - the table of abi.h over ATen: what a candidate's .so may do with tensors. Handles are TensorImpl pointers.
 * Operators go through torch's dispatcher by name, so the device refuses them like the Python side's (device.cc). The
 * functions at the end are runner/front's and runner/native's. */
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <mutex>
#include <string>
#include <unordered_map>

#include "../include/litetorch/abi.h"
#include "device.h"
#include "front.h"
#include "json.h"

namespace {

thread_local std::string last_error;

using Impl = c10::intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;

at::Tensor borrow(void *h)
{
    return h ? at::Tensor(Impl::reclaim_copy(static_cast<c10::TensorImpl *>(h))) : at::Tensor();
}

void *handle(at::Tensor t)
{
    return t.defined() ? t.unsafeReleaseTensorImpl() : nullptr;
}

void retain(void *h)
{
    Impl::reclaim_copy(static_cast<c10::TensorImpl *>(h)).release();
}

void release(void *h)
{
    Impl::reclaim(static_cast<c10::TensorImpl *>(h));
}

template <class F>
int guarded(F f)
{
    try {
        return f();
    } catch (const c10::Error &e) {
        last_error = e.what_without_backtrace();
    } catch (const std::exception &e) {
        last_error = e.what();
    }
    return -1;
}

int info(void *h, struct lt_info *r)
{
    auto *t = static_cast<c10::TensorImpl *>(h);

    return guarded([&] {
        r->data = t->numel() ? const_cast<void *>(t->data()) : nullptr;
        r->numel = t->numel();
        r->offset = t->storage_offset();
        r->sizes = t->sizes().data();
        r->strides = t->strides().data();
        r->dim = int32_t(t->dim());
        r->dtype = int32_t(c10::typeMetaToScalarType(t->dtype()));
        r->cuda = t->device().is_cuda();
        r->index = r->cuda ? t->device().index() : 0;
        r->itemsize = int32_t(t->itemsize());
        r->contiguous = t->is_contiguous();
        r->contiguous_nhwc = t->is_contiguous(at::MemoryFormat::ChannelsLast);
        r->requires_grad = t->requires_grad();
        return 0;
    });
}

bool type_is(const c10::TypePtr &t, c10::TypeKind k)
{
    if (t->kind() == c10::TypeKind::OptionalType)
        return type_is(t->castRaw<c10::OptionalType>()->getElementType(), k);
    return t->kind() == k;
}

std::vector<int64_t> ints(const lt_value &v)
{
    std::vector<int64_t> r;
    for (int64_t i = 0; i < v.n; i++)
        r.push_back(static_cast<const lt_value *>(v.u.p)[i].u.i);
    return r;
}

/* One argument as its schema wants it. */
c10::IValue lower(const lt_value &v, const c10::Argument &a)
{
    switch (v.tag) {
    case LT_NONE:
        return c10::IValue();
    case LT_BOOL:
        return type_is(a.type(), c10::TypeKind::NumberType) ? c10::IValue(at::Scalar(v.u.i != 0))
               : c10::IValue(v.u.i != 0);
    case LT_INT:
        // enums of abi.h travel as integers; a device is 1 for cuda
        if (type_is(a.real_type(), c10::TypeKind::DeviceObjType))
            return v.u.i ? c10::Device(c10::kCUDA, 0) : c10::Device(c10::kCPU);
        if (type_is(a.type(), c10::TypeKind::FloatType))
            return double(v.u.i);
        if (type_is(a.type(), c10::TypeKind::BoolType))
            return v.u.i != 0;
        return v.u.i;
    case LT_DOUBLE:
        return v.u.d;
    case LT_TENSOR:
        return borrow(v.u.p);
    case LT_STRING:
        return std::string(static_cast<const char *>(v.u.p), size_t(v.n));
    case LT_LIST:
    case LT_TUPLE:
        if (v.n && static_cast<const lt_value *>(v.u.p)->tag == LT_TENSOR) {
            c10::List<at::Tensor> l;
            for (int64_t i = 0; i < v.n; i++)
                l.push_back(borrow(static_cast<const lt_value *>(v.u.p)[i].u.p));
            return l;
        }
        return ints(v);
    }
    return c10::IValue();
}

lt_value raise(const c10::IValue &v)
{
    lt_value r = {LT_NONE, 0, {0}, 0};

    if (v.isTensor())
        r.tag = LT_TENSOR, r.u.p = handle(v.toTensor());
    else if (v.isBool())
        r.tag = LT_BOOL, r.u.i = v.toBool();
    else if (v.isInt())
        r.tag = LT_INT, r.u.i = v.toInt();
    else if (v.isDouble())
        r.tag = LT_DOUBLE, r.u.d = v.toDouble();
    else
        TORCH_CHECK(false, "litetorch: a result of kind ", v.tagKind(), " is not supported");
    return r;
}

/* item() and equal() are not plain schema calls everywhere; the dispatcher has them under these names. */
int op(const char *name, const char *overload, const lt_value *args, int n, lt_value *rets, int max)
{
    return guarded([&] {
        auto o = c10::Dispatcher::singleton().findSchema({std::string("aten::") + name, overload});
        TORCH_CHECK(o, "litetorch: no operator aten::", name, ".", overload);
        const auto &schema = o->schema();
        torch::jit::Stack stack;
        TORCH_CHECK(size_t(n) <= schema.arguments().size(), "litetorch: too many arguments for ", schema.name());
        for (size_t i = 0; i < schema.arguments().size(); i++) {
            const auto &a = schema.arguments()[i];
            if (i < size_t(n) && args[i].tag != LT_ABSENT)
                stack.push_back(lower(args[i], a));
            else
                stack.push_back(a.default_value() ? *a.default_value() : c10::IValue());
        }
        o->callBoxed(&stack);
        int got = int(std::min(stack.size(), size_t(max)));
        for (int i = 0; i < got; i++)
            rets[i] = raise(stack[size_t(i)]);
        return got;
    });
}

/* May an argument be given for this one of a schema? Whole numbers stand for what an enum of abi.h is. */
bool fits(const lt_value &v, const c10::Argument &a)
{
    auto is = [&](c10::TypeKind k) { return type_is(a.type(), k); };
    const auto *items = static_cast<const lt_value *>(v.u.p);

    switch (v.tag) {
    case LT_NONE: return a.type()->kind() == c10::TypeKind::OptionalType;
    case LT_ABSENT: return a.default_value().has_value();
    case LT_BOOL: return is(c10::TypeKind::BoolType) || is(c10::TypeKind::NumberType);
    case LT_INT: return is(c10::TypeKind::IntType) || is(c10::TypeKind::NumberType) || is(c10::TypeKind::FloatType) ||
                        is(c10::TypeKind::SymIntType) || a.N().has_value();
    case LT_DOUBLE: return is(c10::TypeKind::FloatType) || is(c10::TypeKind::NumberType);
    case LT_TENSOR: return is(c10::TypeKind::TensorType);
    case LT_STRING: return is(c10::TypeKind::StringType);
    case LT_LIST: return is(c10::TypeKind::ListType) && a.type()->annotation_str().find(
                         v.n && items->tag == LT_TENSOR ? "Tensor" : "int") != std::string::npos;
    default: return false;
    }
}

bool takes(const c10::FunctionSchema &schema, const lt_value *args, int n)
{
    const auto &want = schema.arguments();

    if (size_t(n) > want.size())
        return false;
    for (size_t i = 0; i < want.size(); i++)
        if (i < size_t(n) ? want[i].kwarg_only() || !fits(args[i], want[i]) : !want[i].default_value())
            return false;
    return true;
}

/* One number where a schema wants a list of them. */
lt_value spread(const lt_value &v, const c10::Argument &a)
{
    bool one = v.tag == LT_INT && a.N().has_value();

    return one ? lt_value{LT_LIST, 0, {.p = const_cast<lt_value *>(&v)}, 1} : v;
}

/* Overloads in the order of their names, those of tensors before those of numbers: a tensor is never a number here. */
const std::vector<c10::OperatorName> &overloads(const std::string &name)
{
    static std::mutex guard;
    static std::unordered_map<std::string, std::vector<c10::OperatorName>> all;
    std::lock_guard<std::mutex> hold(guard);

    if (all.empty())
        for (const auto &o : c10::Dispatcher::singleton().getAllOpNames())
            all[o.name].push_back(o);
    auto &found = all[name];
    std::sort(found.begin(), found.end(), [](const auto &a, const auto &b) {
        return a.overload_name < b.overload_name;
    });
    return found;
}

int operate(const char *name, const lt_value *args, int n, lt_value *rets, int max)
{
    if (!front::operators_may_run())
        return -2;
    return guarded([&] {
        for (const auto &o : overloads(std::string("aten::") + name)) {
            auto found = c10::Dispatcher::singleton().findSchema(o);
            if (!found || !takes(found->schema(), args, n))
                continue;
            std::vector<lt_value> given;
            for (int i = 0; i < n; i++)
                given.push_back(spread(args[i], found->schema().arguments()[size_t(i)]));
            return op(name, o.overload_name.c_str(), given.data(), n, rets, max);
        }
        front_note("lacking", name, "no overload of it takes these arguments here");
        TORCH_CHECK_NOT_IMPLEMENTED(false, "litetorch: no overload of aten::", name, " takes these arguments");
        return -1;
    });
}

void *from_blob(void *data, const int64_t *sizes, const int64_t *strides, int dim, int dtype, int cuda,
                void (*deleter)(void *, void *), void *arg)
{
    void *result = nullptr;

    guarded([&] {
        std::vector<int64_t> size(sizes, sizes + dim), stride(size_t(dim), 1);
        size_t bytes = size_t(c10::elementSize(at::ScalarType(dtype)));
        for (int i = dim - 1; i >= 0; i--)
            stride[size_t(i)] = strides ? strides[i] : i == dim - 1 ? 1 : stride[size_t(i) + 1] * size[size_t(i) + 1];
        size_t last = 1;
        for (int i = 0; i < dim; i++)
            last = size[size_t(i)] ? last + size_t((size[size_t(i)] - 1) * stride[size_t(i)]) : 0;
        TORCH_CHECK(!cuda || front_has(data), "The specified pointer resides on host memory and is not "
                                                     "registered with any CUDA device.");
        struct Owner {
            void (*f)(void *, void *);
            void *arg, *data;
        };
        auto *owner = new Owner{deleter, arg, data};
        c10::DataPtr p(data, owner, [](void *o) {
            auto *w = static_cast<Owner *>(o);
            if (w->f)
                w->f(w->arg, w->data);
            delete w;
        }, cuda ? c10::Device(c10::kCUDA, 0) : c10::Device(c10::kCPU));
        c10::Storage s(c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), last * bytes,
                                                             std::move(p), nullptr, false));
        auto t = at::detail::make_tensor<c10::TensorImpl>(
            std::move(s), c10::DispatchKeySet(cuda ? c10::DispatchKey::CUDA : c10::DispatchKey::CPU),
            c10::scalarTypeToTypeMeta(at::ScalarType(dtype)));
        t.unsafeGetTensorImpl()->set_sizes_and_strides(size, stride);
        result = handle(t);
        return 0;
    });
    return result;
}

const char *error()
{
    return last_error.c_str();
}

/* ---- findings of our own: library calls ---- */

struct Finding {
    std::string kind, message, name, file;
    int line;
    long count;
};
std::mutex lock;
std::vector<Finding> findings;

void add(const Finding &f)
{
    std::lock_guard<std::mutex> hold(lock);

    for (auto &g : findings)
        if (g.kind == f.kind && g.file == f.file && g.line == f.line && g.name == f.name) {
            g.count++;
            return;
        }
    if (findings.size() < 64)
        findings.push_back(f);
}

void finding(const char *kind, const char *name, const char *file, int line)
{
    add({kind, std::string(name) + " was called", name, file ? file : "", line, 1});
}

const lt_api table = {LT_ABI, retain, release, info, op, from_blob, error, finding, operate, front_stream};

} // namespace

extern "C" {

/* For lt_module_open of a candidate's .so. */
const struct lt_api *lt_process_api(void)
{
    return &table;
}

/* JSON list of {"kind","message","name","file","line","count"}, then forgets them. Freed with lt_free. */
char *lt_findings(void)
{
    std::lock_guard<std::mutex> hold(lock);
    std::string out = "[";

    for (auto &f : findings)
        out += (out.size() > 1 ? ",{" : "{") + std::string("\"kind\":") + json_quoted(f.kind) + ",\"message\":" +
               json_quoted(f.message) + ",\"name\":" + json_quoted(f.name) + ",\"file\":" +
               (f.file.empty() ? "null" : json_quoted(f.file)) + ",\"line\":" + (f.line > 0 ? std::to_string(f.line)
                                                                                 : "null") +
               ",\"count\":" + std::to_string(f.count) + "}";
    findings.clear();
    return strdup((out + "]").c_str());
}

/* Calls f(self, args, ret, message, max), a lt_function.invoke. A crash of host code ends the process, which says
 * where. */
int lt_invoke(void *f, void *self, const void *args, void *ret, char *message, size_t max)
{
    message[0] = 0;
    return reinterpret_cast<int (*)(void *, const void *, void *, char *, size_t)>(f)(self, args, ret, message, max);
}

/* Of the PyTorch whose headers this was built against. */
const char *lt_torch_version(void)
{
    return LT_TORCH_VERSION;
}

void lt_free(char *p)
{
    free(p);
}

} // extern "C"

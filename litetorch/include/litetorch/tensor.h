/* tensor.h - at::Tensor over the C table of abi.h: handles, factories, views and copies.
 *
 * Data plumbing (allocation, views, copies, casts) is carried out by the loading process. Arithmetic on whole tensors
 * is not: those names exist, so that a candidate that uses them compiles, and a call is reported to the judge with
 * its line ("library_call") and throws. */
#ifndef LITETORCH_TENSOR_H
#define LITETORCH_TENSOR_H

#include "litetorch/types.h"

namespace lt {

extern const struct lt_api *api; // set by lt_module_open before any function of the candidate runs

[[noreturn]] void fail(); // throws what api->error() says

/* One argument of an operator call; keeps what it points to. */
struct arg {
    struct lt_value v = {LT_NONE, 0, {0}, 0};
    std::vector<struct lt_value> list;
    arg() = default;
    arg(std::nullopt_t) {}
    template <class T, std::enable_if_t<std::is_integral<T>::value && !std::is_same<T, bool>::value, int> = 0>
    arg(T i) { v.tag = LT_INT, v.u.i = int64_t(i); }
    arg(bool b) { v.tag = LT_BOOL, v.u.i = b; }
    arg(double d) { v.tag = LT_DOUBLE, v.u.d = d; }
    arg(const c10::Scalar &s)
    {
        v.tag = s.tag;
        if (s.tag == LT_DOUBLE)
            v.u.d = s.d;
        else
            v.u.i = s.i;
    }
    arg(c10::ScalarType t) { v.tag = LT_INT, v.u.i = int64_t(t); }
    arg(c10::MemoryFormat t) { v.tag = LT_INT, v.u.i = int64_t(t); }
    arg(c10::Device d) { v.tag = LT_INT, v.u.i = d.is_cuda(); }
    arg(c10::IntArrayRef a);
    template <class T>
    arg(const std::optional<T> &o)
    {
        if (o)
            *this = arg(*o);
    }
    static arg tensor(void *t)
    {
        arg a;
        a.v.tag = LT_TENSOR, a.v.u.p = t;
        return a;
    }
};

/* Calls aten::name.overload; returns the number of results. */
int call(const char *name, const char *overload, std::initializer_list<arg> args, struct lt_value *rets, int max);

} // namespace lt

namespace at {

class Tensor;
namespace indexing { struct Slice; struct TensorIndex; }

template <class T>
struct DefaultPtrTraits { using PtrType = T *; };
template <class T>
struct RestrictPtrTraits { using PtrType = T *__restrict__; };

/* Accessors: plain structs of pointer, sizes and strides that can be passed to kernels by value. */
template <class T, size_t N, template <class U> class P = DefaultPtrTraits, class I = int64_t>
class TensorAccessor {
public:
    C10_HOST_DEVICE TensorAccessor(T *d, const I *s, const I *t) : data_(d), sizes_(s), strides_(t) {}
    C10_HOST_DEVICE TensorAccessor<T, N - 1, P, I> operator[](I i) const
    {
        return TensorAccessor<T, N - 1, P, I>(data_ + strides_[0] * i, sizes_ + 1, strides_ + 1);
    }
    C10_HOST_DEVICE I size(int64_t i) const { return sizes_[i]; }
    C10_HOST_DEVICE I stride(int64_t i) const { return strides_[i]; }
    C10_HOST_DEVICE T *data() const { return data_; }
    T *data_;
    const I *sizes_, *strides_;
};
template <class T, template <class U> class P, class I>
class TensorAccessor<T, 1, P, I> {
public:
    C10_HOST_DEVICE TensorAccessor(T *d, const I *s, const I *t) : data_(d), sizes_(s), strides_(t) {}
    C10_HOST_DEVICE T &operator[](I i) const { return data_[strides_[0] * i]; }
    C10_HOST_DEVICE I size(int64_t i) const { return sizes_[i]; }
    C10_HOST_DEVICE I stride(int64_t i) const { return strides_[i]; }
    C10_HOST_DEVICE T *data() const { return data_; }
    T *data_;
    const I *sizes_, *strides_;
};
template <class T, size_t N, template <class U> class P = DefaultPtrTraits, class I = int64_t>
class GenericPackedTensorAccessor {
public:
    C10_HOST_DEVICE GenericPackedTensorAccessor(T *d, const int64_t *s, const int64_t *t) : data_(d)
    {
        for (size_t i = 0; i < N; i++)
            sizes_[i] = I(s[i]), strides_[i] = I(t[i]);
    }
    C10_HOST_DEVICE decltype(auto) operator[](I i) const { return TensorAccessor<T, N, P,
                                                           I>(data_, sizes_, strides_)[i]; }
    C10_HOST_DEVICE I size(int i) const { return sizes_[i]; }
    C10_HOST_DEVICE I stride(int i) const { return strides_[i]; }
    C10_HOST_DEVICE T *data() const { return data_; }

private:
    T *data_;
    I sizes_[N], strides_[N];
};
template <class T, size_t N, template <class U> class P = DefaultPtrTraits>
using PackedTensorAccessor32 = GenericPackedTensorAccessor<T, N, P, int32_t>;
template <class T, size_t N, template <class U> class P = DefaultPtrTraits>
using PackedTensorAccessor64 = GenericPackedTensorAccessor<T, N, P, int64_t>;
template <class T, size_t N, template <class U> class P = DefaultPtrTraits, class I = int64_t>
using PackedTensorAccessor = GenericPackedTensorAccessor<T, N, P, I>;

} // namespace at

namespace at {
class Tensor;
}

namespace lt {

/* Stands for any argument of torch's arithmetic, which may be refused, and remembers the caller's line. */
struct nothing {};
struct any {
    int line;
    const char *file;
    arg value;
    any(nothing = {}, int l = __builtin_LINE(), const char *f = __builtin_FILE()) : line(l), file(f)
    {
        value.v.tag = LT_ABSENT;
    }
    template <class T, std::enable_if_t<!std::is_same<std::decay_t<T>, any>::value &&
                                        !std::is_same<std::decay_t<T>, nothing>::value, int> = 0>
    any(T &&t, int l = __builtin_LINE(), const char *f = __builtin_FILE()) : line(l), file(f) { take(t); }
    template <class T>
    any(std::initializer_list<T> t, int l = __builtin_LINE(), const char *f = __builtin_FILE()) : line(l), file(f)
    {
        take_all(t);
    }

private:
    template <class T> void take(const T &t);
    template <class L> void take_all(const L &list);
};
/* The same for a number on the left of an operator. */
struct number {
    int line;
    const char *file;
    any value;
    template <class T, std::enable_if_t<std::is_arithmetic<T>::value || std::is_same<T, c10::Scalar>::value, int> = 0>
    number(T t, int l = __builtin_LINE(), const char *f = __builtin_FILE()) : line(l), file(f), value(t) {}
};
struct here {
    int line;
    const char *file;
    here(int l = __builtin_LINE(), const char *f = __builtin_FILE()) : line(l), file(f) {}
};

/* A default argument of torch's: of a temporary, each unit would compile five constructors of std::optional. */
extern const std::optional<c10::MemoryFormat> no_format;

[[noreturn]] void refuse(const char *name, here h);
/* Torch's arithmetic, by the name of its schema: refused by 'said' where it may not be done here. Fills n results. */
void operate(const char *name, const char *said, here h, std::initializer_list<any> args, at::Tensor *rets, int n);
at::Tensor operate(const char *name, const char *said, here h, std::initializer_list<any> args);
std::tuple<at::Tensor, at::Tensor> operate_two(const char *name, const char *said, here h,
                                               std::initializer_list<any> args);

} // namespace lt

namespace at {

class Tensor {
public:
    Tensor() = default;
    Tensor(const Tensor &o) : h(o.h) { hold(); }
    Tensor(Tensor &&o) noexcept : h(o.h) { o.h = nullptr; }
    Tensor &operator=(const Tensor &o)
    {
        Tensor t(o);
        std::swap(h, t.h);
        return *this;
    }
    Tensor &operator=(Tensor &&o) noexcept
    {
        std::swap(h, o.h);
        return *this;
    }
    Tensor &operator=(const Scalar &v) && { return fill_(v); } // x[i] = 1
    ~Tensor() { drop(); }
    static Tensor own(void *handle) { Tensor t; t.h = handle; return t; }
    static Tensor borrow(void *handle) { Tensor t; t.h = handle; t.hold(); return t; }
    void *handle() const { return h; }
    void *detach_handle() { void *r = h; h = nullptr; return r; }

    /* shape */
    bool defined() const { return h != nullptr; }
    void reset() { drop(); h = nullptr; }
    int64_t dim() const;
    int64_t ndimension() const { return dim(); }
    int64_t numel() const;
    IntArrayRef sizes() const;
    IntArrayRef strides() const;
    IntArrayRef sym_sizes() const { return sizes(); }
    int64_t size(int64_t d) const;
    int64_t sym_size(int64_t d) const { return size(d); }
    int64_t stride(int64_t d) const;
    int64_t storage_offset() const;
    int64_t sym_numel() const { return numel(); }
    ScalarType scalar_type() const;
    TypeMeta dtype() const { return TypeMeta(scalar_type()); }
    size_t element_size() const;
    size_t itemsize() const { return element_size(); }
    size_t nbytes() const;
    Device device() const;
    int64_t get_device() const;
    Layout layout() const { return kStrided; }
    bool is_cuda() const;
    std::string toString() const
    {
        return std::string(is_cuda() ? "CUDA" : "CPU") + c10::toString(scalar_type()) + "Type";
    }
    bool is_cpu() const;
    bool is_sparse() const { return false; }
    bool is_privateuseone() const { return false; }
    bool is_meta() const { return false; }
    bool is_contiguous() const;
    bool is_contiguous(MemoryFormat f) const;
    bool is_non_overlapping_and_dense() const { return is_contiguous(); }
    MemoryFormat suggest_memory_format() const;
    bool is_floating_point() const { return isFloatingType(scalar_type()); }
    bool is_complex() const { return isComplexType(scalar_type()); }
    bool is_same(const Tensor &o) const { return h == o.h; }
    bool requires_grad() const;
    const Tensor &set_requires_grad(bool) const { return *this; }
    struct DeprecatedTypeProperties {
        ScalarType type;
        bool cuda;
        bool is_cuda() const { return cuda; }
        bool is_sparse() const { return false; }
        ScalarType scalarType() const { return type; }
        std::string toString() const { return str(cuda ? "CUDA" : "CPU", c10::toString(type), "Type"); }
        friend bool operator==(const DeprecatedTypeProperties &a, const DeprecatedTypeProperties &b)
        {
            return a.type == b.type && a.cuda == b.cuda;
        }
        friend bool operator!=(const DeprecatedTypeProperties &a,
                               const DeprecatedTypeProperties &b) { return !(a == b); }
    };
    DeprecatedTypeProperties type() const { return {scalar_type(), is_cuda()}; }
    TensorOptions options() const;

    /* data: device addresses; the host may only hand them to kernels and copies */
    void *data_ptr() const { return info().data; }
    const void *const_data_ptr() const;
    void *mutable_data_ptr() const;
    template <class T>
    T *data_ptr() const
    {
        return static_cast<T *>(data_of(CppTypeToScalarType<std::remove_const_t<T>>::value));
    }
    template <class T> const T *const_data_ptr() const { return data_ptr<T>(); }
    template <class T> T *mutable_data_ptr() const { return data_ptr<T>(); }
    template <class T> T *data() const { return data_ptr<T>(); }
    template <class T, size_t N>
    TensorAccessor<T, N> accessor() const
    {
        need_dim(N, "TensorAccessor");
        return TensorAccessor<T, N>(data_ptr<T>(), sizes().data(), strides().data());
    }
    template <class T, size_t N, template <class U> class P = DefaultPtrTraits>
    PackedTensorAccessor32<T, N, P> packed_accessor32() const
    {
        need_dim(N, "PackedTensorAccessor32");
        return PackedTensorAccessor32<T, N, P>(data_ptr<T>(), sizes().data(), strides().data());
    }
    template <class T, size_t N, template <class U> class P = DefaultPtrTraits>
    PackedTensorAccessor64<T, N, P> packed_accessor64() const
    {
        need_dim(N, "PackedTensorAccessor64");
        return PackedTensorAccessor64<T, N, P>(data_ptr<T>(), sizes().data(), strides().data());
    }
    template <class T, size_t N, template <class U> class P = DefaultPtrTraits, class I = int64_t>
    GenericPackedTensorAccessor<T, N, P, I> packed_accessor() const
    {
        need_dim(N, "PackedTensorAccessor");
        return GenericPackedTensorAccessor<T, N, P, I>(data_ptr<T>(), sizes().data(), strides().data());
    }
    template <class T, size_t N, template <class U> class P = DefaultPtrTraits, class I = int64_t>
    GenericPackedTensorAccessor<T, N, P, I> generic_packed_accessor() const
    {
        return packed_accessor<T, N, P, I>();
    }
    template <class T> T item() const { return scalar().to<T>(); }
    Scalar item() const { return scalar(); }

    /* views and copies */
    Tensor contiguous(MemoryFormat f = MemoryFormat::Contiguous) const;
    Tensor clone(std::optional<MemoryFormat> f = lt::no_format) const;
    Tensor detach() const;
    Tensor alias() const;
    Tensor view(IntArrayRef s) const;
    Tensor view(ScalarType t) const;
    Tensor view_as(const Tensor &o) const { return view(o.sizes()); }
    Tensor reshape(IntArrayRef s) const;
    Tensor reshape_as(const Tensor &o) const { return reshape(o.sizes()); }
    Tensor flatten(int64_t a = 0, int64_t b = -1) const;
    Tensor transpose(int64_t a, int64_t b) const;
    Tensor swapaxes(int64_t a, int64_t b) const { return transpose(a, b); }
    Tensor t() const;
    Tensor permute(IntArrayRef d) const;
    Tensor movedim(int64_t a, int64_t b) const;
    Tensor squeeze() const;
    Tensor squeeze(int64_t d) const;
    Tensor unsqueeze(int64_t d) const;
    Tensor select(int64_t d, int64_t i) const;
    Tensor operator[](int64_t i) const { return select(0, i); }
    Tensor narrow(int64_t d, int64_t s, int64_t n) const;
    Tensor slice(int64_t d = 0, std::optional<int64_t> a = {}, std::optional<int64_t> b = {}, int64_t step = 1) const;
    Tensor expand(IntArrayRef s, bool implicit = false) const;
    Tensor expand_as(const Tensor &o) const { return expand(o.sizes()); }
    Tensor broadcast_to(IntArrayRef s) const;
    Tensor as_strided(IntArrayRef s, IntArrayRef t, std::optional<int64_t> o = {}) const;
    Tensor unfold(int64_t d, int64_t n, int64_t s) const;
    std::vector<Tensor> unbind(int64_t d = 0) const;
    std::vector<Tensor> split(int64_t n, int64_t d = 0) const;
    std::vector<Tensor> chunk(int64_t n, int64_t d = 0) const { return split((size(d) + n - 1) / n, d); }
    Tensor to(const TensorOptions &o, bool nb = false, bool copy = false,
              std::optional<MemoryFormat> f = lt::no_format) const;
    Tensor to(ScalarType t, bool nb = false, bool copy = false) const { return to(TensorOptions(t), nb, copy); }
    Tensor to(TypeMeta t) const { return to(t.toScalarType()); }
    Tensor to(Device d, bool nb = false, bool copy = false) const { return to(TensorOptions(d), nb, copy); }
    Tensor to(DeviceType d, bool nb = false) const { return to(Device(d), nb); }
    Tensor to(const char *d, bool nb = false) const { return to(Device(d), nb); }
    Tensor to(Device d, ScalarType t, bool nb = false) const { return to(TensorOptions(t).device(d), nb); }
    Tensor to(const Tensor &o) const { return to(o.options()); }
    Tensor toType(ScalarType t) const { return to(t); }
    Tensor type_as(const Tensor &o) const { return to(o.options()); }
    Tensor cuda() const { return to(Device(kCUDA)); }
    Tensor cpu() const { return to(Device(kCPU)); }
    Tensor &copy_(const Tensor &s, bool nb = false);
    const Tensor &copy_(const Tensor &s, bool nb = false) const { return const_cast<Tensor *>(this)->copy_(s, nb); }
    Tensor &fill_(const Scalar &v);
    const Tensor &fill_(const Scalar &v) const { return const_cast<Tensor *>(this)->fill_(v); }
    Tensor &zero_();
    const Tensor &zero_() const { return const_cast<Tensor *>(this)->zero_(); }
    Tensor &resize_(IntArrayRef s);
    Tensor new_empty(IntArrayRef s, const TensorOptions &o = {}) const;
    Tensor new_zeros(IntArrayRef s, const TensorOptions &o = {}) const;
    Tensor new_ones(IntArrayRef s, const TensorOptions &o = {}) const;
    Tensor new_full(IntArrayRef s, const Scalar &v, const TensorOptions &o = {}) const;
    bool equal(const Tensor &o) const;
    template <class F> void record_stream(F) const {}

    /* arithmetic on whole tensors: refused, see the top of this file */
#define LT_METHOD(name)                                                                                        \
    Tensor name(lt::any a = lt::any(), lt::any b = lt::any(), lt::any c = lt::any(), lt::any d = lt::any(),    \
                lt::any e = lt::any(), lt::any f = lt::any()) const                                            \
    {                                                                                                          \
        return lt::operate(#name, "at::Tensor::" #name, {a.line, a.file}, {*this, a, b, c, d, e, f});          \
    }
#include "litetorch/methods.inc"
#undef LT_METHOD
    Tensor max(lt::here h = {}) const { return lt::operate("max", "at::Tensor::max", h, {*this}); }
    Tensor min(lt::here h = {}) const { return lt::operate("min", "at::Tensor::min", h, {*this}); }
    std::tuple<Tensor, Tensor> max(int64_t dim, bool keep = false, lt::here h = {}) const
    {
        return lt::operate_two("max", "at::Tensor::max", h, {*this, dim, keep});
    }
    std::tuple<Tensor, Tensor> min(int64_t dim, bool keep = false, lt::here h = {}) const
    {
        return lt::operate_two("min", "at::Tensor::min", h, {*this, dim, keep});
    }
    std::tuple<Tensor, Tensor> sort(int64_t dim = -1, bool falling = false, lt::here h = {}) const
    {
        return lt::operate_two("sort", "at::Tensor::sort", h, {*this, dim, falling});
    }
    std::tuple<Tensor, Tensor> topk(int64_t k, int64_t dim = -1, bool most = true, bool order = true,
                                    lt::here h = {}) const
    {
        return lt::operate_two("topk", "at::Tensor::topk", h, {*this, k, dim, most, order});
    }
    Tensor operator-() const;
    template <class... A> Tensor index(const A &...) const { lt::refuse("at::Tensor::index", {}); }
    template <class... A> Tensor &index_put_(const A &...) { lt::refuse("at::Tensor::index_put_", {}); }

    lt::arg me() const { return lt::arg::tensor(h); }
    /* Calls an operator with one tensor result. */
    static Tensor op(const char *name, const char *overload, std::initializer_list<lt::arg> args);

private:
    struct lt_info info() const;
    void *data_of(ScalarType t) const; // throws where the elements are others
    static int64_t wrap(int64_t d, int64_t n);
    void need_dim(size_t n, const char *what) const;
    Scalar scalar() const;
    void hold();
    void drop();
    void *h = nullptr;
};

} // namespace at

namespace lt {

template <class L> void any::take_all(const L &all)
{
    for (const auto &t : all)
        value.list.push_back(any(t).value.v);
    value.v.tag = LT_LIST, value.v.n = int64_t(value.list.size());
}

/* The value lives as long as the call: tensors and texts are borrowed. */
template <class T> void any::take(const T &t)
{
    if constexpr (std::is_same<T, at::Tensor>::value)
        value = arg::tensor(t.handle());
    else if constexpr (std::is_floating_point<T>::value)
        value = arg(double(t));
    else if constexpr (std::is_convertible<T, std::string_view>::value) {
        std::string_view s = t;
        value.v.tag = LT_STRING, value.v.n = int64_t(s.size());
        value.v.u.p = const_cast<char *>(s.data());
    } else if constexpr (std::is_convertible<T, c10::ArrayRef<at::Tensor>>::value)
        take_all(c10::ArrayRef<at::Tensor>(t));
    else if constexpr (std::is_same<T, std::optional<at::Tensor>>::value)
        value = t ? arg::tensor(t->handle()) : arg();
    else if constexpr (std::is_constructible<arg, const T &>::value)
        value = arg(t);
    else
        value.v.tag = LT_OTHER;
}

} // namespace lt

namespace at {

inline Tensor Tensor::operator-() const { return lt::operate("neg", "at::neg", {0, nullptr}, {*this}); }

/* 2 - t is aten's rsub(t, 2); the other names below mirror comparisons. */
#define LT_OPERATOR(OP, name, turned)                                                                          \
    inline Tensor operator OP(const Tensor &a, lt::any b)                                                      \
    {                                                                                                          \
        return lt::operate(name, "at::" name, {b.line, b.file}, {a, b});                                       \
    }                                                                                                          \
    inline Tensor operator OP(lt::number a, const Tensor &b)                                                   \
    {                                                                                                          \
        return lt::operate(turned, "at::" name, {a.line, a.file}, {b, a.value});                               \
    }
LT_OPERATOR(+, "add", "add") LT_OPERATOR(-, "sub", "rsub") LT_OPERATOR(*, "mul", "mul")
LT_OPERATOR(==, "eq", "eq") LT_OPERATOR(!=, "ne", "ne") LT_OPERATOR(<, "lt", "gt") LT_OPERATOR(<=, "le", "ge")
LT_OPERATOR(>, "gt", "lt") LT_OPERATOR(>=, "ge", "le")
#undef LT_OPERATOR
inline Tensor operator/(const Tensor &a, lt::any b)
{
    return lt::operate("div", "at::div", {b.line, b.file}, {a, b});
}
inline Tensor operator/(lt::number a, const Tensor &b)
{
    return lt::operate("reciprocal", "at::div", {a.line, a.file}, {b}) * a.value;
}
#define LT_OPERATOR(OP, name)                                                                                  \
    inline Tensor &operator OP(Tensor &a, lt::any b)                                                           \
    {                                                                                                          \
        lt::operate(name, "at::" name, {b.line, b.file}, {a, b});                                              \
        return a;                                                                                              \
    }                                                                                                          \
    inline Tensor &operator OP(Tensor &&a, lt::any b)                                                          \
    {                                                                                                          \
        lt::operate(name, "at::" name, {b.line, b.file}, {a, b});                                              \
        return a;                                                                                              \
    }
LT_OPERATOR(+=, "add_") LT_OPERATOR(-=, "sub_") LT_OPERATOR(*=, "mul_") LT_OPERATOR(/=, "div_")
#undef LT_OPERATOR

inline lt::ostream &operator<<(lt::ostream &o, const Tensor &t)
{
    if (t.defined())
        o << "[ " << t.device() << t.scalar_type() << "Type" << t.sizes() << " ]";
    else
        o << "[ Tensor (undefined) ]";
    return o;
}

using TensorList = ArrayRef<Tensor>;
using ITensorListRef = TensorList;

/* ---- factories ---- */

Tensor empty(IntArrayRef s, const TensorOptions &o = {}, std::optional<MemoryFormat> f = lt::no_format);
Tensor zeros(IntArrayRef s, const TensorOptions &o = {});
Tensor ones(IntArrayRef s, const TensorOptions &o = {});
Tensor full(IntArrayRef s, const Scalar &v, const TensorOptions &o = {});
Tensor rand(IntArrayRef s, const TensorOptions &o = {});
Tensor randn(IntArrayRef s, const TensorOptions &o = {});
Tensor randint(int64_t hi, IntArrayRef s, const TensorOptions &o = {});
Tensor empty_strided(IntArrayRef s, IntArrayRef t, const TensorOptions &o = {});
#define LT_LIKE(name)                                                                                          \
    Tensor name(const Tensor &t, const TensorOptions &o = {}, std::optional<MemoryFormat> f = lt::no_format);
LT_LIKE(empty_like) LT_LIKE(zeros_like) LT_LIKE(ones_like) LT_LIKE(rand_like) LT_LIKE(randn_like)
#undef LT_LIKE
Tensor full_like(const Tensor &t, const Scalar &v, const TensorOptions &o = {});
Tensor arange(const Scalar &end, const TensorOptions &o = {});
Tensor arange(const Scalar &a, const Scalar &b, const TensorOptions &o = {});
Tensor arange(const Scalar &a, const Scalar &b, const Scalar &s, const TensorOptions &o = {});
Tensor eye(int64_t n, const TensorOptions &o = {});
Tensor scalar_tensor(const Scalar &v, const TensorOptions &o = {});
/* Host values become a tensor; the copy to the device is torch's. */
template <class T>
Tensor tensor(ArrayRef<T> values, const TensorOptions &o = {})
{
    Tensor r = empty({int64_t(values.size())}, TensorOptions(CppTypeToScalarType<T>::value));
    std::copy(values.begin(), values.end(), static_cast<T *>(r.data_ptr()));
    return r.to(o);
}
template <class T>
Tensor tensor(std::initializer_list<T> v, const TensorOptions &o = {}) { return tensor(ArrayRef<T>(v), o); }
template <class T>
Tensor tensor(const std::vector<T> &v, const TensorOptions &o = {}) { return tensor(ArrayRef<T>(v), o); }
template <class T, std::enable_if_t<std::is_arithmetic<T>::value, int> = 0>
Tensor tensor(T v, const TensorOptions &o = {})
{
    return scalar_tensor(v, o.has_dtype() ? o : o.dtype(std::is_floating_point<T>::value ? kFloat
                                                         : std::is_same<T, bool>::value   ? kBool
                                                                                          : kLong));
}
Tensor from_blob(void *data, IntArrayRef s, IntArrayRef t, void (*run)(void *, void *), void *arg,
                 const TensorOptions &o);
inline Tensor from_blob(void *data, IntArrayRef s, IntArrayRef t, const TensorOptions &o = {})
{
    return from_blob(data, s, t, nullptr, nullptr, o);
}
inline Tensor from_blob(void *data, IntArrayRef s, const TensorOptions &o = {})
{
    return from_blob(data, s, IntArrayRef(), o);
}
#ifdef LT_USE_FUNCTIONAL
namespace lt_blob {
struct box { std::function<void(void *)> f; };
inline void run(void *a, void *data)
{
    box *b = static_cast<box *>(a);
    if (b->f)
        b->f(data);
    delete b;
}
}
inline Tensor from_blob(void *data, IntArrayRef s, IntArrayRef t, const std::function<void(void *)> &f,
                        const TensorOptions &o = {})
{
    return from_blob(data, s, t, &lt_blob::run, new lt_blob::box{f}, o);
}
inline Tensor from_blob(void *data, IntArrayRef s, const std::function<void(void *)> &f, const TensorOptions &o = {})
{
    return from_blob(data, s, IntArrayRef(), f, o);
}
#endif

/* Free forms of the plumbing. */
inline Tensor reshape(const Tensor &t, IntArrayRef s) { return t.reshape(s); }
inline Tensor flatten(const Tensor &t, int64_t a = 0, int64_t b = -1) { return t.flatten(a, b); }
inline Tensor transpose(const Tensor &t, int64_t a, int64_t b) { return t.transpose(a, b); }
inline Tensor permute(const Tensor &t, IntArrayRef d) { return t.permute(d); }
inline Tensor squeeze(const Tensor &t) { return t.squeeze(); }
inline Tensor squeeze(const Tensor &t, int64_t d) { return t.squeeze(d); }
inline Tensor unsqueeze(const Tensor &t, int64_t d) { return t.unsqueeze(d); }
inline Tensor narrow(const Tensor &t, int64_t d, int64_t s, int64_t n) { return t.narrow(d, s, n); }
inline Tensor select(const Tensor &t, int64_t d, int64_t i) { return t.select(d, i); }
inline Tensor clone(const Tensor &t) { return t.clone(); }
inline bool equal(const Tensor &a, const Tensor &b) { return a.equal(b); }
inline Tensor view_as_complex(const Tensor &t) { return Tensor::op("view_as_complex", "", {t.me()}); }
inline Tensor view_as_real(const Tensor &t) { return Tensor::op("view_as_real", "", {t.me()}); }
inline std::vector<Tensor> split(const Tensor &t, int64_t n, int64_t d = 0) { return t.split(n, d); }
inline std::vector<Tensor> chunk(const Tensor &t, int64_t n, int64_t d = 0) { return t.chunk(n, d); }

struct NoGradGuard { NoGradGuard() {} };
struct AutoGradMode { explicit AutoGradMode(bool) {} };

/* Refused operators as free functions. */
#define LT_FUNCTION(name)                                                                                      \
    inline Tensor name(lt::any a, lt::any b = lt::any(), lt::any c = lt::any(), lt::any d = lt::any(),         \
                       lt::any e = lt::any(), lt::any f = lt::any(), lt::any g = lt::any(),                    \
                       lt::any i = lt::any(), lt::any j = lt::any(), lt::any k = lt::any())                    \
    {                                                                                                          \
        return lt::operate(#name, "at::" #name, {a.line, a.file}, {a, b, c, d, e, f, g, i, j, k});             \
    }
#include "litetorch/functions.inc"
#undef LT_FUNCTION
inline std::tuple<Tensor, Tensor> max(const Tensor &t, int64_t dim, bool keep = false, lt::here h = {})
{
    return lt::operate_two("max", "at::max", h, {t, dim, keep});
}
inline std::tuple<Tensor, Tensor> min(const Tensor &t, int64_t dim, bool keep = false, lt::here h = {})
{
    return lt::operate_two("min", "at::min", h, {t, dim, keep});
}
#define LT_FUNCTION(name)                                                                                      \
    inline std::tuple<Tensor, Tensor> name(lt::any a, lt::any b = lt::any(), lt::any c = lt::any(),            \
                                           lt::any d = lt::any(), lt::any e = lt::any())                       \
    {                                                                                                          \
        return lt::operate_two(#name, "at::" #name, {a.line, a.file}, {a, b, c, d, e});                        \
    }
LT_FUNCTION(sort) LT_FUNCTION(topk) LT_FUNCTION(var_mean) LT_FUNCTION(std_mean)
LT_FUNCTION(max_pool2d_with_indices) LT_FUNCTION(cummax) LT_FUNCTION(cummin) LT_FUNCTION(kthvalue)
#undef LT_FUNCTION
using c10::toString;

/* Of ATen/TensorUtils.h: arguments with their names, for checks. */
struct TensorArg {
    const Tensor &tensor;
    const char *name;
    int pos;
    TensorArg(const Tensor &t, const char *n, int p) : tensor(t), name(n), pos(p) {}
    const Tensor *operator->() const { return &tensor; }
    const Tensor &operator*() const { return tensor; }
};
using CheckedFrom = const char *;
inline void checkAllSameGPU(CheckedFrom c, ArrayRef<TensorArg> tensors)
{
    for (const TensorArg &t : tensors)
        if (!t->is_cuda())
            LT_FAIL(Error, "", "Expected all tensors on one device for ", c, ", but ", t.name, " is on the CPU");
}
inline void checkAllSameType(CheckedFrom c, ArrayRef<TensorArg> tensors)
{
    for (const TensorArg &t : tensors)
        if (t->scalar_type() != (*tensors.begin())->scalar_type())
            LT_FAIL(Error, "", "Expected tensors of one type for ", c, ", but ", t.name, " has another one");
}
inline int64_t numel(const Tensor &t) { return t.numel(); }
inline int get_num_threads() { return 1; }

} // namespace at

/* There is one device, and no gradient is recorded. */
namespace c10 {
struct InferenceMode {
    explicit InferenceMode(bool = true) {}
    static bool is_enabled() { return true; }
};
struct DeviceGuard {
    explicit DeviceGuard(Device) {}
};
struct OptionalDeviceGuard {
    OptionalDeviceGuard() {}
    explicit OptionalDeviceGuard(std::optional<Device>) {}
};
}

#endif

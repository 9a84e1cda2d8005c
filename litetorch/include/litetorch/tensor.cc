/* tensor.cc - linked into every candidate's .so beside module.cc: what of tensors and errors is no template. A
 * candidate's unit has calls of it alone, which keeps it small for the compiler. */
#include "litetorch/tensor.h"

namespace lt {

const std::optional<c10::MemoryFormat> no_format;

#define LT_WRITE(T) template void write_any<T>(ostream &, const void *);
LT_WRITES(LT_WRITE)
#undef LT_WRITE

void write_text(ostream &o, const void *p)
{
    o << static_cast<const char *>(p);
}

std::string join(std::initializer_list<piece> parts)
{
    std::ostringstream s;
    for (const piece &p : parts)
        p.write(s, p.what);
    return s.str();
}

void fail()
{
    throw c10::Error(api->error());
}

void refuse(const char *name, here h)
{
    api->finding("library_call", name, h.file, h.line);
    throw c10::Error(std::string(name) + " is a library operator; the computation must run in your own kernels");
}

static void flatten(const arg &a, struct lt_value *ret)
{
    *ret = a.v;
    if (a.v.tag == LT_LIST)
        ret->u.p = const_cast<struct lt_value *>(a.list.data());
}

void operate(const char *name, const char *said, here h, std::initializer_list<any> args, at::Tensor *rets, int n)
{
    struct lt_value flat[16], got[4] = {};
    int n_args = 0, given = 0, results;

    for (const any &a : args) {
        flatten(a.value, &flat[n_args++]);
        if (a.value.v.tag != LT_ABSENT)
            given = n_args; // "{}" before another argument is the schema's default
    }
    results = api->operate(name, flat, given, got, n);
    if (results == -2)
        refuse(said, h);
    if (results < 0)
        fail();
    for (int i = 0; i < results; i++)
        rets[i] = got[i].tag == LT_TENSOR ? at::Tensor::own(got[i].u.p) : at::Tensor();
}

at::Tensor operate(const char *name, const char *said, here h, std::initializer_list<any> args)
{
    at::Tensor r;
    operate(name, said, h, args, &r, 1);
    return r;
}

std::tuple<at::Tensor, at::Tensor> operate_two(const char *name, const char *said, here h,
                                               std::initializer_list<any> args)
{
    at::Tensor r[2];
    operate(name, said, h, args, r, 2);
    return {r[0], r[1]};
}

arg::arg(c10::IntArrayRef a)
{
    for (int64_t i : a)
        list.push_back(arg(i).v);
    v.tag = LT_LIST, v.n = int64_t(list.size());
}

int call(const char *name, const char *overload, std::initializer_list<arg> args, struct lt_value *rets, int max)
{
    struct lt_value flat[16];
    int n = 0;
    for (const arg &a : args) {
        flatten(a, &flat[n++]);
    }
    int got = api->op(name, overload, flat, n, rets, max);
    if (got < 0)
        fail();
    return got;
}

} // namespace lt

namespace c10 {

static std::string message(const char *without, std::initializer_list<lt::piece> parts)
{
    return parts.size() ? lt::join(parts) : without;
}

Error::Error(std::string m, int k) : message(std::move(m)), kind(k) {}
Error::~Error() = default;

const char *Error::what() const noexcept
{
    return message.c_str();
}

void Error::raise(const char *without, std::initializer_list<lt::piece> parts)
{
    throw Error(c10::message(without, parts));
}

#define LT_ERROR(NAME, KIND)                                                                                   \
    NAME::NAME(std::string m) : Error(std::move(m), KIND) {}                                                   \
    NAME::~NAME() = default;                                                                                   \
    void NAME::raise(const char *without, std::initializer_list<lt::piece> parts)                              \
    {                                                                                                          \
        throw NAME(c10::message(without, parts));                                                              \
    }
LT_ERRORS(LT_ERROR)
#undef LT_ERROR

TensorOptions::TensorOptions() = default;
TensorOptions::TensorOptions(ScalarType t) : dtype_(t) {}
TensorOptions::TensorOptions(TypeMeta t) : dtype_(t) {}
TensorOptions::TensorOptions(Device d) : device_(d) {}
TensorOptions::TensorOptions(DeviceType d) : device_(d) {}
TensorOptions::TensorOptions(MemoryFormat f) : format_(f) {}
TensorOptions::TensorOptions(Layout) {}

/* A copy of o whose member m is v. */
template <class T>
static TensorOptions options_with(TensorOptions o, std::optional<T> TensorOptions::*m, std::optional<T> v)
{
    o.*m = v;
    return o;
}

TensorOptions TensorOptions::dtype(std::optional<ScalarType> t) const
{
    return options_with(*this, &TensorOptions::dtype_, t);
}

TensorOptions TensorOptions::dtype(ScalarType t) const
{
    return dtype(std::optional<ScalarType>(t));
}

TensorOptions TensorOptions::dtype(TypeMeta t) const
{
    return dtype(t.toScalarType());
}

TensorOptions TensorOptions::device(std::optional<Device> d) const
{
    return options_with(*this, &TensorOptions::device_, d);
}

TensorOptions TensorOptions::device(Device d) const
{
    return device(std::optional<Device>(d));
}

TensorOptions TensorOptions::device(DeviceType t, int i) const
{
    return device(Device(t, i));
}

TensorOptions TensorOptions::device(const char *s) const
{
    return device(Device(s));
}

TensorOptions TensorOptions::device_index(int i) const
{
    return device(Device(kCUDA, i));
}

TensorOptions TensorOptions::requires_grad(std::optional<bool> g) const
{
    return options_with(*this, &TensorOptions::grad_, g);
}

TensorOptions TensorOptions::pinned_memory(std::optional<bool> p) const
{
    return options_with(*this, &TensorOptions::pin_, p);
}

TensorOptions TensorOptions::memory_format(std::optional<MemoryFormat> f) const
{
    return options_with(*this, &TensorOptions::format_, f);
}

} // namespace c10

namespace at {

void Tensor::drop()
{
    if (h)
        lt::api->release(h);
}

void Tensor::hold()
{
    if (h)
        lt::api->retain(h);
}

/* ---- shape ---- */

int64_t Tensor::dim() const
{
    return info().dim;
}

int64_t Tensor::numel() const
{
    return info().numel;
}

IntArrayRef Tensor::sizes() const
{
    auto i = info();
    return {i.sizes, size_t(i.dim)};
}

IntArrayRef Tensor::strides() const
{
    auto i = info();
    return {i.strides, size_t(i.dim)};
}

int64_t Tensor::size(int64_t d) const
{
    auto i = info();
    return i.sizes[wrap(d, i.dim)];
}

int64_t Tensor::stride(int64_t d) const
{
    auto i = info();
    return i.strides[wrap(d, i.dim)];
}

int64_t Tensor::storage_offset() const
{
    return info().offset;
}

ScalarType Tensor::scalar_type() const
{
    return ScalarType(info().dtype);
}

size_t Tensor::element_size() const
{
    return size_t(info().itemsize);
}

size_t Tensor::nbytes() const
{
    auto i = info();
    return size_t(i.numel) * size_t(i.itemsize);
}

Device Tensor::device() const
{
    auto i = info();
    return i.cuda ? Device(kCUDA, i.index) : Device(kCPU);
}

int64_t Tensor::get_device() const
{
    auto i = info();
    return i.cuda ? i.index : -1;
}

bool Tensor::is_cuda() const
{
    return info().cuda != 0;
}

bool Tensor::is_cpu() const
{
    return info().cuda == 0;
}

bool Tensor::is_contiguous() const
{
    return info().contiguous != 0;
}

bool Tensor::is_contiguous(MemoryFormat f) const
{
    return f == MemoryFormat::ChannelsLast ? info().contiguous_nhwc != 0 : is_contiguous();
}

MemoryFormat Tensor::suggest_memory_format() const
{
    return !is_contiguous() && info().contiguous_nhwc ? MemoryFormat::ChannelsLast : MemoryFormat::Contiguous;
}

bool Tensor::requires_grad() const
{
    return info().requires_grad != 0;
}

TensorOptions Tensor::options() const
{
    return TensorOptions(scalar_type()).device(device());
}

const void *Tensor::const_data_ptr() const
{
    return info().data;
}

void *Tensor::mutable_data_ptr() const
{
    return info().data;
}

void *Tensor::data_of(ScalarType t) const
{
    auto i = info();
    if (t != ScalarType(i.dtype))
        throw Error(str("expected scalar type ", c10::toString(t), " but found ", c10::toString(ScalarType(i.dtype))));
    return i.data;
}

/* ---- views and copies ---- */

Tensor Tensor::contiguous(MemoryFormat f) const
{
    return op("contiguous", "", {me(), f});
}

Tensor Tensor::clone(std::optional<MemoryFormat> f) const
{
    return op("clone", "", {me(), f});
}

Tensor Tensor::detach() const
{
    return op("detach", "", {me()});
}

Tensor Tensor::alias() const
{
    return op("alias", "", {me()});
}

Tensor Tensor::view(IntArrayRef s) const
{
    return op("view", "", {me(), s});
}

Tensor Tensor::view(ScalarType t) const
{
    return op("view", "dtype", {me(), t});
}

Tensor Tensor::reshape(IntArrayRef s) const
{
    return op("reshape", "", {me(), s});
}

Tensor Tensor::flatten(int64_t a, int64_t b) const
{
    return op("flatten", "using_ints", {me(), a, b});
}

Tensor Tensor::transpose(int64_t a, int64_t b) const
{
    return op("transpose", "int", {me(), a, b});
}

Tensor Tensor::t() const
{
    return op("t", "", {me()});
}

Tensor Tensor::permute(IntArrayRef d) const
{
    return op("permute", "", {me(), d});
}

Tensor Tensor::movedim(int64_t a, int64_t b) const
{
    return op("movedim", "int", {me(), a, b});
}

Tensor Tensor::squeeze() const
{
    return op("squeeze", "", {me()});
}

Tensor Tensor::squeeze(int64_t d) const
{
    return op("squeeze", "dim", {me(), d});
}

Tensor Tensor::unsqueeze(int64_t d) const
{
    return op("unsqueeze", "", {me(), d});
}

Tensor Tensor::select(int64_t d, int64_t i) const
{
    return op("select", "int", {me(), d, i});
}

Tensor Tensor::narrow(int64_t d, int64_t s, int64_t n) const
{
    return op("narrow", "", {me(), d, s, n});
}

Tensor Tensor::slice(int64_t d, std::optional<int64_t> a, std::optional<int64_t> b, int64_t step) const
{
    return op("slice", "Tensor", {me(), d, a, b, step});
}

Tensor Tensor::expand(IntArrayRef s, bool implicit) const
{
    return op("expand", "", {me(), s, implicit});
}

Tensor Tensor::broadcast_to(IntArrayRef s) const
{
    return op("broadcast_to", "", {me(), s});
}

Tensor Tensor::as_strided(IntArrayRef s, IntArrayRef t, std::optional<int64_t> o) const
{
    return op("as_strided", "", {me(), s, t, o});
}

Tensor Tensor::unfold(int64_t d, int64_t n, int64_t s) const
{
    return op("unfold", "", {me(), d, n, s});
}

std::vector<Tensor> Tensor::unbind(int64_t d) const
{
    std::vector<Tensor> r;
    for (int64_t i = 0; i < size(d); i++)
        r.push_back(select(d, i));
    return r;
}

std::vector<Tensor> Tensor::split(int64_t n, int64_t d) const
{
    std::vector<Tensor> r;
    for (int64_t i = 0; i < size(d); i += n)
        r.push_back(narrow(d, i, std::min(n, size(d) - i)));
    return r;
}

Tensor Tensor::to(const TensorOptions &o, bool nb, bool copy, std::optional<MemoryFormat> f) const
{
    return op("to", "dtype_layout", {me(), o.dtype_, {}, o.device_, {}, nb, copy, f});
}

Tensor &Tensor::copy_(const Tensor &s, bool nb)
{
    op("copy_", "", {me(), s.me(), nb});
    return *this;
}

Tensor &Tensor::fill_(const Scalar &v)
{
    op("fill_", "Scalar", {me(), v});
    return *this;
}

Tensor &Tensor::zero_()
{
    op("zero_", "", {me()});
    return *this;
}

Tensor &Tensor::resize_(IntArrayRef s)
{
    op("resize_", "", {me(), s});
    return *this;
}

Tensor Tensor::new_empty(IntArrayRef s, const TensorOptions &o) const
{
    return op("new_empty", "", {me(), s, o.dtype_, {}, o.device_, {}});
}

Tensor Tensor::new_zeros(IntArrayRef s, const TensorOptions &o) const
{
    return op("new_zeros", "", {me(), s, o.dtype_, {}, o.device_, {}});
}

Tensor Tensor::new_ones(IntArrayRef s, const TensorOptions &o) const
{
    return op("new_ones", "", {me(), s, o.dtype_, {}, o.device_, {}});
}

Tensor Tensor::new_full(IntArrayRef s, const Scalar &v, const TensorOptions &o) const
{
    return op("new_full", "", {me(), s, v, o.dtype_, {}, o.device_, {}});
}

bool Tensor::equal(const Tensor &o) const
{
    struct lt_value r;
    lt::call("equal", "", {me(), o.me()}, &r, 1);
    return r.u.i != 0;
}

/* ---- what all of it goes through ---- */

Tensor Tensor::op(const char *name, const char *overload, std::initializer_list<lt::arg> args)
{
    struct lt_value r = {LT_NONE, 0, {0}, 0};
    lt::call(name, overload, args, &r, 1);
    return r.tag == LT_TENSOR ? own(r.u.p) : Tensor();
}

struct lt_info Tensor::info() const
{
    struct lt_info i;
    if (!h)
        throw Error("Expected a proper Tensor but got None (or an undefined Tensor in C++)");
    if (lt::api->info(h, &i) < 0)
        lt::fail();
    return i;
}

int64_t Tensor::wrap(int64_t d, int64_t n)
{
    if (d < -n || d >= n)
        throw IndexError(str("Dimension out of range (expected to be in range of [", n ? -n : -1, ", ",
                             n ? n - 1 : 0, "], but got ", d, ")"));
    return d < 0 ? d + n : d;
}

void Tensor::need_dim(size_t n, const char *what) const
{
    if (dim() != int64_t(n))
        throw Error(str(what, " expected ", n, " dims but tensor has ", dim()));
}

Scalar Tensor::scalar() const
{
    struct lt_value r;
    lt::call("item", "", {me()}, &r, 1);
    return r.tag == LT_DOUBLE ? Scalar(r.u.d) : r.tag == LT_BOOL ? Scalar(r.u.i != 0) : Scalar(r.u.i);
}
/* ---- factories ---- */

Tensor empty(IntArrayRef s, const TensorOptions &o, std::optional<MemoryFormat> f)
{
    return Tensor::op("empty", "memory_format", {s, o.dtype_, {}, o.device_, {}, f ? f : o.format_});
}

Tensor zeros(IntArrayRef s, const TensorOptions &o)
{
    return Tensor::op("zeros", "", {s, o.dtype_, {}, o.device_, {}});
}

Tensor ones(IntArrayRef s, const TensorOptions &o)
{
    return Tensor::op("ones", "", {s, o.dtype_, {}, o.device_, {}});
}

Tensor full(IntArrayRef s, const Scalar &v, const TensorOptions &o)
{
    return Tensor::op("full", "", {s, v, o.dtype_, {}, o.device_, {}});
}

Tensor rand(IntArrayRef s, const TensorOptions &o)
{
    return Tensor::op("rand", "", {s, o.dtype_, {}, o.device_, {}});
}

Tensor randn(IntArrayRef s, const TensorOptions &o)
{
    return Tensor::op("randn", "", {s, o.dtype_, {}, o.device_, {}});
}

Tensor randint(int64_t hi, IntArrayRef s, const TensorOptions &o)
{
    return Tensor::op("randint", "", {hi, s, o.dtype_.value_or(kLong), {}, o.device_, {}});
}

Tensor empty_strided(IntArrayRef s, IntArrayRef t, const TensorOptions &o)
{
    return Tensor::op("empty_strided", "", {s, t, o.dtype_, {}, o.device_, {}});
}

Tensor full_like(const Tensor &t, const Scalar &v, const TensorOptions &o)
{
    return Tensor::op("full_like", "", {t.me(), v, o.dtype_, {}, o.device_, {}});
}

Tensor arange(const Scalar &end, const TensorOptions &o)
{
    return Tensor::op("arange", "", {end, o.dtype_, {}, o.device_, {}});
}

Tensor arange(const Scalar &a, const Scalar &b, const TensorOptions &o)
{
    return Tensor::op("arange", "start", {a, b, o.dtype_, {}, o.device_, {}});
}

Tensor arange(const Scalar &a, const Scalar &b, const Scalar &s, const TensorOptions &o)
{
    return Tensor::op("arange", "start_step", {a, b, s, o.dtype_, {}, o.device_, {}});
}

Tensor eye(int64_t n, const TensorOptions &o)
{
    return Tensor::op("eye", "", {n, o.dtype_, {}, o.device_, {}});
}

Tensor scalar_tensor(const Scalar &v, const TensorOptions &o)
{
    return Tensor::op("scalar_tensor", "", {v, o.dtype_, {}, o.device_, {}});
}

#define LT_LIKE(name)                                                                                          \
    Tensor name(const Tensor &t, const TensorOptions &o, std::optional<MemoryFormat> f)                        \
    {                                                                                                          \
        return Tensor::op(#name, "", {t.me(), o.dtype_, {}, o.device_, {}, f ? f : o.format_});                \
    }
LT_LIKE(empty_like) LT_LIKE(zeros_like) LT_LIKE(ones_like) LT_LIKE(rand_like) LT_LIKE(randn_like)
#undef LT_LIKE

Tensor from_blob(void *data, IntArrayRef s, IntArrayRef t, void (*run)(void *, void *), void *arg,
                 const TensorOptions &o)
{
    void *r = lt::api->from_blob(data, s.data(), t.empty() ? nullptr : t.data(), int(s.size()),
                                 int(o.dtype().toScalarType()), o.device().is_cuda(), run, arg);
    if (!r)
        lt::fail();
    return Tensor::own(r);
}

} // namespace at

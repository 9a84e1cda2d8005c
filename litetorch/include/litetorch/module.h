/* module.h - what pybind11 is to torch extensions: PYBIND11_MODULE, m.def, and the conversion of arguments.
 *
 * Functions are described by type strings (abi.h); the Python side converts arguments by them and raises pybind11's
 * TypeError; here values of the right kinds become C++ values, and exceptions become codes. */
#ifndef LITETORCH_MODULE_H
#define LITETORCH_MODULE_H

#include "litetorch/tensor.h"

namespace lt {

enum { MAX_TYPES = 2048 };
void put(char *types, const char *c); // appends, within MAX_TYPES

/* convert<T>: appends the type string, from lt_value, to lt_value. */
template <class T, class = void>
struct convert;

template <class T>
struct convert<T, std::enable_if_t<std::is_integral<T>::value && !std::is_same<T, bool>::value>> {
    static void type(char *p) { put(p, "i"); }
    static T in(const lt_value &v)
    {
        if (v.u.i < int64_t(std::numeric_limits<T>::min()) ||
            (sizeof(T) < 8 && v.u.i > int64_t(std::numeric_limits<T>::max())))
            throw c10::TypeError("integer argument out of range");
        return T(v.u.i);
    }
    static lt_value out(T x) { return arg(int64_t(x)).v; }
};
template <class T>
struct convert<T, std::enable_if_t<std::is_floating_point<T>::value>> {
    static void type(char *p) { put(p, "d"); }
    static T in(const lt_value &v) { return T(v.tag == LT_DOUBLE ? v.u.d : double(v.u.i)); }
    static lt_value out(T x) { return arg(double(x)).v; }
};
template <>
struct convert<bool> {
    static void type(char *p) { put(p, "b"); }
    static bool in(const lt_value &v) { return v.u.i != 0; }
    static lt_value out(bool x) { return arg(x).v; }
};
template <>
struct convert<std::string> {
    static void type(char *p) { put(p, "s"); }
    static std::string in(const lt_value &v) { return std::string(static_cast<const char *>(v.u.p), size_t(v.n)); }
    static lt_value out(const std::string &s)
    {
        lt_value v = {LT_STRING, 0, {0}, int64_t(s.size())};
        v.u.p = malloc(s.size() + 1);
        memcpy(v.u.p, s.c_str(), s.size() + 1);
        return v;
    }
};
template <> struct convert<const char *> : convert<std::string> {};
template <> struct convert<std::string_view> : convert<std::string> {};
template <>
struct convert<at::Tensor> {
    static void type(char *p) { put(p, "T"); }
    static at::Tensor in(const lt_value &v) { return at::Tensor::borrow(v.u.p); }
    static lt_value out(at::Tensor t) { return arg::tensor(t.detach_handle()).v; }
};
template <>
struct convert<c10::Scalar> {
    static void type(char *p) { put(p, "S"); }
    static c10::Scalar in(const lt_value &v)
    {
        return v.tag == LT_DOUBLE ? c10::Scalar(v.u.d) : v.tag == LT_BOOL ? c10::Scalar(v.u.i != 0)
               : c10::Scalar(v.u.i);
    }
    static lt_value out(c10::Scalar s) { return arg(s).v; }
};
template <>
struct convert<c10::ScalarType> {
    static void type(char *p) { put(p, "y"); }
    static c10::ScalarType in(const lt_value &v) { return c10::ScalarType(v.u.i); }
    static lt_value out(c10::ScalarType t) { return arg(t).v; }
};
template <>
struct convert<c10::Device> {
    static void type(char *p) { put(p, "v"); }
    static c10::Device in(const lt_value &v) { return v.u.i ? c10::Device(c10::kCUDA, 0) : c10::Device(c10::kCPU); }
    static lt_value out(c10::Device d) { return arg(d).v; }
};
template <class T>
struct convert<std::optional<T>> {
    static void type(char *p) { put(p, "?"), convert<T>::type(p); }
    static std::optional<T> in(const lt_value &v)
    {
        if (v.tag == LT_NONE)
            return std::nullopt;
        return convert<T>::in(v);
    }
    static lt_value out(const std::optional<T> &o) { return o ? convert<T>::out(*o) : lt_value{LT_NONE, 0, {0}, 0}; }
};
template <class L, class T>
struct convert_list {
    static void type(char *p) { put(p, "["), convert<T>::type(p); }
    static L in(const lt_value &v)
    {
        L r;
        for (int64_t i = 0; i < v.n; i++)
            r.push_back(convert<T>::in(static_cast<const lt_value *>(v.u.p)[i]));
        return r;
    }
    static lt_value out(const L &l)
    {
        lt_value v = {LT_LIST, 0, {0}, int64_t(l.size())};
        lt_value *a = static_cast<lt_value *>(calloc(l.size() + 1, sizeof *a));
        size_t i = 0;
        v.u.p = a;
        for (auto &&x : l)
            a[i++] = convert<T>::out(x);
        return v;
    }
};
template <class T> struct convert<std::vector<T>> : convert_list<std::vector<T>, T> {};
template <class T> struct convert<c10::ArrayRef<T>> : convert_list<std::vector<T>, T> {};
template <class... T>
struct convert<std::tuple<T...>> {
    static void type(char *p) { put(p, "("), (convert<std::decay_t<T>>::type(p), ...), put(p, ")"); }
    template <size_t... I>
    static std::tuple<T...> in_all(const lt_value *a, std::index_sequence<I...>)
    {
        return std::tuple<T...>(convert<std::decay_t<T>>::in(a[I])...);
    }
    static std::tuple<T...> in(const lt_value &v)
    {
        return in_all(static_cast<const lt_value *>(v.u.p), std::index_sequence_for<T...>());
    }
    template <size_t... I>
    static void out_all(lt_value *a, const std::tuple<T...> &t, std::index_sequence<I...>)
    {
        ((a[I] = convert<std::decay_t<T>>::out(std::get<I>(t))), ...);
    }
    static lt_value out(const std::tuple<T...> &t)
    {
        lt_value v = {LT_TUPLE, 0, {0}, int64_t(sizeof...(T))};
        lt_value *a = static_cast<lt_value *>(calloc(sizeof...(T) + 1, sizeof *a));
        v.u.p = a;
        out_all(a, t, std::index_sequence_for<T...>());
        return v;
    }
};
template <class A, class B>
struct convert<std::pair<A, B>> {
    static void type(char *p) { convert<std::tuple<A, B>>::type(p); }
    static lt_value out(const std::pair<A, B> &p) { return convert<std::tuple<A, B>>::out(std::tuple<A, B>(p)); }
    static std::pair<A, B> in(const lt_value &v)
    {
        auto t = convert<std::tuple<A, B>>::in(v);
        return {std::get<0>(t), std::get<1>(t)};
    }
};
template <class T, size_t N>
struct convert<std::array<T, N>> {
    static void type(char *p) { put(p, "["), convert<T>::type(p); }
    static lt_value out(const std::array<T, N> &a) { return convert<std::vector<T>>::out({a.begin(), a.end()}); }
    static std::array<T, N> in(const lt_value &v)
    {
        std::array<T, N> r;
        if (v.n != int64_t(N))
            throw c10::TypeError("wrong number of elements");
        for (size_t i = 0; i < N; i++)
            r[i] = convert<T>::in(static_cast<const lt_value *>(v.u.p)[i]);
        return r;
    }
};

/* The exception in flight, as a code and a message. */
int caught(char *message, size_t max);

/* Makes a C++ argument of type P out of a value; references to temporaries live until the call returns. */
template <class P>
struct holder {
    std::decay_t<P> v;
    holder(const lt_value &x) : v(convert<std::decay_t<P>>::in(x)) {}
    P get() { return static_cast<P>(static_cast<std::conditional_t<std::is_lvalue_reference<P>::value, P,
                                                                   std::decay_t<P> &&>>(v)); }
};
template <class T>
struct holder<c10::ArrayRef<T>> {
    std::vector<T> v;
    holder(const lt_value &x) : v(convert<std::vector<T>>::in(x)) {}
    c10::ArrayRef<T> get() { return v; }
};
template <>
struct holder<const char *> {
    std::string v;
    holder(const lt_value &x) : v(convert<std::string>::in(x)) {}
    const char *get() { return v.c_str(); }
};
template <>
struct holder<std::string_view> {
    std::string v;
    holder(const lt_value &x) : v(convert<std::string>::in(x)) {}
    std::string_view get() { return v; }
};

struct entry; // a function of the module; module.cc
/* types: one type string per parameter, each followed by ','. */
entry *define(const char *name, const char *returns, const char *types, void *self,
              int (*invoke)(void *, const lt_value *, lt_value *, char *, size_t));
void set_doc(entry *e, const char *doc);
/* The next py::arg of e. */
void set_arg(entry *e, const char *name, bool has_default, const lt_value &v, const char *text);

template <class F, class R, class... A>
struct caller {
    template <size_t... I>
    static R run(F &f, const lt_value *a, std::index_sequence<I...>)
    {
        std::tuple<holder<A>...> held{a[I]...};
        (void)held;
        return f(std::get<I>(held).get()...);
    }
    static int invoke(void *self, const lt_value *a, lt_value *ret, char *message, size_t max);
    static entry *make(const char *name, F f);
};
/* Outside of the class, so not inline: then an 'extern template' keeps the compiler from making it. */
template <class F, class R, class... A>
int caller<F, R, A...>::invoke(void *self, const lt_value *a, lt_value *ret, char *message, size_t max)
{
    try {
        F &f = *static_cast<F *>(self);
        if constexpr (std::is_void<R>::value) {
            run(f, a, std::index_sequence_for<A...>());
            ret->tag = LT_NONE;
        } else {
            *ret = convert<std::decay_t<R>>::out(run(f, a, std::index_sequence_for<A...>()));
        }
        return LT_OK;
    } catch (...) {
        return caught(message, max);
    }
}
template <class F, class R, class... A>
entry *caller<F, R, A...>::make(const char *name, F f)
{
    char returns[MAX_TYPES] = "", types[MAX_TYPES] = "";
    if constexpr (!std::is_void<R>::value)
        convert<std::decay_t<R>>::type(returns);
    ((convert<std::decay_t<A>>::type(types), put(types, ",")), ...);
    return define(name, returns, types, new F(std::move(f)), &invoke);
}
/* Functions of tensors alone, which most are: made in module.cc. */
#define LT_CALLER(PREFIX, ...) PREFIX struct caller<at::Tensor (*)(__VA_ARGS__), at::Tensor, __VA_ARGS__>;
#define LT_CALLERS(PREFIX)                                                                                     \
    LT_CALLER(PREFIX, at::Tensor)                                                                              \
    LT_CALLER(PREFIX, at::Tensor, at::Tensor)                                                                  \
    LT_CALLER(PREFIX, at::Tensor, at::Tensor, at::Tensor)                                                      \
    LT_CALLER(PREFIX, at::Tensor, at::Tensor, at::Tensor, at::Tensor)                                          \
    LT_CALLER(PREFIX, at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor)                              \
    LT_CALLER(PREFIX, at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor)                  \
    LT_CALLER(PREFIX, const at::Tensor &)                                                                      \
    LT_CALLER(PREFIX, const at::Tensor &, const at::Tensor &)                                                  \
    LT_CALLER(PREFIX, const at::Tensor &, const at::Tensor &, const at::Tensor &)
LT_CALLERS(extern template)

template <class F, class M>
struct member_caller;
template <class F, class R, class C, class... A>
struct member_caller<F, R (C::*)(A...) const> : caller<F, R, A...> {};
template <class F, class R, class C, class... A>
struct member_caller<F, R (C::*)(A...)> : caller<F, R, A...> {};
template <class R, class... A>
entry *make_entry(const char *name, R (*f)(A...)) { return caller<R (*)(A...), R, A...>::make(name, f); }
template <class F>
auto make_entry(const char *name, F f) -> decltype(&F::operator(), static_cast<entry *>(nullptr))
{
    return member_caller<F, decltype(&F::operator())>::make(name, std::move(f));
}

/* Declares the module's init function to lt_module_open. */
struct init_row {
    init_row(void (*f)());
};

} // namespace lt

namespace pybind11 {

/* What stands behind these in a list of arguments is given by name alone, or before them by place: more is taken. */
struct kw_only {};
struct pos_only {};

struct arg {
    const char *name;
    bool has = false;
    lt::arg value;
    std::string text;
    explicit arg(const char *n) : name(n) {}
    template <class T>
    arg operator=(T v) const
    {
        arg r = *this;
        r.has = true;
        if constexpr (std::is_convertible<T, std::string>::value)
            r.text = v, r.value.v.tag = LT_STRING;
        else
            r.value = lt::arg(v);
        return r;
    }
    arg &noconvert(bool = true) { return *this; }
    arg &none(bool = true) { return *this; }
};
namespace literals {
inline arg operator""_a(const char *n, size_t) { return arg(n); }
}
struct none {
    operator std::nullopt_t() const { return std::nullopt; }
};
struct gil_scoped_release { gil_scoped_release() {} };
struct gil_scoped_acquire { gil_scoped_acquire() {} };
template <class... T> struct call_guard {};
enum class return_value_policy { automatic, automatic_reference, take_ownership, copy, move, reference,
                                 reference_internal };

class module_ {
public:
    template <class F, class... X>
    module_ &def(const char *name, F &&f, const X &...extra)
    {
        lt::entry *e = lt::make_entry(name, std::decay_t<F>(f));
        (add(e, extra), ...);
        return *this;
    }
    const char *&doc() { return doc_; }
    /* A number or a text is given by a function whose name begins as no name of C++ does. Others are not kept. */
    struct attribute {
        const char *name;
        template <class T> attribute &operator=(const T &v)
        {
            if constexpr (std::is_arithmetic_v<T>)
                lt::make_entry(name, [v] { return v; });
            else if constexpr (std::is_convertible_v<const T &, std::string>)
                lt::make_entry(name, [text = std::string(v)] { return text; });
            return *this;
        }
    };
    attribute attr(const std::string &name) { return {(new std::string("=" + name))->c_str()}; }

private:
    static void add(lt::entry *e, const char *doc) { lt::set_doc(e, doc); }
    static void add(lt::entry *e, const std::string &doc) { lt::set_doc(e, doc.c_str()); }
    static void add(lt::entry *e, const arg &a) { lt::set_arg(e, a.name, a.has, a.value.v, a.text.c_str()); }
    template <class T> static void add(lt::entry *, const T &) {}
    const char *doc_ = nullptr;
};
using module = module_;

} // namespace pybind11
namespace py = pybind11;

#define PYBIND11_MODULE(NAME, m)                                                                               \
    static void lt_init_module(::pybind11::module_ &);                                                         \
    static void lt_open_module()                                                                               \
    {                                                                                                          \
        ::pybind11::module_ m_;                                                                                \
        lt_init_module(m_);                                                                                    \
    }                                                                                                          \
    static ::lt::init_row lt_init_row(lt_open_module);                                                         \
    static void lt_init_module([[maybe_unused]] ::pybind11::module_ &m)

namespace lt {
template <class F, class = void> struct is_operator : std::false_type {};
template <class F>
struct is_operator<F, std::void_t<decltype(make_entry("", std::declval<F>()))>> : std::true_type {};

/* A function of the module that Python finds under torch.ops; its name is "space::name". */
void describe(entry *e, const std::string &schema); // parameters, as "run(Tensor x, int n=3)" says
std::string operator_name(const std::string &space, const std::string &schema);
const std::string &operator_schema(const std::string &name, const std::string &schema); // the one that def named last
bool is_device_key(const std::string &key); // do operators of this dispatch key run on a device?
template <class K>
bool is_device_key(const K &key)
{
    if constexpr (std::is_convertible_v<K, c10::DeviceType>)
        return c10::DeviceType(key) == c10::kCUDA;
    return false;
}
}

namespace torch {
template <class K, class F> struct dispatched { K key; F f; };
template <class K, class F> dispatched<K, std::decay_t<F>> dispatch(K key, F &&f) { return {key, std::forward<F>(f)}; }

/* Operators of a library of torch's registry. What is registered for another place than a device is left out, and so
 * is what is no function. The audit of the build's log knows this class's name. */
class Library {
public:
    Library(const char *space, const char *key) : space_(space), here_(lt::is_device_key(std::string(key))) {}
    template <class S, class... A> Library &def(const S &schema, A &&...a)
    {
        if constexpr (std::is_convertible_v<const S &, std::string>) {
            lt::operator_schema(lt::operator_name(space_, schema), schema);
            (add(schema, std::forward<A>(a)), ...);
        }
        return *this;
    }
    template <class F> Library &impl(const std::string &name, F &&f)
    {
        if (here_)
            add(name, std::forward<F>(f));
        return *this;
    }
    template <class K, class F> Library &impl(const std::string &name, const K &key, F &&f)
    {
        if (lt::is_device_key(key))
            add(name, std::forward<F>(f));
        return *this;
    }
    template <class... A> Library &fallback(A &&...) { return *this; }
    void set_python_module(const char *, const char * = "") {}

private:
    template <class F> void add(const std::string &schema, F &&f)
    {
        if constexpr (lt::is_operator<std::decay_t<F>>::value) {
            std::string name = lt::operator_name(space_, schema);
            lt::describe(lt::make_entry(name.c_str(), std::decay_t<F>(f)), lt::operator_schema(name, schema));
        }
    }
    template <class K, class F> void add(const std::string &schema, dispatched<K, F> d)
    {
        if (lt::is_device_key(d.key))
            add(schema, std::move(d.f));
    }
    std::string space_;
    bool here_;
};
}
#define LT_LIBRARY_NAMED(what, id) lt_library_##what##id
#define LT_LIBRARY_AT(what, id) LT_LIBRARY_NAMED(what, id)
#define LT_LIBRARY_TEXT(space) #space
#define LT_LIBRARY(id, space, key, m)                                                                           \
    static void LT_LIBRARY_AT(init, id)(::torch::Library &);                                                   \
    static void LT_LIBRARY_AT(open, id)()                                                                      \
    {                                                                                                          \
        ::torch::Library m_(LT_LIBRARY_TEXT(space), key);                                                      \
        LT_LIBRARY_AT(init, id)(m_);                                                                           \
    }                                                                                                          \
    static ::lt::init_row LT_LIBRARY_AT(row, id)(LT_LIBRARY_AT(open, id));                                     \
    static void LT_LIBRARY_AT(init, id)([[maybe_unused]] ::torch::Library &m)
#define TORCH_LIBRARY(space, m) LT_LIBRARY(__COUNTER__, space, "", m)
#define TORCH_LIBRARY_IMPL(space, key, m) LT_LIBRARY(__COUNTER__, space, #key, m)
#define TORCH_LIBRARY_FRAGMENT(space, m) LT_LIBRARY(__COUNTER__, space, "", m)
#define TORCH_FN(function) function

namespace torch {
template <class F> auto wrap_pybind_function(F &&f) { return std::forward<F>(f); }
}

#endif

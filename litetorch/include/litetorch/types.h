/* types.h - scalar types, devices, options, errors: the parts of c10 that candidates name. */
#ifndef LITETORCH_TYPES_H
#define LITETORCH_TYPES_H

#include "litetorch/std.h"
#include "litetorch/abi.h"

#ifdef LT_GPU
#define C10_HOST_DEVICE __host__ __device__
#define C10_DEVICE __device__
#define C10_HOST __host__
#define C10_LAUNCH_BOUNDS_0 __launch_bounds__(256, 4)
#define C10_LAUNCH_BOUNDS_1(a) __launch_bounds__(a)
#define C10_LAUNCH_BOUNDS_2(a, b) __launch_bounds__(a, b)
#else
#define C10_HOST_DEVICE
#define C10_DEVICE
#define C10_HOST
#define C10_LAUNCH_BOUNDS_0
#define C10_LAUNCH_BOUNDS_1(a)
#define C10_LAUNCH_BOUNDS_2(a, b)
#endif
/* Bits of one number as another's. The emulator looks at each call of memcpy; this is none. */
#ifdef LT_GPU
#define LT_BITS memcpy
#else
#define LT_BITS __builtin_memcpy
#endif
#define C10_ALWAYS_INLINE inline __attribute__((always_inline))
#define C10_UNUSED __attribute__((unused))
#define C10_LIKELY(e) (__builtin_expect(static_cast<bool>(e), 1))
#define C10_UNLIKELY(e) (__builtin_expect(static_cast<bool>(e), 0))
#define C10_RESTRICT __restrict__
#define C10_WARP_SIZE 32
#define TORCH_API
#define TORCH_VERSION_MAJOR 2
#define TORCH_VERSION_MINOR 11
#define TORCH_VERSION "2.11.0"

namespace lt {

#ifdef LT_USE_STREAM
template <class T>
void write_any(ostream &o, const void *p)
{
    if constexpr (std::is_function<T>::value) // a manipulator
        o << reinterpret_cast<T *>(const_cast<void *>(p));
    else
        o << *static_cast<const T *>(p);
}
void write_text(ostream &o, const void *p);
#define LT_WRITES(_) _(bool) _(char) _(int) _(unsigned) _(long) _(unsigned long) _(float) _(double) _(std::string)
#define LT_WRITE(T) extern template void write_any<T>(ostream &, const void *);
LT_WRITES(LT_WRITE)
#undef LT_WRITE

/* A part of a message: what an ostream would be given. It points to its value and lives for one full expression. */
struct piece {
    const void *what;
    void (*write)(ostream &, const void *);
    piece(const char *s) : what(s), write(write_text) {}
    template <class T>
    piece(const T &v) : what((const void *)std::addressof(v)), write(write_any<T>) {}
};
std::string join(std::initializer_list<piece> parts);
#endif

} // namespace lt

namespace c10 {

/* ---- errors: made out of line, since a check in a source costs a compiler more than its kernel does ---- */

#ifdef LT_USE_STREAM
#define LT_RAISE [[noreturn]] static void raise(const char *without, std::initializer_list<lt::piece> parts);
#else
#define LT_RAISE
#endif
class Error : public std::exception {
public:
    explicit Error(std::string m, int k = LT_RUNTIME_ERROR);
    ~Error() override;
    const char *what() const noexcept override;
    const char *what_without_backtrace() const noexcept { return message.c_str(); }
    const std::string &msg() const { return message; }
    LT_RAISE
    std::string message;
    int kind;
};
#define LT_ERRORS(_)                                                                                           \
    _(ValueError, LT_VALUE_ERROR) _(IndexError, LT_INDEX_ERROR) _(TypeError, LT_TYPE_ERROR)                    \
    _(NotImplementedError, LT_NOT_IMPLEMENTED)
#define LT_ERROR(NAME, KIND)                                                                                   \
    struct NAME : Error {                                                                                      \
        explicit NAME(std::string m);                                                                          \
        ~NAME() override;                                                                                      \
        LT_RAISE                                                                                               \
    };
LT_ERRORS(LT_ERROR)
#undef LT_ERROR

#ifdef LT_USE_STREAM
template <class... A>
std::string str(const A &...a) { return lt::join({lt::piece(a)...}); }
#else
template <class... A>
std::string str(const A &...a)
{
    lt::string_stream s;
    (void)(s << ... << a);
    return s.str();
}
inline std::string message(const char *without) { return without; }
template <class... A>
std::string message(const char *, const A &...a) { return str(a...); }
#endif

/* ---- small containers ---- */

template <class T>
class ArrayRef {
public:
    using value_type = T;
    using iterator = const T *;
    using const_iterator = const T *;
    constexpr ArrayRef() = default;
    constexpr ArrayRef(const T &one) : p(&one), n(1) {}
    constexpr ArrayRef(const T *d, size_t k) : p(d), n(k) {}
    constexpr ArrayRef(const T *b, const T *e) : p(b), n(size_t(e - b)) {}
    ArrayRef(const std::vector<T> &v) : p(v.data()), n(v.size()) {}
    template <size_t N>
    constexpr ArrayRef(const std::array<T, N> &v) : p(v.data()), n(N) {}
    template <size_t N>
    constexpr ArrayRef(const T (&v)[N]) : p(v), n(N) {}
    constexpr ArrayRef(const std::initializer_list<T> &v) : p(v.begin()), n(v.size()) {}
    constexpr const T *begin() const { return p; }
    constexpr const T *end() const { return p + n; }
    constexpr const T *data() const { return p; }
    constexpr size_t size() const { return n; }
    constexpr bool empty() const { return n == 0; }
    constexpr const T &operator[](size_t i) const { return p[i]; }
    const T &at(size_t i) const
    {
        if (i >= n)
            throw Error(str("ArrayRef: invalid index Index = ", i, "; Length = ", n));
        return p[i];
    }
    constexpr const T &front() const { return p[0]; }
    constexpr const T &back() const { return p[n - 1]; }
    constexpr ArrayRef slice(size_t from, size_t len) const { return ArrayRef(p + from, len); }
    constexpr ArrayRef slice(size_t from) const { return ArrayRef(p + from, n - from); }
    std::vector<T> vec() const { return std::vector<T>(p, p + n); }
    bool equals(ArrayRef o) const { return n == o.n && std::equal(p, p + n, o.p); }

private:
    const T *p = nullptr;
    size_t n = 0;
};
template <class T>
bool operator==(ArrayRef<T> a, ArrayRef<T> b) { return a.equals(b); }
template <class T>
bool operator!=(ArrayRef<T> a, ArrayRef<T> b) { return !a.equals(b); }
template <class T>
bool operator==(ArrayRef<T> a, const std::vector<T> &b) { return a.equals(b); }
template <class T>
bool operator!=(ArrayRef<T> a, const std::vector<T> &b) { return !a.equals(b); }
template <class T>
lt::ostream &operator<<(lt::ostream &o, ArrayRef<T> a)
{
    o << '[';
    for (size_t i = 0; i < a.size(); i++)
        o << (i ? ", " : "") << a[i];
    return o << ']';
}
using IntArrayRef = ArrayRef<int64_t>;
using IntList = IntArrayRef;
using SymIntArrayRef = IntArrayRef;
using SymInt = int64_t;
template <class T>
using optional = std::optional<T>;
using nullopt_t = std::nullopt_t;
inline constexpr std::nullopt_t nullopt = std::nullopt;
template <class T, unsigned N = 6>
using SmallVector = std::vector<T>;
using string_view = std::string_view;
template <class... A>
auto make_optional(A &&...a) { return std::make_optional(std::forward<A>(a)...); }
using OptionalIntArrayRef = std::optional<IntArrayRef>;

/* ---- half and bfloat16: 16 bits with float arithmetic, as c10 has them on the device ---- */

C10_HOST_DEVICE inline float half_bits_to_float(uint16_t h)
{
#if defined(__CUDA_ARCH__) && !defined(SIMT_CORE_H)
    float r;
    asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(h));
    return r;
#else
    uint32_t sign = uint32_t(h & 0x8000) << 16, exp = (h >> 10) & 31, man = h & 1023, bits;
    if (exp == 31)
        bits = sign | 0x7f800000 | man << 13;
    else if (exp)
        bits = sign | (exp + 112) << 23 | man << 13;
    else {
        float f = float(man) * 0x1p-24f;
        return sign ? -f : f;
    }
    float f;
    LT_BITS(&f, &bits, 4);
    return f;
#endif
}

C10_HOST_DEVICE inline uint16_t float_to_half_bits(float f) // round to nearest even
{
#if defined(__CUDA_ARCH__) && !defined(SIMT_CORE_H)
    uint16_t r;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(r) : "f"(f));
    return r;
#else
    uint32_t u;
    LT_BITS(&u, &f, 4);
    uint32_t sign = u >> 16 & 0x8000, a = u & 0x7fffffff;
    if (a >= 0x7f800000)
        return uint16_t(sign | 0x7c00 | (a > 0x7f800000 ? 0x200 | (a >> 13 & 0x3ff) : 0));
    if (a >= 0x477ff000)
        return uint16_t(sign | 0x7c00);
    if (a < 0x38800000) { // subnormal: let the float adder round
        float g;
        LT_BITS(&g, &a, 4);
        g += 0.5f;
        uint32_t v;
        LT_BITS(&v, &g, 4);
        return uint16_t(sign | (v - 0x3f000000));
    }
    a += 0xfff + (a >> 13 & 1);
    return uint16_t(sign | (a - 0x38000000) >> 13);
#endif
}

C10_HOST_DEVICE inline float bf16_bits_to_float(uint16_t b)
{
    uint32_t u = uint32_t(b) << 16;
    float f;
    LT_BITS(&f, &u, 4);
    return f;
}

C10_HOST_DEVICE inline uint16_t float_to_bf16_bits(float f)
{
    uint32_t u;
    LT_BITS(&u, &f, 4);
    if ((u & 0x7fffffff) > 0x7f800000)
        return uint16_t(0x7fc0);
    return uint16_t((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

/* To and from the toolkit's type, where its header is there; torch makes bfloat16's way there explicit. */
#define LT_NATIVE(NAME, T, EXPLICIT)                                                                           \
        C10_HOST_DEVICE NAME(const T &v) { LT_BITS(&x, &v, 2); }                                               \
        C10_HOST_DEVICE EXPLICIT operator T() const                                                            \
        {                                                                                                      \
            T v;                                                                                               \
            LT_BITS(&v, &x, 2);                                                                                \
            return v;                                                                                          \
        }
#ifdef LT_USE_HALF
#define LT_NATIVE_HALF(NAME) LT_NATIVE(NAME, __half, )
#else
#define LT_NATIVE_HALF(NAME)
#endif
#ifdef LT_USE_BFLOAT16
#define LT_NATIVE_BFLOAT16(NAME) LT_NATIVE(NAME, __nv_bfloat16, explicit)
#else
#define LT_NATIVE_BFLOAT16(NAME)
#endif
#define LT_DEFINE_16(NAME, TO_FLOAT, FROM_FLOAT, NATIVE)                                                       \
    struct alignas(2) NAME {                                                                                   \
        uint16_t x;                                                                                            \
        struct from_bits_t {};                                                                                 \
        C10_HOST_DEVICE static constexpr from_bits_t from_bits() { return {}; }                                \
        NAME() = default;                                                                                      \
        C10_HOST_DEVICE constexpr NAME(uint16_t b, from_bits_t) : x(b) {}                                      \
        C10_HOST_DEVICE NAME(float f) : x(FROM_FLOAT(f)) {}                                                    \
        C10_HOST_DEVICE operator float() const { return TO_FLOAT(x); }                                         \
        NATIVE(NAME)                                                                                           \
        C10_HOST_DEVICE NAME &operator+=(NAME b) { return *this = NAME(float(*this) + float(b)); }             \
        C10_HOST_DEVICE NAME &operator-=(NAME b) { return *this = NAME(float(*this) - float(b)); }             \
        C10_HOST_DEVICE NAME &operator*=(NAME b) { return *this = NAME(float(*this) * float(b)); }             \
        C10_HOST_DEVICE NAME &operator/=(NAME b) { return *this = NAME(float(*this) / float(b)); }             \
    };                                                                                                         \
    C10_HOST_DEVICE inline NAME operator-(NAME a) { return NAME(-float(a)); }                                  \
    LT_DEFINE_16_OP(NAME, +)                                                                                   \
    LT_DEFINE_16_OP(NAME, -)                                                                                   \
    LT_DEFINE_16_OP(NAME, *)                                                                                   \
    LT_DEFINE_16_OP(NAME, /)
#define LT_DEFINE_16_OP(NAME, OP)                                                                              \
    C10_HOST_DEVICE inline NAME operator OP(NAME a, NAME b) { return NAME(float(a) OP float(b)); }             \
    C10_HOST_DEVICE inline float operator OP(NAME a, float b) { return float(a) OP b; }                        \
    C10_HOST_DEVICE inline float operator OP(float a, NAME b) { return a OP float(b); }                        \
    C10_HOST_DEVICE inline double operator OP(NAME a, double b) { return double(float(a)) OP b; }              \
    C10_HOST_DEVICE inline double operator OP(double a, NAME b) { return a OP double(float(b)); }              \
    C10_HOST_DEVICE inline NAME operator OP(NAME a, int b) { return a OP NAME(float(b)); }                     \
    C10_HOST_DEVICE inline NAME operator OP(int a, NAME b) { return NAME(float(a)) OP b; }                     \
    C10_HOST_DEVICE inline NAME operator OP(NAME a, int64_t b) { return a OP NAME(float(b)); }                 \
    C10_HOST_DEVICE inline NAME operator OP(int64_t a, NAME b) { return NAME(float(a)) OP b; }
LT_DEFINE_16(Half, half_bits_to_float, float_to_half_bits, LT_NATIVE_HALF)
LT_DEFINE_16(BFloat16, bf16_bits_to_float, float_to_bf16_bits, LT_NATIVE_BFLOAT16)
inline lt::ostream &operator<<(lt::ostream &o, Half h) { return o << float(h); }
inline lt::ostream &operator<<(lt::ostream &o, BFloat16 h) { return o << float(h); }
}
#ifdef LT_USE_COMPLEX
#include "litetorch/complex.h"
#endif
namespace c10 {
/* ---- scalar types ---- */

enum class ScalarType : int8_t {
    Byte, Char, Short, Int, Long, Half, Float, Double, ComplexHalf, ComplexFloat, ComplexDouble, Bool, QInt8, QUInt8,
    QInt32, BFloat16, QUInt4x2, QUInt2x4, Bits1x8, Bits2x4, Bits4x2, Bits8, Bits16, Float8_e5m2, Float8_e4m3fn,
    Float8_e5m2fnuz, Float8_e4m3fnuz, UInt16, UInt32, UInt64, Undefined = 45, NumOptions
};
inline constexpr ScalarType kByte = ScalarType::Byte, kUInt8 = kByte, kChar = ScalarType::Char, kInt8 = kChar,
    kShort = ScalarType::Short, kInt16 = kShort, kInt = ScalarType::Int, kInt32 = kInt, kLong = ScalarType::Long,
    kInt64 = kLong, kHalf = ScalarType::Half, kFloat16 = kHalf, kFloat = ScalarType::Float, kFloat32 = kFloat,
    kDouble = ScalarType::Double, kFloat64 = kDouble, kBool = ScalarType::Bool, kBFloat16 = ScalarType::BFloat16,
    kComplexFloat = ScalarType::ComplexFloat, kComplexDouble = ScalarType::ComplexDouble,
    kFloat8_e5m2 = ScalarType::Float8_e5m2, kFloat8_e4m3fn = ScalarType::Float8_e4m3fn;

#ifdef LT_USE_COMPLEX
#define LT_COMPLEX_TYPES(_) _(::c10::complex<float>, ComplexFloat) _(::c10::complex<double>, ComplexDouble)
#else
#define LT_COMPLEX_TYPES(_)
#endif
#define LT_FORALL_TYPES(_)                                                                                     \
    _(uint8_t, Byte) _(int8_t, Char) _(int16_t, Short) _(int32_t, Int) _(int64_t, Long) _(::c10::Half, Half)   \
    _(float, Float) _(double, Double) _(bool, Bool) _(::c10::BFloat16, BFloat16)                               \
    LT_COMPLEX_TYPES(_)                                                                                        \
    _(uint16_t, UInt16) _(uint32_t, UInt32) _(uint64_t, UInt64)

namespace impl {
template <ScalarType S> struct ScalarTypeToCPPType;
#define LT_CASE(T, N) template <> struct ScalarTypeToCPPType<ScalarType::N> { using type = T; };
LT_FORALL_TYPES(LT_CASE)
#undef LT_CASE
template <ScalarType S> using ScalarTypeToCPPTypeT = typename ScalarTypeToCPPType<S>::type;
}

template <class T> struct CppTypeToScalarType;
#define LT_CASE(T, N)                                                                                          \
    template <> struct CppTypeToScalarType<T> : std::integral_constant<ScalarType, ScalarType::N> {};
LT_FORALL_TYPES(LT_CASE)
#undef LT_CASE
template <> struct CppTypeToScalarType<long long> : std::integral_constant<ScalarType, ScalarType::Long> {};
#ifdef LT_USE_HALF
template <> struct CppTypeToScalarType<__half> : std::integral_constant<ScalarType, ScalarType::Half> {};
#endif
#ifdef LT_USE_BFLOAT16
template <> struct CppTypeToScalarType<__nv_bfloat16> : std::integral_constant<ScalarType, ScalarType::BFloat16> {};
#endif

inline const char *toString(ScalarType t)
{
    static const char *const names[] = {"Byte", "Char", "Short", "Int", "Long", "Half", "Float", "Double",
        "ComplexHalf", "ComplexFloat", "ComplexDouble", "Bool", "QInt8", "QUInt8", "QInt32", "BFloat16"};
    switch (t) {
    case ScalarType::Float8_e5m2: return "Float8_e5m2";
    case ScalarType::Float8_e4m3fn: return "Float8_e4m3fn";
    case ScalarType::UInt16: return "UInt16";
    case ScalarType::UInt32: return "UInt32";
    case ScalarType::UInt64: return "UInt64";
    case ScalarType::Undefined: return "Undefined";
    default: return int(t) >= 0 && int(t) < 16 ? names[int(t)] : "UNKNOWN_SCALAR";
    }
}
inline lt::ostream &operator<<(lt::ostream &o, ScalarType t) { return o << toString(t); }
inline size_t elementSize(ScalarType t)
{
    switch (t) {
#define LT_CASE(T, N) case ScalarType::N: return sizeof(T);
    LT_FORALL_TYPES(LT_CASE)
#undef LT_CASE
    default: return 1;
    }
}
inline bool isFloatingType(ScalarType t)
{
    return t == kHalf || t == kFloat || t == kDouble || t == kBFloat16 || t == kFloat8_e5m2 || t == kFloat8_e4m3fn;
}
inline bool isIntegralType(ScalarType t, bool with_bool = false)
{
    return (int(t) <= int(kLong)) || (t >= ScalarType::UInt16 && t <= ScalarType::UInt64) || (with_bool && t == kBool);
}
inline bool isComplexType(ScalarType t) { return t == kComplexFloat || t == kComplexDouble; }

class TypeMeta {
public:
    TypeMeta(ScalarType t = ScalarType::Undefined) : type(t) {}
    operator ScalarType() const { return type; }
    ScalarType toScalarType() const { return type; }
    size_t itemsize() const { return elementSize(type); }
    std::string name() const
    {
        switch (type) {
        case ScalarType::Float: return "float";
        case ScalarType::Double: return "double";
        case ScalarType::Int: return "int";
        case ScalarType::Long: return "long";
        case ScalarType::Half: return "c10::Half";
        case ScalarType::BFloat16: return "c10::BFloat16";
        case ScalarType::Bool: return "bool";
        case ScalarType::Byte: return "unsigned char";
        case ScalarType::Char: return "signed char";
        case ScalarType::Short: return "short";
        default: return toString(type);
        }
    }
    template <class T> static TypeMeta Make() { return TypeMeta(CppTypeToScalarType<T>::value); }
    template <class T> bool Match() const { return type == CppTypeToScalarType<T>::value; }
    friend bool operator==(TypeMeta a, TypeMeta b) { return a.type == b.type; }
    friend bool operator!=(TypeMeta a, TypeMeta b) { return a.type != b.type; }
    friend bool operator==(TypeMeta a, ScalarType b) { return a.type == b; }
    friend bool operator!=(TypeMeta a, ScalarType b) { return a.type != b; }
    friend bool operator==(ScalarType a, TypeMeta b) { return a == b.type; }
    friend bool operator!=(ScalarType a, TypeMeta b) { return a != b.type; }
    friend lt::ostream &operator<<(lt::ostream &o, TypeMeta t) { return o << t.name(); }

private:
    ScalarType type;
};
inline ScalarType typeMetaToScalarType(TypeMeta t) { return t.toScalarType(); }
inline TypeMeta scalarTypeToTypeMeta(ScalarType t) { return TypeMeta(t); }
inline const char *toString(TypeMeta t) { return toString(t.toScalarType()); }

/* ---- devices, layouts, options ---- */

using DeviceIndex = int8_t;
enum class DeviceType : int8_t { CPU = 0, CUDA = 1, Meta = 14, PrivateUse1 = 20 };
inline constexpr DeviceType kCPU = DeviceType::CPU, kCUDA = DeviceType::CUDA, kMeta = DeviceType::Meta,
    kPrivateUse1 = DeviceType::PrivateUse1, kMUSA = DeviceType::CUDA;
inline const char *DeviceTypeName(DeviceType t)
{
    return t == kCUDA ? "cuda" : t == kCPU ? "cpu" : t == kMeta ? "meta" : "privateuseone";
}
inline lt::ostream &operator<<(lt::ostream &o, DeviceType t) { return o << DeviceTypeName(t); }

class Device {
public:
    Device(DeviceType t, int i = -1) : kind(t), number(DeviceIndex(i)) {}
    Device(const std::string &s) : kind(kCPU), number(-1)
    {
        size_t c = s.find(':');
        std::string name = s.substr(0, c);
        if (name == "cuda" || name == "musa")
            kind = kCUDA;
        else if (name != "cpu")
            throw Error("Expected one of cpu, cuda device type at start of device string: " + name);
        if (c != std::string::npos)
            number = DeviceIndex(std::atoi(s.c_str() + c + 1));
    }
    Device(const char *s) : Device(std::string(s)) {}
    DeviceType type() const { return kind; }
    DeviceIndex index() const { return number; }
    bool has_index() const { return number >= 0; }
    bool is_cuda() const { return kind == kCUDA; }
    bool is_cpu() const { return kind == kCPU; }
    bool is_privateuseone() const { return false; }
    std::string str() const
    {
        return DeviceTypeName(kind) + (number >= 0 ? ":" + std::to_string(int(number)) : std::string());
    }
    friend bool operator==(Device a, Device b) { return a.kind == b.kind && a.number == b.number; }
    friend bool operator!=(Device a, Device b) { return !(a == b); }
    friend lt::ostream &operator<<(lt::ostream &o, Device d) { return o << d.str(); }

private:
    DeviceType kind;
    DeviceIndex number;
};

enum class Layout : int8_t { Strided = 0, Sparse = 1 };
inline constexpr Layout kStrided = Layout::Strided, kSparse = Layout::Sparse;
enum class MemoryFormat : int8_t { Contiguous = 0, Preserve = 1, ChannelsLast = 2, ChannelsLast3d = 3 };
inline lt::ostream &operator<<(lt::ostream &o, Layout l) { return o << (l == kStrided ? "Strided" : "Sparse"); }

struct TensorOptions {
    std::optional<ScalarType> dtype_;
    std::optional<Device> device_;
    std::optional<bool> grad_, pin_;
    std::optional<MemoryFormat> format_;

    TensorOptions();
    TensorOptions(ScalarType t);
    TensorOptions(TypeMeta t);
    TensorOptions(Device d);
    TensorOptions(DeviceType d);
    TensorOptions(MemoryFormat f);
    TensorOptions(Layout);
    [[nodiscard]] TensorOptions dtype(std::optional<ScalarType> t) const;
    [[nodiscard]] TensorOptions dtype(ScalarType t) const;
    [[nodiscard]] TensorOptions dtype(TypeMeta t) const;
    template <class T> TensorOptions dtype() const { return dtype(CppTypeToScalarType<T>::value); }
    [[nodiscard]] TensorOptions device(std::optional<Device> d) const;
    [[nodiscard]] TensorOptions device(Device d) const;
    [[nodiscard]] TensorOptions device(DeviceType t, int i = -1) const;
    [[nodiscard]] TensorOptions device(const char *s) const;
    [[nodiscard]] TensorOptions device_index(int i) const;
    [[nodiscard]] TensorOptions layout(std::optional<Layout>) const { return *this; }
    [[nodiscard]] TensorOptions requires_grad(std::optional<bool> g) const;
    [[nodiscard]] TensorOptions pinned_memory(std::optional<bool> p) const;
    [[nodiscard]] TensorOptions memory_format(std::optional<MemoryFormat> f) const;
    Device device() const { return device_.value_or(Device(kCPU)); }
    TypeMeta dtype() const { return dtype_.value_or(kFloat); }
    Layout layout() const { return kStrided; }
    bool requires_grad() const { return grad_.value_or(false); }
    bool has_device() const { return device_.has_value(); }
    bool has_dtype() const { return dtype_.has_value(); }
};

inline lt::ostream &operator<<(lt::ostream &o, MemoryFormat f)
{
    static const char *const names[] = {"Contiguous", "Preserve", "ChannelsLast", "ChannelsLast3d"};

    return o << names[static_cast<int>(f)];
}

/* As c10 writes it: what was not set is followed by "(default)". */
inline lt::ostream &operator<<(lt::ostream &o, const TensorOptions &t)
{
    auto rest = [](bool set) { return set ? ", " : " (default), "; };

    o << "TensorOptions(dtype=" << t.dtype() << rest(t.dtype_.has_value()) << "device=" << t.device()
      << rest(t.device_.has_value()) << "layout=" << t.layout() << " (default), requires_grad="
      << (t.requires_grad() ? "true" : "false") << rest(t.grad_.has_value())
      << "pinned_memory=" << (t.pin_.value_or(false) ? "true" : "false") << rest(t.pin_.has_value())
      << "memory_format=";
    if (t.format_)
        return o << *t.format_ << ")";
    return o << "(nullopt))";
}
template <class T> TensorOptions dtype() { return TensorOptions().dtype<T>(); }
inline TensorOptions dtype(ScalarType t) { return TensorOptions(t); }
inline TensorOptions dtype(TypeMeta t) { return TensorOptions(t); }
inline TensorOptions device(Device d) { return TensorOptions(d); }
inline TensorOptions device(DeviceType d) { return TensorOptions(d); }
inline TensorOptions layout(Layout l) { return TensorOptions(l); }
inline TensorOptions requires_grad(bool g = true) { return TensorOptions().requires_grad(g); }
inline TensorOptions memory_format(MemoryFormat f) { return TensorOptions(f); }

/* ---- Scalar ---- */

class Scalar {
public:
    Scalar() : Scalar(int64_t(0)) {}
    template <class T, std::enable_if_t<std::is_integral<T>::value && !std::is_same<T, bool>::value, int> = 0>
    Scalar(T v) : tag(LT_INT), i(int64_t(v)), d(double(v)) {}
    Scalar(bool v) : tag(LT_BOOL), i(v), d(v) {}
    Scalar(double v) : tag(LT_DOUBLE), i(int64_t(v)), d(v) {}
    Scalar(float v) : Scalar(double(v)) {}
    Scalar(Half v) : Scalar(double(float(v))) {}
    Scalar(BFloat16 v) : Scalar(double(float(v))) {}
    template <class T>
    T to() const { return tag == LT_DOUBLE ? T(d) : T(i); }
    double toDouble() const { return tag == LT_DOUBLE ? d : double(i); }
    float toFloat() const { return float(toDouble()); }
    int toInt() const { return int(toLong()); }
    int64_t toLong() const { return tag == LT_DOUBLE ? int64_t(d) : i; }
    bool toBool() const { return tag == LT_DOUBLE ? d != 0 : i != 0; }
    bool isFloatingPoint() const { return tag == LT_DOUBLE; }
    bool isIntegral(bool with_bool = false) const { return tag == LT_INT || (with_bool && tag == LT_BOOL); }
    bool isBoolean() const { return tag == LT_BOOL; }
    ScalarType type() const { return tag == LT_DOUBLE ? kDouble : tag == LT_BOOL ? kBool : kLong; }
    Scalar operator-() const { return tag == LT_DOUBLE ? Scalar(-d) : Scalar(-i); }
    int32_t tag;
    int64_t i;
    double d;
};
inline lt::ostream &operator<<(lt::ostream &o, const Scalar &s)
{
    if (s.isFloatingPoint())
        o << s.d;
    else
        o << s.i;
    return o;
}

template <class T> C10_HOST_DEVICE inline T ceil_div(T a, T b) { return (a + b - 1) / b; }
template <class T> C10_HOST_DEVICE inline T divup(T a, T b) { return (a + b - 1) / b; }

} // namespace c10

namespace std {
#define LT_LIMITS(T, C, LOWEST, MAX, MIN, EPS, INF, NAN_)                                                      \
    template <> class numeric_limits<c10::T> : public numeric_limits<float> {                                  \
    public:                                                                                                    \
        static constexpr c10::T lowest() { return c10::T(LOWEST, c10::T::from_bits()); }                       \
        static constexpr c10::T max() { return c10::T(MAX, c10::T::from_bits()); }                             \
        static constexpr c10::T min() { return c10::T(MIN, c10::T::from_bits()); }                             \
        static constexpr c10::T epsilon() { return c10::T(EPS, c10::T::from_bits()); }                         \
        static constexpr c10::T infinity() { return c10::T(INF, c10::T::from_bits()); }                        \
        static constexpr c10::T quiet_NaN() { return c10::T(NAN_, c10::T::from_bits()); }                      \
    };
LT_LIMITS(Half, half, 0xFBFF, 0x7BFF, 0x0400, 0x1400, 0x7C00, 0x7E00)
LT_LIMITS(BFloat16, bf16, 0xFF7F, 0x7F7F, 0x0080, 0x3C00, 0x7F80, 0x7FC0)
#undef LT_LIMITS
} // namespace std

namespace at {
using namespace c10;
template <class T> struct OpMathType { using type = T; };
template <> struct OpMathType<c10::Half> { using type = float; };
template <> struct OpMathType<c10::BFloat16> { using type = float; };
template <class T> using opmath_type = typename OpMathType<T>::type;
template <class T, bool cuda> struct AccumulateType { using type = typename OpMathType<T>::type; };
template <class T, bool cuda> using acc_type = typename AccumulateType<T, cuda>::type;
C10_HOST_DEVICE inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
}

/* ---- checks ---- */

#ifdef LT_USE_STREAM
#define LT_FAIL(TYPE, DEFAULT, ...) ::c10::TYPE::raise(DEFAULT, {__VA_ARGS__})
#else
#define LT_FAIL(TYPE, DEFAULT, ...) throw ::c10::TYPE(::c10::message(DEFAULT, ##__VA_ARGS__))
#endif
#define LT_CHECK(TYPE, cond, ...)                                                                              \
    do {                                                                                                       \
        if (C10_UNLIKELY(!(cond)))                                                                             \
            LT_FAIL(TYPE, "Expected " #cond " to be true, but got false. ", ##__VA_ARGS__); \
    } while (0)
#define TORCH_CHECK(cond, ...) LT_CHECK(Error, cond, ##__VA_ARGS__)
#define TORCH_CHECK_VALUE(cond, ...) LT_CHECK(ValueError, cond, ##__VA_ARGS__)
#define TORCH_CHECK_INDEX(cond, ...) LT_CHECK(IndexError, cond, ##__VA_ARGS__)
#define TORCH_CHECK_TYPE(cond, ...) LT_CHECK(TypeError, cond, ##__VA_ARGS__)
#define TORCH_CHECK_NOT_IMPLEMENTED(cond, ...) LT_CHECK(NotImplementedError, cond, ##__VA_ARGS__)
#define TORCH_CHECK_WITH(type, cond, ...) LT_CHECK(type, cond, ##__VA_ARGS__)
#define TORCH_INTERNAL_ASSERT(cond, ...)                                                                       \
    do {                                                                                                       \
        if (C10_UNLIKELY(!(cond)))                                                                             \
            LT_FAIL(Error, "", #cond " INTERNAL ASSERT FAILED at \"", __FILE__, "\":", __LINE__,               \
                    ", please report a bug to PyTorch. ", ##__VA_ARGS__);                                      \
    } while (0)
#define TORCH_INTERNAL_ASSERT_DEBUG_ONLY(...)
#define AT_ASSERT(cond, ...) TORCH_INTERNAL_ASSERT(cond, ##__VA_ARGS__)
#define AT_ASSERTM(cond, ...) TORCH_CHECK(cond, ##__VA_ARGS__)
#define AT_ERROR(...) LT_FAIL(Error, "", ##__VA_ARGS__)
#define TORCH_WARN(...) (void)fprintf(stderr, "Warning: %s\n", ::c10::str(__VA_ARGS__).c_str())
#define TORCH_WARN_ONCE(...) TORCH_WARN(__VA_ARGS__)
#define LT_CHECK_OP(a, b, OP) TORCH_CHECK((a)OP(b), "Check failed: " #a " " #OP " " #b " (", (a), " vs. ", (b), "). ")
#define TORCH_CHECK_EQ(a, b) LT_CHECK_OP(a, b, ==)
#define TORCH_CHECK_NE(a, b) LT_CHECK_OP(a, b, !=)
#define TORCH_CHECK_LE(a, b) LT_CHECK_OP(a, b, <=)
#define TORCH_CHECK_LT(a, b) LT_CHECK_OP(a, b, <)
#define TORCH_CHECK_GE(a, b) LT_CHECK_OP(a, b, >=)
#define TORCH_CHECK_GT(a, b) LT_CHECK_OP(a, b, >)

#endif

/* complex.h - c10::complex: two numbers of T, real part first, aligned as one; kernels and host code compute with it.
 * std::complex does not do: its operators cannot be called from a kernel that nvcc compiles. */
#ifndef LITETORCH_COMPLEX_H
#define LITETORCH_COMPLEX_H

#include <complex>

namespace c10 {

template <class T>
struct alignas(2 * sizeof(T)) complex {
    using value_type = T;
    T real_ = T(0), imag_ = T(0);

    constexpr complex() = default;
    C10_HOST_DEVICE constexpr complex(const T &re, const T &im = T()) : real_(re), imag_(im) {}
    template <class U>
    C10_HOST_DEVICE explicit constexpr complex(const complex<U> &z) : real_(T(z.real_)), imag_(T(z.imag_)) {}
    complex(const std::complex<T> &z) : real_(z.real()), imag_(z.imag()) {}
    operator std::complex<T>() const { return {real_, imag_}; }

    C10_HOST_DEVICE constexpr T real() const { return real_; }
    C10_HOST_DEVICE constexpr T imag() const { return imag_; }
    C10_HOST_DEVICE constexpr void real(T v) { real_ = v; }
    C10_HOST_DEVICE constexpr void imag(T v) { imag_ = v; }
    C10_HOST_DEVICE constexpr complex &operator+=(const complex &z)
    {
        return *this = {real_ + z.real_, imag_ + z.imag_};
    }
    C10_HOST_DEVICE constexpr complex &operator-=(const complex &z)
    {
        return *this = {real_ - z.real_, imag_ - z.imag_};
    }
    C10_HOST_DEVICE constexpr complex &operator*=(const complex &z)
    {
        return *this = {real_ * z.real_ - imag_ * z.imag_, real_ * z.imag_ + imag_ * z.real_};
    }
    /* Scaled by the larger part of the divisor (Smith, 1962): its square may not overflow. */
    C10_HOST_DEVICE constexpr complex &operator/=(const complex &z)
    {
        const bool wide = (z.real_ < 0 ? -z.real_ : z.real_) >= (z.imag_ < 0 ? -z.imag_ : z.imag_);
        const T r = wide ? z.imag_ / z.real_ : z.real_ / z.imag_;
        const T d = wide ? z.real_ + z.imag_ * r : z.real_ * r + z.imag_;
        return *this = wide ? complex((real_ + imag_ * r) / d, (imag_ - real_ * r) / d)
                            : complex((real_ * r + imag_) / d, (imag_ * r - real_) / d);
    }
    C10_HOST_DEVICE constexpr complex operator-() const { return {-real_, -imag_}; }
    C10_HOST_DEVICE constexpr complex operator+() const { return *this; }

    friend C10_HOST_DEVICE constexpr complex operator+(complex a, const complex &b) { return a += b; }
    friend C10_HOST_DEVICE constexpr complex operator-(complex a, const complex &b) { return a -= b; }
    friend C10_HOST_DEVICE constexpr complex operator*(complex a, const complex &b) { return a *= b; }
    friend C10_HOST_DEVICE constexpr complex operator/(complex a, const complex &b) { return a /= b; }
    friend C10_HOST_DEVICE constexpr bool operator==(const complex &a, const complex &b)
    {
        return a.real_ == b.real_ && a.imag_ == b.imag_;
    }
    friend C10_HOST_DEVICE constexpr bool operator!=(const complex &a, const complex &b) { return !(a == b); }
};

}

/* As <complex> has them, found by name or with std:: before it. */
namespace std {
template <class T>
C10_HOST_DEVICE constexpr T real(const c10::complex<T> &z) { return z.real(); }
template <class T>
C10_HOST_DEVICE constexpr T imag(const c10::complex<T> &z) { return z.imag(); }
template <class T>
C10_HOST_DEVICE constexpr T norm(const c10::complex<T> &z) { return z.real() * z.real() + z.imag() * z.imag(); }
template <class T>
C10_HOST_DEVICE constexpr c10::complex<T> conj(const c10::complex<T> &z) { return {z.real(), -z.imag()}; }
template <class T>
C10_HOST_DEVICE T abs(const c10::complex<T> &z) { return ::hypot(z.real(), z.imag()); }
template <class T>
C10_HOST_DEVICE T arg(const c10::complex<T> &z) { return ::atan2(z.imag(), z.real()); }
template <class T>
C10_HOST_DEVICE c10::complex<T> exp(const c10::complex<T> &z)
{
    const T r = ::exp(z.real());
    return {r * ::cos(z.imag()), r * ::sin(z.imag())};
}
}

namespace c10 {
template <class T>
C10_HOST_DEVICE complex<T> polar(const T &r, const T &theta = T()) { return {r * ::cos(theta), r * ::sin(theta)}; }
}

#endif

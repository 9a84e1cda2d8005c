/* c10/util/irange.h as candidates include it. */
#pragma once
#include "litetorch/types.h"

namespace c10 {
template <class T>
std::vector<T> irange(T n)
{
    std::vector<T> v(size_t(n < 0 ? 0 : n));
    std::iota(v.begin(), v.end(), T(0));
    return v;
}
template <class A, class B>
std::vector<B> irange(A a, B b)
{
    std::vector<B> v(size_t(b < B(a) ? 0 : b - B(a)));
    std::iota(v.begin(), v.end(), B(a));
    return v;
}
}

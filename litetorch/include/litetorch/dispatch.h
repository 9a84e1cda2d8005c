/* dispatch.h - AT_DISPATCH_*: a switch over the scalar type with scalar_t bound in each case. */
#ifndef LITETORCH_DISPATCH_H
#define LITETORCH_DISPATCH_H

#include "litetorch/tensor.h"

namespace lt {
inline c10::ScalarType dispatch_type(c10::ScalarType t) { return t; }
inline c10::ScalarType dispatch_type(c10::TypeMeta t) { return t.toScalarType(); }
}

#define AT_DISPATCH_CASE(TYPE, ...)                                                                            \
    case TYPE: {                                                                                               \
        using scalar_t [[maybe_unused]] = ::c10::impl::ScalarTypeToCPPTypeT<TYPE>;                             \
        return __VA_ARGS__();                                                                                  \
    }
#define AT_DISPATCH_SWITCH(TYPE, NAME, ...)                                                                    \
    [&] {                                                                                                      \
        const auto &the_type = TYPE;                                                                           \
        constexpr const char *at_dispatch_name = NAME;                                                         \
        const ::c10::ScalarType _st = ::lt::dispatch_type(the_type);                                           \
        switch (_st) {                                                                                         \
            __VA_ARGS__                                                                                        \
        default:                                                                                               \
            LT_FAIL(NotImplementedError, "", '"', at_dispatch_name, "\" not implemented for '",                \
                    ::c10::toString(_st), "'");                                                                \
        }                                                                                                      \
    }()

#define LT_CASES_FLOAT(...)                                                                                    \
    AT_DISPATCH_CASE(::c10::kDouble, __VA_ARGS__) AT_DISPATCH_CASE(::c10::kFloat, __VA_ARGS__)
#define LT_CASES_INT(...)                                                                                      \
    AT_DISPATCH_CASE(::c10::kByte, __VA_ARGS__) AT_DISPATCH_CASE(::c10::kChar, __VA_ARGS__)                    \
    AT_DISPATCH_CASE(::c10::kInt, __VA_ARGS__) AT_DISPATCH_CASE(::c10::kLong, __VA_ARGS__)                     \
    AT_DISPATCH_CASE(::c10::kShort, __VA_ARGS__)
#define LT_CASES_COMPLEX(...)                                                                                  \
    AT_DISPATCH_CASE(::c10::kComplexDouble, __VA_ARGS__) AT_DISPATCH_CASE(::c10::kComplexFloat, __VA_ARGS__)
#define LT_CASES_ALL(...) LT_CASES_INT(__VA_ARGS__) LT_CASES_FLOAT(__VA_ARGS__)
#define LT_CASE1(T, ...) AT_DISPATCH_CASE(::c10::T, __VA_ARGS__)

#define AT_DISPATCH_CASE_FLOATING_TYPES(...) LT_CASES_FLOAT(__VA_ARGS__)
#define AT_DISPATCH_CASE_INTEGRAL_TYPES(...) LT_CASES_INT(__VA_ARGS__)
#define AT_DISPATCH_CASE_ALL_TYPES(...) LT_CASES_ALL(__VA_ARGS__)
#define AT_DISPATCH_CASE_FLOATING_TYPES_AND_HALF(...) LT_CASES_FLOAT(__VA_ARGS__) LT_CASE1(kHalf, __VA_ARGS__)

#define AT_DISPATCH_FLOATING_TYPES(TYPE, NAME, ...) AT_DISPATCH_SWITCH(TYPE, NAME, LT_CASES_FLOAT(__VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND_HALF(TYPE, NAME, ...)                                                   \
    AT_DISPATCH_SWITCH(TYPE, NAME, LT_CASES_FLOAT(__VA_ARGS__) LT_CASE1(kHalf, __VA_ARGS__))
#define AT_DISPATCH_REDUCED_FLOATING_TYPES(TYPE, NAME, ...)                                                    \
    AT_DISPATCH_SWITCH(TYPE, NAME, LT_CASE1(kHalf, __VA_ARGS__) LT_CASE1(kBFloat16, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND(T1, TYPE, NAME, ...)                                                    \
    AT_DISPATCH_SWITCH(TYPE, NAME, LT_CASES_FLOAT(__VA_ARGS__) AT_DISPATCH_CASE(T1, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND2(T1, T2, TYPE, NAME, ...)                                               \
    AT_DISPATCH_SWITCH(TYPE, NAME, LT_CASES_FLOAT(__VA_ARGS__) AT_DISPATCH_CASE(T1, __VA_ARGS__)               \
                                       AT_DISPATCH_CASE(T2, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND3(T1, T2, T3, TYPE, NAME, ...)                                           \
    AT_DISPATCH_SWITCH(TYPE, NAME, LT_CASES_FLOAT(__VA_ARGS__) AT_DISPATCH_CASE(T1, __VA_ARGS__)               \
                                       AT_DISPATCH_CASE(T2, __VA_ARGS__) AT_DISPATCH_CASE(T3, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES(TYPE, NAME, ...)                                                \
    AT_DISPATCH_SWITCH(TYPE, NAME, LT_CASES_FLOAT(__VA_ARGS__) LT_CASES_COMPLEX(__VA_ARGS__))
#define AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND1(T1, TYPE, NAME, ...)                                       \
    AT_DISPATCH_SWITCH(TYPE, NAME, LT_CASES_FLOAT(__VA_ARGS__) LT_CASES_COMPLEX(__VA_ARGS__)                   \
                                       AT_DISPATCH_CASE(T1, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND2(T1, T2, TYPE, NAME, ...)                                   \
    AT_DISPATCH_SWITCH(TYPE, NAME, LT_CASES_FLOAT(__VA_ARGS__) LT_CASES_COMPLEX(__VA_ARGS__)                   \
                                       AT_DISPATCH_CASE(T1, __VA_ARGS__) AT_DISPATCH_CASE(T2, __VA_ARGS__))
#define AT_DISPATCH_INTEGRAL_TYPES(TYPE, NAME, ...) AT_DISPATCH_SWITCH(TYPE, NAME, LT_CASES_INT(__VA_ARGS__))
#define AT_DISPATCH_INTEGRAL_TYPES_AND(T1, TYPE, NAME, ...)                                                    \
    AT_DISPATCH_SWITCH(TYPE, NAME, LT_CASES_INT(__VA_ARGS__) AT_DISPATCH_CASE(T1, __VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES(TYPE, NAME, ...) AT_DISPATCH_SWITCH(TYPE, NAME, LT_CASES_ALL(__VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND(T1, TYPE, NAME, ...)                                                         \
    AT_DISPATCH_SWITCH(TYPE, NAME, LT_CASES_ALL(__VA_ARGS__) AT_DISPATCH_CASE(T1, __VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND2(T1, T2, TYPE, NAME, ...)                                                    \
    AT_DISPATCH_SWITCH(TYPE, NAME, LT_CASES_ALL(__VA_ARGS__) AT_DISPATCH_CASE(T1, __VA_ARGS__)                 \
                                       AT_DISPATCH_CASE(T2, __VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND3(T1, T2, T3, TYPE, NAME, ...)                                                \
    AT_DISPATCH_SWITCH(TYPE, NAME, LT_CASES_ALL(__VA_ARGS__) AT_DISPATCH_CASE(T1, __VA_ARGS__)                 \
                                       AT_DISPATCH_CASE(T2, __VA_ARGS__) AT_DISPATCH_CASE(T3, __VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX(TYPE, NAME, ...)                                                     \
    AT_DISPATCH_SWITCH(TYPE, NAME, LT_CASES_ALL(__VA_ARGS__) LT_CASES_COMPLEX(__VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND_HALF(TYPE, NAME, ...) AT_DISPATCH_ALL_TYPES_AND(::c10::kHalf, TYPE, NAME, __VA_ARGS__)
#define AT_DISPATCH_INDEX_TYPES(TYPE, NAME, ...)                                                               \
    AT_DISPATCH_SWITCH(TYPE, NAME, LT_INDEX_CASE(::c10::kInt, __VA_ARGS__) LT_INDEX_CASE(::c10::kLong, __VA_ARGS__))
#define LT_INDEX_CASE(TYPE, ...)                                                                               \
    case TYPE: {                                                                                               \
        using index_t [[maybe_unused]] = ::c10::impl::ScalarTypeToCPPTypeT<TYPE>;                              \
        return __VA_ARGS__();                                                                                  \
    }

#endif

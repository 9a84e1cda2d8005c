/* vector.h - CUDA's vector types with their sizes and alignments, and the make_ functions. */
#ifndef SIMT_VECTOR_H
#define SIMT_VECTOR_H

#include "simt/core.h"

#define SIMT_VECTOR(T, N, A1, A2, A4)                                                                                 \
    struct __align__(A1) N##1 { T x; };                                                                               \
    struct __align__(A2) N##2 { T x, y; };                                                                            \
    struct __align__(A1) N##3 { T x, y, z; };                                                                         \
    struct __align__(A4) N##4 { T x, y, z, w; };                                                                      \
    SIMT_MAKE(T, N)
#define SIMT_MAKE(T, N)                                                                                               \
    static inline constexpr N##1 make_##N##1(T x) { return {x}; }                                                     \
    static inline constexpr N##2 make_##N##2(T x, T y) { return {x, y}; }                                             \
    static inline constexpr N##3 make_##N##3(T x, T y, T z) { return {x, y, z}; }                                     \
    static inline constexpr N##4 make_##N##4(T x, T y, T z, T w) { return {x, y, z, w}; }

SIMT_VECTOR(signed char, char, 1, 2, 4)
SIMT_VECTOR(unsigned char, uchar, 1, 2, 4)
SIMT_VECTOR(short, short, 2, 4, 8)
SIMT_VECTOR(unsigned short, ushort, 2, 4, 8)
SIMT_VECTOR(int, int, 4, 8, 16)
SIMT_VECTOR(long, long, 8, 16, 16)
SIMT_VECTOR(unsigned long, ulong, 8, 16, 16)
SIMT_VECTOR(long long, longlong, 8, 16, 16)
SIMT_VECTOR(unsigned long long, ulonglong, 8, 16, 16)
SIMT_VECTOR(float, float, 4, 8, 16)
SIMT_VECTOR(double, double, 8, 16, 16)

struct uint1 { unsigned x; };
struct __align__(8) uint2 { unsigned x, y; };
struct __align__(16) uint4 { unsigned x, y, z, w; };
SIMT_MAKE(unsigned, uint)

#undef SIMT_VECTOR
#undef SIMT_MAKE
#endif

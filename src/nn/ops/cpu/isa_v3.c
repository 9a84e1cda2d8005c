/* isa_v3.c - the operators for x86-64-v3: AVX2 and FMA, 8 floats a register. */
#ifdef __x86_64__
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx2,fma,bmi2"))), apply_to = function)
#else
#pragma GCC target("avx2,fma,bmi2")
#endif
#define ISA_NAME "v3"
#define ISA_TABLE ops_v3
#define VL 8
#include "nn/ops/cpu/isa_table.h"
#ifdef __clang__
#pragma clang attribute pop
#endif
#endif

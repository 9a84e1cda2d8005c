/* isa_v4.c - the operators for x86-64-v4: AVX-512, 16 floats a register. */
#ifdef __x86_64__
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx512f,avx512vl,avx512dq,avx512bw,avx2,fma,bmi2"))), \
                             apply_to = function)
#else
#pragma GCC target("avx512f,avx512vl,avx512dq,avx512bw,avx2,fma,bmi2")
#endif
#define ISA_NAME "v4"
#define ISA_TABLE ops_v4
#define VL 16
#include "nn/ops/cpu/isa_table.h"
#ifdef __clang__
#pragma clang attribute pop
#endif
#endif

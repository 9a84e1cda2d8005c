/* judge_kernels.h - the kernels by number, and their arguments: one struct each, passed by value, the same on both
 * backends. Addresses are the device's (uint64_t). Included by judge_kernels.cu, too: no other headers of ours than
 * these. */
#ifndef MC_DEVICE_JUDGE_KERNELS_H
#define MC_DEVICE_JUDGE_KERNELS_H

#include "device/element.h"

#define K_THREADS 256    /* threads per block of every kernel */
#define K_MAX_BLOCKS 4096
#define K_DIMS 17        /* 16 dimensions and the two components of complex numbers */
#define K_HISTOGRAM 2048 /* groups that are counted in shared memory */

enum kernel_id {
    K_DIFF_ANY, /* any strides, any dtypes */
    K_DIFF_F16_F64, /* got, oracle: contiguous */
    K_DIFF_BF16_F64,
    K_DIFF_F32_F64,
    K_DIFF_F64_F64,
    K_DIFF_F16_F16,
    K_DIFF_BF16_BF16,
    K_DIFF_F32_F32,
    K_DIFF_EXACT, /* integers: contiguous, all of one dtype, 16-byte aligned */
    K_MARK,
    K_GROUP_COUNT,
    K_GROUP_SUM,
    K_GROUP_STEP,
    K_CHECKSUM,
    K_COUNT
};

#define KERNEL_NAMES                                                                                                   \
    {"judge_diff_any", "judge_diff_f16_f64", "judge_diff_bf16_f64", "judge_diff_f32_f64", "judge_diff_f64_f64",        \
     "judge_diff_f16_f16", "judge_diff_bf16_bf16", "judge_diff_f32_f32", "judge_diff_exact", "judge_mark",             \
     "judge_group_count", "judge_group_sum", "judge_group_step", "judge_checksum"}

/* Strides count real components. */
struct k_operand {
    uint64_t ptr;
    int64_t stride[K_DIMS];
    int32_t dtype, pad;
};

struct k_diff_result {
    struct el_tally tally;
    double first_oracle, first_got, worst_oracle, worst_got;
};

struct k_diff {
    struct k_operand eager, oracle, got;
    int64_t shape[K_DIMS], n; /* dimensions that are adjacent in all operands are merged; n real components */
    struct el_tolerance tol;
    int32_t ndim, contiguous, is_float, oracle_counts; /* oracle_counts: an integer may also equal oracle */
    int32_t vector; /* got and oracle are aligned for two elements at once */
    int32_t wide;   /* ... for 16 bytes at once */
    uint64_t partial;  /* struct el_tally, one per block */
    uint64_t result;   /* struct k_diff_result */
    uint64_t arrivals; /* uint32_t: blocks that are done; zero before and after */
};

struct k_mark {
    struct k_diff diff; /* partial, result and arrivals unused */
    uint64_t mask;      /* uint32_t, one bit per element, rounded up */
    double first_oracle, first_got;
    uint64_t relations; /* uint32_t, EL_RELATIONS before */
};

/* Group of element i = i / inner % n_groups; this launch counts groups [from, from + width). Work item: a piece of at
 * most 'piece' elements of one run of 'inner'. */
struct k_group_count {
    uint64_t mask, counts; /* counts: uint64_t per group, zero before */
    int64_t n, inner, n_groups, from, width, piece, pieces, items;
};

struct k_group_result {
    int64_t n_bad, first, last, stray; /* first: INT64_MAX if none; last: -1 */
    int64_t uneven;
};

struct k_group_sum {
    uint64_t counts, wrong; /* wrong: uint32_t words, one bit per group; whole words, since from is a multiple of 32 */
    uint64_t result;
    int64_t per, from, width;
};

struct k_group_step {
    uint64_t wrong, result;
    int64_t n_groups, first, step;
};

struct k_checksum {
    uint64_t p, result; /* result: uint64_t, added to; p: any alignment */
    int64_t n;
    uint64_t first; /* number of the first word */
};

#endif

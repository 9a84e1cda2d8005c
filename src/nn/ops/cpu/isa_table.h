/* isa_table.h - all operators for one instruction set. isa_*.c define ISA_NAME, ISA_TABLE and VL, then include this:
 * the one place where the same sources become the functions of one table. */
#include <omp.h>
#include <stdlib.h>

#include "base/mem.h"
#include "nn/ops/ops.h"
#include "nn/ops/cpu/simd.h"

#include "nn/ops/cpu/gemm.c"
#include "nn/ops/cpu/rmsnorm.c"
#include "nn/ops/cpu/rope.c"
#include "nn/ops/cpu/bias.c"
#include "nn/ops/cpu/swiglu.c"
#include "nn/ops/cpu/conv.c"
#include "nn/ops/cpu/gate.c"
#include "nn/ops/cpu/attention.c"
#include "nn/ops/cpu/delta.c"
#include "nn/ops/cpu/classifier.c"
#include "nn/ops/cpu/adamw.c"

extern const struct ops ISA_TABLE;
const struct ops ISA_TABLE = {
    .name = ISA_NAME, .nr = NR, .mr = MR,
    .pack_nt = pack_nt, .pack_nn = pack_nn, .pack_nt_mt = pack_nt_mt, .pack_nn_mt = pack_nn_mt,
    .gemm = gemm, .gemm_mt = gemm_mt,
    .rmsnorm_mt = rmsnorm_mt, .rmsnorm_backward_mt = rmsnorm_backward_mt, .rmsnorm_apply_mt = rmsnorm_apply_mt,
    .qk_norm_rope_mt = qk_norm_rope_mt, .qk_norm_rope_backward_mt = qk_norm_rope_backward_mt,
    .bias_rows_mt = bias_rows_mt, .bias_backward_mt = bias_backward_mt,
    .attn_scratch = attn_scratch, .attn_forward_mt = attn_forward_mt, .attn_backward_mt = attn_backward_mt,
    .softmax_row = softmax_row, .gemm_part = gemm_part,
    .swiglu_mt = swiglu_mt, .swiglu_backward_mt = swiglu_backward_mt,
    .classifier_mt = classifier_mt, .classifier_backward_mt = classifier_backward_mt,
    .conv_silu_mt = conv_silu_mt, .conv_silu_backward_mt = conv_silu_backward_mt,
    .conv_silu_step_mt = conv_silu_step_mt, .out_gate_mt = out_gate_mt, .out_gate_backward_mt = out_gate_backward_mt,
    .gated_norm_mt = gated_norm_mt, .gated_norm_backward_mt = gated_norm_backward_mt,
    .delta_scratch = delta_scratch, .delta_forward_mt = delta_forward_mt, .delta_backward_mt = delta_backward_mt,
    .delta_step_mt = delta_step_mt,
    .adamw_mt = adamw_mt, .sumsq = sumsq, .scale = scale,
};

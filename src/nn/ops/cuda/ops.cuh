/* ops.cuh - the functions behind the table of dev_ops.h, and how vendor libraries are found. */
#ifndef MC_NN_CUDA_OPS_CUH
#define MC_NN_CUDA_OPS_CUH

#include "nn/ops/cuda/queue.cuh"

/* One function for each member of the table: op_NAME has the type of struct nn_dev_ops.NAME. device.cu checks that. */
#define OPS(X)                                                                                                         \
    X(to_f32) X(from_f32) X(gemm) X(embed) X(embed_backward) X(rmsnorm) X(rmsnorm_backward) X(qk_norm_rope)            \
    X(qk_norm_rope_backward) X(bias_rows) X(bias_backward) X(attn) X(attn_backward) X(swiglu) X(swiglu_backward)       \
    X(conv_silu) X(conv_silu_backward) X(conv_silu_step) X(conv_keep) X(out_gate) X(out_gate_backward)                 \
    X(gated_norm) X(gated_norm_backward) X(delta) X(delta_backward) X(delta_step) X(classifier)                        \
    X(classifier_backward) X(keep_rows) X(adamw) X(sumsq) X(scale) X(kv_store) X(attn_decode) X(step) X(sample)        \
    X(comm_id) X(comm_open) X(comm_sum) X(comm_share) X(comm_failed) X(comm_abort)

template <class F> struct function_of;
template <class F> struct function_of<F *> { typedef F type; };
#define DECLARE(name) function_of<decltype(nn_dev_ops::name)>::type op_##name;
OPS(DECLARE)
#undef DECLARE

bool flash_fits(enum nn_dtype dt, const struct nn_attn *a);
void flash_forward(struct nn_queue *q, const struct nn_attn *a, const void *query, const void *key, const void *value,
                   void *o, float *lse);
void flash_backward(struct nn_queue *q, const struct nn_attn *a, const void *query, const void *key, const void *value,
                    const void *o, const float *lse, const void *dout, float *delta, void *dq, void *dk, void *dv);

int gemm_open(struct nn_queue *q, char *msg, size_t n);
void gemm_close(struct nn_queue *q);

/* The vendor's libraries, name and major version. */
#ifndef BLAS_LIBRARY
#define BLAS_HEADER <cublasLt.h>
#define BLAS_LIBRARY "cublasLt", "13"
#define COMM_LIBRARY "nccl", "2"
#endif
/* A function's name as its library spells it. */
#define SYMBOL(name) SYMBOL_TEXT(name)
#define SYMBOL_TEXT(name) #name

/* libNAME.so.MAJOR (NULL: libNAME.so) from the loader's path, $MUSACODER_CUDA_LIBS (a folder), CUDA's or MUSA's usual
 * place, or a Python environment's nvidia packages. NULL with a message that says where was looked. */
void *library_open(const char *name, const char *major, char *msg, size_t n);
void *library_symbol(void *lib, const char *symbol, char *msg, size_t n);

#endif

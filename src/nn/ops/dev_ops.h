/* dev_ops.h - the operators of the model on a device: a table that a library of kernels exports.
 *
 * Plain C, shared by the engine (C) and the kernels (CUDA C++). All pointers are device memory unless the name
 * starts with host_. Activations are of type dt (bf16 or fp32), row-major, 16-byte aligned, widths a multiple of 8
 * elements; T is rows, ld a row stride in elements. Gradients of weights, statistics and optimiser state are fp32.
 * Work is queued on the one stream of struct nn_queue, in order; an operator never waits. Errors stick to the
 * queue and are told by 'sync'. Every sum has a fixed order, so the same calls give the same bits. */
#ifndef MC_NN_DEV_OPS_H
#define MC_NN_DEV_OPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nn/ops/shapes.h"

#define NN_DEV_ABI 7
#define NN_DEV_SYMBOL "nn_dev_ops"

enum nn_dtype { NN_F32, NN_BF16 };

struct nn_queue; /* a device's stream, its matrix library, scratch, and the first error */

struct nn_dev_info {
    char name[96];
    size_t total, free;   /* bytes of device memory */
    int processors;       /* streaming multiprocessors */
};

/* D = A B (+ beta C). Row-major. NT: A (m, k), B (n, k). NN: A (m, k), B (k, n). TN: A (k, m), B (k, n). */
enum nn_gemm { NN_GEMM_NT, NN_GEMM_NN, NN_GEMM_TN };
struct nn_product {
    enum nn_gemm form;
    int m, n, k;
    const void *a, *b, *c; /* a and b of type dt; c NULL: d itself */
    void *d;
    int lda, ldb, ldc, ldd;
    float beta;            /* 0 or 1 */
    bool d_f32;            /* c and d are fp32 whatever dt is: gradients of weights */
};

/* Packed sequences: sequence i owns rows [cu[i], cu[i+1]) of all T. */
struct nn_attn {
    int T, heads, kv_heads, dim;
    int ld_q, ld_k, ld_v, ld_o;
    int n_seq, n_tiles;
    const int32_t *cu;      /* (n_seq + 1) */
    const int32_t *pos;     /* (T) position within the sequence */
    const int32_t *seq;     /* (T) which sequence */
    const int32_t *tiles;   /* (n_tiles, 2) sequence, tile of NN_ATTN_TILE rows; the longest work first */
};
#define NN_ATTN_TILE 128

/* One decoding step over the rows of a batch. Keys and values of slot s, position p: at ((s * max_len) + p) * kv_heads
 * * dim. */
struct nn_decode {
    int B, heads, kv_heads, dim, max_len;
    const int32_t *slot, *pos; /* (B) pos: position of the query; its key is in the cache already */
    const void *k, *v;         /* this layer's cache, type dt */
};

/* One decoding step of B rows through all layers, from the last tokens to logits (bf16, heads of 64 or 128, all
 * rotated, SwiGLU). */
#define NN_STEP_ROWS 4
struct nn_step_layer { /* weights, bias and norms of heads NULL where there are none; cache as in struct nn_decode */
    const void *norm1, *qkv, *bias, *q_norm, *k_norm, *o, *norm2, *gate_up, *down;
    void *cache_k, *cache_v;
};
struct nn_step {
    int B, layers, d, f, heads, kv_heads, dim, V, ld_logits, max_len;
    float eps, plus;
    const struct nn_step_layer *layer; /* (layers) in device memory */
    const void *embed, *final_norm, *head;
    const float *rope;                 /* (positions, dim) */
    const int32_t *token, *pos, *slot; /* (B) slot < 0: a row whose result nobody wants */
    void *logits;                      /* (B, ld_logits) */
};

/* Input of a gated delta rule, rows packed or (in a step) one row for each of n_seq sequences. */
struct nn_delta_in {
    struct nn_delta s;
    int n_seq;
    const int32_t *cu;       /* (n_seq + 1); NULL in a step */
    const void *c, *b, *a;   /* c dense; b and a (T, v_heads) with row stride s.ld_gate */
    const float *a_log, *dt_bias; /* (v_heads) */
};

struct nn_adamw {
    size_t n;                /* elements, a multiple of 64 */
    float *w;                /* fp32 master */
    void *w16;               /* weights that the operators read, type dt; NULL where dt is fp32 */
    const float *g;
    float *m, *v;
    const uint8_t *decays;   /* (n / 64) 1 where weight decay applies */
    float scale;             /* of g: clipping */
    float lr, beta1, beta2, eps, decay, correct1, correct2; /* correct: 1 - beta^step */
};

struct nn_sample {
    int B, V, ld;            /* ld: row stride of the logits */
    int ids;                 /* <= V: only ids below it are drawn */
    const void *logits;      /* (B, V) type dt */
    float temperature, top_p; /* temperature 0: greedy. top_p 1: all */
    const uint64_t *seed;    /* (B) of the sample */
    int32_t *pos;            /* (B) position of the token that produced these logits; grows by one */
    int32_t *token;          /* (B) out: the chosen id, input of the next step */
    int32_t *out_token;      /* (B) also written here */
    float *out_logp;         /* (B) log_softmax(z / T)[token], no truncation; T = 1 when greedy */
    uint32_t *kept;          /* NULL, or (B, (ids + 31) / 32) out: a bit for each id that could be drawn; out_logp is
                              * then normalised over those */
};

struct nn_dev_ops {
    int abi;
    const char *kind; /* "cuda" or "sim" */

    /* ---- device ---- */
    int (*count)(void);
    int (*open)(int ordinal, struct nn_queue **ret, char *msg, size_t msg_n); /* 0 or -1 with a message */
    void (*close)(struct nn_queue *q);
    void (*info)(struct nn_queue *q, struct nn_dev_info *ret);
    void *(*alloc)(struct nn_queue *q, size_t bytes);  /* zeroed; NULL when there is no room */
    void (*release)(struct nn_queue *q, void *p);
    /* host memory is free on return */
    void (*upload)(struct nn_queue *q, void *to, const void *host_from, size_t bytes);
    void (*download)(struct nn_queue *q, void *host_to, const void *from, size_t bytes); /* waits */
    void (*copy)(struct nn_queue *q, void *to, const void *from, size_t bytes);
    void (*zero)(struct nn_queue *q, void *p, size_t bytes);
    int (*sync)(struct nn_queue *q, char *msg, size_t msg_n); /* waits; -1 with the first error since the start */
    double (*time_ms)(struct nn_queue *q, bool start);        /* device time since the last start; waits when !start */
    /* -1 where graphs are not supported: queue the work plainly */
    int (*graph_begin)(struct nn_queue *q);
    void *(*graph_end)(struct nn_queue *q);
    void (*graph_launch)(struct nn_queue *q, void *graph);
    void (*graph_free)(struct nn_queue *q, void *graph);

    /* ---- convert.cu ---- */
    void (*to_f32)(struct nn_queue *q, enum nn_dtype dt, size_t n, const void *from, float *to);
    void (*from_f32)(struct nn_queue *q, enum nn_dtype dt, size_t n, const float *from, void *to);

    /* ---- gemm.cu ---- */
    void (*gemm)(struct nn_queue *q, enum nn_dtype dt, const struct nn_product *p);

    /* ---- embed.cu ---- */
    void (*embed)(struct nn_queue *q, enum nn_dtype dt, int T, int d, const int32_t *tokens, const void *table,
                  void *out);
    /* dtable[id] += sum of dx over the rows with that id, in their order. order (T): rows sorted by id; start
     * (n_ids + 1) into order; ids (n_ids). */
    void (*embed_backward)(struct nn_queue *q, enum nn_dtype dt, int n_ids, int d, const int32_t *ids,
                           const int32_t *start,
                           const int32_t *order, const void *dx, float *dtable);

    /* ---- rmsnorm.cu: y = x rstd (plus + w). rows (T) or NULL: row i of y is row rows[i] of x ---- */
    void (*rmsnorm)(struct nn_queue *q, enum nn_dtype dt, int T, int d, const int32_t *rows, const void *x,
                    const void *w, float plus, float eps, void *y, float *rstd);
    /* dx (at rows) += backward of dy; dw += ; y is written again when not NULL */
    void (*rmsnorm_backward)(struct nn_queue *q, enum nn_dtype dt, int T, int d, const int32_t *rows, const void *x,
                             const void *w, float plus, const float *rstd, const void *dy, void *dx, float *dw,
                             void *y);

    /* ---- rope.cu: RMSNorm of each head with w (dim), then rotation; w NULL: rotation alone, and rstd and dw are left
     * as they are. rope (positions, rot): cos, then sin ---- */
    void (*qk_norm_rope)(struct nn_queue *q, enum nn_dtype dt, int T, struct nn_heads s, const void *in, int ld_in,
                         const void *w, float eps, const int32_t *pos, const float *rope, void *out, int ld_out,
                         float *rstd);
    void (*qk_norm_rope_backward)(struct nn_queue *q, enum nn_dtype dt, int T, struct nn_heads s, const void *in,
                                  int ld_in, const void *w, const float *rstd, const int32_t *pos, const float *rope,
                                  const void *dout, int ld_dout, void *din, int ld_din, float *dw);

    /* ---- bias.cu: every row of y (T, n), row stride ld, becomes b (n); db += the sum of all rows of dy. n and ld in
     * multiples of 8 ---- */
    void (*bias_rows)(struct nn_queue *q, enum nn_dtype dt, int T, int n, const void *b, void *y, int ld);
    void (*bias_backward)(struct nn_queue *q, enum nn_dtype dt, int T, int n, const void *dy, int ld, float *db);

    /* ---- attention.cu (any shape) and flash.cu (bf16, dim 64 and 128). lse (T, heads), delta (T, heads) scratch ----
     * */
    void (*attn)(struct nn_queue *q, enum nn_dtype dt, const struct nn_attn *s, const void *query, const void *key,
                 const void *value, void *o, float *lse);
    void (*attn_backward)(struct nn_queue *q, enum nn_dtype dt, const struct nn_attn *s, const void *query,
                          const void *key,
                          const void *value, const void *o, const float *lse, const void *dout, float *delta, void *dq,
                          void *dk, void *dv);

    /* ---- swiglu.cu: gu (T, 2f) gate then up. Backward: dgu may be gu; act is written again ---- */
    void (*swiglu)(struct nn_queue *q, enum nn_dtype dt, int T, int f, const void *gu, void *act);
    void (*swiglu_backward)(struct nn_queue *q, enum nn_dtype dt, int T, int f, const void *gu, const void *dact,
                            void *dgu,
                            void *act);

    /* ---- conv.cu: as in ops.h; dy becomes scratch. Step: past of slot s at past + s * stride (taps - 1, ch), renewed;
     * slot < 0: nothing. keep: the last rows of each sequence, for later steps ---- */
    void (*conv_silu)(struct nn_queue *q, enum nn_dtype dt, int T, int ch, int taps, const int32_t *pos, const void *x,
                      int ld, const void *w, void *y);
    void (*conv_silu_backward)(struct nn_queue *q, enum nn_dtype dt, int T, int ch, int taps, const int32_t *pos,
                               const void *x, int ld, const void *w, void *dy, void *dx, int ld_dx, float *dw);
    void (*conv_silu_step)(struct nn_queue *q, enum nn_dtype dt, int B, int ch, int taps, const void *x, int ld,
                           const void *w, const int32_t *slot, size_t stride, void *past, void *y);
    void (*conv_keep)(struct nn_queue *q, enum nn_dtype dt, int n_seq, int ch, int taps, const int32_t *cu,
                      const void *x, int ld, const int32_t *slot, size_t stride, void *past);

    /* ---- gate.cu: as in ops.h. Backward: y (may be NULL) is what went forward; dy becomes da; d_o may be dy ---- */
    void (*out_gate)(struct nn_queue *q, enum nn_dtype dt, int T, int heads, int dim, const void *a, const void *g,
                     int ld, int step, void *y);
    void (*out_gate_backward)(struct nn_queue *q, enum nn_dtype dt, int T, int heads, int dim, const void *a,
                              const void *g, int ld, int step, void *dy, void *dg, void *y);
    void (*gated_norm)(struct nn_queue *q, enum nn_dtype dt, int T, int heads, int dim, const void *o, const void *w,
                       float eps, const void *z, int ld, void *y);
    void (*gated_norm_backward)(struct nn_queue *q, enum nn_dtype dt, int T, int heads, int dim, const void *o,
                                const void *w, float eps, const void *z, int ld, const void *dy, void *d_o, void *dz,
                                int ld_dz, void *y, float *dw);

    /* ---- delta.cu: k_dim <= 128. slot (n_seq) or NULL: where each sequence's last state goes, (v_heads, k_dim, v_dim)
     * at last + slot * stride; slot < 0: nowhere. dc, db, da are set, the others added to. scratch: nn_delta_scratch
     * bytes ---- */
    void (*delta)(struct nn_queue *q, enum nn_dtype dt, const struct nn_delta_in *in, void *o, const int32_t *slot,
                  size_t stride, float *last);
    void (*delta_backward)(struct nn_queue *q, enum nn_dtype dt, const struct nn_delta_in *in, int T, const void *dout,
                           void *dc, void *db, void *da, float *da_log, float *ddt_bias, float *scratch);
    void (*delta_step)(struct nn_queue *q, enum nn_dtype dt, const struct nn_delta_in *in, const int32_t *slot,
                       size_t stride, float *state, void *o);

    /* ---- classifier.cu: logits (n, V), row stride ld ---- */
    void (*classifier)(struct nn_queue *q, enum nn_dtype dt, int n, int V, int ld, const void *z, float inv_temp,
                       const int32_t *target, float *lse, float *logp, float *entropy);
    void (*classifier_backward)(struct nn_queue *q, enum nn_dtype dt, int n, int V, int ld, void *z, float inv_temp,
                                const int32_t *target, const float *lse, const float *entropy, const float *dlogp,
                                const float *dentropy);

    /* Row i keeps ids [to[i], to[i + 1]) of 'kept' (device, both), the rest become 'out'; none: it stays. hold: scratch
     * of to[n] - to[0] numbers. */
    void (*keep_rows)(struct nn_queue *q, enum nn_dtype dt, int n, int V, int ld, void *z, const int32_t *to,
                      const int32_t *kept, float out, float *hold);

    /* ---- adamw.cu ---- */
    void (*adamw)(struct nn_queue *q, enum nn_dtype dt, const struct nn_adamw *a);
    void (*sumsq)(struct nn_queue *q, size_t n, const float *x, double *ret); /* ret: device, one double */
    void (*scale)(struct nn_queue *q, size_t n, float *x, float s);

    /* ---- decode.cu ---- */
    /* Row t of k and v (T, kv_heads * dim) goes to its slot and position; slot[t] < 0: nowhere. */
    void (*kv_store)(struct nn_queue *q, enum nn_dtype dt, int T, int width, int max_len, const int32_t *slot,
                     const int32_t *pos, const void *k, int ld_k, const void *v, int ld_v, void *cache_k,
                     void *cache_v);
    void (*attn_decode)(struct nn_queue *q, enum nn_dtype dt, const struct nn_decode *s, const void *query, int ld_q,
                        void *o,
                        int ld_o);
    bool (*step)(struct nn_queue *q, enum nn_dtype dt, const struct nn_step *s); /* step.cu; false: another shape */
    void (*sample)(struct nn_queue *q, enum nn_dtype dt, const struct nn_sample *s);

    /* ---- collective.cu: NCCL by dlopen, shared memory on the emulator. id: 128 bytes that rank 0 makes and the others
     * are given ---- */
    int (*comm_id)(void *host_id, char *msg, size_t msg_n);
    int (*comm_open)(struct nn_queue *q, const void *host_id, int rank, int world, char *msg, size_t msg_n);
    void (*comm_sum)(struct nn_queue *q, size_t n, float *x); /* all ranks get the sum */
    void (*comm_share)(struct nn_queue *q, size_t n, float *x, int root); /* all ranks get what root has */
    int (*comm_failed)(struct nn_queue *q, char *msg, size_t msg_n); /* 1 with a message after an asynchronous error */
    void (*comm_abort)(struct nn_queue *q);
};

#endif

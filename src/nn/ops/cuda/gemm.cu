/* gemm.cu - matrix products by cuBLASLt, found with dlopen. The algorithm of a shape is asked for once and kept, so
 * equal
 * calls run equal code and give equal bits. The emulator, which has no such library, runs a plain kernel. */
#include "nn/ops/cuda/ops.cuh"

#include <stdlib.h>

#ifdef NN_EMULATED

template <class T, class D> __global__ void plain_kernel(struct nn_product p)
{
    int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y;
    const T *a = (const T *)p.a, *b = (const T *)p.b;
    float sum = 0;

    if (j >= p.n)
        return;
    for (int k = 0; k < p.k; k++) {
        float x = to_float(p.form == NN_GEMM_TN ? a[(size_t)k * p.lda + i] : a[(size_t)i * p.lda + k]);
        float y = to_float(p.form == NN_GEMM_NT ? b[(size_t)j * p.ldb + k] : b[(size_t)k * p.ldb + j]);
        sum += x * y;
    }
    if (p.beta != 0)
        sum += p.beta * to_float(p.c ? ((const D *)p.c)[(size_t)i * p.ldc + j] : ((D *)p.d)[(size_t)i * p.ldd + j]);
    ((D *)p.d)[(size_t)i * p.ldd + j] = from_float<D>(sum);
}

void op_gemm(struct nn_queue *q, enum nn_dtype dt, const struct nn_product *p)
{
    dim3 grid((unsigned)ceil_div(p->n, 64), (unsigned)p->m);

    if (dt == NN_F32)
        launch(q, "gemm", (plain_kernel<float, float>), grid, 64, 0, *p);
    else if (p->d_f32)
        launch(q, "gemm", (plain_kernel<bf16, float>), grid, 64, 0, *p);
    else
        launch(q, "gemm", (plain_kernel<bf16, bf16>), grid, 64, 0, *p);
}

int gemm_open(struct nn_queue *q, char *msg, size_t n) { return 0; }
void gemm_close(struct nn_queue *q) {}

#else
#include <cublasLt.h>
#include <string.h>

#define WORKSPACE ((size_t)32 << 20) /* what NVIDIA advises for this architecture */
#define CACHE 1024                   /* shapes; a power of two */

#define FUNCTIONS(X)                                                                                                   \
    X(cublasLtCreate) X(cublasLtDestroy) X(cublasLtMatmul) X(cublasLtMatmulAlgoGetHeuristic)                           \
    X(cublasLtMatmulDescCreate) X(cublasLtMatmulDescSetAttribute) X(cublasLtMatrixLayoutCreate)                        \
    X(cublasLtMatmulPreferenceCreate) X(cublasLtMatmulPreferenceSetAttribute)

struct shape {
    int form, m, n, k, lda, ldb, ldc, ldd, beta, d_f32, dt, aligned;
};

/* A shape that has been seen: descriptors and the algorithm. */
struct plan {
    bool used;
    struct shape key;
    cublasLtMatmulDesc_t op;
    cublasLtMatrixLayout_t a, b, c, d;
    cublasLtMatmulAlgo_t algo;
};

struct gemm_library {
#define MEMBER(f) decltype(&f) f##_;
    FUNCTIONS(MEMBER)
#undef MEMBER
    cublasLtHandle_t handle;
    cublasLtMatmulPreference_t prefer;
    void *workspace;
    struct plan plan[CACHE];
};

int gemm_open(struct nn_queue *q, char *msg, size_t n)
{
    struct gemm_library *g = (struct gemm_library *)calloc(1, sizeof *g);
    void *lib = library_open("cublasLt", "13", msg, n);
    size_t workspace = WORKSPACE;

    q->gemm = g;
    if (!lib)
        return -1;
#define LOOK(f)                                                                                                        \
    if (!(g->f##_ = (decltype(&f))library_symbol(lib, #f, msg, n)))                                                    \
        return -1;
    FUNCTIONS(LOOK)
#undef LOOK
    if (g->cublasLtCreate_(&g->handle) || g->cublasLtMatmulPreferenceCreate_(&g->prefer) ||
        cudaMalloc(&g->workspace, WORKSPACE) != cudaSuccess) {
        snprintf(msg, n, "cuBLASLt does not start on this device");
        return -1;
    }
    g->cublasLtMatmulPreferenceSetAttribute_(g->prefer, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace,
                                             sizeof workspace);
    return 0;
}

void gemm_close(struct nn_queue *q)
{
    if (q->gemm && q->gemm->workspace)
        cudaFree(q->gemm->workspace);
    if (q->gemm && q->gemm->handle)
        q->gemm->cublasLtDestroy_(q->gemm->handle);
    free(q->gemm);
}

static int alignment(const void *p) { return ((uintptr_t)p & 15) ? 2 : 16; }

/* cuBLAS counts columns first, so D^T = B^T A^T is what it sees: its left operand is our b. */
static bool plan_make(struct nn_queue *q, struct plan *p)
{
    struct gemm_library *g = q->gemm;
    const struct shape *s = &p->key;
    cudaDataType in = s->dt == NN_BF16 ? CUDA_R_16BF : CUDA_R_32F, out = s->d_f32 ? CUDA_R_32F : in;
    cublasOperation_t left = s->form == NN_GEMM_NT ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasOperation_t right = s->form == NN_GEMM_TN ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasLtMatmulHeuristicResult_t found[1];
    int n = 0;
    bool bad = g->cublasLtMatmulDescCreate_(&p->op, CUBLAS_COMPUTE_32F, CUDA_R_32F) != CUBLAS_STATUS_SUCCESS;

    bad |= g->cublasLtMatmulDescSetAttribute_(p->op, CUBLASLT_MATMUL_DESC_TRANSA, &left, sizeof left) != 0;
    bad |= g->cublasLtMatmulDescSetAttribute_(p->op, CUBLASLT_MATMUL_DESC_TRANSB, &right, sizeof right) != 0;
    uint64_t bm = (uint64_t)s->m, bn = (uint64_t)s->n, bk = (uint64_t)s->k;
    bad |= g->cublasLtMatrixLayoutCreate_(&p->a, in, left == CUBLAS_OP_T ? bk : bn, left == CUBLAS_OP_T ? bn : bk,
                                          s->ldb) != 0;
    bad |= g->cublasLtMatrixLayoutCreate_(&p->b, in, right == CUBLAS_OP_T ? bm : bk, right == CUBLAS_OP_T ? bk : bm,
                                          s->lda) != 0;
    bad |= g->cublasLtMatrixLayoutCreate_(&p->c, out, bn, bm, s->ldc) != 0;
    bad |= g->cublasLtMatrixLayoutCreate_(&p->d, out, bn, bm, s->ldd) != 0;
    if (!bad)
        bad = g->cublasLtMatmulAlgoGetHeuristic_(g->handle, p->op, p->a, p->b, p->c, p->d, g->prefer, 1, found,
                                                 &n) != 0;
    if (bad || n < 1) {
        char what[160];
        snprintf(what, sizeof what, "no algorithm for form %d m %d n %d k %d lda %d ldb %d ldd %d type %d", s->form,
                 s->m,
                 s->n, s->k, s->lda, s->ldb, s->ldd, s->dt);
        queue_fail(q, "cuBLASLt", what);
        return false;
    }
    p->algo = found[0].algo;
    return true;
}

static struct plan *plan_of(struct nn_queue *q, const struct shape *key)
{
    uint64_t h = 14695981039346656037ull;

    for (size_t i = 0; i < sizeof *key / sizeof(int); i++)
        h = (h ^ (uint64_t)((const int *)key)[i]) * 1099511628211ull;
    h ^= h >> 29;
    for (int i = 0; i < CACHE; i++) {
        struct plan *p = &q->gemm->plan[(h + (uint64_t)i) & (CACHE - 1)];
        if (p->used && !memcmp(&p->key, key, sizeof *key))
            return p;
        if (!p->used) {
            p->key = *key;
            return plan_make(q, p) ? (p->used = true, p) : NULL;
        }
    }
    queue_fail(q, "cuBLASLt", "more shapes than the cache holds");
    return NULL;
}

void op_gemm(struct nn_queue *q, enum nn_dtype dt, const struct nn_product *x)
{
    const void *c = x->c ? x->c : x->d;
    struct shape key = {x->form, x->m, x->n, x->k, x->lda, x->ldb, x->c ? x->ldc : x->ldd, x->ldd, x->beta != 0,
                        x->d_f32,
                        dt, 0};
    float one = 1, beta = x->beta;
    struct plan *p;

    if (alignment(x->a) != 16 || alignment(x->b) != 16 || alignment(c) != 16 || alignment(x->d) != 16) {
        queue_fail(q, "gemm", "an operand is not aligned to 16 bytes");
        return;
    }
    if (!(p = plan_of(q, &key)))
        return;
    if (q->profile) {
        static const char *const forms[] = {"NT", "NN", "TN"};
        char name[64];
        snprintf(name, sizeof name, "gemm %s %d %d %d", forms[x->form], x->m, x->n, x->k);
        profile_begin(q, name);
    }
    cublasStatus_t rc = q->gemm->cublasLtMatmul_(q->gemm->handle, p->op, &one, x->b, p->a, x->a, p->b, &beta, c, p->c,
                                                 x->d,
                                                 p->d, &p->algo, q->gemm->workspace, WORKSPACE, q->stream);
    if (q->profile)
        profile_end(q);
    if (rc != CUBLAS_STATUS_SUCCESS) {
        char what[96];
        snprintf(what, sizeof what, "status %d for m %d n %d k %d", (int)rc, x->m, x->n, x->k);
        queue_fail(q, "cuBLASLt", what);
    }
}
#endif

/* gemm.cu - matrix products by cuBLASLt, found with dlopen. The emulator has no such library and runs a plain kernel.
 *
 * The algorithm of a shape is the library's first suggestion, asked for once and kept: equal calls run equal code and
 * give equal bits. With $MUSACODER_GEMM_MEASURE large shapes are measured instead; what was chosen goes to the cache
 * folder (gemm.algorithms) for later processes, since two runs could choose and round differently without that file. On
 * an H100 (2026-11-22) measuring one product at a time made no whole training step faster: it is not the default. */
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
#include BLAS_HEADER
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define WORKSPACE ((size_t)32 << 20) /* what NVIDIA advises for this architecture */
#define CACHE 1024                   /* shapes; a power of two */
#define CANDIDATES 8
#define MEASURED_FLOPS 2e9           /* smaller products are not measured */

#define FUNCTIONS(X)                                                                                                   \
    X(cublasLtCreate) X(cublasLtDestroy) X(cublasLtMatmul) X(cublasLtMatmulAlgoGetHeuristic)                           \
    X(cublasLtMatmulDescCreate) X(cublasLtMatmulDescSetAttribute) X(cublasLtMatrixLayoutCreate)                        \
    X(cublasLtMatmulPreferenceCreate) X(cublasLtMatmulPreferenceSetAttribute) X(cublasLtGetVersion) \
    X(cublasLtMatmulDescDestroy) X(cublasLtMatrixLayoutDestroy)

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

/* A record of the file. */
struct kept {
    char device[64];
    uint64_t version;
    struct shape key;
    cublasLtMatmulAlgo_t algo;
};

struct gemm_library {
#define MEMBER(f) decltype(&f) f##_;
    FUNCTIONS(MEMBER)
#undef MEMBER
    cublasLtHandle_t handle;
    cublasLtMatmulPreference_t prefer;
    void *workspace;
    int file;             /* of kept algorithms; -1: none */
    char device[64];
    struct plan plan[CACHE];
};

/* $MUSACODER_CACHE_DIR, $XDG_CACHE_HOME/musacoder or ~/.cache/musacoder. */
static int open_kept(void)
{
    const char *own = getenv("MUSACODER_CACHE_DIR"), *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char path[512];

    if (own && *own)
        snprintf(path, sizeof path, "%s", own);
    else if (xdg && *xdg)
        snprintf(path, sizeof path, "%s/musacoder", xdg);
    else if (home && *home)
        snprintf(path, sizeof path, "%s/.cache/musacoder", home);
    else
        return -1;
    for (char *p = path + 1; *p; p++)
        if (*p == '/') {
            *p = 0;
            mkdir(path, 0777);
            *p = '/';
        }
    mkdir(path, 0777);
    strncat(path, "/gemm.algorithms", sizeof path - strlen(path) - 1);
    return open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
}

static bool find_kept(const struct gemm_library *g, const struct shape *key, cublasLtMatmulAlgo_t *ret)
{
    struct kept k;

    for (off_t at = 0; g->file >= 0 && pread(g->file, &k, sizeof k, at) == (ssize_t)sizeof k; at += sizeof k)
        if (k.version == g->cublasLtGetVersion_() && !memcmp(k.device, g->device, sizeof k.device) &&
            !memcmp(&k.key, key, sizeof k.key)) {
            *ret = k.algo;
            return true;
        }
    return false;
}

/* The first record of a shape holds, whoever wrote it; returns that in *algo. */
static void keep(const struct gemm_library *g, const struct shape *key, cublasLtMatmulAlgo_t *algo)
{
    struct kept k;

    memset(&k, 0, sizeof k);
    memcpy(k.device, g->device, sizeof k.device);
    k.version = g->cublasLtGetVersion_();
    k.key = *key;
    k.algo = *algo;
    flock(g->file, LOCK_EX);
    if (!find_kept(g, key, algo) && write(g->file, &k, sizeof k) < 0)
        fprintf(stderr, "warning: the cache folder is full: the next run may choose other matrix algorithms\n");
    flock(g->file, LOCK_UN);
}

int gemm_open(struct nn_queue *q, char *msg, size_t n)
{
    struct gemm_library *g = (struct gemm_library *)calloc(1, sizeof *g);
    void *lib = library_open(BLAS_LIBRARY, msg, n);
    size_t workspace = WORKSPACE;

    q->gemm = g;
    if (!lib)
        return -1;
#define LOOK(f)                                                                                                        \
    if (!(g->f##_ = (decltype(&f))library_symbol(lib, SYMBOL(f), msg, n)))                                            \
        return -1;
    FUNCTIONS(LOOK)
#undef LOOK
    if (g->cublasLtCreate_(&g->handle) || g->cublasLtMatmulPreferenceCreate_(&g->prefer) ||
        cudaMalloc(&g->workspace, WORKSPACE) != cudaSuccess) {
        snprintf(msg, n, "cuBLASLt does not start on this device");
        return -1;
    }
    struct cudaDeviceProp prop;
    if (cudaGetDeviceProperties(&prop, q->ordinal) == cudaSuccess)
        snprintf(g->device, sizeof g->device, "%.60s", prop.name);
    g->file = getenv("MUSACODER_GEMM_MEASURE") ? open_kept() : -1;
    g->cublasLtMatmulPreferenceSetAttribute_(g->prefer, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace,
                                             sizeof workspace);
    return 0;
}

void gemm_close(struct nn_queue *q)
{
    if (q->gemm && q->gemm->workspace)
        cudaFree(q->gemm->workspace);
    if (q->gemm && q->gemm->file > 0)
        close(q->gemm->file);
    if (q->gemm && q->gemm->handle)
        q->gemm->cublasLtDestroy_(q->gemm->handle);
    free(q->gemm);
}

static int alignment(const void *p) { return ((uintptr_t)p & 15) ? 2 : 16; }

/* cuBLAS counts columns first, so D^T = B^T A^T is what it sees: its left operand is our b. */
static bool describe_product(struct nn_queue *q, struct plan *p)
{
    struct gemm_library *g = q->gemm;
    const struct shape *s = &p->key;
    cudaDataType in = s->dt == NN_BF16 ? CUDA_R_16BF : CUDA_R_32F, out = s->d_f32 ? CUDA_R_32F : in;
    cublasOperation_t left = s->form == NN_GEMM_NT ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasOperation_t right = s->form == NN_GEMM_TN ? CUBLAS_OP_T : CUBLAS_OP_N;
    bool bad = false;

    if (g->cublasLtMatmulDescCreate_(&p->op, CUBLAS_COMPUTE_32F, CUDA_R_32F) != CUBLAS_STATUS_SUCCESS)
        return false; /* the calls below take it as it is */
    bad |= g->cublasLtMatmulDescSetAttribute_(p->op, CUBLASLT_MATMUL_DESC_TRANSA, &left, sizeof left) != 0;
    bad |= g->cublasLtMatmulDescSetAttribute_(p->op, CUBLASLT_MATMUL_DESC_TRANSB, &right, sizeof right) != 0;
    uint64_t bm = (uint64_t)s->m, bn = (uint64_t)s->n, bk = (uint64_t)s->k;
    bad |= g->cublasLtMatrixLayoutCreate_(&p->a, in, left == CUBLAS_OP_T ? bk : bn, left == CUBLAS_OP_T ? bn : bk,
                                          s->ldb) != 0;
    bad |= g->cublasLtMatrixLayoutCreate_(&p->b, in, right == CUBLAS_OP_T ? bm : bk, right == CUBLAS_OP_T ? bk : bm,
                                          s->lda) != 0;
    bad |= g->cublasLtMatrixLayoutCreate_(&p->c, out, bn, bm, s->ldc) != 0;
    bad |= g->cublasLtMatrixLayoutCreate_(&p->d, out, bn, bm, s->ldd) != 0;
    return !bad;
}

/* Milliseconds of one product, best of three; a huge number where it does not run. */
static float measure(struct nn_queue *q, const struct plan *p, const struct nn_product *x, void *d,
                     const cublasLtMatmulAlgo_t *algo)
{
    struct gemm_library *g = q->gemm;
    float one = 1, beta = x->beta, best = 1e30f, ms;

    for (int i = 0; i < 4; i++) { /* the first one warms up */
        cudaEventRecord(q->start, q->stream);
        if (g->cublasLtMatmul_(g->handle, p->op, &one, x->b, p->a, x->a, p->b, &beta, x->c ? x->c : d, p->c, d, p->d,
                               algo, g->workspace, WORKSPACE, q->stream) != CUBLAS_STATUS_SUCCESS)
            return 1e30f;
        cudaEventRecord(q->stop, q->stream);
        if (cudaEventSynchronize(q->stop) != cudaSuccess || cudaEventElapsedTime(&ms, q->start, q->stop) != cudaSuccess)
            return 1e30f;
        best = i && ms < best ? ms : best;
    }
    return best;
}

static int fastest(struct nn_queue *q, const struct plan *p, const struct nn_product *x,
                   const cublasLtMatmulHeuristicResult_t *found, int n)
{
    size_t bytes = (size_t)x->m * x->ldd * (x->d_f32 || p->key.dt == NN_F32 ? 4 : 2);
    void *d = x->d;
    float best = 1e30f;
    int at = 0;

    if (x->beta != 0 && (!x->c || x->c == x->d) && cudaMalloc(&d, bytes) != cudaSuccess) { /* d must not change */
        cudaGetLastError();
        return 0;
    }
    for (int i = 0; i < n; i++) {
        float ms = measure(q, p, x, d, &found[i].algo);
        if (ms < 0.98f * best) { /* the library's order decides between equals */
            best = ms;
            at = i;
        }
    }
    if (d != x->d)
        cudaFree(d);
    return at;
}

static bool may_measure(struct nn_queue *q, const struct nn_product *x)
{
    cudaStreamCaptureStatus state = cudaStreamCaptureStatusNone;

    if (q->gemm->file < 0 || 2.0 * x->m * x->n * x->k < MEASURED_FLOPS)
        return false;
    return cudaStreamIsCapturing(q->stream, &state) == cudaSuccess && state == cudaStreamCaptureStatusNone;
}

static bool plan_make(struct nn_queue *q, struct plan *p, const struct nn_product *x)
{
    struct gemm_library *g = q->gemm;
    const struct shape *s = &p->key;
    cublasLtMatmulHeuristicResult_t found[CANDIDATES];
    int n = 0;
    bool ok = describe_product(q, p);

    if (ok && find_kept(g, s, &p->algo))
        return true;
    ok = ok && g->cublasLtMatmulAlgoGetHeuristic_(g->handle, p->op, p->a, p->b, p->c, p->d, g->prefer, CANDIDATES,
                                                  found, &n) == CUBLAS_STATUS_SUCCESS;
    if (!ok || n < 1) {
        char what[160];
        snprintf(what, sizeof what, "no algorithm for form %d m %d n %d k %d lda %d ldb %d ldd %d type %d", s->form,
                 s->m, s->n, s->k, s->lda, s->ldb, s->ldd, s->dt);
        queue_fail(q, "cuBLASLt", what);
        return false;
    }
    p->algo = found[0].algo;
    if (may_measure(q, x)) {
        p->algo = found[fastest(q, p, x, found, n)].algo;
        keep(g, s, &p->algo);
    }
    return true;
}

static void forget_plans(struct gemm_library *g)
{
    for (int i = 0; i < CACHE; i++) {
        struct plan *p = &g->plan[i];
        g->cublasLtMatmulDescDestroy_(p->op);
        cublasLtMatrixLayout_t layouts[] = {p->a, p->b, p->c, p->d};
        for (int k = 0; k < 4; k++)
            g->cublasLtMatrixLayoutDestroy_(layouts[k]);
    }
    memset(g->plan, 0, sizeof g->plan);
}

static struct plan *plan_of(struct nn_queue *q, const struct shape *key, const struct nn_product *x)
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
            return plan_make(q, p, x) ? (p->used = true, p) : NULL;
        }
    }
    forget_plans(q->gemm);
    return plan_of(q, key, x);
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
    if (!(p = plan_of(q, &key, x)))
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

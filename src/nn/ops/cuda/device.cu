/* device.cu - the table that the library exports: device memory, copies, time, graphs, and every operator. */
#include "nn/ops/cuda/ops.cuh"

#include <dlfcn.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>

/* ---- vendor libraries ---- */

static void *open_glob(const char *pattern)
{
    glob_t g;
    void *lib = NULL;

    if (glob(pattern, GLOB_TILDE, NULL, &g) == 0) {
        for (size_t i = 0; i < g.gl_pathc && !lib; i++)
            lib = dlopen(g.gl_pathv[i], RTLD_NOW | RTLD_GLOBAL);
        globfree(&g);
    }
    return lib;
}

void *library_open(const char *name, const char *major, char *msg, size_t n)
{
    static const char *const folders[] = {"/usr/local/cuda/lib64", "/usr/local/cuda-*/lib64", "/usr/local/musa/lib",
                                          "~/.local/share/musacoder/venv/lib/python3*/site-packages/nvidia/*/lib",
                                          "/usr/local/lib/python3*/dist-packages/nvidia/*/lib",
                                          "/usr/local/lib/python3*/site-packages/nvidia/*/lib",
                                          "/opt/*/lib/python3*/site-packages/nvidia/*/lib"};
    const char *own = getenv("MUSACODER_CUDA_LIBS");
    char path[512], file[96];
    void *lib = NULL;

    snprintf(file, sizeof file, "lib%s.so%s%s", name, major ? "." : "", major ? major : "");
    if (own && *own) {
        snprintf(path, sizeof path, "%s/%s", own, file);
        lib = open_glob(path);
    }
    if (!lib)
        lib = dlopen(file, RTLD_NOW | RTLD_GLOBAL);
    for (size_t i = 0; i < sizeof folders / sizeof folders[0] && !lib; i++) {
        snprintf(path, sizeof path, "%s/%s", folders[i], file);
        lib = open_glob(path);
    }
    if (!lib)
        snprintf(msg, n, "%s is not found; set MUSACODER_CUDA_LIBS to the folder that holds it", file);
    return lib;
}

void *library_symbol(void *lib, const char *symbol, char *msg, size_t n)
{
    void *p = dlsym(lib, symbol);

    if (!p)
        snprintf(msg, n, "a library has no '%s': its version is too old", symbol);
    return p;
}

/* ---- profile ---- */

#ifdef NN_EMULATED
void profile_begin(struct nn_queue *q, const char *name) {}
void profile_end(struct nn_queue *q) {}
static void profile_open(struct nn_queue *q) {}
static void profile_collect(struct nn_queue *q) {}
static void profile_close(struct nn_queue *q) {}
#else
#define PROFILE_EVENTS 4096
#define PROFILE_NAMES 256

struct profile {
    cudaEvent_t from[PROFILE_EVENTS], to[PROFILE_EVENTS];
    int name_of[PROFILE_EVENTS], n, n_names;
    struct {
        char name[64];
        double ms;
        long calls;
    } row[PROFILE_NAMES];
};

static void profile_open(struct nn_queue *q)
{
    if (!getenv("MUSACODER_NN_PROFILE"))
        return;
    q->profile = (struct profile *)calloc(1, sizeof *q->profile);
    for (int i = 0; i < PROFILE_EVENTS; i++) {
        cudaEventCreate(&q->profile->from[i]);
        cudaEventCreate(&q->profile->to[i]);
    }
}

static void profile_collect(struct nn_queue *q)
{
    struct profile *p = q->profile;
    float ms;

    if (!p)
        return;
    cudaStreamSynchronize(q->stream);
    for (int i = 0; i < p->n; i++)
        if (cudaEventElapsedTime(&ms, p->from[i], p->to[i]) == cudaSuccess) {
            p->row[p->name_of[i]].ms += ms;
            p->row[p->name_of[i]].calls++;
        }
    p->n = 0;
}

void profile_begin(struct nn_queue *q, const char *name)
{
    struct profile *p = q->profile;
    int k = 0;

    if (p->n == PROFILE_EVENTS)
        profile_collect(q);
    while (k < p->n_names && strcmp(p->row[k].name, name))
        k++;
    if (k == p->n_names && k < PROFILE_NAMES - 1)
        snprintf(p->row[p->n_names++].name, sizeof p->row[0].name, "%s", name);
    p->name_of[p->n] = k;
    cudaEventRecord(p->from[p->n], q->stream);
}

void profile_end(struct nn_queue *q) { cudaEventRecord(q->profile->to[q->profile->n++], q->stream); }

static void profile_close(struct nn_queue *q)
{
    struct profile *p = q->profile;
    double sum = 0;

    if (!p)
        return;
    profile_collect(q);
    for (int k = 0; k < p->n_names; k++)
        sum += p->row[k].ms;
    for (int n = 0; n < p->n_names; n++) {
        int best = -1;
        for (int k = 0; k < p->n_names; k++)
            if (p->row[k].calls && (best < 0 || p->row[k].ms > p->row[best].ms))
                best = k;
        if (best < 0)
            break;
        fprintf(stderr, "%9.3f ms %5.1f %% %7ld calls %9.1f us  %s\n", p->row[best].ms, 100 * p->row[best].ms / sum,
                p->row[best].calls, 1000 * p->row[best].ms / (double)p->row[best].calls, p->row[best].name);
        p->row[best].calls = 0;
    }
    free(p);
}
#endif

/* ---- device ---- */

static int dev_count(void)
{
    int n = 0;

    return cudaGetDeviceCount(&n) == cudaSuccess ? n : 0;
}

static void dev_close(struct nn_queue *q)
{
    if (!q)
        return;
    profile_close(q);
    op_comm_abort(q);
    gemm_close(q);
    cudaFree(q->scratch);
    cudaEventDestroy(q->start);
    cudaEventDestroy(q->stop);
    cudaStreamDestroy(q->stream);
    free(q);
}

/* $MUSACODER_NN_ATTENTION, "mma" or "wgmma", overrides: for tests and measurements. */
static bool attention_by_groups(int ordinal)
{
    const char *own = getenv("MUSACODER_NN_ATTENTION");
    int major = 0;

#ifndef NN_EMULATED
    cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, ordinal);
#endif
    return own ? !strcmp(own, "wgmma") : major == 9;
}

static int dev_open(int ordinal, struct nn_queue **ret, char *msg, size_t n)
{
    struct nn_queue *q = (struct nn_queue *)calloc(1, sizeof *q);
    bool ok = queue_check(q, "cudaSetDevice", cudaSetDevice(ordinal));

    q->ordinal = ordinal;
    ok = ok && queue_check(q, "cudaStreamCreate", cudaStreamCreateWithFlags(&q->stream, cudaStreamNonBlocking));
    ok = ok && queue_check(q, "cudaEventCreate", cudaEventCreate(&q->start));
    ok = ok && queue_check(q, "cudaEventCreate", cudaEventCreate(&q->stop));
    ok = ok && queue_check(q, "cudaMalloc", cudaMalloc((void **)&q->scratch, SCRATCH_BYTES));
    if (!ok)
        snprintf(msg, n, "%s", q->error);
    else if (gemm_open(q, msg, n) < 0)
        ok = false;
    if (!ok) {
        free(q); /* the process ends with this error: the driver gives back the rest */
        return -1;
    }
    q->groups = attention_by_groups(ordinal);
#ifndef NN_EMULATED
    cudaDeviceGetAttribute(&q->processors, cudaDevAttrMultiProcessorCount, ordinal);
#endif
    profile_open(q);
    *ret = q;
    return 0;
}

static void dev_info(struct nn_queue *q, struct nn_dev_info *ret)
{
    memset(ret, 0, sizeof *ret);
    ret->processors = q->processors;
#ifdef NN_EMULATED
    snprintf(ret->name, sizeof ret->name, "CPU emulator");
    ret->total = ret->free = (size_t)4 << 30;
#else
    struct cudaDeviceProp p;
    if (cudaGetDeviceProperties(&p, q->ordinal) == cudaSuccess)
        snprintf(ret->name, sizeof ret->name, "%.80s", p.name);
    queue_check(q, "cudaSetDevice", cudaSetDevice(q->ordinal)); /* of this thread, which may be another */
    queue_check(q, "cudaMemGetInfo", cudaMemGetInfo(&ret->free, &ret->total));
#endif
}

static void *dev_alloc(struct nn_queue *q, size_t bytes)
{
    void *p = NULL;

    if (cudaMalloc(&p, bytes ? bytes : 16) != cudaSuccess) {
        cudaGetLastError();
        return NULL;
    }
    queue_check(q, "cudaMemset", cudaMemsetAsync(p, 0, bytes, q->stream));
    return p;
}

static void dev_release(struct nn_queue *q, void *p)
{
    cudaStreamSynchronize(q->stream);
    cudaFree(p);
}

/* From pageable memory the driver has taken the bytes when the call returns. */
static void dev_upload(struct nn_queue *q, void *to, const void *from, size_t bytes)
{
    queue_check(q, "upload", cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, q->stream));
}
static void dev_download(struct nn_queue *q, void *to, const void *from, size_t bytes)
{
    queue_check(q, "download", cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, q->stream));
    queue_check(q, "download", cudaStreamSynchronize(q->stream));
}
static void dev_copy(struct nn_queue *q, void *to, const void *from, size_t bytes)
{
    queue_check(q, "copy", cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, q->stream));
}
static void dev_zero(struct nn_queue *q, void *p, size_t bytes)
{
    queue_check(q, "zero", cudaMemsetAsync(p, 0, bytes, q->stream));
}

static int dev_sync(struct nn_queue *q, char *msg, size_t n)
{
    queue_check(q, "device", cudaStreamSynchronize(q->stream));
    if (!q->error[0])
        return 0;
    snprintf(msg, n, "%s", q->error);
    return -1;
}

static double dev_time_ms(struct nn_queue *q, bool start)
{
    float ms = 0;

    queue_check(q, "event", cudaEventRecord(start ? q->start : q->stop, q->stream));
    if (start)
        return 0;
    queue_check(q, "event", cudaEventSynchronize(q->stop));
    queue_check(q, "event", cudaEventElapsedTime(&ms, q->start, q->stop));
    return ms;
}

#ifdef NN_EMULATED
static int dev_graph_begin(struct nn_queue *q) { return -1; }
static void *dev_graph_end(struct nn_queue *q) { return NULL; }
static void dev_graph_launch(struct nn_queue *q, void *graph) {}
static void dev_graph_free(struct nn_queue *q, void *graph) {}
#else
static struct profile *held; /* while a graph is recorded: events of a recording have no times */

static int dev_graph_begin(struct nn_queue *q)
{
    held = q->profile;
    q->profile = NULL;
    return queue_check(q, "graph", cudaStreamBeginCapture(q->stream, cudaStreamCaptureModeThreadLocal)) ? 0 : -1;
}

static void *dev_graph_end(struct nn_queue *q)
{
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;

    q->profile = held;
    if (queue_check(q, "graph", cudaStreamEndCapture(q->stream, &graph)))
        queue_check(q, "graph", cudaGraphInstantiate(&exec, graph, 0));
    if (graph)
        cudaGraphDestroy(graph);
    return exec;
}

static void dev_graph_launch(struct nn_queue *q, void *graph)
{
    queue_check(q, "graph", graph ? cudaGraphLaunch((cudaGraphExec_t)graph, q->stream) : cudaErrorInvalidValue);
}
static void dev_graph_free(struct nn_queue *q, void *graph)
{
    if (graph)
        cudaGraphExecDestroy((cudaGraphExec_t)graph);
}
#endif

#ifdef NN_EMULATED
#define NN_KIND "sim"
#elif !defined NN_KIND
#define NN_KIND "cuda"
#endif

extern "C" __attribute__((visibility("default"))) const struct nn_dev_ops nn_dev_ops = {
    NN_DEV_ABI, NN_KIND, dev_count, dev_open, dev_close, dev_info, dev_alloc, dev_release, dev_upload, dev_download,
    dev_copy, dev_zero, dev_sync, dev_time_ms, dev_graph_begin, dev_graph_end, dev_graph_launch, dev_graph_free,
#define MEMBER(name) op_##name,
    OPS(MEMBER)
#undef MEMBER
};

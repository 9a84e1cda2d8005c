/* device.cc - linked into every library built for a real GPU: kernel launches pass through here (ld --wrap), are counted
 * under the kernel's name, and do nothing while lt_device.ablate is set. See lt_device in abi.h. While a call is
 * watched,
 * launches, copies and memory that both sides see are written down: lt_watch there.
 *
 * nvcc's host stubs register each kernel with __cudaRegisterFunction, take its handle with __cudaGetKernel and launch
 * it with __cudaLaunchKernel (CUDA 13) or cudaLaunchKernel; the other ways are those of the runtime's and the driver's
 * interface. All tables are plain data, because registration runs among the static constructors. */
#include <cuda.h>
#include <cuda_runtime.h>
#include <cxxabi.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>

#include "litetorch/abi.h"

namespace lt {
extern const struct lt_api *api;
}

namespace {

enum { MAX_KERNELS = 1024 };

std::mutex lock;
struct lt_kernel kernels[MAX_KERNELS + 1]; // the last one stands for all that we know no name of
struct { const void *stub, *handle, *handle2; } keys[MAX_KERNELS];
struct lt_device device = {LT_DEVICE_ABI, 0, 0, 0, 0, 0, 0, 0, kernels, 0, 0};
int capturing;

template <class T>
T get(const T &x) { return __atomic_load_n(&x, __ATOMIC_RELAXED); }

template <class T>
void add(T &x) { __atomic_fetch_add(&x, 1, __ATOMIC_RELAXED); }

int find(const void *f)
{
    int n = get(device.n_kernels);

    for (int i = 0; i < n; i++)
        if (f && (keys[i].stub == f || get(keys[i].handle) == f || get(keys[i].handle2) == f))
            return i;
    return -1;
}

int enter(const void *stub, const char *symbol)
{
    std::lock_guard<std::mutex> hold(lock);
    int n = device.n_kernels;

    if (n == MAX_KERNELS)
        return MAX_KERNELS;
    keys[n].stub = stub;
    kernels[n].symbol = strdup(symbol);
    kernels[n].name = abi::__cxa_demangle(symbol, nullptr, nullptr, nullptr);
    if (!kernels[n].name)
        kernels[n].name = kernels[n].symbol;
    __atomic_store_n(&device.n_kernels, n + 1, __ATOMIC_RELEASE);
    return n;
}

/* A handle of the runtime or the driver that was not made by a host stub: asked for its name, once. */
int enter_handle(const void *f, const char *name)
{
    char made[64];

    if (!name) {
        snprintf(made, sizeof made, "kernel %p", f);
        name = made;
    }
    return enter(f, name);
}

void on_stream(const void *stream)
{
    const void *ours = lt::api && lt::api->stream ? lt::api->stream() : nullptr;

    // 1 is cudaStreamLegacy, another name of stream 0; 2, the per-thread stream, is a stream of its own
    if (lt::api && lt::api->stream && (stream == cudaStreamLegacy ? nullptr : stream) !=
        (ours == cudaStreamLegacy ? nullptr : ours))
        add(device.side_launches);
}

/* Whoever began it: torch.cuda.graph does not pass through here. */
bool is_capturing(const void *stream)
{
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;

    return cudaStreamIsCapturing(static_cast<cudaStream_t>(const_cast<void *>(stream)), &status) == cudaSuccess &&
           status != cudaStreamCaptureStatusNone;
}

bool taken_away(bool recorded)
{
    const int ablate = get(device.ablate);

    return ablate && (ablate != LT_ABLATE_RECORDED || recorded);
}

/* A graph's kernels were counted when they were recorded; each time that the library launches one, this counts. */
void count_graph(const void *stream)
{
    static const int i = enter(nullptr, "kernels of a graph");

    add(device.graph_launches);
    if (get(device.captured))
        add(kernels[i].launches);
    on_stream(stream);
}

/* Counts; the kernel's number, or -1: do not launch. */
int count(const void *f, const void *stream)
{
    const bool recorded = get(capturing) > 0 || is_capturing(stream);
    int i = find(f);

    if (i < 0) {
        const char *name = nullptr;
        cudaFuncGetName(&name, f);
        cudaGetLastError();
        i = enter_handle(f, name);
    }
    add(kernels[i].launches);
    add(device.launches);
    if (recorded)
        add(device.captured);
    on_stream(stream);
    return taken_away(recorded) ? -1 : i;
}

int count_driver(CUfunction f, const void *stream)
{
    if (find(reinterpret_cast<const void *>(f)) < 0)
        enter_handle(reinterpret_cast<const void *>(f), nullptr);
    return count(reinterpret_cast<const void *>(f), stream);
}

/* ---- a watched call ---- */

const lt_watch *watcher()
{
    return lt::api ? lt::api->watch : nullptr;
}

const lt_watch *watching()
{
    const lt_watch *w = watcher();

    return w && get(w->mode) ? w : nullptr;
}

/* Sizes of a kernel's arguments, asked once. The driver's functions are asked by handle. */
struct Params {
    bool known;
    int n;
    size_t size[256];
};
Params *params[MAX_KERNELS + 1];

const Params &params_of(int i, const void *f, bool driver)
{
    static const Params none = {true, 0, {0}};
    size_t offset;

    if (!params[i])
        params[i] = static_cast<Params *>(calloc(1, sizeof(Params)));
    Params &p = *params[i];
    if (p.known)
        return p;
    if (!driver && cudaPeekAtLastError() != cudaSuccess)
        return none; // asking would take an error away that nobody has seen yet
    for (p.known = true; p.n < 256; p.n++)
        if (driver ? watcher()->param_size(f, size_t(p.n), &p.size[p.n]) != 0
                   : cudaFuncGetParamInfo(f, size_t(p.n), &offset, &p.size[p.n]) != cudaSuccess)
            break;
    if (!driver)
        cudaGetLastError();
    return p;
}

void note_launch(const lt_watch *w, int i, const void *f, bool driver, dim3 grid, dim3 block, size_t shared,
                 void **args, void **extra)
{
    const uint64_t shape[] = {grid.x, grid.y, grid.z, block.x, block.y, block.z, shared};
    const Params &p = params_of(i, driver ? f : i < MAX_KERNELS && keys[i].stub ? keys[i].stub : f, driver);
    const void *packed = nullptr;
    size_t n_packed = 0;
    char label[16];

    w->begin("launch", kernels[i].name ? kernels[i].name : "?");
    w->words("grid", shape, 3 * sizeof *shape);
    w->words("block", shape + 3, 3 * sizeof *shape);
    w->words("shared", shape + 6, sizeof *shape);
    for (int k = 0; args && k < p.n; k++) {
        snprintf(label, sizeof label, "a%d", k);
        w->words(label, args[k], p.size[k]);
    }
    for (; extra && *extra != CU_LAUNCH_PARAM_END; extra += 2) {
        if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
            packed = extra[1];
        else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE)
            n_packed = *static_cast<size_t *>(extra[1]);
    }
    if (packed && n_packed)
        w->words("packed", packed, n_packed);
    w->end();
}

/* Around one launch. */
struct Launch {
    const lt_watch *w;
    void *stream;

    Launch(const void *s, const char *kernel)
        : w(get(capturing) > 0 ? nullptr : watching()), stream(const_cast<void *>(s))
    {
        if (w)
            w->launch_enter(stream, kernel);
    }
    Launch(int i, const void *f, bool driver, dim3 grid, dim3 block, size_t shared, const void *s, void **args,
           void **extra = nullptr)
        : Launch(s, kernels[i].name ? kernels[i].name : "?")
    {
        if (const lt_watch *on = watching())
            note_launch(on, i, f, driver, grid, block, shared, args, extra);
    }
    ~Launch()
    {
        if (w)
            w->launch_leave(stream);
    }
};

/* Around anything else that the device does. */
struct Step {
    const lt_watch *w;

    Step() : w(get(capturing) > 0 ? nullptr : watching())
    {
        if (w)
            w->enter();
    }
    ~Step()
    {
        if (w)
            w->leave();
    }
};

bool on_device(const void *p)
{
    cudaPointerAttributes a;

    return cudaPointerGetAttributes(&a, p) == cudaSuccess &&
           (a.type == cudaMemoryTypeDevice || a.type == cudaMemoryTypeManaged);
}

/* A few numbers (a flag, a size) are nobody's arithmetic: as many as on the simulated device. */
void count_copy(const void *to, const void *from, size_t bytes, cudaMemcpyKind kind)
{
    bool out = kind == cudaMemcpyDeviceToHost, in = kind == cudaMemcpyHostToDevice;

    if (bytes <= 64)
        return;
    if (kind == cudaMemcpyDefault) {
        out = on_device(from) && !on_device(to);
        in = !on_device(from) && on_device(to);
    }
    if (out)
        add(device.to_host);
    if (in)
        add(device.to_device);
}

/* A copy of rows of width bytes; one row for plain copies. Managed memory counts as the device's: watch.cc compares
 * it. */
void note_copy(const char *name, void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
               size_t rows, cudaMemcpyKind kind)
{
    const lt_watch *w = watching();
    const size_t n = width * rows, shape[] = {width, rows, to_pitch, from_pitch};

    if (!w || !n)
        return;
    bool from_device = kind != cudaMemcpyHostToHost && on_device(from);
    bool to_device = kind != cudaMemcpyHostToHost && on_device(to);
    w->begin("copy", name);
    if (to_device)
        w->words("to", &to, sizeof to);
    if (from_device)
        w->words("from", &from, sizeof from);
    w->words("shape", shape, sizeof shape);
    if (to_device && !from_device) {
        std::string bytes;
        for (size_t i = 0; i < rows; i++)
            bytes.append(static_cast<const char *>(from) + i * from_pitch, width);
        w->content("content", bytes.data(), n);
    }
    w->end();
    if (from_device && !to_device)
        w->read(n);
}

/* To and from variables of the device. */
void note_symbol(const char *name, const void *symbol, size_t offset, void *to, const void *from, size_t n,
                 cudaMemcpyKind kind)
{
    const lt_watch *w = watching();

    if (!w || !n)
        return;
    w->begin("copy", name);
    w->words("symbol", &symbol, sizeof symbol);
    w->words("offset", &offset, sizeof offset);
    w->words("bytes", &n, sizeof n);
    if (from && on_device(from))
        w->words("from", &from, sizeof from);
    else if (from)
        w->content("content", from, n);
    if (to && kind != cudaMemcpyDeviceToDevice && !on_device(to))
        w->read(n);
    w->end();
}

void note_set(const char *name, void *p, size_t pitch, int value, size_t width, size_t rows)
{
    const lt_watch *w = watching();
    const size_t shape[] = {width, rows, pitch};

    if (!w)
        return;
    w->begin("set", name);
    w->words("to", &p, sizeof p);
    w->words("value", &value, sizeof value);
    w->words("shape", shape, sizeof shape);
    w->end();
}

void note_graph(const void *g)
{
    if (const lt_watch *w = watching()) {
        w->begin("launch", "of a graph");
        w->words("graph", &g, sizeof g);
        w->end();
    }
}

void note_memory(void *p, size_t n, bool host)
{
    if (const lt_watch *w = watcher())
        (host ? w->host_memory : w->memory)(p, n);
}

/* The driver's functions by name are a way around the wrappers and the audit of symbols: these are what kernels need. */
bool harmless_entry(const char *name)
{
    static const char *const known[] = {"cuTensorMapEncodeTiled", "cuTensorMapEncodeIm2col", "cuTensorMapReplaceAddress",
                                        "cuTensorMapEncodeIm2colWide", "cuGetErrorString", "cuGetErrorName",
                                        "cuDriverGetVersion", "cuDeviceGetAttribute", "cuOccupancyMaxActiveClusters"};

    for (const char *k : known)
        if (!strcmp(k, name))
            return true;
    return false;
}

} // namespace

extern "C" {

struct lt_device *lt_module_device(void)
{
    return &device;
}

/* Weak: not every version of the runtime has every spelling, and the driver is linked only where it is called. */
#define REAL(name) __real_##name
#define WRAP(name) __wrap_##name

__attribute__((weak)) void REAL(__cudaRegisterFunction)(void **, const char *, char *, const char *, int, uint3 *, uint3 *, dim3 *, dim3 *, int *);
void WRAP(__cudaRegisterFunction)(void **fat, const char *stub, char *fun, const char *name, int limit, uint3 *tid,
                                  uint3 *bid, dim3 *bdim, dim3 *gdim, int *wsize)
{
    enter(stub, name);
    REAL(__cudaRegisterFunction)(fat, stub, fun, name, limit, tid, bid, bdim, gdim, wsize);
}

__attribute__((weak)) cudaError_t REAL(__cudaGetKernel)(void **, const void *);
cudaError_t WRAP(__cudaGetKernel)(void **ret, const void *stub)
{
    cudaError_t err = REAL(__cudaGetKernel)(ret, stub);
    int i = err == cudaSuccess ? find(stub) : -1;

    if (i >= 0)
        __atomic_store_n(get(keys[i].handle) ? &keys[i].handle2 : &keys[i].handle, *ret, __ATOMIC_RELAXED);
    return err;
}

#define LAUNCH(name)                                                                                           \
    __attribute__((weak)) cudaError_t REAL(name)(const void *, dim3, dim3, void **, size_t, cudaStream_t);                           \
    cudaError_t WRAP(name)(const void *f, dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t s)   \
    {                                                                                                          \
        int i = count(f, s);                                                                                   \
        if (i < 0)                                                                                             \
            return cudaSuccess;                                                                                \
        Launch l(i, f, false, grid, block, shared, s, args);                                                   \
        return REAL(name)(f, grid, block, args, shared, s);                                                    \
    }
LAUNCH(__cudaLaunchKernel)
LAUNCH(__cudaLaunchKernel_ptsz)
LAUNCH(cudaLaunchKernel)
LAUNCH(cudaLaunchKernel_ptsz)
LAUNCH(cudaLaunchCooperativeKernel)
LAUNCH(cudaLaunchCooperativeKernel_ptsz)

#define LAUNCH_CONFIG(name)                                                                                    \
    __attribute__((weak)) cudaError_t REAL(name)(const cudaLaunchConfig_t *, const void *, void **);                                 \
    cudaError_t WRAP(name)(const cudaLaunchConfig_t *c, const void *f, void **args)                            \
    {                                                                                                          \
        int i = count(f, c ? c->stream : nullptr);                                                             \
        if (i < 0)                                                                                             \
            return cudaSuccess;                                                                                \
        if (!c)                                                                                                \
            return REAL(name)(c, f, args);                                                                     \
        Launch l(i, f, false, c->gridDim, c->blockDim, c->dynamicSmemBytes, c->stream, args);                  \
        return REAL(name)(c, f, args);                                                                         \
    }
LAUNCH_CONFIG(cudaLaunchKernelExC)
LAUNCH_CONFIG(cudaLaunchKernelExC_ptsz)

#define LAUNCH_GRAPH(name)                                                                                     \
    __attribute__((weak)) cudaError_t REAL(name)(cudaGraphExec_t, cudaStream_t);                                                     \
    cudaError_t WRAP(name)(cudaGraphExec_t g, cudaStream_t s)                                                  \
    {                                                                                                          \
        count_graph(s);                                                                                        \
        if (taken_away(false) && !get(device.captured)) /* its kernels came there in a way that we do not see */ \
            return cudaSuccess;                                                                                \
        Launch l(s, "of a graph");                                                                             \
        note_graph(g);                                                                                         \
        return REAL(name)(g, s);                                                                               \
    }
LAUNCH_GRAPH(cudaGraphLaunch)
LAUNCH_GRAPH(cudaGraphLaunch_ptsz)

#define LAUNCH_DRIVER(name)                                                                                    \
    __attribute__((weak)) CUresult REAL(name)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,      \
                        CUstream, void **, void **);                                                           \
    CUresult WRAP(name)(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,         \
                        unsigned bz, unsigned shared, CUstream s, void **args, void **extra)                   \
    {                                                                                                          \
        int i = count_driver(f, s);                                                                            \
        if (i < 0)                                                                                             \
            return CUDA_SUCCESS;                                                                               \
        Launch l(i, f, true, dim3(gx, gy, gz), dim3(bx, by, bz), shared, s, args, extra);                      \
        return REAL(name)(f, gx, gy, gz, bx, by, bz, shared, s, args, extra);                                  \
    }
LAUNCH_DRIVER(cuLaunchKernel)
LAUNCH_DRIVER(cuLaunchKernel_ptsz)

#define LAUNCH_DRIVER_CONFIG(name)                                                                             \
    __attribute__((weak)) CUresult REAL(name)(const CUlaunchConfig *, CUfunction, void **, void **);                                 \
    CUresult WRAP(name)(const CUlaunchConfig *c, CUfunction f, void **args, void **extra)                      \
    {                                                                                                          \
        int i = count_driver(f, c ? c->hStream : nullptr);                                                     \
        if (i < 0)                                                                                             \
            return CUDA_SUCCESS;                                                                               \
        if (!c)                                                                                                \
            return REAL(name)(c, f, args, extra);                                                              \
        Launch l(i, f, true, dim3(c->gridDimX, c->gridDimY, c->gridDimZ),                                      \
                 dim3(c->blockDimX, c->blockDimY, c->blockDimZ), c->sharedMemBytes, c->hStream, args, extra);  \
        return REAL(name)(c, f, args, extra);                                                                  \
    }
LAUNCH_DRIVER_CONFIG(cuLaunchKernelEx)
LAUNCH_DRIVER_CONFIG(cuLaunchKernelEx_ptsz)

__attribute__((weak)) cudaError_t REAL(cudaStreamBeginCapture)(cudaStream_t, cudaStreamCaptureMode);
cudaError_t WRAP(cudaStreamBeginCapture)(cudaStream_t s, cudaStreamCaptureMode mode)
{
    __atomic_fetch_add(&capturing, 1, __ATOMIC_RELAXED);
    return REAL(cudaStreamBeginCapture)(s, mode);
}

__attribute__((weak)) cudaError_t REAL(cudaStreamEndCapture)(cudaStream_t, cudaGraph_t *);
cudaError_t WRAP(cudaStreamEndCapture)(cudaStream_t s, cudaGraph_t *g)
{
    __atomic_fetch_sub(&capturing, 1, __ATOMIC_RELAXED);
    return REAL(cudaStreamEndCapture)(s, g);
}

#define COPY(name)                                                                                             \
    __attribute__((weak)) cudaError_t REAL(name)(void *, const void *, size_t, cudaMemcpyKind);                \
    cudaError_t WRAP(name)(void *to, const void *from, size_t bytes, cudaMemcpyKind kind)                      \
    {                                                                                                          \
        count_copy(to, from, bytes, kind);                                                                     \
        Step step;                                                                                             \
        note_copy(#name, to, bytes, from, bytes, bytes, 1, kind);                                              \
        return REAL(name)(to, from, bytes, kind);                                                              \
    }
COPY(cudaMemcpy)
COPY(cudaMemcpy_ptds)

#define COPY_ASYNC(name)                                                                                       \
    __attribute__((weak)) cudaError_t REAL(name)(void *, const void *, size_t, cudaMemcpyKind, cudaStream_t);  \
    cudaError_t WRAP(name)(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t s)      \
    {                                                                                                          \
        count_copy(to, from, bytes, kind);                                                                     \
        Step step;                                                                                             \
        note_copy(#name, to, bytes, from, bytes, bytes, 1, kind);                                              \
        return REAL(name)(to, from, bytes, kind, s);                                                           \
    }
COPY_ASYNC(cudaMemcpyAsync)
COPY_ASYNC(cudaMemcpyAsync_ptsz)

/* Wraps a function of the runtime: 'note' sees the arguments, the real one is called between enter and leave. */
#define NOTED(name, parameters, arguments, ...)                                                                \
    __attribute__((weak)) cudaError_t REAL(name) parameters;                                                   \
    cudaError_t WRAP(name) parameters                                                                          \
    {                                                                                                          \
        Step step;                                                                                             \
        __VA_ARGS__;                                                                                           \
        return REAL(name) arguments;                                                                           \
    }
#define COPY_2D(name)                                                                                          \
    NOTED(name, (void *to, size_t tp, const void *from, size_t fp, size_t width, size_t rows, cudaMemcpyKind kind), \
          (to, tp, from, fp, width, rows, kind), count_copy(to, from, width * rows, kind),                     \
          note_copy(#name, to, tp, from, fp, width, rows, kind))
#define COPY_2D_ASYNC(name)                                                                                    \
    NOTED(name, (void *to, size_t tp, const void *from, size_t fp, size_t width, size_t rows, cudaMemcpyKind kind, \
                 cudaStream_t s), (to, tp, from, fp, width, rows, kind, s), count_copy(to, from, width * rows, kind), \
          note_copy(#name, to, tp, from, fp, width, rows, kind))
#define TO_SYMBOL(name)                                                                                        \
    NOTED(name, (const void *symbol, const void *from, size_t n, size_t offset, cudaMemcpyKind kind),          \
          (symbol, from, n, offset, kind), note_symbol(#name, symbol, offset, nullptr, from, n, kind))
#define TO_SYMBOL_ASYNC(name)                                                                                  \
    NOTED(name, (const void *symbol, const void *from, size_t n, size_t offset, cudaMemcpyKind kind, cudaStream_t s), \
          (symbol, from, n, offset, kind, s), note_symbol(#name, symbol, offset, nullptr, from, n, kind))
#define FROM_SYMBOL(name)                                                                                      \
    NOTED(name, (void *to, const void *symbol, size_t n, size_t offset, cudaMemcpyKind kind),                  \
          (to, symbol, n, offset, kind), note_symbol(#name, symbol, offset, to, nullptr, n, kind))
#define FROM_SYMBOL_ASYNC(name)                                                                                \
    NOTED(name, (void *to, const void *symbol, size_t n, size_t offset, cudaMemcpyKind kind, cudaStream_t s),  \
          (to, symbol, n, offset, kind, s), note_symbol(#name, symbol, offset, to, nullptr, n, kind))
COPY_2D(cudaMemcpy2D)
COPY_2D(cudaMemcpy2D_ptds)
COPY_2D_ASYNC(cudaMemcpy2DAsync)
COPY_2D_ASYNC(cudaMemcpy2DAsync_ptsz)
TO_SYMBOL(cudaMemcpyToSymbol)
TO_SYMBOL(cudaMemcpyToSymbol_ptds)
TO_SYMBOL_ASYNC(cudaMemcpyToSymbolAsync)
TO_SYMBOL_ASYNC(cudaMemcpyToSymbolAsync_ptsz)
FROM_SYMBOL(cudaMemcpyFromSymbol)
FROM_SYMBOL(cudaMemcpyFromSymbol_ptds)
FROM_SYMBOL_ASYNC(cudaMemcpyFromSymbolAsync)
FROM_SYMBOL_ASYNC(cudaMemcpyFromSymbolAsync_ptsz)
#define SET(name) \
    NOTED(name, (void *p, int value, size_t n), (p, value, n), note_set("cudaMemset", p, n, value, n, 1))
#define SET_ASYNC(name)                                                                                        \
    NOTED(name, (void *p, int value, size_t n, cudaStream_t s), (p, value, n, s),                              \
          note_set("cudaMemsetAsync", p, n, value, n, 1))
SET(cudaMemset)
SET(cudaMemset_ptds)
SET_ASYNC(cudaMemsetAsync)
SET_ASYNC(cudaMemsetAsync_ptsz)
NOTED(cudaMemset2D, (void *p, size_t pitch, int value, size_t w, size_t h), (p, pitch, value, w, h),
      note_set("cudaMemset2D", p, pitch, value, w, h))
NOTED(cudaMemset2DAsync, (void *p, size_t pitch, int value, size_t w, size_t h, cudaStream_t s),
      (p, pitch, value, w, h, s), note_set("cudaMemset2DAsync", p, pitch, value, w, h))

/* Kernels that are nodes of a graph: their arguments, and nodes without a kernel in their place. */
static void note_node(const cudaKernelNodeParams *p)
{
    const lt_watch *w = watching();
    int i = w && p && p->func ? find(p->func) : -1;

    if (i >= 0)
        note_launch(w, i, p->func, false, p->gridDim, p->blockDim, p->sharedMemBytes, p->kernelParams, p->extra);
}

static bool is_empty(cudaGraphNode_t node)
{
    cudaGraphNodeType type;

    return cudaGraphNodeGetType(node, &type) == cudaSuccess && type == cudaGraphNodeTypeEmpty;
}

__attribute__((weak)) cudaError_t REAL(cudaGraphAddKernelNode)(cudaGraphNode_t *, cudaGraph_t, const cudaGraphNode_t *,
                                                               size_t, const cudaKernelNodeParams *);
cudaError_t WRAP(cudaGraphAddKernelNode)(cudaGraphNode_t *node, cudaGraph_t g, const cudaGraphNode_t *from, size_t n,
                                         const cudaKernelNodeParams *p)
{
    Step step;
    note_node(p);
    add(device.captured);
    return taken_away(true) ? cudaGraphAddEmptyNode(node, g, from, n)
                            : REAL(cudaGraphAddKernelNode)(node, g, from, n, p);
}

#define SET_NODE(name, parameters, arguments)                                                                  \
    __attribute__((weak)) cudaError_t REAL(name) parameters;                                                   \
    cudaError_t WRAP(name) parameters                                                                          \
    {                                                                                                          \
        Step step;                                                                                             \
        note_node(p);                                                                                          \
        return is_empty(node) ? cudaSuccess : REAL(name) arguments;                                            \
    }
SET_NODE(cudaGraphKernelNodeSetParams, (cudaGraphNode_t node, const cudaKernelNodeParams *p), (node, p))
SET_NODE(cudaGraphExecKernelNodeSetParams, (cudaGraphExec_t g, cudaGraphNode_t node, const cudaKernelNodeParams *p),
         (g, node, p))

/* Memory, and how much of it a candidate may have. Given back before it is: another thread may get it at once. */
static bool may_take(size_t n, const char *call)
{
    return !lt::api || !lt::api->take || lt::api->take(nullptr, n, call) == 0;
}

static void taken(const void *p, size_t n) // p NULL: the device did not give what was claimed; n 0: it goes back
{
    if (lt::api && lt::api->take)
        lt::api->take(p, n, nullptr);
}

#define ALLOCATES(name, parameters, arguments, host)                                                           \
    __attribute__((weak)) cudaError_t REAL(name) parameters;                                                   \
    cudaError_t WRAP(name) parameters                                                                          \
    {                                                                                                          \
        if (!may_take(n, #name))                                                                               \
            return cudaErrorMemoryAllocation;                                                                  \
        cudaError_t err = REAL(name) arguments;                                                                \
        taken(err == cudaSuccess && p ? *p : nullptr, n);                                                      \
        if (err == cudaSuccess && p && *p && n)                                                                \
            note_memory(*p, n, host);                                                                          \
        return err;                                                                                            \
    }
#define RELEASES(name, parameters, arguments)                                                                  \
    __attribute__((weak)) cudaError_t REAL(name) parameters;                                                   \
    cudaError_t WRAP(name) parameters                                                                          \
    {                                                                                                          \
        if (p) {                                                                                               \
            note_memory(p, 0, true);                                                                           \
            taken(p, 0);                                                                                       \
        }                                                                                                      \
        return REAL(name) arguments;                                                                           \
    }
ALLOCATES(cudaMalloc, (void **p, size_t n), (p, n), false)
ALLOCATES(cudaMallocAsync, (void **p, size_t n, cudaStream_t s), (p, n, s), false)
ALLOCATES(cudaMallocAsync_ptsz, (void **p, size_t n, cudaStream_t s), (p, n, s), false)
ALLOCATES(cudaMallocManaged, (void **p, size_t n, unsigned flags), (p, n, flags), true)
ALLOCATES(cudaMallocHost, (void **p, size_t n), (p, n), true)
ALLOCATES(cudaHostAlloc, (void **p, size_t n, unsigned flags), (p, n, flags), true)
ALLOCATES(cudaMallocFromPoolAsync, (void **p, size_t n, cudaMemPool_t pool, cudaStream_t s), (p, n, pool, s), false)
ALLOCATES(cudaMallocFromPoolAsync_ptsz, (void **p, size_t n, cudaMemPool_t pool, cudaStream_t s), (p, n, pool, s),
          false)
RELEASES(cudaFree, (void *p), (p))
RELEASES(cudaFreeAsync, (void *p, cudaStream_t s), (p, s))
RELEASES(cudaFreeAsync_ptsz, (void *p, cudaStream_t s), (p, s))
RELEASES(cudaFreeHost, (void *p), (p))
RELEASES(cudaHostUnregister, (void *p), (p))

__attribute__((weak)) cudaError_t REAL(cudaMallocPitch)(void **, size_t *, size_t, size_t);
cudaError_t WRAP(cudaMallocPitch)(void **p, size_t *pitch, size_t width, size_t height)
{
    const size_t n = height && width > SIZE_MAX / height ? SIZE_MAX : width * height;

    if (!may_take(n, "cudaMallocPitch"))
        return cudaErrorMemoryAllocation;
    cudaError_t err = REAL(cudaMallocPitch)(p, pitch, width, height);
    taken(err == cudaSuccess && p ? *p : nullptr, n);
    if (err == cudaSuccess && p && *p && n)
        note_memory(*p, *pitch * height, false);
    return err;
}

/* The driver's spellings of the same. */
#define TAKES(name, parameters, arguments)                                                                     \
    __attribute__((weak)) CUresult REAL(name) parameters;                                                      \
    CUresult WRAP(name) parameters                                                                             \
    {                                                                                                          \
        if (!may_take(n, #name))                                                                               \
            return CUDA_ERROR_OUT_OF_MEMORY;                                                                   \
        CUresult err = REAL(name) arguments;                                                                   \
        taken(err == CUDA_SUCCESS && p ? reinterpret_cast<const void *>(*p) : nullptr, n);                     \
        if (err == CUDA_SUCCESS && p && *p && n)                                                               \
            note_memory(reinterpret_cast<void *>(*p), n, false);                                               \
        return err;                                                                                            \
    }
#define GIVES(name, parameters, arguments)                                                                     \
    __attribute__((weak)) CUresult REAL(name) parameters;                                                      \
    CUresult WRAP(name) parameters                                                                             \
    {                                                                                                          \
        note_memory(reinterpret_cast<void *>(p), 0, true);                                                     \
        taken(reinterpret_cast<const void *>(p), 0);                                                           \
        return REAL(name) arguments;                                                                           \
    }
TAKES(cuMemAlloc_v2, (CUdeviceptr *p, size_t n), (p, n))
TAKES(cuMemAllocAsync, (CUdeviceptr *p, size_t n, CUstream s), (p, n, s))
TAKES(cuMemAllocAsync_ptsz, (CUdeviceptr *p, size_t n, CUstream s), (p, n, s))
GIVES(cuMemFree_v2, (CUdeviceptr p), (p))
GIVES(cuMemFreeAsync, (CUdeviceptr p, CUstream s), (p, s))
GIVES(cuMemFreeAsync_ptsz, (CUdeviceptr p, CUstream s), (p, s))

/* What the device sets aside for kernels: their heap, and a stack for each thread that may be there at once. */
static size_t for_kernels(cudaLimit limit, size_t value)
{
    int device = 0, units = 0, threads = 0;

    if (limit == cudaLimitMallocHeapSize)
        return value;
    if (limit != cudaLimitStackSize || cudaGetDevice(&device) != cudaSuccess ||
        cudaDeviceGetAttribute(&units, cudaDevAttrMultiProcessorCount, device) != cudaSuccess ||
        cudaDeviceGetAttribute(&threads, cudaDevAttrMaxThreadsPerMultiProcessor, device) != cudaSuccess)
        return 0;
    const size_t n = size_t(units) * size_t(threads);
    return n && value > SIZE_MAX / n ? SIZE_MAX : value * n;
}

/* Where it is too much, all others would find the device full. A smaller limit than before gives nothing back. */
__attribute__((weak)) cudaError_t REAL(cudaDeviceSetLimit)(cudaLimit, size_t);
cudaError_t WRAP(cudaDeviceSetLimit)(cudaLimit limit, size_t value)
{
    static size_t had[2];
    size_t &mine = had[limit == cudaLimitStackSize], n = for_kernels(limit, value), more = n > mine ? n - mine : 0;

    if (more && !may_take(more, "cudaDeviceSetLimit"))
        return cudaErrorMemoryAllocation;
    cudaError_t err = REAL(cudaDeviceSetLimit)(limit, value);
    if (more)
        taken(err == cudaSuccess ? &mine : nullptr, more);
    if (more && err == cudaSuccess)
        mine = n;
    return err;
}

__attribute__((weak)) cudaError_t REAL(cudaHostRegister)(void *, size_t, unsigned);
cudaError_t WRAP(cudaHostRegister)(void *p, size_t n, unsigned flags)
{
    cudaError_t err = REAL(cudaHostRegister)(p, n, flags);

    if (err != cudaSuccess)
        return err;
    note_memory(p, n, true);
    if (const lt_watch *w = watching()) { // what lies there was written by the host
        w->begin("wrote", "memory that it registers");
        w->content("content", p, n);
        w->end();
    }
    return err;
}

static cudaError_t refuse_entry(const char *name, void **f, int *status)
{
    if (lt::api && name)
        lt::api->finding("forbidden_symbol", name, nullptr, 0);
    if (f)
        *f = nullptr;
    if (status)
        *status = cudaDriverEntryPointSymbolNotFound;
    return cudaErrorSymbolNotFound;
}

#define ENTRY_POINT(name)                                                                                      \
    __attribute__((weak)) cudaError_t REAL(name)(const char *, void **, unsigned long long, int *);                                  \
    cudaError_t WRAP(name)(const char *symbol, void **f, unsigned long long flags, int *status)                \
    {                                                                                                          \
        return symbol && harmless_entry(symbol) ? REAL(name)(symbol, f, flags, status) : refuse_entry(symbol, f, status); \
    }
ENTRY_POINT(cudaGetDriverEntryPoint)
ENTRY_POINT(cudaGetDriverEntryPoint_ptsz)

#define ENTRY_POINT_VERSION(name)                                                                              \
    __attribute__((weak)) cudaError_t REAL(name)(const char *, void **, unsigned, unsigned long long, int *);                        \
    cudaError_t WRAP(name)(const char *symbol, void **f, unsigned version, unsigned long long flags, int *status) \
    {                                                                                                          \
        return symbol && harmless_entry(symbol) ? REAL(name)(symbol, f, version, flags, status)                \
                                                : refuse_entry(symbol, f, status);                             \
    }
ENTRY_POINT_VERSION(cudaGetDriverEntryPointByVersion)
ENTRY_POINT_VERSION(cudaGetDriverEntryPointByVersion_ptsz)

} // extern "C"

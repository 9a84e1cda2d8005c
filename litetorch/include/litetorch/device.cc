/* device.cc - linked into every library built for a real GPU: kernel launches pass through here (ld --wrap), are counted
 * under the kernel's name, and do nothing while lt_device.ablate is set. See lt_device in abi.h.
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

/* Counts; true: do not launch. */
bool count(const void *f, const void *stream)
{
    int i = find(f);

    if (i < 0) {
        const char *name = nullptr;
        cudaFuncGetName(&name, f);
        cudaGetLastError();
        i = enter_handle(f, name);
    }
    add(kernels[i].launches);
    add(device.launches);
    if (get(capturing) > 0 || is_capturing(stream))
        add(device.captured);
    on_stream(stream);
    return get(device.ablate) != 0;
}

bool count_driver(CUfunction f, const void *stream)
{
    if (find(reinterpret_cast<const void *>(f)) < 0)
        enter_handle(reinterpret_cast<const void *>(f), nullptr);
    return count(reinterpret_cast<const void *>(f), stream);
}

bool on_device(const void *p)
{
    cudaPointerAttributes a;

    return cudaPointerGetAttributes(&a, p) == cudaSuccess && a.type == cudaMemoryTypeDevice;
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
        return count(f, s) ? cudaSuccess : REAL(name)(f, grid, block, args, shared, s);                        \
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
        return count(f, c ? c->stream : nullptr) ? cudaSuccess : REAL(name)(c, f, args);                       \
    }
LAUNCH_CONFIG(cudaLaunchKernelExC)
LAUNCH_CONFIG(cudaLaunchKernelExC_ptsz)

#define LAUNCH_GRAPH(name)                                                                                     \
    __attribute__((weak)) cudaError_t REAL(name)(cudaGraphExec_t, cudaStream_t);                                                     \
    cudaError_t WRAP(name)(cudaGraphExec_t g, cudaStream_t s)                                                  \
    {                                                                                                          \
        add(device.graph_launches);                                                                            \
        on_stream(s);                                                                                          \
        return get(device.ablate) ? cudaSuccess : REAL(name)(g, s);                                            \
    }
LAUNCH_GRAPH(cudaGraphLaunch)
LAUNCH_GRAPH(cudaGraphLaunch_ptsz)

#define LAUNCH_DRIVER(name)                                                                                    \
    __attribute__((weak)) CUresult REAL(name)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,      \
                        CUstream, void **, void **);                                                           \
    CUresult WRAP(name)(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,         \
                        unsigned bz, unsigned shared, CUstream s, void **args, void **extra)                   \
    {                                                                                                          \
        return count_driver(f, s) ? CUDA_SUCCESS : REAL(name)(f, gx, gy, gz, bx, by, bz, shared, s, args, extra); \
    }
LAUNCH_DRIVER(cuLaunchKernel)
LAUNCH_DRIVER(cuLaunchKernel_ptsz)

#define LAUNCH_DRIVER_CONFIG(name)                                                                             \
    __attribute__((weak)) CUresult REAL(name)(const CUlaunchConfig *, CUfunction, void **, void **);                                 \
    CUresult WRAP(name)(const CUlaunchConfig *c, CUfunction f, void **args, void **extra)                      \
    {                                                                                                          \
        return count_driver(f, c ? c->hStream : nullptr) ? CUDA_SUCCESS : REAL(name)(c, f, args, extra);       \
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
        return REAL(name)(to, from, bytes, kind);                                                              \
    }
COPY(cudaMemcpy)
COPY(cudaMemcpy_ptds)

#define COPY_ASYNC(name)                                                                                       \
    __attribute__((weak)) cudaError_t REAL(name)(void *, const void *, size_t, cudaMemcpyKind, cudaStream_t);  \
    cudaError_t WRAP(name)(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t s)      \
    {                                                                                                          \
        count_copy(to, from, bytes, kind);                                                                     \
        return REAL(name)(to, from, bytes, kind, s);                                                           \
    }
COPY_ASYNC(cudaMemcpyAsync)
COPY_ASYNC(cudaMemcpyAsync_ptsz)

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

/* cuda.cc - the CUDA runtime over front.h: what nvcc's stubs, litetorch/split.cc and candidates call of libcudart.
 * Kernels stay in the library unused: they run from their image, by name, in another process. cuda_lacking.c names what
 * is not here. Compiled against the toolkit's own declarations, version 12 and later. */
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstring>

#include "exec/wire.h"
#include "front/graph.h"
#include "proxy/both.h"

namespace {

cudaError_t fail(cudaError_t e)
{
    return OK(front_fail(e));
}

cudaError_t lacking(front_lacks what)
{
    return OK(front_lack(what));
}

/* ---- <<<>>> ---- */

struct Configuration {
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;
};
enum { MAX_PUSHED = 16 };
thread_local Configuration pushed[MAX_PUSHED];
thread_local int n_pushed;

cudaError_t launch(const void *fn, dim3 g, dim3 b, void **args, size_t shared, cudaStream_t s,
                   const wire_attr *attr = nullptr, unsigned attrs = 0)
{
    static void *const none[] = {nullptr};
    struct front_launch l = {};

    l.shown = "a kernel", l.file = "", l.fn = fn;
    l.grid[0] = g.x, l.grid[1] = g.y, l.grid[2] = g.z;
    l.block[0] = b.x, l.block[1] = b.y, l.block[2] = b.z;
    l.shared = shared, l.stream = s, l.params = args ? args : none, l.attr = attr, l.attrs = attrs;
    return OK(front_launch(&l));
}

void *fresh_stream(cudaStream_t s)
{
    return s ? s : cudaStreamPerThread;
}

} // namespace

extern "C" {

void **__cudaRegisterFatBinary(void *binary)
{
    static void *handle[2];

    handle[0] = binary;
    return handle;
}
void __cudaRegisterFatBinaryEnd(void **) {}
void __cudaUnregisterFatBinary(void **) {}
char __cudaInitModule(void **) { return 1; }

void __cudaRegisterFunction(void **, const char *stub, char *, const char *name, int, uint3 *, uint3 *, dim3 *, dim3 *,
                            int *)
{
    front_register(stub, 0, name);
}

void __cudaRegisterVar(void **, char *twin, char *, const char *name, int, size_t bytes, int, int)
{
    front_register(twin, bytes, name);
}

void __cudaRegisterManagedVar(void **, void **, char *, const char *, int, size_t, int, int)
{
    front_lack(FRONT_LACK_MANAGED);
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, struct CUstream_st *stream)
{
    if (n_pushed == MAX_PUSHED)
        return 1;
    pushed[n_pushed++] = {grid, block, shared, stream};
    return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream)
{
    if (!n_pushed)
        return fail(cudaErrorMissingConfiguration);
    const Configuration &c = pushed[--n_pushed];
    *grid = c.grid, *block = c.block, *shared = c.shared;
    *static_cast<cudaStream_t *>(stream) = c.stream;
    return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *stub)
{
    *kernel = static_cast<cudaKernel_t>(const_cast<void *>(stub));
    return cudaSuccess;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t k, dim3 g, dim3 b, void **args, size_t shared, cudaStream_t s)
{
    return launch(k, g, b, args, shared, s);
}
cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t k, dim3 g, dim3 b, void **args, size_t shared, cudaStream_t s)
{
    return launch(k, g, b, args, shared, static_cast<cudaStream_t>(fresh_stream(s)));
}
cudaError_t cudaLaunchKernel(const void *f, dim3 g, dim3 b, void **args, size_t shared, cudaStream_t s)
{
    return launch(f, g, b, args, shared, s);
}
cudaError_t cudaLaunchKernel_ptsz(const void *f, dim3 g, dim3 b, void **args, size_t shared, cudaStream_t s)
{
    return launch(f, g, b, args, shared, static_cast<cudaStream_t>(fresh_stream(s)));
}

cudaError_t cudaLaunchCooperativeKernel(const void *f, dim3 g, dim3 b, void **args, size_t shared, cudaStream_t s)
{
    const wire_attr cooperative = {WIRE_ATTR_COOPERATIVE, {1, 0, 0}};

    return launch(f, g, b, args, shared, s, &cooperative, 1);
}

/* An access window and hints of memory synchronisation domains make nothing right or wrong: they are left out. */
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *c, const void *f, void **args)
{
    wire_attr attr[WIRE_ATTRS];
    unsigned n = 0;

    if (!c)
        return fail(cudaErrorInvalidValue);
    for (unsigned i = 0; i < c->numAttrs && n < WIRE_ATTRS; i++) {
        const cudaLaunchAttribute &a = c->attrs[i];
        static const int known[] = {WIRE_ATTR_COOPERATIVE, WIRE_ATTR_CLUSTER, WIRE_ATTR_CLUSTER_POLICY, WIRE_ATTR_PDL,
                                    WIRE_ATTR_PRIORITY, WIRE_ATTR_CARVEOUT};
        for (int k : known)
            if (int(a.id) == k) {
                attr[n].kind = uint32_t(k);
                memcpy(attr[n++].v, a.val.pad, sizeof attr->v);
            }
    }
    return launch(f, c->gridDim, c->blockDim, args, c->dynamicSmemBytes, c->stream, attr, n);
}

/* ---- errors, the device ---- */

cudaError_t cudaInitDevice(int d, unsigned, unsigned) { return cudaSetDevice(d); }
cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache) { return cudaSuccess; }
cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache *c) { return *c = cudaFuncCachePreferNone, cudaSuccess; }
cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig) { return cudaSuccess; }
cudaError_t cudaDeviceGetSharedMemConfig(cudaSharedMemConfig *c)
{
    return *c = cudaSharedMemBankSizeFourByte, cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *most) { return *least = 0, *most = -5, cudaSuccess; }
cudaError_t cudaDeviceCanAccessPeer(int *can, int, int) { return *can = 0, cudaSuccess; }
cudaError_t cudaCtxResetPersistingL2Cache(void) { return cudaSuccess; }
cudaError_t cudaProfilerStart(void) { return cudaSuccess; }
cudaError_t cudaProfilerStop(void) { return cudaSuccess; }

/* Larger stacks and heaps are the executor's to give: what asks for one of them is told so. */
cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t n)
{
    if (limit == cudaLimitStackSize ? n <= 1024 : limit == cudaLimitMallocHeapSize ? n <= (8u << 20) : true)
        return cudaSuccess;
    return lacking(FRONT_LACK_OTHER); /* a larger stack or heap of kernels */
}
cudaError_t cudaDeviceGetLimit(size_t *n, cudaLimit limit)
{
    *n = limit == cudaLimitStackSize ? 1024 : limit == cudaLimitMallocHeapSize ? 8u << 20 : 0;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attr, int d)
{
    return d == 0 ? OK(front_attribute(attr, value)) : fail(cudaErrorInvalidDevice);
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int d)
{
    if (d != 0)
        return fail(cudaErrorInvalidDevice);
    memset(p, 0, sizeof *p);
    snprintf(p->name, sizeof p->name, "%s", front_device_name());
    p->totalGlobalMem = front_device_memory();
    p->sharedMemPerBlock = size_t(attribute(8)), p->sharedMemPerBlockOptin = size_t(attribute(97));
    p->sharedMemPerMultiprocessor = size_t(attribute(81)), p->totalConstMem = size_t(attribute(9));
    p->memPitch = size_t(attribute(11)), p->textureAlignment = 512;
    p->regsPerBlock = attribute(12), p->regsPerMultiprocessor = attribute(82), p->warpSize = attribute(10);
    p->maxThreadsPerBlock = attribute(1), p->multiProcessorCount = attribute(16);
    for (int i = 0; i < 3; i++)
        p->maxThreadsDim[i] = attribute(2 + i), p->maxGridSize[i] = attribute(5 + i);
    p->major = attribute(75), p->minor = attribute(76), p->maxThreadsPerMultiProcessor = attribute(39);
    p->maxBlocksPerMultiProcessor = attribute(106), p->l2CacheSize = attribute(38);
    p->persistingL2CacheMaxSize = attribute(108), p->reservedSharedMemPerBlock = 1024;
    p->memoryBusWidth = attribute(37), p->concurrentKernels = attribute(31);
    p->cooperativeLaunch = attribute(95), p->unifiedAddressing = attribute(41), p->asyncEngineCount = attribute(40);
    p->streamPrioritiesSupported = attribute(78), p->memoryPoolsSupported = attribute(115);
    p->globalL1CacheSupported = p->localL1CacheSupported = 1;
#if CUDART_VERSION < 13000
    p->clockRate = attribute(13), p->memoryClockRate = attribute(36);
#endif
    return cudaSuccess;
}

/* ---- memory ---- */

cudaError_t cudaMalloc(void **p, size_t n) { return OK(front_malloc(p, n, FRONT_RAW, nullptr)); }
cudaError_t cudaMallocPitch(void **p, size_t *pitch, size_t w, size_t h)
{
    *pitch = (w + 511) / 512 * 512;
    return cudaMalloc(p, *pitch * h);
}
cudaError_t cudaMallocHost(void **p, size_t n) { return OK(front_malloc_host(p, n)); }
cudaError_t cudaHostAlloc(void **p, size_t n, unsigned) { return OK(front_malloc_host(p, n)); }
cudaError_t cudaHostRegister(void *, size_t, unsigned) { return cudaSuccess; }
cudaError_t cudaHostUnregister(void *) { return cudaSuccess; }
cudaError_t cudaHostGetDevicePointer(void **, void *, unsigned)
{
    return lacking(FRONT_LACK_HOST_MEMORY);
}
cudaError_t cudaMallocManaged(void **, size_t, unsigned)
{
    return lacking(FRONT_LACK_MANAGED);
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *a, const void *p)
{
    memset(a, 0, sizeof *a);
    a->type = front_has(p) ? cudaMemoryTypeDevice : front_pinned(p) ? cudaMemoryTypeHost : cudaMemoryTypeUnregistered;
    a->devicePointer = a->type == cudaMemoryTypeDevice ? const_cast<void *>(p) : nullptr;
    a->hostPointer = a->type == cudaMemoryTypeHost ? const_cast<void *>(p) : nullptr;
    return cudaSuccess;
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void *) { return cudaSuccess; }
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, size_t) { return cudaSuccess; }
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *p, int) { return *p = cudaMemPool_t(1), cudaSuccess; }
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *p, int) { return *p = cudaMemPool_t(1), cudaSuccess; }

static bool known(cudaMemcpyKind kind)
{
    return kind >= cudaMemcpyHostToHost && kind <= cudaMemcpyDefault;
}

static cudaError_t copy(void *to, const void *from, size_t n, cudaMemcpyKind kind, cudaStream_t s)
{
    return known(kind) ? OK(front_copy(to, from, n, s)) : fail(cudaErrorInvalidMemcpyDirection);
}

static cudaError_t copy_2d(void *to, size_t tp, const void *from, size_t fp, size_t w, size_t h, cudaMemcpyKind kind,
                           cudaStream_t s)
{
    return known(kind) ? OK(front_copy_2d(to, tp, from, fp, w, h, s)) : fail(cudaErrorInvalidMemcpyDirection);
}

static cudaError_t set(void *p, int value, size_t n, cudaStream_t s)
{
    unsigned char byte = static_cast<unsigned char>(value);

    return OK(front_set(p, &byte, 1, n, s));
}

static cudaError_t set_2d(void *p, size_t pitch, int value, size_t w, size_t h, cudaStream_t s)
{
    cudaError_t e = cudaSuccess;

    for (size_t i = 0; i < h && e == cudaSuccess; i++)
        e = set(static_cast<char *>(p) + i * pitch, value, w, s);
    return e;
}

/* Where n bytes from 'offset' on of a kernels' variable lie. */
static cudaError_t within_symbol(const void *twin, size_t n, size_t offset, char **ret)
{
    size_t bytes = 0;
    void *at = nullptr;
    cudaError_t e = OK(front_symbol(twin, &at, &bytes));

    if (e != cudaSuccess)
        return e;
    *ret = static_cast<char *>(at) + offset;
    return offset > bytes || n > bytes - offset ? fail(cudaErrorInvalidValue) : cudaSuccess;
}

static cudaError_t to_symbol(const void *twin, const void *from, size_t n, size_t offset, cudaStream_t s)
{
    char *at;
    cudaError_t e = within_symbol(twin, n, offset, &at);

    return e == cudaSuccess ? OK(front_copy(at, from, n, s)) : e;
}

static cudaError_t from_symbol(void *to, const void *twin, size_t n, size_t offset, cudaStream_t s)
{
    char *at;
    cudaError_t e = within_symbol(twin, n, offset, &at);

    return e == cudaSuccess ? OK(front_copy(to, at, n, s)) : e;
}

/* Each call, and its twin for a thread's own default stream (suffix _ptsz or _ptds). */
#define BOTH(suffix, name, params, with_legacy, with_own)                                                              \
    cudaError_t name params { with_legacy; }                                                                           \
    cudaError_t name##suffix params { with_own; }
#define OWN static_cast<cudaStream_t>(fresh_stream(s))
#define OWN0 cudaStreamPerThread
#define ON(f, ...) return f(__VA_ARGS__)

BOTH(_ptds, cudaMemcpy, (void *to, const void *from, size_t n, cudaMemcpyKind k), ON(copy, to, from, n, k, nullptr),
     ON(copy, to, from, n, k, OWN0))
BOTH(_ptsz, cudaMemcpyAsync, (void *to, const void *from, size_t n, cudaMemcpyKind k, cudaStream_t s),
     ON(copy, to, from, n, k, s), ON(copy, to, from, n, k, OWN))
BOTH(_ptds, cudaMemcpy2D, (void *to, size_t tp, const void *from, size_t fp, size_t w, size_t h, cudaMemcpyKind k),
     ON(copy_2d, to, tp, from, fp, w, h, k, nullptr), ON(copy_2d, to, tp, from, fp, w, h, k, OWN0))
BOTH(_ptsz, cudaMemcpy2DAsync,
     (void *to, size_t tp, const void *from, size_t fp, size_t w, size_t h, cudaMemcpyKind k, cudaStream_t s),
     ON(copy_2d, to, tp, from, fp, w, h, k, s), ON(copy_2d, to, tp, from, fp, w, h, k, OWN))
BOTH(_ptds, cudaMemcpyToSymbol, (const void *sym, const void *from, size_t n, size_t offset, cudaMemcpyKind),
     ON(to_symbol, sym, from, n, offset, nullptr), ON(to_symbol, sym, from, n, offset, OWN0))
BOTH(_ptsz, cudaMemcpyToSymbolAsync,
     (const void *sym, const void *from, size_t n, size_t offset, cudaMemcpyKind, cudaStream_t s),
     ON(to_symbol, sym, from, n, offset, s), ON(to_symbol, sym, from, n, offset, OWN))
BOTH(_ptds, cudaMemcpyFromSymbol, (void *to, const void *sym, size_t n, size_t offset, cudaMemcpyKind),
     ON(from_symbol, to, sym, n, offset, nullptr), ON(from_symbol, to, sym, n, offset, OWN0))
BOTH(_ptsz, cudaMemcpyFromSymbolAsync,
     (void *to, const void *sym, size_t n, size_t offset, cudaMemcpyKind, cudaStream_t s),
     ON(from_symbol, to, sym, n, offset, s), ON(from_symbol, to, sym, n, offset, OWN))
BOTH(_ptds, cudaMemset, (void *p, int v, size_t n), ON(set, p, v, n, nullptr), ON(set, p, v, n, OWN0))
BOTH(_ptsz, cudaMemsetAsync, (void *p, int v, size_t n, cudaStream_t s), ON(set, p, v, n, s), ON(set, p, v, n, OWN))
BOTH(_ptds, cudaMemset2D, (void *p, size_t pitch, int v, size_t w, size_t h), ON(set_2d, p, pitch, v, w, h, nullptr),
     ON(set_2d, p, pitch, v, w, h, OWN0))
BOTH(_ptsz, cudaMemset2DAsync, (void *p, size_t pitch, int v, size_t w, size_t h, cudaStream_t s),
     ON(set_2d, p, pitch, v, w, h, s), ON(set_2d, p, pitch, v, w, h, OWN))
BOTH(_ptsz, cudaMallocAsync, (void **p, size_t n, cudaStream_t s), return OK(front_malloc(p, n, FRONT_ASYNC, s)),
     return OK(front_malloc(p, n, FRONT_ASYNC, OWN)))
BOTH(_ptsz, cudaMallocFromPoolAsync, (void **p, size_t n, cudaMemPool_t, cudaStream_t s),
     return OK(front_malloc(p, n, FRONT_ASYNC, s)), return OK(front_malloc(p, n, FRONT_ASYNC, OWN)))
BOTH(_ptsz, cudaFreeAsync, (void *p, cudaStream_t s), return OK(front_free(p, FRONT_ASYNC, s)),
     return OK(front_free(p, FRONT_ASYNC, OWN)))

cudaError_t cudaGetSymbolAddress(void **p, const void *twin) { return OK(front_symbol(twin, p, nullptr)); }
cudaError_t cudaGetSymbolSize(size_t *n, const void *twin)
{
    void *at;

    return OK(front_symbol(twin, &at, n));
}

/* ---- streams and events ---- */

cudaError_t cudaStreamCreate(cudaStream_t *s)
{
    return OK(front_stream_create(0, 0, reinterpret_cast<void **>(s)));
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, unsigned f)
{
    return OK(front_stream_create(f, 0, reinterpret_cast<void **>(s)));
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *s, unsigned f, int p)
{
    return OK(front_stream_create(f, p, reinterpret_cast<void **>(s)));
}
BOTH(_ptsz, cudaStreamSynchronize, (cudaStream_t s), return OK(front_stream_sync(s)), return OK(front_stream_sync(OWN)))
BOTH(_ptsz, cudaStreamQuery, (cudaStream_t s), return OK(front_stream_query(s)), return OK(front_stream_query(OWN)))
BOTH(_ptsz, cudaStreamWaitEvent, (cudaStream_t s, cudaEvent_t e, unsigned), return OK(front_stream_wait(s, e)),
     return OK(front_stream_wait(OWN, e)))
BOTH(_ptsz, cudaStreamGetPriority, (cudaStream_t, int *p), return (*p = 0, cudaSuccess), return (*p = 0, cudaSuccess))
BOTH(_ptsz, cudaStreamGetFlags, (cudaStream_t, unsigned *f), return (*f = 0, cudaSuccess), return (*f = 0, cudaSuccess))
static cudaError_t captures(cudaStream_t s, cudaStreamCaptureStatus *ret)
{
    *ret = front_captures(s) ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    return cudaSuccess;
}
BOTH(_ptsz, cudaStreamIsCapturing, (cudaStream_t s, cudaStreamCaptureStatus *c), ON(captures, s, c),
     ON(captures, OWN, c))
cudaError_t cudaStreamGetDevice(cudaStream_t, int *d) { return *d = 0, cudaSuccess; }
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode *) { return cudaSuccess; }
cudaError_t cudaStreamSetAttribute(cudaStream_t, cudaLaunchAttributeID, const cudaLaunchAttributeValue *)
{
    return cudaSuccess; /* a window of L2: a hint */
}

cudaError_t cudaEventCreate(cudaEvent_t *e) { return OK(front_event_create(0, reinterpret_cast<void **>(e))); }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *e, unsigned f)
{
    return OK(front_event_create(f, reinterpret_cast<void **>(e)));
}
BOTH(_ptsz, cudaEventRecord, (cudaEvent_t e, cudaStream_t s), return OK(front_event_record(e, s)),
     return OK(front_event_record(e, OWN)))
BOTH(_ptsz, cudaEventRecordWithFlags, (cudaEvent_t e, cudaStream_t s, unsigned), return OK(front_event_record(e, s)),
     return OK(front_event_record(e, OWN)))

/* ---- kernels ---- */

/* Numbers of cudaFuncAttribute are the driver's. */
cudaError_t cudaFuncSetAttribute(const void *f, cudaFuncAttribute a, int value)
{
    return OK(front_function_attribute(f, a, value));
}
cudaError_t cudaFuncSetCacheConfig(const void *, cudaFuncCache) { return cudaSuccess; }
cudaError_t cudaFuncSetSharedMemConfig(const void *, cudaSharedMemConfig) { return cudaSuccess; }

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *a, const void *f)
{
    front_function i = {};
    cudaError_t e = OK(front_function_info(f, &i));

    memset(a, 0, sizeof *a);
    a->sharedSizeBytes = i.static_shared, a->constSizeBytes = i.constant, a->localSizeBytes = i.local;
    a->maxThreadsPerBlock = i.max_threads, a->numRegs = i.registers, a->ptxVersion = i.ptx;
    a->binaryVersion = i.binary, a->maxDynamicSharedSizeBytes = int(i.max_dynamic), a->preferredShmemCarveout = -1;
    return e;
}

cudaError_t cudaFuncGetParamInfo(const void *, size_t, size_t *, size_t *)
{
    return lacking(FRONT_LACK_OTHER);
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *f, int threads, size_t shared)
{
    return OK(front_occupancy(f, threads, shared, blocks));
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *f, int threads,
                                                                   size_t shared, unsigned)
{
    return OK(front_occupancy(f, threads, shared, blocks));
}

/* ---- graphs: a cudaGraph_t and a cudaGraphExec_t are both a list of messages, a node is its number ---- */

static front_graph *graph_of(void *g) { return static_cast<front_graph *>(g); }

static cudaError_t end_capture(cudaGraph_t *g)
{
    front_graph *made = nullptr;
    cudaError_t e = OK(front_capture_end(&made));

    *g = reinterpret_cast<cudaGraph_t>(made);
    return e;
}
BOTH(_ptsz, cudaStreamBeginCapture, (cudaStream_t s, cudaStreamCaptureMode), return OK(front_capture_begin(s)),
     return OK(front_capture_begin(OWN)))
BOTH(_ptsz, cudaStreamEndCapture, (cudaStream_t, cudaGraph_t *g), ON(end_capture, g), ON(end_capture, g))

cudaError_t cudaGraphCreate(cudaGraph_t *g, unsigned)
{
    *g = reinterpret_cast<cudaGraph_t>(front_graph_new());
    return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t g) { return front_graph_free(graph_of(g)), cudaSuccess; }
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t g) { return front_graph_free(graph_of(g)), cudaSuccess; }
cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *ret, cudaGraph_t g, unsigned long long)
{
    if (!g)
        return fail(cudaErrorInvalidValue);
    *ret = reinterpret_cast<cudaGraphExec_t>(front_graph_copy(graph_of(g)));
    return cudaSuccess;
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *ret, cudaGraph_t g, unsigned long long)
{
    return cudaGraphInstantiate(ret, g, 0);
}
static cudaError_t graph_launch(cudaGraphExec_t g, cudaStream_t s)
{
    return g ? OK(front_graph_launch(graph_of(g), s)) : fail(cudaErrorInvalidValue);
}
BOTH(_ptsz, cudaGraphLaunch, (cudaGraphExec_t g, cudaStream_t s), ON(graph_launch, g, s), ON(graph_launch, g, OWN))

static struct front_launch of_node(const cudaKernelNodeParams *p)
{
    static void *const none[] = {nullptr};
    struct front_launch l = {};

    l.shown = "a kernel", l.file = "", l.fn = p->func;
    l.grid[0] = p->gridDim.x, l.grid[1] = p->gridDim.y, l.grid[2] = p->gridDim.z;
    l.block[0] = p->blockDim.x, l.block[1] = p->blockDim.y, l.block[2] = p->blockDim.z;
    l.shared = p->sharedMemBytes, l.params = p->kernelParams ? p->kernelParams : none;
    return l;
}

static size_t index_of(cudaGraphNode_t n) { return reinterpret_cast<size_t>(n) - 1; }

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *ret, cudaGraph_t g, const cudaGraphNode_t *, size_t,
                                   const cudaKernelNodeParams *p)
{
    struct front_launch l = of_node(p);
    size_t at = 0;
    cudaError_t e = OK(front_graph_add(graph_of(g), &l, &at));

    *ret = reinterpret_cast<cudaGraphNode_t>(at + 1);
    return e;
}
cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t g, cudaGraphNode_t n, const cudaKernelNodeParams *p)
{
    struct front_launch l = of_node(p);

    return OK(front_graph_set(graph_of(g), index_of(n), &l));
}

/* ---- the one function of the driver that kernels need: descriptors for TMA ---- */

CUresult cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *at,
                                const cuuint64_t *size, const cuuint64_t *stride, const cuuint32_t *box,
                                const cuuint32_t *element, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion l2, CUtensorMapFloatOOBfill fill)
{
    wire_tensor_map m = {};

    if (!map || rank < 1 || rank > 5)
        return CUDA_ERROR_INVALID_VALUE;
    m.addr = reinterpret_cast<uint64_t>(at), m.rank = rank, m.type = uint32_t(type);
    for (unsigned i = 0; i < rank; i++) {
        m.size[i] = size[i], m.box[i] = box[i], m.element_stride[i] = element[i];
        m.stride[i] = i + 1 < rank ? stride[i] : 0;
    }
    m.interleave = uint32_t(interleave), m.swizzle = uint32_t(swizzle), m.l2 = uint32_t(l2), m.fill = uint32_t(fill);
    return static_cast<CUresult>(front_tensor_map(&m, map));
}

static cudaError_t entry_point(const char *name, void **f, cudaDriverEntryPointQueryResult *status)
{
    bool found = name && !strcmp(name, "cuTensorMapEncodeTiled");

    if (f)
        *f = found ? reinterpret_cast<void *>(cuTensorMapEncodeTiled) : nullptr;
    if (status)
        *status = found ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    return found ? cudaSuccess : lacking(FRONT_LACK_DRIVER);
}

#if CUDART_VERSION < 13000
cudaError_t cudaGetDriverEntryPoint(const char *name, void **f, unsigned long long,
                                    cudaDriverEntryPointQueryResult *status)
{
    return entry_point(name, f, status);
}
#endif
#if CUDART_VERSION >= 12050
cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **f, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult *status)
{
    return entry_point(name, f, status);
}
#endif

} // extern "C"

/* host.h - the part of the CUDA runtime API that candidates' host code uses. Everything is synchronous: streams keep
 * program order, events are time stamps. */
#ifndef SIMT_HOST_H
#define SIMT_HOST_H

#include "simt/core.h"

#define CUDART_VERSION 12080
#define CUDART_CB

enum cudaError {
#define SIMT_ERROR(code, name, text) name = code,
#include "simt/errors.h"
};
typedef enum cudaError cudaError_t;

enum cudaMemcpyKind {
    cudaMemcpyHostToHost = 0,
    cudaMemcpyHostToDevice = 1,
    cudaMemcpyDeviceToHost = 2,
    cudaMemcpyDeviceToDevice = 3,
    cudaMemcpyDefault = 4
};

enum cudaFuncAttribute {
    cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
    cudaFuncAttributePreferredSharedMemoryCarveout = 9
};
enum cudaFuncCache { cudaFuncCachePreferNone, cudaFuncCachePreferShared, cudaFuncCachePreferL1,
    cudaFuncCachePreferEqual };
enum cudaSharedMemConfig { cudaSharedMemBankSizeDefault, cudaSharedMemBankSizeFourByte,
    cudaSharedMemBankSizeEightByte };
enum cudaSharedCarveout { cudaSharedmemCarveoutDefault = -1, cudaSharedmemCarveoutMaxShared = 100,
    cudaSharedmemCarveoutMaxL1 = 0 };
enum cudaLimit { cudaLimitStackSize, cudaLimitPrintfFifoSize, cudaLimitMallocHeapSize,
                 cudaLimitPersistingL2CacheSize = 6 };
enum cudaDriverEntryPointQueryResult { cudaDriverEntryPointSuccess, cudaDriverEntryPointSymbolNotFound };
#define cudaEnableDefault 0

enum cudaDeviceAttr {
    cudaDevAttrMaxThreadsPerBlock = 1,
    cudaDevAttrMaxBlockDimX = 2,
    cudaDevAttrMaxBlockDimY = 3,
    cudaDevAttrMaxBlockDimZ = 4,
    cudaDevAttrMaxGridDimX = 5,
    cudaDevAttrMaxGridDimY = 6,
    cudaDevAttrMaxGridDimZ = 7,
    cudaDevAttrMaxSharedMemoryPerBlock = 8,
    cudaDevAttrWarpSize = 10,
    cudaDevAttrMaxRegistersPerBlock = 12,
    cudaDevAttrClockRate = 13,
    cudaDevAttrMultiProcessorCount = 16,
    cudaDevAttrL2CacheSize = 38,
    cudaDevAttrMaxThreadsPerMultiProcessor = 39,
    cudaDevAttrComputeCapabilityMajor = 75,
    cudaDevAttrComputeCapabilityMinor = 76,
    cudaDevAttrMaxSharedMemoryPerMultiprocessor = 81,
    cudaDevAttrCooperativeLaunch = 95,
    cudaDevAttrMaxSharedMemoryPerBlockOptin = 97
};

struct cudaDeviceProp {
    char name[256];
    size_t totalGlobalMem, sharedMemPerBlock, sharedMemPerBlockOptin, sharedMemPerMultiprocessor, totalConstMem,
        memPitch;
    int regsPerBlock, regsPerMultiprocessor, warpSize, maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3], clockRate;
    int major, minor, multiProcessorCount, maxThreadsPerMultiProcessor, maxBlocksPerMultiProcessor, l2CacheSize;
    int memoryClockRate, memoryBusWidth, concurrentKernels, cooperativeLaunch, unifiedAddressing, managedMemory;
    int integrated, canMapHostMemory, asyncEngineCount, computeMode, ECCEnabled, pciBusID, pciDeviceID, pciDomainID;
    int persistingL2CacheMaxSize, accessPolicyMaxWindowSize;
};
struct cudaFuncAttributes {
    size_t sharedSizeBytes, constSizeBytes, localSizeBytes;
    int maxThreadsPerBlock, numRegs, ptxVersion, binaryVersion, maxDynamicSharedSizeBytes;
};

typedef struct CUevent_st *cudaEvent_t;
#define cudaStreamDefault 0u
#define cudaStreamNonBlocking 1u
#define cudaStreamLegacy ((cudaStream_t)1)
#define cudaStreamPerThread ((cudaStream_t)2)
#define cudaEventDefault 0u
#define cudaEventBlockingSync 1u
#define cudaEventDisableTiming 2u
#define cudaHostAllocDefault 0u
#define cudaMemAttachGlobal 1u

extern "C" {
cudaError_t cudaGetLastError(void);
cudaError_t cudaPeekAtLastError(void);
const char *cudaGetErrorString(cudaError_t error);
const char *cudaGetErrorName(cudaError_t error);

cudaError_t cudaDeviceSynchronize(void);
cudaError_t cudaDeviceReset(void);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device);
cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attr, int device);
cudaError_t cudaDeviceSetLimit(enum cudaLimit limit, size_t value);
cudaError_t cudaDeviceSetCacheConfig(enum cudaFuncCache config);
cudaError_t cudaDeviceSetSharedMemConfig(enum cudaSharedMemConfig config);
cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total);
cudaError_t cudaRuntimeGetVersion(int *version);
cudaError_t cudaDriverGetVersion(int *version);

cudaError_t simt_malloc(void **p, size_t bytes);
cudaError_t simt_malloc_host(void **p, size_t bytes);
cudaError_t simt_malloc_managed(void **p, size_t bytes);
cudaError_t cudaFree(void *p);
cudaError_t cudaFreeHost(void *p);
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind);
cudaError_t simt_memcpy_async(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t simt_memcpy2d(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                          enum cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemset(void *p, int value, size_t bytes);
cudaError_t simt_memset_async(void *p, int value, size_t bytes, cudaStream_t stream);
cudaError_t simt_copy_symbol(void *to, const void *from, size_t bytes);
cudaError_t simt_symbol_address(void **p, const void *twin);

cudaError_t cudaStreamCreate(cudaStream_t *stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t simt_stream_wait(cudaStream_t stream, cudaEvent_t event, unsigned flags);
cudaError_t cudaEventCreate(cudaEvent_t *event);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t simt_event_record(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end);

cudaError_t simt_func_set_attribute(const void *fn, enum cudaFuncAttribute attr, int value);
cudaError_t simt_func_get_attributes(struct cudaFuncAttributes *ret, const void *fn);
cudaError_t simt_occupancy(int *blocks, const void *fn, int threads, size_t shared);
cudaError_t simt_launch_unsupported(const char *what);
}

template <class T> static inline cudaError_t cudaMalloc(T **p, size_t bytes) { return simt_malloc((void **)p, bytes); }
template <class T> static inline cudaError_t cudaMallocAsync(T **p, size_t bytes, cudaStream_t)
    { return simt_malloc((void **)p, bytes); }
template <class T> static inline cudaError_t cudaMallocManaged(T **p, size_t bytes, unsigned = 1)
    { return simt_malloc_managed((void **)p, bytes); }
template <class T> static inline cudaError_t cudaMallocHost(T **p, size_t bytes, unsigned = 0)
    { return simt_malloc_host((void **)p, bytes); }
template <class T> static inline cudaError_t cudaHostAlloc(T **p, size_t bytes, unsigned)
    { return simt_malloc_host((void **)p, bytes); }
static inline cudaError_t cudaFreeAsync(void *p, cudaStream_t) { return cudaFree(p); }
static inline cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t n, cudaMemcpyKind kind, cudaStream_t s
    = nullptr)
{
    return simt_memcpy_async(to, from, n, kind, s);
}
static inline cudaError_t cudaMemcpy2D(void *to, size_t tp, const void *from, size_t fp, size_t w, size_t h,
    cudaMemcpyKind kind)
{
    return simt_memcpy2d(to, tp, from, fp, w, h, kind, nullptr);
}
static inline cudaError_t cudaMemcpy2DAsync(void *to, size_t tp, const void *from, size_t fp, size_t w, size_t h,
                                            cudaMemcpyKind kind, cudaStream_t s = nullptr)
{
    return simt_memcpy2d(to, tp, from, fp, w, h, kind, s);
}
static inline cudaError_t cudaMemsetAsync(void *p, int value, size_t n, cudaStream_t s = nullptr)
    { return simt_memset_async(p, value, n, s); }
static inline cudaError_t cudaMemset2DAsync(void *p, size_t pitch, int value, size_t w, size_t h,
                                            cudaStream_t s = nullptr)
{
    cudaError_t rc = cudaSuccess;

    for (size_t i = 0; i < h && rc == cudaSuccess; i++)
        rc = simt_memset_async((char *)p + i * pitch, value, w, s);
    return rc;
}
static inline cudaError_t cudaMemset2D(void *p, size_t pitch, int value, size_t w, size_t h)
    { return cudaMemset2DAsync(p, pitch, value, w, h); }
template <class T> static inline cudaError_t cudaMallocPitch(T **p, size_t *pitch, size_t w, size_t h)
{
    *pitch = (w + 511) / 512 * 512;
    return simt_malloc((void **)p, *pitch * h);
}
static inline cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *most)
{
    if (least)
        *least = 0;
    if (most)
        *most = -5;
    return cudaSuccess;
}
template <class T>
static inline cudaError_t cudaMemcpyToSymbol(const T &symbol, const void *from, size_t n, size_t offset = 0,
                                             cudaMemcpyKind = cudaMemcpyHostToDevice)
{
    return simt_copy_symbol((char *)&symbol + offset, from, n);
}
template <class T>
static inline cudaError_t cudaMemcpyToSymbolAsync(const T &symbol, const void *from, size_t n, size_t offset = 0,
                                                  cudaMemcpyKind = cudaMemcpyHostToDevice, cudaStream_t = nullptr)
{
    return simt_copy_symbol((char *)&symbol + offset, from, n);
}
template <class T>
static inline cudaError_t cudaMemcpyFromSymbol(void *to, const T &symbol, size_t n, size_t offset = 0,
                                               cudaMemcpyKind = cudaMemcpyDeviceToHost)
{
    return simt_copy_symbol(to, (const char *)&symbol + offset, n);
}
template <class T>
static inline cudaError_t cudaMemcpyFromSymbolAsync(void *to, const T &symbol, size_t n, size_t offset = 0,
                                                    cudaMemcpyKind = cudaMemcpyDeviceToHost, cudaStream_t = nullptr)
{
    return simt_copy_symbol(to, (const char *)&symbol + offset, n);
}
template <class T> static inline cudaError_t cudaGetSymbolSize(size_t *n, const T &symbol)
{
    return *n = sizeof symbol, cudaSuccess;
}
template <class T> static inline cudaError_t cudaGetSymbolAddress(void **p, const T &symbol)
{
    return simt_symbol_address(p, (const void *)&symbol);
}
static inline cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t s = nullptr)
    { return simt_event_record(event, s); }
static inline cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t event, unsigned flags = 0)
    { return simt_stream_wait(s, event, flags); }

template <class F> static inline cudaError_t cudaFuncSetAttribute(F *fn, cudaFuncAttribute attr, int value)
{
    return simt_func_set_attribute((const void *)fn, attr, value);
}
template <class F> static inline cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *ret, F *fn)
{
    return simt_func_get_attributes(ret, (const void *)fn);
}
template <class F> static inline cudaError_t cudaFuncSetCacheConfig(F *, cudaFuncCache) { return cudaSuccess; }
template <class F>
static inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, F fn, int threads, size_t shared)
{
    return simt_occupancy(blocks, (const void *)fn, threads, shared);
}
template <class F>
static inline cudaError_t cudaOccupancyMaxPotentialBlockSize(int *grid, int *block, F, size_t = 0, int limit = 0)
{
    *grid = 132;
    *block = limit > 0 && limit < 1024 ? limit : 1024;
    return cudaSuccess;
}

namespace simt {
template <class... P, size_t... I> void launch_packed(bound<P...> b, void **args, ints<I...>)
{
    b(*static_cast<P *>(args[I])...);
}
} // namespace simt

template <class... P>
static inline cudaError_t cudaLaunchKernel(void (*fn)(P...), dim3 grid, dim3 block, void **args, size_t shared = 0,
                                           cudaStream_t stream = nullptr)
{
    simt::launch_packed(simt::cfg(simt::site{"cudaLaunchKernel", "", 0}, grid, block, shared, stream).of(fn), args,
                        simt::ints<__integer_pack(sizeof...(P))...>());
    return cudaPeekAtLastError();
}
static inline cudaError_t cudaLaunchKernel(const void *, dim3, dim3, void **, size_t = 0, cudaStream_t = nullptr)
{
    return simt_launch_unsupported("cudaLaunchKernel with an untyped kernel pointer");
}
template <class... P>
static inline cudaError_t cudaLaunchCooperativeKernel(void (*fn)(P...), dim3 grid, dim3 block, void **args,
                                                      size_t shared = 0, cudaStream_t stream = nullptr)
{
    simt::cfg c(simt::site{"cudaLaunchCooperativeKernel", "", 0}, grid, block, shared, stream);

    c.l.cooperative = 1;
    simt::launch_packed(c.of(fn), args, simt::ints<__integer_pack(sizeof...(P))...>());
    return cudaPeekAtLastError();
}
/* Graphs are recorded by what launches: a candidate's process (litetorch/proxy/sim.cc). libsimt alone has none. */
typedef struct CUgraph_st *cudaGraph_t;
typedef struct CUgraphExec_st *cudaGraphExec_t;
typedef struct CUgraphNode_st *cudaGraphNode_t;
enum cudaStreamCaptureMode { cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal,
                             cudaStreamCaptureModeRelaxed };
enum cudaStreamCaptureStatus { cudaStreamCaptureStatusNone, cudaStreamCaptureStatusActive,
                               cudaStreamCaptureStatusInvalidated };
extern "C" {
cudaError_t simt_capture_begin(cudaStream_t stream);
cudaError_t simt_capture_end(cudaGraph_t *ret);
int simt_captures(cudaStream_t stream);
cudaError_t simt_graph_copy(cudaGraphExec_t *ret, cudaGraph_t graph);
cudaError_t simt_graph_launch(cudaGraphExec_t graph, cudaStream_t stream);
void simt_graph_free(void *graph);
}
static inline cudaError_t cudaStreamBeginCapture(cudaStream_t s,
                                                 cudaStreamCaptureMode) { return simt_capture_begin(s); }
static inline cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t *g) { return simt_capture_end(g); }
static inline cudaError_t cudaStreamIsCapturing(cudaStream_t s, cudaStreamCaptureStatus *ret)
{
    *ret = simt_captures(s) ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    return cudaSuccess;
}
template <class... A> static inline cudaError_t cudaGraphInstantiate(cudaGraphExec_t *ret, cudaGraph_t g, A...)
{
    return simt_graph_copy(ret, g);
}
static inline cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *ret, cudaGraph_t g, unsigned long long)
{
    return simt_graph_copy(ret, g);
}
static inline cudaError_t cudaGraphLaunch(cudaGraphExec_t g, cudaStream_t s) { return simt_graph_launch(g, s); }
static inline cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { return cudaSuccess; }
static inline cudaError_t cudaGraphDestroy(cudaGraph_t g) { return simt_graph_free(g), cudaSuccess; }
static inline cudaError_t cudaGraphExecDestroy(cudaGraphExec_t g) { return simt_graph_free(g), cudaSuccess; }

/* Graphs that are made or changed node by node: a node holds an untyped kernel pointer. */
struct cudaKernelNodeParams {
    void *func;
    dim3 gridDim, blockDim;
    unsigned sharedMemBytes;
    void **kernelParams, **extra;
};
struct cudaMemsetParams {
    void *dst;
    size_t pitch;
    unsigned value, elementSize;
    size_t width, height;
};
struct cudaHostNodeParams {
    void (*fn)(void *);
    void *userData;
};
enum cudaGraphNodeType { cudaGraphNodeTypeKernel, cudaGraphNodeTypeMemcpy, cudaGraphNodeTypeMemset,
                         cudaGraphNodeTypeHost, cudaGraphNodeTypeGraph, cudaGraphNodeTypeEmpty };
#define SIMT_NODES(name)                                                                                               \
    template <class... A> static inline cudaError_t name(A...)                                                         \
    {                                                                                                                  \
        return simt_launch_unsupported("a CUDA graph made node by node (" #name ")");                                  \
    }
SIMT_NODES(cudaGraphCreate)
SIMT_NODES(cudaGraphClone)
SIMT_NODES(cudaGraphAddKernelNode)
SIMT_NODES(cudaGraphAddMemcpyNode)
SIMT_NODES(cudaGraphAddMemcpyNode1D)
SIMT_NODES(cudaGraphAddMemsetNode)
SIMT_NODES(cudaGraphAddHostNode)
SIMT_NODES(cudaGraphAddEmptyNode)
SIMT_NODES(cudaGraphAddChildGraphNode)
SIMT_NODES(cudaGraphAddDependencies)
SIMT_NODES(cudaGraphGetNodes)
SIMT_NODES(cudaGraphNodeGetType)
SIMT_NODES(cudaGraphKernelNodeGetParams)
SIMT_NODES(cudaGraphKernelNodeSetParams)
SIMT_NODES(cudaGraphExecKernelNodeSetParams)
SIMT_NODES(cudaGraphExecUpdate)
SIMT_NODES(cudaStreamBeginCaptureToGraph)
SIMT_NODES(cudaStreamGetCaptureInfo)
#undef SIMT_NODES

/* Hints for the second-level cache: there is none. */
enum cudaAccessProperty { cudaAccessPropertyNormal, cudaAccessPropertyStreaming, cudaAccessPropertyPersisting };
struct cudaAccessPolicyWindow {
    void *base_ptr;
    size_t num_bytes;
    float hitRatio;
    cudaAccessProperty hitProp, missProp;
};
union cudaStreamAttrValue {
    cudaAccessPolicyWindow accessPolicyWindow;
    int priority;
};
typedef int cudaStreamAttrID;
#define cudaStreamAttributeAccessPolicyWindow 1
static inline cudaError_t cudaStreamSetAttribute(cudaStream_t, int, const cudaStreamAttrValue *) { return cudaSuccess; }
static inline cudaError_t cudaCtxResetPersistingL2Cache() { return cudaSuccess; }

enum cudaLaunchAttributeID {
    cudaLaunchAttributeIgnore = 0, cudaLaunchAttributeAccessPolicyWindow = 1, cudaLaunchAttributeCooperative = 2,
    cudaLaunchAttributeSynchronizationPolicy = 3, cudaLaunchAttributeClusterDimension = 4,
    cudaLaunchAttributeClusterSchedulingPolicyPreference = 5, cudaLaunchAttributeProgrammaticStreamSerialization = 6,
    cudaLaunchAttributePriority = 8
};
union cudaLaunchAttributeValue {
    int cooperative, priority, programmaticStreamSerializationAllowed;
    struct { unsigned x, y, z; } clusterDim;
};
struct cudaLaunchAttribute {
    cudaLaunchAttributeID id;
    cudaLaunchAttributeValue val;
};
struct cudaLaunchConfig_t {
    dim3 gridDim, blockDim;
    size_t dynamicSmemBytes = 0;
    cudaStream_t stream = nullptr;
    cudaLaunchAttribute *attrs = nullptr;
    unsigned numAttrs = 0;
};
template <class... P, class... A>
static inline cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *c, void (*fn)(P...), A... a)
{
    simt::cfg l(simt::site{"cudaLaunchKernelEx", "", 0}, c->gridDim, c->blockDim, c->dynamicSmemBytes, c->stream);

    for (unsigned i = 0; i < c->numAttrs; i++) {
        const cudaLaunchAttributeValue &v = c->attrs[i].val;

        if (c->attrs[i].id == cudaLaunchAttributeCooperative)
            l.l.cooperative = v.cooperative;
        else if (c->attrs[i].id == cudaLaunchAttributeClusterDimension
            && v.clusterDim.x * v.clusterDim.y * v.clusterDim.z > 1)
            return simt_launch_unsupported("a launch of clusters");
    }
    l.of(fn)(a...);
    return cudaPeekAtLastError();
}
static inline cudaError_t cudaLaunchCooperativeKernel(const void *, dim3, dim3, void **, size_t = 0,
                                                      cudaStream_t = nullptr)
{
    return simt_launch_unsupported("cudaLaunchCooperativeKernel with an untyped kernel pointer");
}

/* Driver functions by name: none is here but those that cuda.h offers. */
template <class... A> static inline cudaError_t cudaGetDriverEntryPoint(const char *, void **, A...)
{
    return simt_launch_unsupported("a function of the CUDA driver");
}
template <class... A> static inline cudaError_t cudaGetDriverEntryPointByVersion(const char *, void **, A...)
{
    return simt_launch_unsupported("a function of the CUDA driver");
}

#endif

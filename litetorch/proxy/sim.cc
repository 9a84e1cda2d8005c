/* sim.cc - the host's part of the emulator's cuda_runtime.h over front.h: launches and copies become requests. Kernels,
 * and what only they call, stay in the library unused: they run from the image, in another process. */
#include <cuda_runtime.h>

#include "front/graph.h"
#include "proxy/both.h"

extern "C" {

#ifndef LT_MUSA_HOST /* there it is musa.cc's */
/* Does the word look like an address of this process? Copies of numbers and of the device's addresses do not. */
static bool looks_like_host(uintptr_t word)
{
    return word >= (uintptr_t)0x5500 << 32 && word < (uintptr_t)1 << 47 && !front_has(reinterpret_cast<void *>(word));
}

/* What a launch has copied of the host's variables means the same in another process, but for addresses of the host.
 * The first word may be the kernel's: the executor puts its own there. False: there are other addresses. */
static bool closure_moves(const struct simt_launch *l, const void **ret_fn)
{
    uintptr_t word;

    for (size_t at = 0; at + sizeof word <= size_t(l->captures); at += sizeof word) {
        memcpy(&word, static_cast<const char *>(l->ctx) + at, sizeof word);
        if (!looks_like_host(word))
            continue;
        if (at > 0)
            return false;
        *ret_fn = reinterpret_cast<const void *>(word);
    }
    return true;
}

void simt_run(const struct simt_launch *l)
{
    struct front_launch f = {l->kernel, l->file, l->line, l->fn, (const void *)l->body,
                             {l->grid.x, l->grid.y, l->grid.z}, {l->block.x, l->block.y, l->block.z}, l->shared,
                             l->stream, l->ctx, l->ctx_bytes, nullptr, nullptr, 0, l->cooperative != 0};

    if (closure_moves(l, &f.fn))
        front_launch(&f);
    else
        front_lack(FRONT_LACK_CAPTURES);
}
#endif

cudaError_t cudaDeviceSetLimit(enum cudaLimit, size_t) { return cudaSuccess; }
cudaError_t cudaDeviceSetCacheConfig(enum cudaFuncCache) { return cudaSuccess; }
cudaError_t cudaDeviceSetSharedMemConfig(enum cudaSharedMemConfig) { return cudaSuccess; }

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attr, int d)
{
    return d == 0 ? OK(front_attribute(attr, value)) : cudaSetDevice(d);
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *p, int d)
{
    if (d != 0)
        return cudaSetDevice(d);
    memset(p, 0, sizeof *p);
    snprintf(p->name, sizeof p->name, "%s", front_device_name());
    p->totalGlobalMem = front_device_memory();
    p->sharedMemPerBlock = attribute(8), p->sharedMemPerBlockOptin = attribute(97);
    p->sharedMemPerMultiprocessor = attribute(81), p->totalConstMem = attribute(9), p->memPitch = attribute(11);
    p->regsPerBlock = attribute(12), p->regsPerMultiprocessor = attribute(82), p->warpSize = attribute(10);
    p->maxThreadsPerBlock = attribute(1), p->clockRate = attribute(13), p->multiProcessorCount = attribute(16);
    for (int i = 0; i < 3; i++)
        p->maxThreadsDim[i] = attribute(2 + i), p->maxGridSize[i] = attribute(5 + i);
    p->major = attribute(75), p->minor = attribute(76), p->maxThreadsPerMultiProcessor = attribute(39);
    p->maxBlocksPerMultiProcessor = attribute(106), p->l2CacheSize = attribute(38);
    p->memoryClockRate = attribute(36), p->memoryBusWidth = attribute(37), p->concurrentKernels = attribute(31);
    p->cooperativeLaunch = attribute(95), p->unifiedAddressing = attribute(41), p->asyncEngineCount = attribute(40);
    return cudaSuccess;
}

cudaError_t simt_malloc(void **p, size_t n) { return OK(front_malloc(p, n, FRONT_RAW, nullptr)); }
cudaError_t simt_malloc_host(void **p, size_t n) { return OK(front_malloc_host(p, n)); }

cudaError_t simt_malloc_managed(void **, size_t) { return OK(front_lack(FRONT_LACK_MANAGED)); }

cudaError_t cudaMemcpy(void *to, const void *from, size_t n, enum cudaMemcpyKind kind)
{
    return simt_memcpy_async(to, from, n, kind, nullptr);
}

cudaError_t simt_memcpy_async(void *to, const void *from, size_t n, enum cudaMemcpyKind kind, cudaStream_t s)
{
    return kind < 0 || kind > 4 ? OK(front_fail(cudaErrorInvalidMemcpyDirection)) : OK(front_copy(to, from, n, s));
}

cudaError_t simt_memcpy2d(void *to, size_t tp, const void *from, size_t fp, size_t w, size_t h, enum cudaMemcpyKind,
                          cudaStream_t s)
{
    return OK(front_copy_2d(to, tp, from, fp, w, h, s));
}

cudaError_t cudaMemset(void *p, int value, size_t n) { return simt_memset_async(p, value, n, nullptr); }
cudaError_t simt_memset_async(void *p, int value, size_t n, cudaStream_t s)
{
    unsigned char byte = (unsigned char)value;

    return OK(front_set(p, &byte, 1, n, s));
}
cudaError_t simt_copy_symbol(void *to, const void *from, size_t n) { return OK(front_copy(to, from, n, nullptr)); }
cudaError_t simt_symbol_address(void **p, const void *twin) { return OK(front_symbol(twin, p, nullptr)); }

cudaError_t cudaStreamCreate(cudaStream_t *s) { return OK(front_stream_create(0, 0, (void **)s)); }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, unsigned f) { return OK(front_stream_create(f, 0, (void **)s)); }
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *s, unsigned f, int p)
{
    return OK(front_stream_create(f, p, (void **)s));
}
cudaError_t cudaStreamSynchronize(cudaStream_t s) { return OK(front_stream_sync(s)); }
cudaError_t cudaStreamQuery(cudaStream_t s) { return OK(front_stream_query(s)); }
cudaError_t simt_stream_wait(cudaStream_t s, cudaEvent_t e, unsigned) { return OK(front_stream_wait(s, e)); }
cudaError_t cudaEventCreate(cudaEvent_t *e) { return OK(front_event_create(0, (void **)e)); }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *e, unsigned f) { return OK(front_event_create(f, (void **)e)); }
cudaError_t simt_event_record(cudaEvent_t e, cudaStream_t s) { return OK(front_event_record(e, s)); }

cudaError_t simt_func_set_attribute(const void *fn, enum cudaFuncAttribute attr, int value)
{
    return attr == 8 ? OK(front_function_attribute(fn, attr, value)) : cudaSuccess; /* the others are hints */
}

cudaError_t simt_func_get_attributes(struct cudaFuncAttributes *ret, const void *)
{
    memset(ret, 0, sizeof *ret);
    ret->maxThreadsPerBlock = attribute(1), ret->numRegs = 32, ret->ptxVersion = ret->binaryVersion = 90;
    ret->maxDynamicSharedSizeBytes = attribute(8);
    return cudaSuccess;
}

cudaError_t simt_occupancy(int *blocks, const void *fn, int threads, size_t shared)
{
    return OK(front_occupancy(fn, threads, shared, blocks));
}

/* ---- graphs: a cudaGraph_t and a cudaGraphExec_t are both a list of messages ---- */

cudaError_t simt_capture_begin(cudaStream_t s) { return OK(front_capture_begin(s)); }
cudaError_t simt_capture_end(cudaGraph_t *ret)
{
    front_graph *made = nullptr;
    cudaError_t e = OK(front_capture_end(&made));

    *ret = reinterpret_cast<cudaGraph_t>(made);
    return e;
}
int simt_captures(cudaStream_t s) { return front_captures(s); }
cudaError_t simt_graph_copy(cudaGraphExec_t *ret, cudaGraph_t g)
{
    if (!g)
        return OK(front_fail(cudaErrorInvalidValue));
    *ret = reinterpret_cast<cudaGraphExec_t>(front_graph_copy(reinterpret_cast<front_graph *>(g)));
    return cudaSuccess;
}
cudaError_t simt_graph_launch(cudaGraphExec_t g, cudaStream_t s)
{
    return g ? OK(front_graph_launch(reinterpret_cast<front_graph *>(g), s)) : OK(front_fail(cudaErrorInvalidValue));
}
void simt_graph_free(void *g) { front_graph_free(static_cast<front_graph *>(g)); }

cudaError_t simt_launch_unsupported(const char *what)
{
    static const struct {
        const char *says;
        int lack;
    } rows[] = {{"graph", FRONT_LACK_GRAPHS}, {"cluster", FRONT_LACK_CLUSTERS}, {"driver", FRONT_LACK_DRIVER},
                {"tensor map", FRONT_LACK_TENSOR_MAPS}, {"", FRONT_LACK_LAUNCH}};
    const auto *r = rows;

    while (!strstr(what, r->says))
        r++;
    return OK(front_lack(r->lack));
}

} // extern "C"

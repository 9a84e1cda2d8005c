/* host.c - device properties, streams, events and function attributes of the CUDA runtime API. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime.h"

/* ---- device ---- */

struct prop { /* cudaDeviceProp of host.h */
    char name[256];
    size_t total, shared_block, shared_optin, shared_sm, constant, pitch;
    int regs_block, regs_sm, warp, threads_block, dim[3], grid[3], clock;
    int major, minor, sms, threads_sm, blocks_sm, l2, mem_clock, mem_bus, concurrent, cooperative, unified, managed;
    int integrated, map_host, engines, mode, ecc, bus, device, domain, l2_persisting, l2_window;
};

/* The limits that launches are held to; the rest describes an H100-class part so that heuristics take usual paths. */
static struct prop device = {
    "musacoder sim", (size_t)16 << 30, SHARED_DEFAULT, SHARED_OPTIN, 228u << 10, 64u << 10, 0x7fffffff,
    65536, 65536, WARP, MAX_THREADS, {1024, 1024, 64}, {0x7fffffff, 65535, 65535}, 1980000,
    9, 0, 132, 2048, 32, 50 << 20, 2619000, 5120, 1, 0, 1, 1,
    0, 1, 3, 0, 1, 0, 0, 0, 0, 0};

unsigned device_shared_default = SHARED_DEFAULT, device_shared_optin = SHARED_OPTIN, device_grid_yz = 65535;

/* "NAME=" in the profile's text: its value, or fallback. */
static long long figure(const char *text, const char *name, long long fallback)
{
    size_t n = strlen(name);

    for (const char *at = text; (at = strstr(at, name)); at += n)
        if (at[n] == '=' && (at == text || at[-1] == ';'))
            return atoll(at + n + 1);
    return fallback;
}

static unsigned at_most(long long v, unsigned max)
{
    return v > 0 && v < (long long)max ? (unsigned)v : max;
}

/* $SIMT_PROFILE ("card=MTT S4000;warp_host=128;..."): properties and limits of another device. Lanes stay the
 * emulator's. */
static __attribute__((constructor)) void read_profile(void)
{
    const char *text = getenv("SIMT_PROFILE");
    long long arch;

    if (!text || sscanf(text, "card=%200[^;]", device.name) != 1)
        return;
    device_shared_default = at_most(figure(text, "shared_static_bytes", SHARED_DEFAULT), SHARED_STATIC_ROOM);
    device_shared_optin = at_most(figure(text, "shared_block_bytes", SHARED_OPTIN), SHARED_OPTIN);
    device_grid_yz = (unsigned)figure(text, "grid_yz", device_grid_yz);
    device.shared_block = device_shared_default;
    device.shared_optin = device_shared_optin;
    device.shared_sm = device_shared_optin;
    device.constant = (size_t)figure(text, "constant_bytes", (long long)device.constant);
    device.warp = (int)figure(text, "warp_host", device.warp);
    device.sms = (int)figure(text, "multiprocessors", device.sms);
    device.threads_sm = (int)figure(text, "threads_multiprocessor", device.threads_sm);
    device.regs_sm = device.regs_block = (int)figure(text, "registers_multiprocessor", device.regs_sm);
    device.l2 = (int)figure(text, "l2_bytes", device.l2);
    device.grid[1] = device.grid[2] = (int)device_grid_yz;
    device.cooperative = (int)figure(text, "cooperative", 0);
    arch = figure(text, "arch_number", 900);
    device.major = (int)(arch / 100);
    device.minor = (int)(arch / 10 % 10);
}

int cudaDeviceSynchronize(void), cudaDeviceReset(void), cudaGetDevice(int *d), cudaSetDevice(int d);
int cudaGetDeviceCount(int *n), cudaGetDeviceProperties(struct prop *p, int d);
int cudaDeviceGetAttribute(int *value, int attr, int d), cudaDeviceSetLimit(int limit, size_t value);
int cudaDeviceSetCacheConfig(int c), cudaDeviceSetSharedMemConfig(int c), cudaMemGetInfo(size_t *f, size_t *t);
int cudaRuntimeGetVersion(int *v), cudaDriverGetVersion(int *v);

int cudaDeviceSynchronize(void)
{
    return device_error_state();
}

int cudaDeviceReset(void)
{
    return CUDA_OK;
}

int cudaGetDevice(int *d)
{
    *d = 0;
    return CUDA_OK;
}

int cudaSetDevice(int d)
{
    return d == 0 ? CUDA_OK : (device_error(CUDA_INVALID_DEVICE), CUDA_INVALID_DEVICE);
}

int cudaGetDeviceCount(int *n)
{
    *n = 1;
    return CUDA_OK;
}

int cudaGetDeviceProperties(struct prop *p, int d)
{
    if (d != 0)
        return cudaSetDevice(d);
    *p = device;
    return CUDA_OK;
}

int cudaDeviceGetAttribute(int *value, int attr, int d)
{
    const struct { int attr, value; } table[] = {
        {1, device.threads_block}, {2, device.dim[0]}, {3, device.dim[1]}, {4, device.dim[2]},
        {5, device.grid[0]}, {6, device.grid[1]}, {7, device.grid[2]}, {8, (int)device.shared_block},
        {10, device.warp}, {12, device.regs_block}, {13, device.clock}, {16, device.sms}, {38, device.l2},
        {39, device.threads_sm}, {75, device.major}, {76, device.minor}, {81, (int)device.shared_sm},
        {95, device.cooperative}, {97, (int)device.shared_optin}};

    if (d != 0)
        return cudaSetDevice(d);
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (table[i].attr == attr)
            return *value = table[i].value, CUDA_OK;
    return device_error(CUDA_INVALID_VALUE), CUDA_INVALID_VALUE;
}

int cudaDeviceSetLimit(int limit, size_t value)
{
    (void)limit, (void)value;
    return CUDA_OK;
}

int cudaDeviceSetCacheConfig(int c)
{
    (void)c;
    return CUDA_OK;
}

int cudaDeviceSetSharedMemConfig(int c)
{
    (void)c;
    return CUDA_OK;
}

int cudaMemGetInfo(size_t *f, size_t *t)
{
    *f = *t = device.total;
    return CUDA_OK;
}

int cudaRuntimeGetVersion(int *v)
{
    *v = 12080;
    return CUDA_OK;
}

int cudaDriverGetVersion(int *v)
{
    return cudaRuntimeGetVersion(v);
}

/* ---- streams and events ---- */

struct CUstream_st { int unused; };
struct CUevent_st { double ms; int recorded; };
typedef struct CUstream_st *stream;
typedef struct CUevent_st *event;

int cudaStreamCreate(stream *s), cudaStreamCreateWithFlags(stream *s, unsigned flags);
int cudaStreamCreateWithPriority(stream *s, unsigned flags, int priority), cudaStreamDestroy(stream s);
int cudaStreamSynchronize(stream s), cudaStreamQuery(stream s), simt_stream_wait(stream s, event e, unsigned flags);
int cudaEventCreate(event *e), cudaEventCreateWithFlags(event *e, unsigned flags), cudaEventDestroy(event e);
int simt_event_record(event e, stream s), cudaEventSynchronize(event e), cudaEventQuery(event e);
int cudaEventElapsedTime(float *ms, event a, event b);

int cudaStreamCreate(stream *s)
{
    return (*s = calloc(1, sizeof **s)) ? CUDA_OK : CUDA_OUT_OF_MEMORY;
}

int cudaStreamCreateWithFlags(stream *s, unsigned flags)
{
    (void)flags;
    return cudaStreamCreate(s);
}

int cudaStreamCreateWithPriority(stream *s, unsigned flags, int priority)
{
    (void)flags, (void)priority;
    return cudaStreamCreate(s);
}

int cudaStreamDestroy(stream s)
{
    if ((uintptr_t)s > 2) /* the default streams are 0, 1 and 2 */
        free(s);
    return CUDA_OK;
}

int cudaStreamSynchronize(stream s)
{
    (void)s;
    return device_error_state();
}

int cudaStreamQuery(stream s)
{
    (void)s;
    return device_error_state();
}

int simt_stream_wait(stream s, event e, unsigned flags)
{
    (void)s, (void)e, (void)flags;
    return device_error_state();
}

int cudaEventCreate(event *e)
{
    return (*e = calloc(1, sizeof **e)) ? CUDA_OK : CUDA_OUT_OF_MEMORY;
}

int cudaEventCreateWithFlags(event *e, unsigned flags)
{
    (void)flags;
    return cudaEventCreate(e);
}

int cudaEventDestroy(event e)
{
    free(e);
    return CUDA_OK;
}

int simt_event_record(event e, stream s)
{
    struct timespec t;

    (void)s;
    clock_gettime(CLOCK_MONOTONIC, &t);
    e->ms = (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
    e->recorded = 1;
    return device_error_state();
}

int cudaEventSynchronize(event e)
{
    (void)e;
    return device_error_state();
}

int cudaEventQuery(event e)
{
    (void)e;
    return device_error_state();
}

int cudaEventElapsedTime(float *ms, event a, event b)
{
    if (!a->recorded || !b->recorded)
        return device_error(400), 400; /* cudaErrorInvalidResourceHandle */
    *ms = (float)(b->ms - a->ms);
    return device_error_state();
}

/* ---- kernels' attributes ---- */

#define MAX_ATTRS 256
static struct {
    const void *fn;
    const char *symbol; /* mangled; NULL if unknown */
    size_t dynamic;
} attrs[MAX_ATTRS];
static int n_attrs;
static pthread_mutex_t attrs_lock = PTHREAD_MUTEX_INITIALIZER;

/* Does the mangled symbol name a function called 'name'? ("3foo" in "_Z3fooIfEvPT_") */
static bool names(const char *symbol, const char *name)
{
    char part[128];
    const char *p = symbol;

    snprintf(part, sizeof part, "%zu%s", strlen(name), name);
    while ((p = strstr(p, part)))
        if (p > symbol && p[-1] >= '0' && p[-1] <= '9')
            p++;
        else
            return true;
    return !strcmp(symbol, name);
}

size_t max_dynamic_shared(const char *kernel, const void *fn)
{
    size_t max = device_shared_default;

    pthread_mutex_lock(&attrs_lock);
    for (int i = 0; i < n_attrs; i++)
        if (fn ? attrs[i].fn == fn : attrs[i].symbol && names(attrs[i].symbol, kernel))
            if (attrs[i].dynamic > max)
                max = attrs[i].dynamic;
    pthread_mutex_unlock(&attrs_lock);
    return max;
}

/* False if there is no room. Programs set it before every launch: the last word counts. */
static bool set_dynamic(const void *fn, size_t bytes)
{
    const char *symbol = symbol_name(fn);
    int i;

    pthread_mutex_lock(&attrs_lock);
    for (i = 0; i < n_attrs && attrs[i].fn != fn; i++)
        ;
    if (i < MAX_ATTRS) {
        attrs[i].fn = fn;
        attrs[i].symbol = symbol;
        attrs[i].dynamic = bytes;
        n_attrs += i == n_attrs;
    }
    pthread_mutex_unlock(&attrs_lock);
    return i < MAX_ATTRS;
}

int simt_func_set_attribute(const void *fn, int attr, int value);
struct func_attributes {
    size_t shared, constant, local;
    int max_threads, registers, ptx, binary, max_dynamic;
};
int simt_func_get_attributes(struct func_attributes *ret, const void *fn);
int simt_occupancy(int *blocks, const void *fn, int threads, size_t shared), simt_launch_unsupported(const char *what);

int simt_func_set_attribute(const void *fn, int attr, int value)
{
    if (attr != 8) /* cudaFuncAttributeMaxDynamicSharedMemorySize; the others are hints */
        return CUDA_OK;
    if (!fn || value < 0 || (size_t)value > device_shared_optin) {
        finding("launch_error", __builtin_return_address(0), true, "cudaFuncSetAttribute asks for %d bytes of dynamic "
                "shared memory; at most %u are possible", value, device_shared_optin);
        return device_error(CUDA_INVALID_VALUE), CUDA_INVALID_VALUE;
    }
    if (!set_dynamic(fn, (size_t)value))
        return device_error(CUDA_OUT_OF_MEMORY), CUDA_OUT_OF_MEMORY;
    return CUDA_OK;
}

int simt_func_get_attributes(struct func_attributes *ret, const void *fn)
{
    memset(ret, 0, sizeof *ret);
    ret->max_threads = MAX_THREADS;
    ret->registers = 32;
    ret->ptx = ret->binary = 90;
    ret->max_dynamic = (int)max_dynamic_shared("", fn);
    return CUDA_OK;
}

/* Blocks of a multiprocessor at once, registers apart. */
static int occupancy(int threads, size_t shared)
{
    int by_threads = threads > 0 ? device.threads_sm / threads : 0;
    int by_shared = shared > 0 ? (int)(device.shared_sm / shared) : device.blocks_sm;
    int blocks = by_threads < by_shared ? by_threads : by_shared;

    return blocks < device.blocks_sm ? blocks : device.blocks_sm;
}

size_t device_resident(int threads, size_t shared)
{
    int blocks = occupancy(threads, shared);

    return (size_t)device.sms * (size_t)(blocks > 1 ? blocks : 1);
}

int simt_occupancy(int *blocks, const void *fn, int threads, size_t shared)
{
    (void)fn;
    *blocks = occupancy(threads, shared);
    return CUDA_OK;
}

int simt_launch_unsupported(const char *what)
{
    finding("unsupported", __builtin_return_address(0), true, "%s is not emulated", what);
    return device_error(CUDA_NOT_SUPPORTED), CUDA_NOT_SUPPORTED;
}

/* Who runs kernels itself records nothing: graphs are the front's (litetorch/proxy/sim.cc). */
int simt_capture_begin(void *stream), simt_capture_end(void **ret), simt_captures(void *stream);
int simt_graph_copy(void **ret, void *graph), simt_graph_launch(void *graph, void *stream);
void simt_graph_free(void *graph);

static int no_graphs(const void *pc)
{
    finding("unsupported", pc, true, "a CUDA graph is not emulated");
    return device_error(CUDA_NOT_SUPPORTED), CUDA_NOT_SUPPORTED;
}

int simt_capture_begin(void *stream)
{
    (void)stream;
    return no_graphs(__builtin_return_address(0));
}

int simt_capture_end(void **ret)
{
    *ret = NULL;
    return no_graphs(__builtin_return_address(0));
}

int simt_captures(void *stream)
{
    (void)stream;
    return 0;
}

int simt_graph_copy(void **ret, void *graph)
{
    (void)graph;
    *ret = NULL;
    return no_graphs(__builtin_return_address(0));
}

int simt_graph_launch(void *graph, void *stream)
{
    (void)graph, (void)stream;
    return no_graphs(__builtin_return_address(0));
}

void simt_graph_free(void *graph)
{
    (void)graph;
}

/* probe.mu - what nobody without a Moore Threads card can know: one program for somebody who has one.
 *
 *   mcc -x musa -mtgpu --offload-arch=mp_22 -O2 probe.mu -o probe -lmusart -ldl && ./probe  (mp_31 for an S5000)
 *   nvcc -x cu -std=c++17 -Ilitetorch/include probe.mu -o probe && ./probe                   (the same on an NVIDIA GPU)
 *
 * Prints a line for each question, "name value", and what an NVIDIA GPU would say beside it where that is a law. Add
 * -DPROBE_ATOMIC_64 -DPROBE_HALF_SIN -DPROBE_WMMA one at a time: whether each compiles is an answer too. */
#include <musa_runtime.h>
#include <musa_fp16.h>

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#ifdef PROBE_WMMA
#include <mma.h>
#endif

#define THREADS 128

static int failures;

static void say(const char *name, long long value, const char *beside)
{
    printf("%-34s %lld%s%s\n", name, value, *beside ? "   # " : "", beside);
}

/* True if nothing went wrong since the last question; says what did. */
static bool fine(const char *name)
{
    musaError_t e = musaDeviceSynchronize();

    if (e == musaSuccess)
        e = musaGetLastError();
    if (e == musaSuccess)
        return true;
    printf("%-34s failed: %s\n", name, musaGetErrorString(e));
    failures++;
    return false;
}

/* ---- properties ---- */

static void properties(void)
{
    static const struct { const char *name; musaDeviceAttr attr; } rows[] = {
        {"max_threads_per_block", musaDevAttrMaxThreadsPerBlock},
        {"max_block_x", musaDevAttrMaxBlockDimX},
        {"max_block_z", musaDevAttrMaxBlockDimZ},
        {"max_grid_x", musaDevAttrMaxGridDimX},
        {"max_grid_y", musaDevAttrMaxGridDimY},
        {"max_grid_z", musaDevAttrMaxGridDimZ},
        {"shared_per_block", musaDevAttrMaxSharedMemoryPerBlock},
        {"shared_per_block_optin", musaDevAttrMaxSharedMemoryPerBlockOptin},
        {"shared_per_multiprocessor", musaDevAttrMaxSharedMemoryPerMultiprocessor},
        {"warp_size_attribute", musaDevAttrWarpSize},
        {"registers_per_block", musaDevAttrMaxRegistersPerBlock},
        {"multiprocessors", musaDevAttrMultiProcessorCount},
        {"threads_per_multiprocessor", musaDevAttrMaxThreadsPerMultiProcessor},
        {"l2_bytes", musaDevAttrL2CacheSize},
        {"clock_khz", musaDevAttrClockRate},
        {"major", musaDevAttrComputeCapabilityMajor},
        {"minor", musaDevAttrComputeCapabilityMinor},
        {"cooperative_launch", musaDevAttrCooperativeLaunch},
    };
    musaDeviceProp p;
    int v;

    if (musaGetDeviceProperties(&p, 0) == musaSuccess) {
        printf("%-34s %s\n", "device", p.name);
        say("warp_size_property", p.warpSize, "");
        say("constant_bytes", (long long)p.totalConstMem, "");
        say("global_bytes", (long long)p.totalGlobalMem, "");
    }
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (musaDeviceGetAttribute(&v, rows[i].attr, 0) == musaSuccess)
            say(rows[i].name, v, "");
        else
            printf("%-34s not answered\n", rows[i].name);
}

/* ---- lanes ---- */

__global__ void lanes(int *out, int width)
{
    int t = threadIdx.x;

    out[t] = __shfl_xor_sync(0xffffffffu, t, width / 2, width);
}

/* How many of 128 threads get another lane's value than the width promises. */
static void shuffles(int *host, int *dev)
{
    for (int width = 32; width <= 128; width *= 2) {
        int wrong = 0;
        char name[40];

        musaMemset(dev, 0xff, THREADS * sizeof *dev);
        lanes<<<1, THREADS>>>(dev, width);
        snprintf(name, sizeof name, "shuffle_errors_width_%d", width);
        if (!fine(name))
            continue;
        musaMemcpy(host, dev, THREADS * sizeof *host, musaMemcpyDeviceToHost);
        for (int t = 0; t < THREADS; t++)
            wrong += host[t] != (t ^ (width / 2));
        say(name, wrong, width == 32 ? "0 wherever a warp has at least 32 lanes" : "");
    }
}

__global__ void votes(unsigned *out)
{
    unsigned mask = __ballot_sync(0xffffffffu, threadIdx.x % 3 == 0);

    out[threadIdx.x] = mask;
    if (threadIdx.x == 0)
        out[THREADS] = (unsigned)warpSize;
    if (threadIdx.x % 2)
        out[THREADS + 1 + threadIdx.x / 2] = __activemask();
}

static void ballots(int *host, int *dev)
{
    votes<<<1, THREADS>>>((unsigned *)dev);
    if (!fine("ballot"))
        return;
    musaMemcpy(host, dev, 2 * THREADS * sizeof *host, musaMemcpyDeviceToHost);
    say("warp_size_in_a_kernel", host[THREADS], "");
    for (int w = 0; w < THREADS; w += 32) {
        char name[40];
        snprintf(name, sizeof name, "ballot_of_thread_%d", w);
        printf("%-34s %08x\n", name, (unsigned)host[w]);
    }
    printf("%-34s %08x\n", "activemask_of_odd_threads", (unsigned)host[THREADS + 1]);
}

/* ---- arithmetic ---- */

__global__ void arithmetic(const float *x, const float *y, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i >= n)
        return;
    out[i] = x[i] / y[i];
    out[n + i] = __fdiv_rn(x[i], y[i]);
    out[2 * n + i] = sqrtf(y[i]);
    out[3 * n + i] = 1.0f / y[i];
    out[4 * n + i] = expf(x[i] * 0.01f);
    out[5 * n + i] = fmaf(x[i], y[i], 1.0f);
}

static long long ulps(float a, float b)
{
    int ia, ib;

    memcpy(&ia, &a, 4);
    memcpy(&ib, &b, 4);
    return ia > ib ? (long long)ia - ib : (long long)ib - ia;
}

static void rounding(void)
{
    enum { N = 4096, OPS = 6 };
    static const char *const names[OPS] = {"division_ulp", "fdiv_rn_ulp", "sqrt_ulp", "reciprocal_ulp", "exp_ulp", "fma_ulp"};
    static float x[N], y[N], out[OPS * N];
    float *dx, *dy, *dout;
    long long worst[OPS] = {0};

    for (int i = 0; i < N; i++) {
        x[i] = 1.0f + (float)((i * 7919) % 10007) / 97.0f;
        y[i] = 0.5f + (float)((i * 104729) % 30011) / 211.0f;
    }
    musaMalloc(&dx, sizeof x);
    musaMalloc(&dy, sizeof y);
    musaMalloc(&dout, sizeof out);
    musaMemcpy(dx, x, sizeof x, musaMemcpyHostToDevice);
    musaMemcpy(dy, y, sizeof y, musaMemcpyHostToDevice);
    arithmetic<<<N / 128, 128>>>(dx, dy, dout, N);
    if (fine("rounding")) {
        musaMemcpy(out, dout, sizeof out, musaMemcpyDeviceToHost);
        for (int i = 0; i < N; i++) {
            const float right[OPS] = {(float)((double)x[i] / y[i]), (float)((double)x[i] / y[i]), (float)sqrt((double)y[i]),
                                      (float)(1.0 / (double)y[i]), (float)exp((double)(x[i] * 0.01f)), fmaf(x[i], y[i], 1.0f)};
            for (int k = 0; k < OPS; k++)
                if (ulps(out[k * N + i], right[k]) > worst[k])
                    worst[k] = ulps(out[k * N + i], right[k]);
        }
        for (int k = 0; k < OPS; k++)
            say(names[k], worst[k], k == 4 ? "1 or 2" : "0");
    }
    musaFree(dx);
    musaFree(dy);
    musaFree(dout);
}

__global__ void tiny(float *x)
{
    x[1] = x[0] * 0.5f;
}

static void denormals(void)
{
    float host[2] = {1.17549435e-38f, 1.0f}, *dev;

    musaMalloc(&dev, sizeof host);
    musaMemcpy(dev, host, sizeof host, musaMemcpyHostToDevice);
    tiny<<<1, 1>>>(dev);
    if (fine("denormals")) {
        musaMemcpy(host, dev, sizeof host, musaMemcpyDeviceToHost);
        say("denormals_are_kept", host[1] != 0.0f, "1 unless flushed by a flag");
    }
    musaFree(dev);
}

/* ---- shared memory, barriers ---- */

__global__ void fill(int *out, int words)
{
    extern __shared__ int room[];

    for (int i = threadIdx.x; i < words; i += blockDim.x)
        room[i] = i;
    __syncthreads();
    if (threadIdx.x == 0)
        *out = room[words - 1];
}

/* The most dynamic shared memory that a launch gets, in steps of 4 KB. */
static int most_shared(int *host, int *dev, bool ask)
{
    int most = 0;

    for (int kb = 4; kb <= 256; kb += 4) {
        if (ask && musaFuncSetAttribute(fill, musaFuncAttributeMaxDynamicSharedMemorySize, kb * 1024) != musaSuccess)
            musaGetLastError();
        fill<<<1, 128, kb * 1024>>>(dev, kb * 256);
        if (musaDeviceSynchronize() != musaSuccess || musaGetLastError() != musaSuccess)
            break;
        musaMemcpy(host, dev, sizeof *host, musaMemcpyDeviceToHost);
        if (*host != kb * 256 - 1)
            break;
        most = kb * 1024;
    }
    musaGetLastError();
    return most;
}

static void shared_memory(int *host, int *dev)
{
    say("dynamic_shared_without_asking", most_shared(host, dev, false), "");
    say("dynamic_shared_bytes", most_shared(host, dev, true), "");
}

#ifdef PROBE_ATOMIC_64
__global__ void add64(unsigned long long *x)
{
    atomicAdd(x, 1ull << 33);
}

static void atomics(void)
{
    unsigned long long host = 0, *dev;

    musaMalloc(&dev, sizeof host);
    musaMemcpy(dev, &host, sizeof host, musaMemcpyHostToDevice);
    add64<<<2, 64>>>(dev);
    if (fine("atomic_add_64")) {
        musaMemcpy(&host, dev, sizeof host, musaMemcpyDeviceToHost);
        say("atomic_add_64", host == 128ull << 33, "1");
    }
    musaFree(dev);
}
#endif

#ifdef PROBE_HALF_SIN
__global__ void half_functions(float *out)
{
    out[0] = __half2float(hexp2(__float2half(3.0f)));
    out[1] = __half2float(hsin(__float2half(1.0f)));
}
#endif

#ifdef PROBE_WMMA
/* Which row and column of the accumulator each element of each lane is: c = identity of its place. */
__global__ void layout(float *out)
{
    using namespace mtmusa;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;

    wmma::load_matrix_sync(c, out, 16, wmma::mem_row_major);
    for (int q = 0; q < c.num_elements; q++)
        out[256 + threadIdx.x * 8 + q] = c.x[q];
}

static void fragments(void)
{
    static float host[256 + 32 * 8];
    float *dev;

    for (int i = 0; i < 256; i++)
        host[i] = (float)i;
    musaMalloc(&dev, sizeof host);
    musaMemcpy(dev, host, sizeof host, musaMemcpyHostToDevice);
    layout<<<1, 32>>>(dev);
    if (fine("fragment_layout")) {
        musaMemcpy(host, dev, sizeof host, musaMemcpyDeviceToHost);
        for (int lane = 0; lane < 32; lane++) {
            printf("fragment_of_lane_%-17d", lane);
            for (int q = 0; q < 8; q++)
                printf(" %d,%d", (int)host[256 + lane * 8 + q] / 16, (int)host[256 + lane * 8 + q] % 16);
            printf("\n");
        }
    }
    musaFree(dev);
}
#endif

/* ---- the driver: what 'musacoder eval --backend musa' relies on ---- */

static void *driver_function(void *lib, const char *name)
{
    char versioned[80];
    void *f = dlsym(lib, name);

    snprintf(versioned, sizeof versioned, "%s_v2", name);
    return f ? f : dlsym(lib, versioned);
}

/* Does the driver map memory where it is asked to? The executor's addresses are the same in every replay. */
static void addresses(void *lib)
{
    typedef int reserve(unsigned long long *, size_t, size_t, unsigned long long, unsigned long long);
    typedef int give_back(unsigned long long, size_t);
    const unsigned long long asked = 0x200000000000ull;
    const size_t bytes = (size_t)16 << 30;
    reserve *take = (reserve *)driver_function(lib, "muMemAddressReserve");
    give_back *drop = (give_back *)driver_function(lib, "muMemAddressFree");
    unsigned long long at = 0;
    int code = take ? take(&at, bytes, 0, asked, 0) : -1;

    say("reserve_16_gb_code", code, "0");
    say("reserve_at_the_address_asked", code == 0 && at == asked, "1");
    if (code == 0 && drop)
        drop(at, bytes);
}

static void driver(void)
{
    static const char *const names[] = {
        "muMemCreate", "muMemMap", "muMemSetAccess", "muMemImportFromShareableHandle", "muModuleLoadData",
        "muModuleGetGlobal", "muLaunchKernel", "muStreamWaitEvent", "muMemsetD16Async", "muMemsetD32Async",
        "muLaunchKernelEx", "muFuncGetParamInfo", "muTensorMapEncodeTiled", "muCtxResetPersistingL2Cache",
        "muOccupancyMaxActiveBlocksPerMultiprocessor", "muProfilerStart"};
    void *lib = dlopen("libmusa.so", RTLD_NOW);

    say("driver_library_is_found", lib != NULL, "1 where there is a card");
    for (size_t i = 0; lib && i < sizeof names / sizeof *names; i++)
        say(names[i], driver_function(lib, names[i]) != NULL, "");
    if (lib)
        addresses(lib);
}

int main(void)
{
    static int host[4 * THREADS];
    int *dev, n = 0;

    if (musaGetDeviceCount(&n) != musaSuccess || n == 0) {
        fprintf(stderr, "no device; is the driver loaded?\n");
        return 1;
    }
    if (musaMalloc(&dev, sizeof host) != musaSuccess) {
        fprintf(stderr, "no memory: %s\n", musaGetErrorString(musaGetLastError()));
        return 1;
    }
    properties();
    shuffles(host, dev);
    ballots(host, dev);
    rounding();
    denormals();
    shared_memory(host, dev);
#ifdef PROBE_ATOMIC_64
    atomics();
#endif
#ifdef PROBE_HALF_SIN
    half_functions<<<1, 1>>>((float *)dev);
    say("half_functions", fine("half_functions"), "1");
#endif
#ifdef PROBE_WMMA
    fragments();
#endif
    driver();
    say("questions_that_failed", failures, "0");
    return 0;
}

/* faults.cu - one broken kernel for every kind of finding. The line that must be named is marked with a comment
 * that says 'expect' and the kind; kernels without a mark must give no finding. */
#include <cuda_runtime.h>
#include <stdlib.h>

static float *device(size_t n)
{
    float *p;
    cudaMalloc(&p, n * sizeof(float));
    cudaMemset(p, 0, n * sizeof(float));
    return p;
}

/* ---- bounds ---- */

__global__ void off_by_one(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i <= n) {
        float v = 2.0f;
        y[i] = v * x[i]; /* expect: out_of_bounds */
    }
}
static void run_off_by_one() { off_by_one<<<4, 256>>>(device(1000), device(1000), 1000); }

__global__ void before(float *y)
{
    y[(int)threadIdx.x - 1] = 1; /* expect: out_of_bounds */
}
static void run_before() { before<<<1, 32>>>(device(32)); }

__global__ void shared_overrun(float *y)
{
    extern __shared__ float s[];
    s[threadIdx.x + 1] = 1; /* expect: out_of_bounds */
    __syncthreads();
    y[threadIdx.x] = s[threadIdx.x];
}
static void run_shared_overrun() { shared_overrun<<<1, 64, 64 * sizeof(float)>>>(device(64)); }

__global__ void null_pointer(const float *x, float *y)
{
    if (threadIdx.x == 3)
        y[threadIdx.x] = x[threadIdx.x]; /* expect: illegal_access */
}
static void run_null_pointer() { null_pointer<<<1, 32>>>(nullptr, device(32)); }

__global__ void host_pointer(const float *x, float *y)
{
    y[threadIdx.x] = x[0]; /* expect: illegal_access */
}
static void run_host_pointer()
{
    static float on_host[4];
    float local[4] = {};
    (void)on_host;
    host_pointer<<<1, 32>>>(local, device(32));
}

__global__ void misaligned(const float *x, float4 *y)
{
    y[threadIdx.x] = *(const float4 *)(x + 1); /* expect: misaligned */
}
static void run_misaligned() { misaligned<<<1, 4>>>(device(64), (float4 *)device(64)); }

__global__ void block_copy(float *y, const float *x, int n)
{
    memcpy(y, x, n * sizeof(float)); /* expect: out_of_bounds */
}
static void run_block_copy() { block_copy<<<1, 1>>>(device(100), device(200), 101); }

/* ---- races ---- */

__global__ void no_barrier(float *y)
{
    __shared__ float s[64];
    s[threadIdx.x] = threadIdx.x; /* expect: race */
    y[threadIdx.x] = s[63 - threadIdx.x]; /* expect: race */ /* expect: uninitialised_shared */
}
static void run_no_barrier() { no_barrier<<<1, 64>>>(device(64)); }

__global__ void one_barrier(const float *a, float *c, int n)
{
    __shared__ float s[16];
    float sum = 0;
    for (int k = 0; k < n; k += 16) {
        s[threadIdx.x] = a[k + threadIdx.x] + k; /* expect: race */
        __syncthreads();
        for (int i = 0; i < 16; i++)
            sum += s[i]; /* expect: race */
    }
    c[threadIdx.x] = sum;
}
static void run_one_barrier() { one_barrier<<<1, 16>>>(device(64), device(16), 64); }

__global__ void lost_update(const float *x, float *out)
{
    out[0] += x[threadIdx.x] + 1; /* expect: race */
}
static void run_lost_update() { lost_update<<<1, 32>>>(device(32), device(1)); }

__global__ void across_blocks(float *out)
{
    out[threadIdx.x] = (float)blockIdx.x; /* expect: race */
}
static void run_across_blocks() { across_blocks<<<3, 8>>>(device(8)); }

__global__ void warp_synchronous(float *out)
{
    __shared__ float s[32];
    int t = threadIdx.x;
    s[t] = t; /* expect: race */
    if (t < 16)
        s[t] += s[t + 16]; /* expect: uninitialised_shared */
    out[t] = s[t];
}
static void run_warp_synchronous() { warp_synchronous<<<1, 32>>>(device(32)); }

/* ---- uninitialised shared memory ---- */

__global__ void half_filled(float *out)
{
    __shared__ float s[64];
    if (threadIdx.x < 32)
        s[threadIdx.x] = 1;
    __syncthreads();
    out[threadIdx.x + 64 * blockIdx.x] = s[threadIdx.x]; /* expect: uninitialised_shared */
}
static void run_half_filled() { half_filled<<<2, 64>>>(device(128)); }

/* ---- divergence ---- */

__global__ void two_barriers(float *out)
{
    if (threadIdx.x < 16) {
        out[threadIdx.x] = 1;
        __syncthreads();
    } else {
        out[threadIdx.x] = 2;
        __syncthreads(); /* expect: divergence */
    }
}
static void run_two_barriers() { two_barriers<<<1, 32>>>(device(32)); }

__global__ void lanes_missing(float *out)
{
    float v = threadIdx.x;
    if (threadIdx.x < 8)
        v += __shfl_down_sync(0xffffffff, v, 4); /* expect: divergence */
    else
        __syncthreads(); /* the warp waits for these lanes, and they for the warp */
    out[threadIdx.x] = v;
}
static void run_lanes_missing() { lanes_missing<<<1, 32>>>(device(32)); }

__global__ void not_in_mask(int *out)
{
    out[threadIdx.x] = __shfl_sync(0xffff, (int)threadIdx.x, 0); /* expect: divergence */
}
static void run_not_in_mask() { not_in_mask<<<1, 32>>>((int *)device(32)); }

__global__ void returned_lanes(float *out)
{
    float v = threadIdx.x;
    if (threadIdx.x >= 20)
        return;
    for (int d = 16; d; d /= 2)
        v = fmaxf(v, __shfl_down_sync(0xffffffff, v, d)); /* expect: divergence */
    out[threadIdx.x] = v;
}
static void run_returned_lanes() { returned_lanes<<<1, 32>>>(device(32)); }

__global__ void half_a_warp(float *out)
{
    out[threadIdx.x] = __shfl_xor_sync(0xffffffff, (float)threadIdx.x, 16); /* expect: divergence */
}
static void run_half_a_warp() { half_a_warp<<<1, 16>>>(device(32)); }

/* ---- waiting for ever ---- */

__global__ void never(volatile int *flag, int *out)
{
    while (*flag == 0) /* expect: divergence */
        ;
    out[threadIdx.x] = 1;
}
static void run_never() { never<<<1, 32>>>((int *)device(1), (int *)device(32)); }

__global__ void never_unlocked(int *lock)
{
    while (atomicCAS(lock, 0, 1) != 0) /* expect: divergence */
        ;
}
static void run_never_unlocked() { never_unlocked<<<1, 32>>>((int *)device(1)); }

void simt_grid_sync() __asm__("simt_grid_sync");
__global__ void not_cooperative(int *out)
{
    simt_grid_sync(); /* expect: launch_error */
    out[0] = 1;
}
static void run_not_cooperative() { not_cooperative<<<2, 32>>>((int *)device(1)); }

/* ---- alignment that the compiler's own splitting would hide ---- */

__global__ void split(const float *x, float *y)
{
    float4 v = *(const float4 *)(x + 1); /* expect: misaligned */
    y[0] = v.x + v.y;
}
static void run_split() { split<<<1, 1>>>(device(8), device(1)); }

/* ---- launches ---- */

__global__ void nothing(float *out) { (void)out; }

static void run_too_many_threads() { nothing<<<1, 2048>>>(device(1)); /* expect: launch_error */ }
static void run_empty_grid() { nothing<<<0, 32>>>(device(1)); /* expect: launch_error */ }
static void run_too_much_shared() { nothing<<<1, 32, 64 * 1024>>>(device(1)); /* expect: launch_error */ }

__global__ void fat(float *out)
{
    __shared__ float s[16 * 1024];
    s[threadIdx.x] = 1;
    __syncthreads();
    out[threadIdx.x] = s[31 - threadIdx.x];
}
static void run_fat() { fat<<<1, 32>>>(device(32)); /* expect: launch_error */ }

static void run_copy_overrun()
{
    float h[8] = {};
    cudaMemcpy(device(4), h, sizeof h, cudaMemcpyHostToDevice); /* expect: out_of_bounds */
}

/* ---- crashes ---- */

__global__ void divide(int *p, int n)
{
    p[threadIdx.x] = n / p[threadIdx.x]; /* expect: crash */
}
static void run_divide() { divide<<<1, 1>>>((int *)device(1), 5); }

/* clang-format off */
__device__ int deep(int n) { volatile int p[64]; p[0] = n; return n ? deep(n - 1) + p[0] : 0; } /* expect: crash */
/* clang-format on */
__global__ void recurse(int *p) { p[0] = deep(1 << 20); }
static void run_recurse() { recurse<<<1, 1>>>((int *)device(1)); }

__global__ void traps(int *p)
{
    if (p[0] == 0)
        __trap(); /* expect: assertion */
}
static void run_traps() { traps<<<1, 1>>>((int *)device(1)); }

__global__ void atomic_null(int *p)
{
    atomicAdd(p, 1); /* expect: illegal_access */
}
static void run_atomic_null() { atomic_null<<<1, 1>>>(nullptr); }

/* ---- correct, though it looks dangerous ---- */

__global__ void all_store_same(float *out, int *flag)
{
    __shared__ float m;
    m = 3.0f;
    __syncthreads();
    out[blockIdx.x] = m;
    *flag = 1;
}
static void run_all_store_same() { all_store_same<<<4, 64>>>(device(4), (int *)device(1)); }

__global__ void synced_warp(float *out)
{
    __shared__ float s[32];
    int t = threadIdx.x;
    s[t] = t;
    __syncwarp();
    float v = s[31 - t];
    __syncwarp();
    s[t] = v;
    out[t] = s[t];
}
static void run_synced_warp() { synced_warp<<<1, 32>>>(device(32)); }

__global__ void bytes(unsigned char *p) { p[threadIdx.x] = threadIdx.x; }
static void run_bytes() { bytes<<<1, 64>>>((unsigned char *)device(16)); }

__global__ void cleared(float *out, int n)
{
    __shared__ float s[64];
    if (threadIdx.x == 0)
        memset(s, 0, n * sizeof(float));
    __syncthreads();
    out[threadIdx.x] = s[threadIdx.x];
}
static void run_cleared() { cleared<<<2, 64>>>(device(64), 64); }

/* Neighbours in one word: every thread reads and writes its own two bytes, across odd block borders too. */
__global__ void in_place(unsigned short *p, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        p[i] = (unsigned short)(p[i] + i);
}
static void run_in_place() { in_place<<<3, 33>>>((unsigned short *)device(50), 99); }

__global__ void broadcast(float *out)
{
    __shared__ float s[4];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float v = 0;
    for (int i = 0; i < 3; i++) {
        if (lane == i)
            s[warp] = (float)(i + v);
        __syncwarp();
        v += s[warp]; /* all lanes read it, then one writes again */
        __syncwarp();
    }
    out[threadIdx.x] = v;
}
static void run_broadcast() { broadcast<<<1, 128>>>(device(128)); }

__global__ void broadcast_unsynced(float *out)
{
    __shared__ float s[4];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float v = 0;
    for (int i = 0; i < 3; i++) {
        if (lane == i)
            s[warp] = (float)(i + v); /* expect: race */
        __syncwarp();
        v += s[warp]; /* expect: race */
    }
    out[threadIdx.x] = v;
}
static void run_broadcast_unsynced() { broadcast_unsynced<<<1, 128>>>(device(128)); }

/* ---- reads that the checker keeps as runs, and a write that comes late ---- */

enum { ROWS = 24, COLUMNS = 64 };

/* Thread t reads column t from top to bottom; thread 'who' then writes element (row, column). */
__device__ float column(const float *x, int rows)
{
    float sum = 1;
    for (int k = 0; k < rows; k++)
        sum += x[k * COLUMNS + threadIdx.x];
    return sum;
}

__global__ void late_other(float *x, float *y)
{
    y[threadIdx.x] = column(x, ROWS);
    if (threadIdx.x == 40)
        x[7 * COLUMNS + 3] = 2; /* expect: race */
}
static void run_late_other() { late_other<<<1, COLUMNS>>>(device(ROWS * COLUMNS), device(COLUMNS)); }

__global__ void late_own(float *x, float *y)
{
    y[threadIdx.x] = column(x, ROWS);
    x[7 * COLUMNS + threadIdx.x] = y[threadIdx.x];
}
static void run_late_own() { late_own<<<1, COLUMNS>>>(device(ROWS * COLUMNS), device(COLUMNS)); }

/* Every third thread leaves out the last row: what it did not read may be written. */
__global__ void uneven(float *x, float *y)
{
    y[threadIdx.x] = column(x, ROWS - (threadIdx.x % 3 == 2));
    if (threadIdx.x == 40)
        x[(ROWS - 1) * COLUMNS + 5] = 2;
}
static void run_uneven() { uneven<<<1, COLUMNS>>>(device(ROWS * COLUMNS), device(COLUMNS)); }

__global__ void uneven_read(float *x, float *y)
{
    y[threadIdx.x] = column(x, ROWS - (threadIdx.x % 3 == 2));
    if (threadIdx.x == 40)
        x[(ROWS - 2) * COLUMNS + 5] = 2; /* expect: race */
}
static void run_uneven_read() { uneven_read<<<1, COLUMNS>>>(device(ROWS * COLUMNS), device(COLUMNS)); }

__global__ void late_behind_barrier(float *x, float *y)
{
    y[blockIdx.x * COLUMNS + threadIdx.x] = column(x + blockIdx.x * ROWS * COLUMNS, ROWS);
    __syncthreads();
    x[blockIdx.x * ROWS * COLUMNS + 63 - threadIdx.x] = 1 + y[threadIdx.x];
}
static void run_late_behind_barrier()
{
    late_behind_barrier<<<1, COLUMNS>>>(device(ROWS * COLUMNS), device(COLUMNS));
}

/* The same word read by all blocks, and written by the last. */
__global__ void late_across_blocks(float *x, float *y)
{
    y[blockIdx.x * COLUMNS + threadIdx.x] = column(x, ROWS);
    __syncthreads();
    if (blockIdx.x == gridDim.x - 1 && threadIdx.x == 9)
        x[ROWS / 2 * COLUMNS] = 3; /* expect: race */
}
static void run_late_across_blocks()
{
    late_across_blocks<<<5, COLUMNS>>>(device(ROWS * COLUMNS), device(5 * COLUMNS));
}

/* One read a thread, each of its right neighbour's element. */
__global__ void late_neighbour(float *x, float *y)
{
    y[threadIdx.x] = 1 + x[threadIdx.x + 1];
    if (threadIdx.x == 63)
        x[20] = y[threadIdx.x]; /* expect: race */
}
static void run_late_neighbour() { late_neighbour<<<1, COLUMNS>>>(device(COLUMNS + 1), device(COLUMNS)); }

__global__ void late_neighbour_own(float *x, float *y)
{
    y[threadIdx.x] = 1 + x[threadIdx.x + 1];
    x[threadIdx.x + 1] = y[threadIdx.x];
    if (threadIdx.x == 63)
        x[0] = y[threadIdx.x];
}
static void run_late_neighbour_own() { late_neighbour_own<<<1, COLUMNS>>>(device(COLUMNS + 1), device(COLUMNS)); }

/* In no order, and so often that cells take over. */
__global__ void gathered(float *x, float *y)
{
    float sum = 1;
    for (unsigned k = 0; k < 300; k++)
        sum += x[(threadIdx.x * 7919u + k * k * 31u) % 1000];
    y[threadIdx.x] = sum;
    if (threadIdx.x == 31)
        x[7919u % 1000] = 2; /* expect: race */
}
static void run_gathered() { gathered<<<1, 32>>>(device(1001), device(32)); }

__global__ void gathered_else(float *x, float *y)
{
    float sum = 1;
    for (unsigned k = 0; k < 300; k++)
        sum += x[(threadIdx.x * 7919u + k * k * 31u) % 1000];
    y[threadIdx.x] = sum;
    if (threadIdx.x == 31)
        x[1000] = 2;
}
static void run_gathered_else() { gathered_else<<<1, 32>>>(device(1001), device(32)); }

/* Rows of shared memory: the second round writes while the first is still being read. */
template <bool BARRIER> __device__ float rows_of_shared(float (*s)[33], const float *x)
{
    float sum = 0;
    for (int round = 0; round < 2; round++) {
        for (int k = 0; k < 32; k++)
            sum += k % 2 ? x[k] : s[threadIdx.x][k]; /* expect: race */
        if (BARRIER)
            __syncthreads();
        s[31 - threadIdx.x][4] = sum + threadIdx.x + 1; /* expect: race */
        __syncthreads();
    }
    return sum;
}

template <bool BARRIER> __global__ void late_shared(const float *x, float *y)
{
    __shared__ float s[32][33];
    for (int k = 0; k < 33; k++)
        s[threadIdx.x][k] = k;
    __syncthreads();
    y[threadIdx.x] = rows_of_shared<BARRIER>(s, x);
}
static void run_late_shared() { late_shared<false><<<1, 32>>>(device(32), device(32)); }
static void run_late_shared_barrier() { late_shared<true><<<1, 32>>>(device(32), device(32)); }

/* An atomic is no plain read either. */
__global__ void late_atomic(float *x, float *y)
{
    y[threadIdx.x] = column(x, ROWS);
    __syncthreads();
    if (threadIdx.x < 2)
        atomicAdd(&x[threadIdx.x], 1.0f);
    x[COLUMNS] = threadIdx.x + y[threadIdx.x]; /* expect: race */
}
static void run_late_atomic() { late_atomic<<<1, COLUMNS>>>(device(ROWS * COLUMNS), device(COLUMNS)); }

__global__ void past_the_end(const float *x, float *y, int rows)
{
    float sum = 0;
    for (int k = 0; k < rows; k++)
        sum += x[k * COLUMNS + threadIdx.x]; /* expect: out_of_bounds */
    y[threadIdx.x] = sum;
}
static void run_past_the_end() { past_the_end<<<1, COLUMNS>>>(device(ROWS * COLUMNS - 1), device(COLUMNS), ROWS); }

/* A copy called in a kernel, which faults on the way: what it opened is closed. */
__global__ void copy_inside(float *p)
{
    cudaMemcpy(p, (const void *)0x100000000000, 16, cudaMemcpyDefault); /* expect: illegal_access */
}
static void run_copy_inside() { copy_inside<<<1, 1>>>(device(4)); }

static void run_negative_copy()
{
    long n = 3;
    float *p = device(4), host[4];
    cudaMemcpy(host, p, (n - 4) * sizeof(float), cudaMemcpyDeviceToHost); /* expect: out_of_bounds */
}

/* Set before every launch, as many programs do. */
static void run_many_attributes()
{
    for (int i = 0; i < 1000; i++)
        cudaFuncSetAttribute(cleared, cudaFuncAttributeMaxDynamicSharedMemorySize, 1000 + i);
}

/* Not in the list: it ends the process. */
__global__ void frees_twice(void *volatile p)
{
    if (threadIdx.x == 5) {
        free(p);
        free(p);
    }
}
extern "C" void run_frees_twice(void *)
{
    void *p = malloc(5000), *volatile behind = malloc(64);
    frees_twice<<<1, 32>>>(p);
    free(behind);
}

struct fault {
    const char *name;
    void (*run)();
};
#define F(name) {#name, run_##name}
extern "C" const fault faults[] = {
    F(off_by_one), F(before), F(shared_overrun), F(null_pointer), F(host_pointer), F(misaligned), F(no_barrier),
    F(one_barrier), F(block_copy), F(lost_update), F(across_blocks), F(warp_synchronous), F(half_filled),
    F(two_barriers), F(lanes_missing), F(not_in_mask), F(too_many_threads), F(empty_grid), F(too_much_shared), F(fat),
    F(copy_overrun), F(divide), F(recurse), F(traps), F(atomic_null), F(all_store_same), F(synced_warp), F(bytes),
    F(cleared), F(in_place), F(returned_lanes), F(half_a_warp), F(never), F(never_unlocked),
    F(not_cooperative), F(split), F(broadcast), F(broadcast_unsynced), F(late_other), F(late_own), F(uneven),
    F(uneven_read), F(late_behind_barrier), F(late_across_blocks), F(late_neighbour), F(late_neighbour_own),
    F(gathered), F(gathered_else), F(late_shared), F(late_shared_barrier), F(late_atomic), F(past_the_end),
    F(copy_inside), F(negative_copy), F(many_attributes), {nullptr, nullptr}};

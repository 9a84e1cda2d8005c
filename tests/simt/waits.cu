/* waits.cu - correct kernels whose threads wait for each other without a block barrier: grids of a cooperative launch,
 * flags and tickets between blocks, locks, masks of the lanes that run together. Rules as in kernels.cu; VOLATILE_WAITS
 * leaves out what waits on volatile variables, which only instrumented builds can see. */
#include <cuda_runtime.h>
#include <cooperative_groups.h>

#include <vector>

namespace cg = cooperative_groups;

template <class T> static T *device(size_t n, int fill = 0)
{
    T *p;
    cudaMalloc(&p, n * sizeof(T));
    cudaMemset(p, fill, n * sizeof(T));
    return p;
}

template <class T> static std::vector<T> host(const T *p, size_t n)
{
    std::vector<T> v(n);
    cudaMemcpy(v.data(), p, n * sizeof(T), cudaMemcpyDeviceToHost);
    return v;
}

/* ---- a grid that meets ---- */

__global__ void prefix_of_blocks(const int *x, int *sums, int *out, int n)
{
    extern __shared__ int s[];
    __shared__ int base;
    cg::grid_group grid = cg::this_grid();
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t, kept = x[i] * 3; /* kept lives on the stack across the wait */
    s[t] = x[i];
    __syncthreads();
    if (t == 0) {
        int total = 0;
        for (unsigned k = 0; k < blockDim.x; k++)
            total += s[k];
        sums[blockIdx.x] = total;
    }
    grid.sync();
    if (t == 0) {
        base = 0;
        for (unsigned b = 0; b < blockIdx.x; b++)
            base += sums[b];
    }
    __syncthreads();
    out[i] = base + s[t] + kept;
    grid.sync();
    sums[blockIdx.x] = (int)grid.num_threads() - n;
}

static int check_grid_sync()
{
    const int blocks = 37, n = blocks * 64;
    std::vector<int> h(n);
    int *x = device<int>(n), *sums = device<int>(blocks), *out = device<int>(n), wrong = 0, base = 0, m = n;
    for (int i = 0; i < n; i++)
        h[i] = i % 7;
    cudaMemcpy(x, h.data(), n * sizeof(int), cudaMemcpyHostToDevice);
    void *args[] = {&x, &sums, &out, &m};
    wrong += cudaLaunchCooperativeKernel(prefix_of_blocks, dim3(blocks), dim3(64), args, 64 * sizeof(int)) !=
             cudaSuccess;
    std::vector<int> o = host(out, n), s = host(sums, blocks);
    for (int b = 0; b < blocks; b++) {
        int total = 0;
        for (int t = 0; t < 64; t++) {
            wrong += o[b * 64 + t] != base + h[b * 64 + t] * 4;
            total += h[b * 64 + t];
        }
        base += total;
        wrong += s[b] != 0;
    }
    return wrong;
}

/* ---- blocks that wait for blocks with atomics: a hand-made barrier, and a lock ---- */

__global__ void own_barrier(unsigned *arrived, int *data, int *out)
{
    int t = threadIdx.x, n = gridDim.x;
    if (t == 0)
        data[blockIdx.x] = blockIdx.x + 1;
    __syncthreads();
    if (t == 0) {
        __threadfence();
        atomicAdd(arrived, 1u);
        while (atomicAdd(arrived, 0u) < (unsigned)n)
            ;
        __threadfence();
    }
    __syncthreads();
    out[blockIdx.x * blockDim.x + t] = data[(blockIdx.x + 1 + t) % n];
}

__global__ void locked(int *lock, int *count)
{
    bool done = false;
    while (!done) {
        if (atomicCAS(lock, 0, 1) == 0) {
            __threadfence();
            atomicAdd(count, 1);
            __threadfence();
            atomicExch(lock, 0);
            done = true;
        } else {
            __nanosleep(20);
        }
    }
}

static int check_atomic_waits()
{
    unsigned *arrived = device<unsigned>(1);
    int *data = device<int>(11), *out = device<int>(11 * 40), *lock = device<int>(1), *count = device<int>(1);
    int wrong = 0;
    own_barrier<<<11, 40>>>(arrived, data, out);
    std::vector<int> o = host(out, 11 * 40);
    for (int b = 0; b < 11; b++)
        for (int t = 0; t < 40; t++)
            wrong += o[b * 40 + t] != (b + 1 + t) % 11 + 1;
    locked<<<5, 64>>>(lock, count);
    return wrong + (host(count, 1)[0] != 5 * 64);
}

/* ---- volatile flags: look-back over the blocks before, started in any order ---- */

#ifdef VOLATILE_WAITS
__global__ void look_back(const int *x, volatile int *flags, volatile int *sums, int *out)
{
    __shared__ int base;
    int t = threadIdx.x, b = blockIdx.x;
    if (t == 0) {
        int before = 0;
        if (b > 0) {
            while (flags[b - 1] == 0)
                ;
            __threadfence();
            before = sums[b - 1];
        }
        base = before;
        sums[b] = before + x[b];
        __threadfence();
        flags[b] = 1;
    }
    __syncthreads();
    out[b * blockDim.x + t] = base + t;
}

__global__ void other_warp(volatile int *go, int *out)
{
    if (threadIdx.x == 0) {
        while (*go == 0)
            ;
        out[0] = 7;
    }
    if (threadIdx.x == 40)
        *go = 1;
}

static int check_volatile_waits()
{
    const int blocks = 23;
    int *x = device<int>(blocks), *flags = device<int>(blocks), *sums = device<int>(blocks);
    int *out = device<int>(blocks * 33);
    int *go = device<int>(1), *seven = device<int>(1), wrong = 0;
    std::vector<int> h(blocks, 2);
    cudaMemcpy(x, h.data(), blocks * sizeof(int), cudaMemcpyHostToDevice);
    look_back<<<blocks, 33>>>(x, flags, sums, out);
    std::vector<int> o = host(out, blocks * 33);
    for (int b = 0; b < blocks; b++)
        for (int t = 0; t < 33; t++)
            wrong += o[b * 33 + t] != 2 * b + t;
    other_warp<<<1, 64>>>(go, seven);
    return wrong + (host(seven, 1)[0] != 7);
}
#endif

/* ---- lanes that run together ---- */

__global__ void together(unsigned *out, int n)
{
    int t = threadIdx.x;
    if (t < n)
        out[t] = __activemask();
    else if (t % 2)
        out[t] = ~__activemask();
    __syncthreads();
    if (t >= 40)
        return;
    out[64 + t] = __activemask();
    cg::coalesced_group g = cg::coalesced_threads();
    out[128 + t] = g.size();
}

static int check_active()
{
    unsigned *out = device<unsigned>(192), wrong = 0;
    together<<<1, 64>>>(out, 10);
    std::vector<unsigned> o = host(out, 192);
    for (int t = 0; t < 64; t++)
        wrong += o[t] != (t < 10 ? 0x3ffu : t % 2 == 0 ? 0u : ~(t < 32 ? 0xaaaaaaaau & ~0x3ffu : 0xaaaaaaaau));
    for (int t = 0; t < 40; t++) {
        wrong += o[64 + t] != (t < 32 ? 0xffffffffu : 0xffu);
        wrong += o[128 + t] != (t < 32 ? 32u : 8u);
    }
    return (int)wrong;
}

struct check {
    const char *name;
    int (*run)();
};
extern "C" const check checks[] = {
    {"grid_sync", check_grid_sync}, {"atomic_waits", check_atomic_waits}, {"active", check_active},
#ifdef VOLATILE_WAITS
    {"volatile_waits", check_volatile_waits},
#endif
    {nullptr, nullptr}};

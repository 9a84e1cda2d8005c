/* mutants.cu - right kernels, and what becomes of them with one fault each: the classes of bugs that the emulator must
 * notice. BUG is the fault's number, 0 the right kernel. A fault is killed by a finding or by a wrong value. */
#include <cooperative_groups.h>
#include <cuda_pipeline.h>
#include <cuda_runtime.h>
#include <stdint.h>
#include <stdlib.h>

#include <vector>

enum { T = 128, BLOCKS = 3, N = T * BLOCKS };

struct floats { /* on the device, and what they should be in the end */
    float *p;
    std::vector<float> want;

    explicit floats(int n, float first = 0, float step = 0) : want(n)
    {
        cudaMalloc(&p, n * sizeof(float));
        for (int i = 0; i < n; i++)
            want[i] = first + step * (float)(i % 97);
        cudaMemcpy(p, want.data(), n * sizeof(float), cudaMemcpyHostToDevice);
    }
    ~floats() { cudaFree(p); }
    int wrong() const
    {
        std::vector<float> got(want.size());
        int bad = cudaMemcpy(got.data(), p, got.size() * sizeof(float), cudaMemcpyDeviceToHost) != cudaSuccess;
        for (size_t i = 0; i < got.size(); i++)
            bad += !(got[i] == want[i]);
        return bad;
    }
};

/* ---- a stencil through shared memory ---- */

template <int BUG> __global__ void stencil(const float *x, float *y, int n, int rounds)
{
    __shared__ float s[T + 2];
    int t = threadIdx.x, i = blockIdx.x * T + t;
    if (BUG == 1 && i >= n)
        return;
    for (int r = 0; r < rounds; r++) {
        if (BUG == 2 || i < n)
            s[t + 1] = x[i];
        else
            s[t + 1] = 0;
        if (t == 0 && BUG != 3)
            s[0] = i > 0 ? x[i - 1] : 0;
        if (t == T - 1)
            s[BUG == 4 ? T + 2 : T + 1] = i + 1 < n ? x[i + 1] : 0;
        if (BUG == 5) {
            if (t < T / 2)
                __syncthreads();
        } else if (BUG != 6) {
            __syncthreads();
        }
        float v = s[BUG == 7 ? t + 1 : t] + s[t + 1] + s[t + 2];
        if (BUG != 8)
            __syncthreads();
        if (i < n)
            y[BUG == 9 ? i / 2 : BUG == 10 ? i - 1 : i] = v + r;
        s[t + 1] = BUG == 8 ? -1.0f : v;
        __syncthreads();
    }
}

template <int BUG> static int run_stencil()
{
    const int n = N - 5;
    floats x(n, 1, 1), y(n);
    stencil<BUG><<<BLOCKS, T>>>(x.p, y.p, n, 2);
    for (int i = 0; i < n; i++)
        y.want[i] = (i ? x.want[i - 1] : 0) + x.want[i] + (i + 1 < n ? x.want[i + 1] : 0) + 1;
    return y.wrong();
}

/* ---- a tree of sums ---- */

template <int BUG> __global__ void tree(const float *x, float *out, int n)
{
    __shared__ float s[BUG == 1 ? T / 2 : T];
    int t = threadIdx.x, i = blockIdx.x * T + t;
    if (BUG != 2 || t % 3)
        s[t] = i < n ? x[i] : 0;
    if (BUG != 3)
        __syncthreads();
    for (int d = T / 2; d > (BUG == 4 ? 1 : 0); d /= 2) {
        if (BUG == 5 ? t <= d : t < d)
            s[t] += s[t + d];
        if (BUG != 6)
            __syncthreads();
    }
    if (BUG == 7)
        out[0] = s[0];
    else if (BUG == 8)
        out[blockIdx.x] = s[t];
    else if (t == 0)
        out[blockIdx.x] = s[0];
}

template <int BUG> static int run_tree()
{
    floats x(N, 1, 1), y(BLOCKS);
    tree<BUG><<<BLOCKS, T>>>(x.p, y.p, N);
    for (int b = 0; b < BLOCKS; b++)
        for (int t = y.want[b] = 0; t < T; t++)
            y.want[b] += x.want[b * T + t];
    return y.wrong();
}

/* ---- shuffles ---- */

template <int BUG> __global__ void shuffles(const float *x, float *out, int n)
{
    __shared__ float s[4];
    int t = threadIdx.x, lane = t % 32;
    float v = x[blockIdx.x * T + t];
    if (BUG == 1 && lane >= 20)
        return;
    for (int d = 16; d; d /= 2) {
        unsigned mask = BUG == 2 ? 0xffffu : 0xffffffffu;
        if (BUG == 3) {
            if (lane < d)
                v += __shfl_down_sync(mask, v, d);
        } else {
            v += __shfl_down_sync(mask, v, d, BUG == 4 ? 24 : BUG == 5 ? 16 : 32);
        }
    }
    if (lane == 0)
        s[t / 32] = v;
    if (BUG != 6)
        __syncthreads();
    if (t == 0)
        out[blockIdx.x] = s[0] + s[1] + s[2] + s[3];
}

template <int BUG> static int run_shuffles()
{
    floats x(N, 1, 1), y(BLOCKS);
    shuffles<BUG><<<BLOCKS, T>>>(x.p, y.p, N);
    for (int b = 0; b < BLOCKS; b++)
        for (int t = y.want[b] = 0; t < T; t++)
            y.want[b] += x.want[b * T + t];
    return y.wrong();
}

template <int BUG> __global__ void in_step(float *out)
{
    __shared__ volatile float s[32];
    int t = threadIdx.x;
    s[t] = (float)t;
    if (BUG != 1)
        __syncwarp();
    float v = s[(t + 1) % 32];
    if (BUG != 2)
        __syncwarp();
    s[t] = v * 2;
    out[t] = s[t];
}

template <int BUG> static int run_in_step()
{
    floats y(32);
    in_step<BUG><<<1, 32>>>(y.p);
    for (int t = 0; t < 32; t++)
        y.want[t] = 2.0f * (float)((t + 1) % 32);
    return y.wrong();
}

/* ---- a histogram ---- */

template <int BUG> __global__ void histogram(const float *x, int *bins, float *out, int n)
{
    __shared__ int s[16];
    int t = threadIdx.x, i = blockIdx.x * T + t;
    if (t < 16 && BUG != 1)
        s[t] = 0;
    if (BUG != 2)
        __syncthreads();
    if (i < n) {
        int b = (int)x[i] % (BUG == 3 ? 17 : 16);
        if (BUG == 4)
            s[b] = s[b] + 1;
        else
            atomicAdd(&s[b], 1);
    }
    if (BUG != 5)
        __syncthreads();
    if (t < 16 && BUG == 6)
        bins[t] += s[t];
    else if (t < 16)
        atomicAdd(&bins[t], s[t]);
}

__global__ void to_float(const int *bins, float *out)
{
    out[threadIdx.x] = (float)bins[threadIdx.x];
}

template <int BUG> static int run_histogram()
{
    floats x(N, 0, 1), y(16);
    int *bins;
    cudaMalloc(&bins, 16 * sizeof(int));
    if (BUG != 7)
        cudaMemset(bins, 0, 16 * sizeof(int));
    histogram<BUG><<<BLOCKS, T>>>(x.p, bins, y.p, N);
    to_float<<<1, 16>>>(bins, y.p);
    cudaFree(bins);
    for (int i = 0; i < N; i++)
        y.want[(int)x.want[i] % 16] += 1;
    return y.wrong();
}

/* ---- blocks that need each other ---- */

template <int BUG> __global__ void last_block(const float *x, float *sums, float *out, unsigned *ticket)
{
    __shared__ bool last;
    if (threadIdx.x == 0) {
        sums[blockIdx.x] = x[blockIdx.x] * 2;
        if (BUG != 1)
            __threadfence();
        if (BUG == 2) {
            unsigned mine = *ticket;
            *ticket = mine + 1;
            last = mine == gridDim.x - 1;
        } else {
            last = atomicAdd(ticket, 1u) == gridDim.x - (BUG == 3 ? 2 : 1);
        }
    }
    __syncthreads();
    if (BUG == 4 ? threadIdx.x == 0 && blockIdx.x == gridDim.x - 1 : last && threadIdx.x == 0) {
        float s = 0;
        for (unsigned b = 0; b < gridDim.x; b++)
            s += sums[b];
        out[0] = s;
    }
}

template <int BUG> static int run_last_block()
{
    floats x(8, 1, 1), sums(8), y(1);
    unsigned *ticket;
    cudaMalloc(&ticket, 4);
    cudaMemset(ticket, 0, 4);
    last_block<BUG><<<8, 32>>>(x.p, sums.p, y.p, ticket);
    for (int i = 0; i < 8; i++)
        y.want[0] += 2 * x.want[i];
    int wrong = y.wrong();
    cudaFree(ticket);
    return wrong;
}

template <int BUG> __global__ void two_phases(float *x, float *out)
{
    cooperative_groups::grid_group grid = cooperative_groups::this_grid();
    int i = blockIdx.x * blockDim.x + threadIdx.x, n = gridDim.x * blockDim.x;
    x[i] = (float)i;
    if (BUG == 1)
        __syncthreads();
    else if (BUG != 2 || blockIdx.x != 1)
        grid.sync();
    out[i] = x[n - 1 - i];
}

template <int BUG> static int run_two_phases()
{
    floats x(96), y(96);
    void *args[] = {&x.p, &y.p};
    if (BUG == 3)
        two_phases<BUG><<<3, 32>>>(x.p, y.p);
    else
        cudaLaunchCooperativeKernel(two_phases<BUG>, dim3(3), dim3(32), args);
    for (int i = 0; i < 96; i++)
        y.want[i] = (float)(95 - i);
    return y.wrong();
}

template <int BUG> __global__ void flags(volatile int *flag, float *data, float *out)
{
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        data[0] = 5;
        if (BUG != 1)
            __threadfence();
        if (BUG != 2)
            *flag = 1;
    }
    if (blockIdx.x == 1 && threadIdx.x == 0) {
        if (BUG != 3)
            while (*flag == 0)
                ;
        out[0] = data[0];
    }
}

template <int BUG> static int run_flags()
{
    floats data(1, 1), y(1);
    int *flag;
    cudaMalloc(&flag, 4);
    cudaMemset(flag, 0, 4);
    flags<BUG><<<2, 32>>>(flag, data.p, y.p);
    y.want[0] = 5;
    int wrong = y.wrong();
    cudaFree(flag);
    return wrong;
}

/* ---- vectors and pointers ---- */

template <int BUG> __global__ void vectors(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float4 *v = reinterpret_cast<const float4 *>(x + (BUG == 1 ? 1 : 0));
    if (BUG == 2 ? i * 4 < n + 4 : i * 4 + 3 < n) {
        float4 a = v[i];
        reinterpret_cast<float4 *>(y)[BUG == 3 ? i + 1 : i] = make_float4(a.x + 1, a.y + 1, a.z + 1, a.w + 1);
    }
}

template <int BUG> static int run_vectors()
{
    const int n = 510;
    floats x(n, 1, 1), y(n);
    float on_host[4] = {}, *from = x.p;
    if (BUG == 4)
        from = nullptr;
    if (BUG == 5)
        from = on_host;
    if (BUG == 6) {
        cudaMalloc(&from, n * sizeof(float));
        cudaMemset(from, 0, n * sizeof(float));
        cudaFree(from);
    }
    if (BUG == 7)
        cudaMalloc(&from, n * sizeof(float));
    vectors<BUG><<<2, 64>>>(from, y.p, n);
    for (int i = 0; i < 508; i++)
        y.want[i] = x.want[i] + 1;
    return y.wrong();
}

/* ---- launches and copies ---- */

template <int BUG> __global__ void plain(const float *x, float *y, int n)
{
    extern __shared__ float s[];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    s[threadIdx.x] = i < n ? x[i] : 0;
    __syncthreads();
    if (i < n)
        y[i] = s[threadIdx.x] * 3;
}

template <int BUG> static int run_plain()
{
    floats x(N, 1, 1), y(N);
    dim3 grid(BUG == 1 ? 0 : BUG == 2 ? BLOCKS - 1 : BLOCKS), block(BUG == 3 ? 2048 : T);
    size_t shared = BUG == 4 ? 64 << 10 : BUG == 5 ? T * 2 : T * 4;
    plain<BUG><<<grid, block, shared>>>(x.p, y.p, N);
    for (int i = 0; i < N; i++)
        y.want[i] = 3 * x.want[i];
    if (BUG == 6)
        cudaMemcpy(y.p, x.p, (N + 1) * sizeof(float), cudaMemcpyDeviceToDevice);
    return y.wrong();
}

/* ---- copies in the background ---- */

template <int BUG> __global__ void background(const float4 *x, float4 *y, int tiles)
{
    __shared__ float4 s[2][32];
    int t = threadIdx.x;
    __pipeline_memcpy_async(&s[0][t], x + t, 16);
    __pipeline_commit();
    for (int k = 0; k < tiles; k++) {
        if (k + 1 < tiles)
            __pipeline_memcpy_async(&s[BUG == 1 ? k % 2 : (k + 1) % 2][t], x + (k + 1) * 32 + t, 16);
        if (BUG != 2)
            __pipeline_commit();
        if (BUG != 3)
            __pipeline_wait_prior(BUG == 4 ? 2 : 1);
        if (BUG != 5)
            __syncthreads();
        y[k * 32 + t] = s[k % 2][31 - t];
        if (BUG != 6)
            __syncthreads();
    }
}

template <int BUG> static int run_background()
{
    floats x(512, 1, 1), y(512);
    background<BUG><<<1, 32>>>((const float4 *)x.p, (float4 *)y.p, 4);
    for (int i = 0; i < 128; i++)
        for (int c = 0; c < 4; c++)
            y.want[i * 4 + c] = x.want[(i / 32 * 32 + 31 - i % 32) * 4 + c];
    return y.wrong();
}

/* ---- matrices of a warp ---- */

template <int BUG> __global__ void matrices(const uint16_t *a, float *out)
{
    __shared__ __align__(16) uint16_t s[16][24];
    int l = threadIdx.x;
    for (int i = l; i < 256; i += 32)
        s[i / 16][i % 16] = a[i];
    if (BUG != 1)
        __syncwarp();
    uint32_t r[4];
    if (BUG == 2 && l >= 24)
        return;
    uint32_t at = (uint32_t)__cvta_generic_to_shared(&s[l % 16][BUG == 3 ? l / 16 * 4 + 4 : l / 16 * 8]);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(at));
    float c[4] = {0, 0, 0, 0};
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,"
                 "%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(r[0]), "r"(BUG == 4 ? r[2] : r[1]), "r"(BUG == 4 ? r[1] : r[2]), "r"(r[3]), "r"(0x3c003c00),
                   "r"(0x3c003c00));
    for (int i = 0; i < 4; i++)
        out[(l / 4 + i / 2 * 8) * 8 + l % 4 * 2 + i % 2] = c[i];
}

template <int BUG> static int run_matrices()
{
    std::vector<uint16_t> h(256);
    floats y(128);
    uint16_t *a;
    for (int i = 0; i < 256; i++)
        h[i] = i / 16 % 8 == 3 ? 0x4000 : 0x3c00; /* 2 in rows 3 and 11, else 1 */
    h[0] = 0x4400;
    cudaMalloc(&a, 512);
    cudaMemcpy(a, h.data(), 512, cudaMemcpyHostToDevice);
    matrices<BUG><<<1, 32>>>(a, y.p);
    for (int i = 0; i < 128; i++)
        y.want[i] = i / 8 % 8 == 3 ? 32 : i / 8 == 0 ? 19 : 16;
    if (BUG == 4)
        y.want[0] = -1; /* a swap of equal rows shows only in the row that differs */
    int wrong = y.wrong();
    cudaFree(a);
    return wrong;
}

/* ---- loads past the coherent caches ---- */

__device__ float uncached(const float *p)
{
    float v;
    asm volatile("ld.global.nc.f32 %0, [%1];" : "=f"(v) : "l"(p) : "memory");
    return v;
}

/* The right one reads each word so before it changes it, and what it has written plainly. */
template <int BUG> __global__ void read_only(float *x, float *y)
{
    int t = threadIdx.x;
    float v = __ldg(x + t);
    x[t] = v + uncached(y + t);
    __syncthreads();
    int other = T - 1 - t;
    y[t] = BUG == 1 ? __ldg(x + other) : BUG == 2 ? uncached(x + other) : BUG == 3 ? __ldg(x + t) : x[other];
}

template <int BUG> static int run_read_only()
{
    floats x(T, 1, 1), y(T);
    read_only<BUG><<<1, T>>>(x.p, y.p);
    for (int i = 0; i < T; i++)
        y.want[i] = x.want[BUG == 3 ? i : T - 1 - i];
    return y.wrong();
}

/* ---- more blocks than a device holds ---- */

/* Each block waits for the one whose turn was before its own (the right one), or for all of the grid. */
template <int BUG> __global__ void crowd(unsigned *turn, float *y)
{
    unsigned mine = atomicAdd(turn, 1), n = gridDim.x;
    if (BUG == 1)
        while (atomicAdd(turn, 0) < n)
            ;
    else
        while (mine && atomicAdd(turn + 1, 0) < mine)
            ;
    if (BUG == 2)
        cooperative_groups::this_grid().sync();
    y[mine] = 2;
    __threadfence();
    atomicAdd(turn + 1, 1);
}

template <int BUG> static int run_crowd()
{
    const int n = 132 * 32 + 8; /* an H100 holds 32 on each of 132 multiprocessors */
    floats y(n);
    unsigned *turn;
    cudaMalloc(&turn, 8);
    cudaMemset(turn, 0, 8);
    void *args[] = {&turn, &y.p};
    if (BUG == 2)
        cudaLaunchCooperativeKernel((void *)crowd<BUG>, dim3(n), dim3(1), args, 0, 0);
    else
        crowd<BUG><<<n, 1>>>(turn, y.p);
    y.want.assign(n, 2);
    int wrong = y.wrong();
    cudaFree(turn);
    return wrong;
}

#define HIDDEN "(known to survive) "
struct mutant {
    const char *name, *fault;
    int (*run)();
};
#define RIGHT(F) {#F, "", run_##F<0>}
#define M(F, K, FAULT) {#F, FAULT, run_##F<K>}
extern "C" const mutant mutants[] = {
    RIGHT(stencil), RIGHT(tree), RIGHT(shuffles), RIGHT(in_step), RIGHT(histogram), RIGHT(last_block),
    RIGHT(two_phases), RIGHT(flags), RIGHT(vectors), RIGHT(plain), RIGHT(background), RIGHT(matrices),
    RIGHT(read_only), RIGHT(crowd),
    M(stencil, 1, "threads return before they filled their part of shared memory"),
    M(stencil, 2, "no bounds check of a load"),
    M(stencil, 3, "halo never written"),
    M(stencil, 4, "index behind the end of shared memory"),
    M(stencil, 5, "barrier in a branch that half of the block takes"),
    M(stencil, 6, "no barrier between store and load"),
    M(stencil, 7, "wrong neighbour"),
    M(stencil, 8, "no barrier before shared memory is used again"),
    M(stencil, 9, "two threads write one element"),
    M(stencil, 10, "store before the start of a tensor"),
    M(tree, 1, HIDDEN "shared array half as long as the block, with another kernel's array behind it"),
    M(tree, 2, "a third of the shared array is not written"),
    M(tree, 3, "no barrier before the tree"),
    M(tree, 4, "last step left out"),
    M(tree, 5, "one thread too many in a step"),
    M(tree, 6, "no barrier between steps"),
    M(tree, 7, "all blocks write one element"),
    M(tree, 8, "all threads of a block write one element"),
    M(shuffles, 1, "lanes return before a shuffle"),
    M(shuffles, 2, "mask without the calling lane"),
    M(shuffles, 3, "shuffle in a branch, with the full mask"),
    M(shuffles, 4, "width that is no power of two"),
    M(shuffles, 5, "width of half a warp"),
    M(shuffles, 6, "no barrier between the warps' sums and their sum"),
    M(in_step, 1, "no __syncwarp between store and load"),
    M(in_step, 2, "no __syncwarp before shared memory is used again"),
    M(histogram, 1, "counters in shared memory not cleared"),
    M(histogram, 2, "no barrier behind the clearing"),
    M(histogram, 3, "counter out of range"),
    M(histogram, 4, "shared counter without an atomic"),
    M(histogram, 5, "no barrier before the counters are read"),
    M(histogram, 6, "global counter without an atomic"),
    M(histogram, 7, "global counters not cleared"),
    M(last_block, 1, "no fence before the ticket"),
    M(last_block, 2, "ticket without an atomic"),
    M(last_block, 3, "off by one: not the last block"),
    M(last_block, 4, "the block of the last index taken for the last one"),
    M(two_phases, 1, "block barrier where the grid must meet"),
    M(two_phases, 2, "a block that does not come to grid.sync()"),
    M(two_phases, 3, "grid.sync() without a cooperative launch"),
    M(flags, 1, "no fence before a flag"),
    M(flags, 2, "flag that is never set"),
    M(flags, 3, "flag that is not waited for"),
    M(vectors, 1, "misaligned vector"),
    M(vectors, 2, "vector across the end"),
    M(vectors, 3, "vector stored one too far"),
    M(vectors, 4, "null pointer"),
    M(vectors, 5, "pointer of the host"),
    M(vectors, 6, "memory that was freed"),
    M(vectors, 7, "memory that nobody has written"),
    M(plain, 1, "empty grid"),
    M(plain, 2, "a block too few"),
    M(plain, 3, "too many threads"),
    M(plain, 4, "more shared memory than was asked for with cudaFuncSetAttribute"),
    M(plain, 5, "less dynamic shared memory than is used"),
    M(plain, 6, "copy across the end"),
    M(background, 1, "copy into the tile that is being read"),
    M(background, 2, "copies not committed"),
    M(background, 3, "copies not waited for"),
    M(background, 4, "one stage too few waited for"),
    M(background, 5, "no barrier behind the wait"),
    M(background, 6, "no barrier before a tile is copied over"),
    M(matrices, 1, "no __syncwarp before ldmatrix"),
    M(matrices, 2, "lanes return before mma"),
    M(matrices, 3, "row that is not aligned to 16 bytes"),
    M(read_only, 1, "__ldg of what another thread of the block wrote"),
    M(read_only, 2, "ld.global.nc of what another thread of the block wrote"),
    M(read_only, 3, "__ldg of what the thread itself wrote"),
    M(crowd, 1, "a grid meets by a counter, and has more blocks than the device holds"),
    M(crowd, 2, "a cooperative launch of more blocks than the device holds"),
    {nullptr, nullptr, nullptr}};

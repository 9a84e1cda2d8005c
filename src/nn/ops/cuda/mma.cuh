/* mma.cuh - tensor-core products of bf16 with fp32 sums, and tiles in shared memory that feed them.
 *
 * Fragments are those of PTX's mma.m16n8k16: with g = lane / 4 and t = lane % 4, an accumulator holds (g, 2t)
 * (g, 2t + 1) (g + 8, 2t) (g + 8, 2t + 1). A tile has rows of HD elements in 16-byte chunks; chunk c of row r lies at
 * c ^ (r & 7), so that eight rows of one column are in eight different groups of banks. Without PTX the same functions
 * are shuffles; the emulator has its own. */
#ifndef MC_NN_MMA_CUH
#define MC_NN_MMA_CUH

#include "nn/ops/cuda/warp.cuh"

#ifdef NN_EMULATED
#include <stdlib.h>
#endif
#ifdef NN_PORTABLE
#ifdef NN_EMULATED
/* The emulator's own: lanes meet once, not 32 times. $NN_TEST_SHUFFLES has the portable ones run, for their tests. */
extern "C" void simt_mma(int k, int bits, int a, int b, int c, const unsigned *abc, unsigned *d);
extern "C" void simt_ldmatrix(const void *row, int n, int trans, unsigned *d);
enum { NATIVE_F32 = 0, NATIVE_BF16 = 2 }; /* simt/runtime/tensor.c's mma_type */
inline bool mma_by_shuffles()
{
    static const bool on = getenv("NN_TEST_SHUFFLES") != nullptr;

    return on;
}
inline void mma_native(float *d, const uint32_t *a, uint32_t b0, uint32_t b1)
{
    const unsigned abc[] = {a[0], a[1], a[2], a[3], b0, b1, __float_as_uint(d[0]), __float_as_uint(d[1]),
                            __float_as_uint(d[2]), __float_as_uint(d[3])};
    unsigned r[4];

    simt_mma(16, 16, NATIVE_BF16, NATIVE_BF16, NATIVE_F32, abc, r);
    memcpy(d, r, sizeof r);
}
#endif
/* d (16, 8) += a (16, 16) b (16, 8). */
__device__ inline void mma(float *d, const uint32_t *a, uint32_t b0, uint32_t b1)
{
#ifdef NN_EMULATED
    if (!mma_by_shuffles())
        return mma_native(d, a, b0, b1);
#endif
    int lane = threadIdx.x & 31, g = lane / 4, t = lane % 4;

    for (int k = 0; k < 4; k++) {
        uint32_t r[4], s[2][2];
        for (int i = 0; i < 4; i++)
            r[i] = __shfl_sync(FULL_WARP, a[i], 4 * g + k);
        for (int n = 0; n < 2; n++) {
            s[n][0] = __shfl_sync(FULL_WARP, b0, 4 * (2 * t + n) + k);
            s[n][1] = __shfl_sync(FULL_WARP, b1, 4 * (2 * t + n) + k);
        }
        for (int n = 0; n < 2; n++) {
            d[n] += low2(r[0]) * low2(s[n][0]) + high2(r[0]) * high2(s[n][0]) + low2(r[2]) * low2(s[n][1]) +
                    high2(r[2]) * high2(s[n][1]);
            d[2 + n] += low2(r[1]) * low2(s[n][0]) + high2(r[1]) * high2(s[n][0]) + low2(r[3]) * low2(s[n][1]) +
                        high2(r[3]) * high2(s[n][1]);
        }
    }
}
/* Four 8 x 8 matrices; lane 8 i + j names row j of matrix i. */
template <bool TRANS> __device__ inline void load_matrices(uint32_t *r, const bf16 *row)
{
#ifdef NN_EMULATED
    if (!mma_by_shuffles())
        return simt_ldmatrix(row, 4, TRANS, r);
#endif
    int lane = threadIdx.x & 31, g = lane / 4, t = lane % 4;
    unsigned long long at = (unsigned long long)row;

    for (int i = 0; i < 4; i++) {
        const bf16 *x = (const bf16 *)__shfl_sync(FULL_WARP, at, 8 * i + (TRANS ? 2 * t : g));
        const bf16 *y = (const bf16 *)__shfl_sync(FULL_WARP, at, 8 * i + (TRANS ? 2 * t + 1 : g));
        bf16 lo = TRANS ? x[g] : x[2 * t], hi = TRANS ? y[g] : y[2 * t + 1];
        r[i] = (uint32_t)__bfloat16_as_ushort(lo) | (uint32_t)__bfloat16_as_ushort(hi) << 16;
    }
}
/* 16 bytes from global to shared memory, zeros where !there. */
__device__ inline void copy_async(void *to, const void *from, bool there)
{
    *(uint4 *)to = there ? *(const uint4 *)from : make_uint4(0, 0, 0, 0);
}
__device__ inline void copy_commit() {}
template <int LEFT> __device__ inline void copy_wait() {}
#else
__device__ __forceinline__ void mma(float *d, const uint32_t *a, uint32_t b0, uint32_t b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
template <bool TRANS> __device__ __forceinline__ void load_matrices(uint32_t *r, const bf16 *row)
{
    uint32_t at = (uint32_t)__cvta_generic_to_shared(row);

    if (TRANS)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");
}
__device__ __forceinline__ void copy_async(void *to, const void *from, bool there)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :: "r"((uint32_t)__cvta_generic_to_shared(to)), "l"(from), "r"(there ? 16 : 0) : "memory");
}
__device__ __forceinline__ void copy_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int LEFT> __device__ __forceinline__ void copy_wait()
{
    asm volatile("cp.async.wait_group %0;" :: "n"(LEFT) : "memory");
}
#endif

/* ---- tiles ---- */

template <int N> __device__ __forceinline__ void clear(float (*acc)[4])
{
#pragma unroll
    for (int i = 0; i < N; i++)
        acc[i][0] = acc[i][1] = acc[i][2] = acc[i][3] = 0;
}

template <int ROWS> __device__ __forceinline__ bf16 *tile_at(bf16 *tile, int row, int chunk)
{
    return tile + (chunk >> 3) * ROWS * 64 + row * 64 + (((chunk & 7) ^ (row & 7)) << 3);
}

/* ROWS rows of HD elements from p (row stride ld); rows from 'there' on become zeros. Starts the copy only. A thread's
 * rows are a multiple of 8 apart, so that its place in the pattern of banks never changes. */
template <int HD, int ROWS, int THREADS>
__device__ __forceinline__ void tile_load(bf16 *tile, const bf16 *p, int ld, int there)
{
    constexpr int CHUNKS = HD / 8, STEP = THREADS / CHUNKS;
    static_assert(STEP % 8 == 0 && ROWS % STEP == 0, "whole passes");
    int row = threadIdx.x / CHUNKS, chunk = threadIdx.x % CHUNKS;
    bf16 *to = tile_at<ROWS>(tile, row, chunk);
    const bf16 *from = p + (size_t)row * ld + chunk * 8;

#pragma unroll
    for (int i = 0; i < ROWS; i += STEP, from += (size_t)STEP * ld)
        copy_async(to + i * 64, from, row + i < there); /* nothing is read where !there */
}

/* Rows row..row + 15, elements 16 k.. of the tile as left operand. */
template <int ROWS> __device__ __forceinline__ void tile_a(uint32_t *a, bf16 *tile, int row, int k)
{
    int lane = threadIdx.x & 31;

    load_matrices<false>(a, tile_at<ROWS>(tile, row + ((lane >> 3) & 1) * 8 + (lane & 7), 2 * k + (lane >> 4)));
}

/* ---- Hopper's asynchronous products ---- */

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define HAS_WGMMA 1

/* A tile from p on, 128-byte swizzle, groups of eight rows 1,024 bytes apart. */
__device__ __forceinline__ uint64_t describe(const bf16 *p)
{
    uint64_t at = ((uint32_t)__cvta_generic_to_shared(p) & 0x3ffff) >> 4;

    return at | (uint64_t)1 << 16 | (uint64_t)64 << 32 | (uint64_t)1 << 62;
}

/* Elements further in the same tile. */
__device__ __forceinline__ uint64_t further(uint64_t tile, int elements) { return tile + (uint64_t)(elements / 8); }

#define D4(i) "+f"(d[i][0]), "+f"(d[i][1]), "+f"(d[i][2]), "+f"(d[i][3])
#define REGS16 "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15}"
#define REGS32 "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"                                               \
               "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}"
#define REGS64 "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"                                               \
               "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,"                                      \
               "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,"                                      \
               "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63}"

/* d (64, 8 N) = a b + d, or a b alone with ADD 0. a: fragments; b: a described tile, TRANS when its rows are the summed
 * dimension. */
template <int N, int TRANS, int ADD> __device__ __forceinline__ void wgmma(float (*d)[4], const uint32_t *a, uint64_t b)
{
    static_assert(N == 4 || N == 8 || N == 16, "32, 64 or 128 columns");
    if (N == 16)
        asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 " REGS64
                     ", {%64,%65,%66,%67}, %68, %70, 1, 1, %69;"
                     : D4(0), D4(1), D4(2), D4(3), D4(4), D4(5), D4(6), D4(7), D4(8), D4(9), D4(10), D4(11), D4(12),
                       D4(13), D4(14), D4(15)
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(TRANS), "n"(ADD));
    else if (N == 8)
        asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " REGS32
                     ", {%32,%33,%34,%35}, %36, %38, 1, 1, %37;"
                     : D4(0), D4(1), D4(2), D4(3), D4(4), D4(5), D4(6), D4(7)
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(TRANS), "n"(ADD));
    else
        asm volatile("wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 " REGS16
                     ", {%16,%17,%18,%19}, %20, %22, 1, 1, %21;"
                     : D4(0), D4(1), D4(2), D4(3)
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(TRANS), "n"(ADD));
}

/* The same with both operands described, rows along the summed dimension. */
template <int N, int ADD> __device__ __forceinline__ void wgmma_tiles(float (*d)[4], uint64_t a, uint64_t b)
{
    if (N == 8)
        asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " REGS32 ", %32, %33, %34, 1, 1, 0, 0;"
                     : D4(0), D4(1), D4(2), D4(3), D4(4), D4(5), D4(6), D4(7) : "l"(a), "l"(b), "n"(ADD));
    else
        asm volatile("wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 " REGS16 ", %16, %17, %18, 1, 1, 0, 0;"
                     : D4(0), D4(1), D4(2), D4(3) : "l"(a), "l"(b), "n"(ADD));
}
#endif

/* Around products of a warpgroup: begin before the first; commit closes a group of products, which run on while other
 * work goes on; wait leaves the LEFT latest groups running. What a running product reads or writes is left alone, and
 * its results are settled after the wait: registers do not know of barriers. end: commit and wait for all. */
template <bool GROUP> __device__ __forceinline__ void products_begin()
{
#ifdef HAS_WGMMA
    if (GROUP)
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
}
template <bool GROUP> __device__ __forceinline__ void products_commit()
{
#ifdef HAS_WGMMA
    if (GROUP)
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#endif
}
template <bool GROUP, int LEFT> __device__ __forceinline__ void products_wait()
{
#ifdef HAS_WGMMA
    if (GROUP)
        asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(LEFT) : "memory");
#endif
}
template <bool GROUP, int N> __device__ __forceinline__ void settle(float (*acc)[4])
{
#ifdef HAS_WGMMA
    if (GROUP)
#pragma unroll
        for (int n = 0; n < N; n++)
            asm volatile("" : "+f"(acc[n][0]), "+f"(acc[n][1]), "+f"(acc[n][2]), "+f"(acc[n][3])::"memory");
#endif
}
template <bool GROUP> __device__ __forceinline__ void products_end()
{
    products_commit<GROUP>();
    products_wait<GROUP, 0>();
}
/* Tiles that ordinary copies wrote become visible to wgmma; then a barrier of the block's THREADS. Its warps may wait
 * at it from different places of the code, which __syncthreads does not allow. */
template <bool GROUP, int THREADS> __device__ __forceinline__ void tiles_ready()
{
#ifdef HAS_WGMMA
    if (GROUP)
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
#ifdef NN_PORTABLE
    __syncthreads();
#else
    asm volatile("barrier.sync 1, %0;" ::"n"(THREADS) : "memory");
#endif
}

/* ---- products; GROUP: four warps of one warpgroup call together and may run as wgmma ---- */

template <bool TRANS, int ROWS>
__device__ __forceinline__ void tile_b(uint32_t *b, bf16 *tile, int row, int chunk)
{
    int lane = threadIdx.x & 31, upper = (lane >> 3) & 1, right = lane >> 4;

    if (TRANS)
        load_matrices<true>(b, tile_at<ROWS>(tile, row + upper * 8 + (lane & 7), chunk + right));
    else
        load_matrices<false>(b, tile_at<ROWS>(tile, row + right * 8 + (lane & 7), chunk + upper));
}

/* acc (16, 8 N) = a (16, HD) tile^T, tile (8 N, HD). */
template <bool GROUP, int HD, int N>
__device__ __forceinline__ void product_nt(float (*acc)[4], const uint32_t (*a)[4], bf16 *tile)
{
    constexpr int ROWS = N * 8;

#ifdef HAS_WGMMA
    if (GROUP) {
        uint64_t right = describe(tile);
#pragma unroll
        for (int k = 0; k < HD / 16; k++)
            if (k)
                wgmma<N, 0, 1>(acc, a[k], further(right, (k / 4) * ROWS * 64 + (k % 4) * 16));
            else
                wgmma<N, 0, 0>(acc, a[k], right);
        return;
    }
#endif
    clear<N>(acc);
#pragma unroll
    for (int k = 0; k < HD / 16; k++)
#pragma unroll
        for (int n = 0; n < N; n += 2) {
            uint32_t b[4];
            tile_b<false, ROWS>(b, tile, n * 8, 2 * k);
            mma(acc[n], a[k], b[0], b[1]);
            mma(acc[n + 1], a[k], b[2], b[3]);
        }
}

/* The same with the left operand read from a tile (LEFT rows) each time: the 16 rows of this warp. */
template <bool GROUP, int HD, int N, int LEFT>
__device__ __forceinline__ void product_nt_tile(float (*acc)[4], bf16 *left, int warp, bf16 *tile)
{
    constexpr int ROWS = N * 8;

#ifdef HAS_WGMMA
    if (GROUP) {
        uint64_t mine = describe(left + (warp / 4) * 64 * 64), right = describe(tile);
#pragma unroll
        for (int k = 0; k < HD / 16; k++)
            if (k)
                wgmma_tiles<N, 1>(acc, further(mine, (k / 4) * LEFT * 64 + (k % 4) * 16),
                                  further(right, (k / 4) * ROWS * 64 + (k % 4) * 16));
            else
                wgmma_tiles<N, 0>(acc, mine, right);
        return;
    }
#endif
    clear<N>(acc);
#pragma unroll
    for (int k = 0; k < HD / 16; k++) {
        uint32_t a[4];
        tile_a<LEFT>(a, left, warp * 16, k);
#pragma unroll
        for (int n = 0; n < N; n += 2) {
            uint32_t b[4];
            tile_b<false, ROWS>(b, tile, n * 8, 2 * k);
            mma(acc[n], a, b[0], b[1]);
            mma(acc[n + 1], a, b[2], b[3]);
        }
    }
}

/* Accumulators (16, 8 N) as left operands of N / 2 products, rounded to bf16. */
template <int N> __device__ __forceinline__ void round_left(uint32_t (*a)[4], const float (*p)[4])
{
#pragma unroll
    for (int k = 0; k < N / 2; k++) {
        a[k][0] = pack2(p[2 * k][0], p[2 * k][1]);
        a[k][1] = pack2(p[2 * k][2], p[2 * k][3]);
        a[k][2] = pack2(p[2 * k + 1][0], p[2 * k + 1][1]);
        a[k][3] = pack2(p[2 * k + 1][2], p[2 * k + 1][3]);
    }
}

/* acc (16, HD) += p (16, 8 N) tile, tile (8 N, HD). */
template <bool GROUP, int HD, int N>
__device__ __forceinline__ void product_nn(float (*acc)[4], const uint32_t (*p)[4], bf16 *tile)
{
    constexpr int ROWS = N * 8;

#ifdef HAS_WGMMA
    if (GROUP) {
        uint64_t right = describe(tile);
#pragma unroll
        for (int k = 0; k < N / 2; k++)
#pragma unroll
            for (int panel = 0; panel < HD / 64; panel++)
                wgmma<8, 1, 1>(acc + panel * 8, p[k], further(right, panel * ROWS * 64 + k * 16 * 64));
        return;
    }
#endif
#pragma unroll
    for (int k = 0; k < N / 2; k++)
#pragma unroll
        for (int n = 0; n < HD / 16; n++) {
            uint32_t b[4];
            tile_b<true, ROWS>(b, tile, k * 16, 2 * n);
            mma(acc[2 * n], p[k], b[0], b[1]);
            mma(acc[2 * n + 1], p[k], b[2], b[3]);
        }
}

/* acc (16, HD) times s[0] (rows g) and s[1] (rows g + 8) to p; rows from 'there' on are not written. row: the
 * warp's first. */
template <int HD>
__device__ __forceinline__ void store_rows(bf16 *p, int ld, const float (*acc)[4], int row, int there, const float *s)
{
    int g = (threadIdx.x & 31) / 4, t = threadIdx.x & 3;

#pragma unroll
    for (int half = 0; half < 2; half++)
        if (row + g + 8 * half < there)
#pragma unroll
            for (int n = 0; n < HD / 8; n++)
                *(uint32_t *)(p + (size_t)(row + g + 8 * half) * ld + n * 8 + 2 * t) =
                    pack2(acc[n][2 * half] * s[half], acc[n][2 * half + 1] * s[half]);
}

#endif

/* mma.cuh - tensor-core products of bf16 with fp32 sums, and tiles in shared memory that feed them.
 *
 * Fragments are those of PTX's mma.m16n8k16: with g = lane / 4 and t = lane % 4, an accumulator holds (g, 2t) (g, 2t +
 * 1)
 * (g + 8, 2t) (g + 8, 2t + 1). A tile has rows of HD elements in 16-byte chunks; chunk c of row r lies at c ^ (r & 7),
 * so
 * that eight rows of one column are in eight different groups of banks. On the emulator the same functions are
 * shuffles. */
#ifndef MC_NN_MMA_CUH
#define MC_NN_MMA_CUH

#include "nn/ops/cuda/warp.cuh"

#ifdef NN_EMULATED
/* d (16, 8) += a (16, 16) b (16, 8). */
__device__ inline void mma(float *d, const uint32_t *a, uint32_t b0, uint32_t b1)
{
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

template <int HD> __device__ __forceinline__ bf16 *tile_at(bf16 *tile, int row, int chunk)
{
    return tile + row * HD + ((chunk ^ (row & 7)) << 3);
}

/* ROWS rows of HD elements from p (row stride ld); rows from 'there' on become zeros. Starts the copy only. */
template <int HD, int ROWS, int THREADS>
__device__ __forceinline__ void tile_load(bf16 *tile, const bf16 *p, int ld, int there)
{
#pragma unroll
    for (int i = threadIdx.x; i < ROWS * (HD / 8); i += THREADS) {
        int row = i / (HD / 8), chunk = i % (HD / 8);
        copy_async(tile_at<HD>(tile, row, chunk), p + (size_t)(row < there ? row : 0) * ld + chunk * 8, row < there);
    }
}

/* Rows row..row + 15, elements 16 k.. of the tile as left operand. */
template <int HD> __device__ __forceinline__ void tile_a(uint32_t *a, bf16 *tile, int row, int k)
{
    int lane = threadIdx.x & 31;

    load_matrices<false>(a, tile_at<HD>(tile, row + ((lane >> 3) & 1) * 8 + (lane & 7), 2 * k + (lane >> 4)));
}

/* acc (16, 8 N) += a (16, HD) tile^T, tile (8 N, HD). */
template <int HD, int N> __device__ __forceinline__ void product_nt(float (*acc)[4], const uint32_t (*a)[4], bf16 *tile)
{
    int lane = threadIdx.x & 31;

#pragma unroll
    for (int k = 0; k < HD / 16; k++)
#pragma unroll
        for (int n = 0; n < N; n += 2) {
            uint32_t b[4];
            load_matrices<false>(b, tile_at<HD>(tile, n * 8 + (lane >> 4) * 8 + (lane & 7), 2 * k + ((lane >> 3) & 1)));
            mma(acc[n], a[k], b[0], b[1]);
            mma(acc[n + 1], a[k], b[2], b[3]);
        }
}

/* The same with the left operand read from a tile each time: rows row.. of 'left'. */
template <int HD, int N> __device__ __forceinline__ void product_nt_tile(float (*acc)[4], bf16 *left, int row,
                                                                         bf16 *tile)
{
    int lane = threadIdx.x & 31;

#pragma unroll
    for (int k = 0; k < HD / 16; k++) {
        uint32_t a[4];
        tile_a<HD>(a, left, row, k);
#pragma unroll
        for (int n = 0; n < N; n += 2) {
            uint32_t b[4];
            load_matrices<false>(b, tile_at<HD>(tile, n * 8 + (lane >> 4) * 8 + (lane & 7), 2 * k + ((lane >> 3) & 1)));
            mma(acc[n], a, b[0], b[1]);
            mma(acc[n + 1], a, b[2], b[3]);
        }
    }
}

/* acc (16, HD) += p (16, 8 N) tile, tile (8 N, HD); p: accumulators of an earlier product, rounded to bf16 here. */
template <int HD, int N> __device__ __forceinline__ void product_nn(float (*acc)[4], const float (*p)[4], bf16 *tile)
{
    int lane = threadIdx.x & 31;

#pragma unroll
    for (int k = 0; k < N / 2; k++) {
        uint32_t a[4] = {pack2(p[2 * k][0], p[2 * k][1]), pack2(p[2 * k][2], p[2 * k][3]),
                         pack2(p[2 * k + 1][0], p[2 * k + 1][1]), pack2(p[2 * k + 1][2], p[2 * k + 1][3])};
#pragma unroll
        for (int n = 0; n < HD / 16; n++) {
            uint32_t b[4];
            load_matrices<true>(b, tile_at<HD>(tile, k * 16 + ((lane >> 3) & 1) * 8 + (lane & 7), 2 * n + (lane >> 4)));
            mma(acc[2 * n], a, b[0], b[1]);
            mma(acc[2 * n + 1], a, b[2], b[3]);
        }
    }
}

template <int N> __device__ __forceinline__ void clear(float (*acc)[4])
{
#pragma unroll
    for (int i = 0; i < N; i++)
        acc[i][0] = acc[i][1] = acc[i][2] = acc[i][3] = 0;
}

/* acc (16, HD) times s[0] (rows g) and s[1] (rows g + 8) to p; rows from 'there' on are not written. row: of the warp.
 * */
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

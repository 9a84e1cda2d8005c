/* flash.cu - causal grouped-query attention over packed sequences on tensor cores, bf16, head dims 64 and 128: the
 * blockwise softmax of FlashAttention-2 (Dao, arXiv 2307.08691).
 *
 * A block owns a tile of 128 rows of one sequence and one head; a warp owns 16 of them. Backward runs twice, once with
 * queries and once with keys as rows, so that every sum has one owner and one order: deterministic without atomics. */
#include "nn/ops/cuda/mma.cuh"
#include "nn/ops/cuda/ops.cuh"

#define ROWS NN_ATTN_TILE
#define WARPS (ROWS / 16)
#define THREADS (WARPS * 32)
#define LOG2E 1.4426950408889634f

struct tensors {
    const bf16 *q, *k, *v, *dout;
    bf16 *o, *dq, *dk, *dv;
    float *lse, *delta;
};

/* ---- forward ---- */

/* Scores of one block of keys become probabilities; m, l: running maximum and sum of the two rows of this lane. */
template <int N>
__device__ __forceinline__ void soften(float (*s)[4], float *m, float *l, float *shrink, float scale, int row, int col,
                                       bool masked)
{
    int t = threadIdx.x & 3;
    float top[2] = {m[0], m[1]};

#pragma unroll
    for (int n = 0; n < N; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            if (masked && col + n * 8 + 2 * t + (i & 1) > row + 8 * (i >> 1))
                s[n][i] = -INFINITY;
            top[i >> 1] = fmaxf(top[i >> 1], s[n][i]);
        }
#pragma unroll
    for (int h = 0; h < 2; h++) {
        top[h] = fmaxf(top[h], __shfl_xor_sync(FULL_WARP, top[h], 1));
        top[h] = fmaxf(top[h], __shfl_xor_sync(FULL_WARP, top[h], 2));
        shrink[h] = exp2_short((m[h] - top[h]) * scale); // the first block holds column 0, so top is finite
        m[h] = top[h];
        l[h] *= shrink[h];
    }
#pragma unroll
    for (int n = 0; n < N; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            s[n][i] = exp2_short(s[n][i] * scale - m[i >> 1] * scale);
            l[i >> 1] += s[n][i];
        }
}

template <bool GROUP, int HD, int N>
__global__ void __launch_bounds__(THREADS, HD == 64 && !GROUP ? 2 : 1)
flash_kernel(struct nn_attn a, struct tensors x, float scale)
{
    constexpr int COLS = N * 8;
    SHARED_BYTES(shared);
    bf16 *tq = (bf16 *)shared, *tk = tq + ROWS * HD, *tv = tk + 2 * COLS * HD;
    int h = blockIdx.x % a.heads, tile = blockIdx.x / a.heads, kvh = h / (a.heads / a.kv_heads);
    int first = a.cu[a.tiles[2 * tile]], len = a.cu[a.tiles[2 * tile] + 1] - first, row0 = a.tiles[2 * tile + 1] * ROWS;
    int warp = warp_index(), g = (threadIdx.x & 31) / 4, row = row0 + warp * 16, there = len - row0;
    int end = row0 + ROWS < len ? row0 + ROWS : len, blocks = (end + COLS - 1) / COLS;
    const bf16 *k = x.k + (size_t)first * a.ld_k + kvh * HD, *v = x.v + (size_t)first * a.ld_v + kvh * HD;
    float o[HD / 8][4], s[N][4], m[2] = {-INFINITY, -INFINITY}, l[2] = {0, 0}, shrink[2];
    uint32_t qa[HD / 16][4], p[N / 2][4];
    int last = GROUP ? row0 + (warp / 4 + 1) * 64 : row + 16;

    tile_load<HD, ROWS, THREADS>(tq, x.q + (size_t)(first + row0) * a.ld_q + h * HD, a.ld_q, there);
    tile_load<HD, COLS, THREADS>(tk, k, a.ld_k, len);
    tile_load<HD, COLS, THREADS>(tv, v, a.ld_v, len);
    copy_commit();
    clear<HD / 8>(o);
    for (int b = 0; b < blocks; b++) {
        int now = (b & 1) * COLS * HD, next = COLS * HD - now, col = b * COLS;
        if (b + 1 < blocks) {
            tile_load<HD, COLS, THREADS>(tk + next, k + (size_t)(col + COLS) * a.ld_k, a.ld_k, len - col - COLS);
            tile_load<HD, COLS, THREADS>(tv + next, v + (size_t)(col + COLS) * a.ld_v, a.ld_v, len - col - COLS);
        }
        copy_commit();
        copy_wait<1>();
        tiles_ready<GROUP>();
        if (b == 0)
            for (int i = 0; i < HD / 16; i++)
                tile_a<ROWS>(qa[i], tq, warp * 16, i);
        if (col < last) { // else all of it lies after these rows
            products_begin<GROUP>();
            product_nt<GROUP, HD, N>(s, qa, tk + now);
            products_end<GROUP>();
            soften<N>(s, m, l, shrink, scale * LOG2E, row + g, col, col + COLS > row);
#pragma unroll
            for (int i = 0; i < HD / 8; i++)
                o[i][0] *= shrink[0], o[i][1] *= shrink[0], o[i][2] *= shrink[1], o[i][3] *= shrink[1];
            round_left<N>(p, s);
            products_begin<GROUP>();
            product_nn<GROUP, HD, N>(o, p, tv + now);
            products_end<GROUP>();
        }
        __syncthreads();
    }
    float inv[2];
#pragma unroll
    for (int i = 0; i < 2; i++) {
        l[i] += __shfl_xor_sync(FULL_WARP, l[i], 1);
        l[i] += __shfl_xor_sync(FULL_WARP, l[i], 2);
        inv[i] = 1 / l[i];
        if ((threadIdx.x & 3) == 0 && row + g + 8 * i < len)
            x.lse[(size_t)(first + row + g + 8 * i) * a.heads + h] = m[i] * scale + logf(l[i]);
    }
    store_rows<HD>(x.o + (size_t)first * a.ld_o + h * HD, a.ld_o, o, row, len, inv);
}

/* ---- backward: delta = sum over a head of o * dout ---- */

template <int HD> __global__ void delta_kernel(struct nn_attn a, const bf16 *o, const bf16 *dout, float *delta)
{
    constexpr int LANES = HD / 8;
    int at = (blockIdx.x * 256 + threadIdx.x) / LANES, lane = threadIdx.x % LANES;
    bool mine = at < a.T * a.heads;
    int t = mine ? at / a.heads : 0, h = mine ? at % a.heads : 0;
    float u[8], v[8], sum = 0;

    load8(o + (size_t)t * a.ld_o + h * HD + lane * 8, u);
    load8(dout + (size_t)t * a.ld_o + h * HD + lane * 8, v);
    for (int j = 0; j < 8; j++)
        sum += u[j] * v[j];
    for (int i = LANES / 2; i; i >>= 1)
        sum += __shfl_xor_sync(FULL_WARP, sum, i);
    if (mine && lane == 0)
        delta[at] = sum;
}

/* ---- backward with queries as rows: dq ---- */

template <bool GROUP, int HD, int N>
__global__ void __launch_bounds__(THREADS, 1) flash_dq_kernel(struct nn_attn a, struct tensors x, float scale)
{
    constexpr int COLS = N * 8;
    SHARED_BYTES(shared);
    bf16 *tq = (bf16 *)shared, *td = tq + ROWS * HD, *tk = td + ROWS * HD, *tv = tk + 2 * COLS * HD;
    int h = blockIdx.x % a.heads, tile = blockIdx.x / a.heads, kvh = h / (a.heads / a.kv_heads);
    int first = a.cu[a.tiles[2 * tile]], len = a.cu[a.tiles[2 * tile] + 1] - first, row0 = a.tiles[2 * tile + 1] * ROWS;
    int warp = warp_index(), g = (threadIdx.x & 31) / 4, t = threadIdx.x & 3, row = row0 + warp * 16;
    int end = row0 + ROWS < len ? row0 + ROWS : len, blocks = (end + COLS - 1) / COLS;
    const bf16 *k = x.k + (size_t)first * a.ld_k + kvh * HD, *v = x.v + (size_t)first * a.ld_v + kvh * HD;
    float dq[HD / 8][4], s[N][4], dp[N][4], lse[2], delta[2];
    uint32_t qa[HD / 16][4], da[HD / 16][4], p[N / 2][4];
    int last = GROUP ? row0 + (warp / 4 + 1) * 64 : row + 16;

    tile_load<HD, ROWS, THREADS>(tq, x.q + (size_t)(first + row0) * a.ld_q + h * HD, a.ld_q, len - row0);
    tile_load<HD, ROWS, THREADS>(td, x.dout + (size_t)(first + row0) * a.ld_o + h * HD, a.ld_o, len - row0);
    tile_load<HD, COLS, THREADS>(tk, k, a.ld_k, len);
    tile_load<HD, COLS, THREADS>(tv, v, a.ld_v, len);
    copy_commit();
    for (int i = 0; i < 2; i++) {
        bool mine = row + g + 8 * i < len;
        size_t at = (size_t)(first + row + g + 8 * i) * a.heads + h;
        lse[i] = mine ? x.lse[at] * LOG2E : INFINITY;
        delta[i] = mine ? x.delta[at] : 0;
    }
    clear<HD / 8>(dq);
    for (int b = 0; b < blocks; b++) {
        int now = (b & 1) * COLS * HD, next = COLS * HD - now, col = b * COLS;
        if (b + 1 < blocks) {
            tile_load<HD, COLS, THREADS>(tk + next, k + (size_t)(col + COLS) * a.ld_k, a.ld_k, len - col - COLS);
            tile_load<HD, COLS, THREADS>(tv + next, v + (size_t)(col + COLS) * a.ld_v, a.ld_v, len - col - COLS);
        }
        copy_commit();
        copy_wait<1>();
        tiles_ready<GROUP>();
        if (b == 0)
            for (int i = 0; i < HD / 16; i++) {
                tile_a<ROWS>(qa[i], tq, warp * 16, i);
                tile_a<ROWS>(da[i], td, warp * 16, i);
            }
        if (col < last) {
            products_begin<GROUP>();
            product_nt<GROUP, HD, N>(s, qa, tk + now);
            product_nt<GROUP, HD, N>(dp, da, tv + now);
            products_end<GROUP>();
            bool masked = col + COLS > row;
#pragma unroll
            for (int n = 0; n < N; n++)
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    float e = exp2_short(s[n][i] * (scale * LOG2E) - lse[i >> 1]);
                    if (masked && col + n * 8 + 2 * t + (i & 1) > row + g + 8 * (i >> 1))
                        e = 0;
                    s[n][i] = e * (dp[n][i] - delta[i >> 1]);
                }
            round_left<N>(p, s);
            products_begin<GROUP>();
            product_nn<GROUP, HD, N>(dq, p, tk + now);
            products_end<GROUP>();
        }
        __syncthreads();
    }
    float by[2] = {scale, scale};
    store_rows<HD>(x.dq + (size_t)first * a.ld_q + h * HD, a.ld_q, dq, row, len, by);
}

/* ---- backward with keys as rows: dk, dv. Columns are the queries of all heads that share the keys ---- */

template <int HD, int COLS>
__device__ __forceinline__ void load_queries(const struct nn_attn &a, const struct tensors &x, int first, int len,
                                             int h,
                                             int col, bf16 *tq, bf16 *td, float *lse, float *delta)
{
    tile_load<HD, COLS, THREADS>(tq, x.q + (size_t)(first + col) * a.ld_q + h * HD, a.ld_q, len - col);
    tile_load<HD, COLS, THREADS>(td, x.dout + (size_t)(first + col) * a.ld_o + h * HD, a.ld_o, len - col);
    if ((int)threadIdx.x < COLS) {
        bool mine = col + (int)threadIdx.x < len;
        size_t at = (size_t)(first + col + threadIdx.x) * a.heads + h;
        lse[threadIdx.x] = mine ? x.lse[at] * LOG2E : INFINITY; // a probability of 0
        delta[threadIdx.x] = mine ? x.delta[at] : 0;
    }
}

template <bool GROUP, int HD, int N>
__global__ void __launch_bounds__(THREADS, 1) flash_dkv_kernel(struct nn_attn a, struct tensors x, float scale)
{
    constexpr int COLS = N * 8;
    SHARED_BYTES(shared);
    bf16 *tk = (bf16 *)shared, *tv = tk + ROWS * HD, *tq = tv + ROWS * HD, *td = tq + 2 * COLS * HD;
    float *lse = (float *)(td + 2 * COLS * HD), *delta = lse + 2 * COLS;
    int tile = a.n_tiles - 1 - blockIdx.x / a.kv_heads, kvh = blockIdx.x % a.kv_heads, group = a.heads / a.kv_heads;
    int first = a.cu[a.tiles[2 * tile]], len = a.cu[a.tiles[2 * tile] + 1] - first, row0 = a.tiles[2 * tile + 1] * ROWS;
    int warp = warp_index(), g = (threadIdx.x & 31) / 4, t = threadIdx.x & 3, row = row0 + warp * 16;
    int col0 = row0 / COLS, per_head = (len + COLS - 1) / COLS - col0, steps = per_head * group;
    float dk[HD / 8][4], dv[HD / 8][4], s[N][4], dp[N][4];
    uint32_t p[N / 2][4], ds[N / 2][4];
    int start = GROUP ? row0 + warp / 4 * 64 : row;

    tile_load<HD, ROWS, THREADS>(tk, x.k + (size_t)(first + row0) * a.ld_k + kvh * HD, a.ld_k, len - row0);
    tile_load<HD, ROWS, THREADS>(tv, x.v + (size_t)(first + row0) * a.ld_v + kvh * HD, a.ld_v, len - row0);
    load_queries<HD, COLS>(a, x, first, len, kvh * group, col0 * COLS, tq, td, lse, delta);
    copy_commit();
    clear<HD / 8>(dk);
    clear<HD / 8>(dv);
    for (int b = 0; b < steps; b++) {
        int now = b & 1, next = 1 - now, col = (col0 + b % per_head) * COLS;
        if (b + 1 < steps)
            load_queries<HD, COLS>(a, x, first, len, kvh * group + (b + 1) / per_head,
                                   (col0 + (b + 1) % per_head) * COLS,
                                   tq + next * COLS * HD, td + next * COLS * HD, lse + next * COLS,
                                   delta + next * COLS);
        copy_commit();
        copy_wait<1>();
        tiles_ready<GROUP>();
        bf16 *q = tq + now * COLS * HD, *d = td + now * COLS * HD;
        if (col + COLS > start) { // else all queries come before these keys
            products_begin<GROUP>();
            product_nt_tile<GROUP, HD, N, ROWS>(s, tk, warp, q);
            product_nt_tile<GROUP, HD, N, ROWS>(dp, tv, warp, d);
            products_end<GROUP>();
            bool masked = col < row + 16;
#pragma unroll
            for (int n = 0; n < N; n++)
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    int c = n * 8 + 2 * t + (i & 1);
                    float e = exp2_short(s[n][i] * (scale * LOG2E) - lse[now * COLS + c]);
                    if (masked && col + c < row + g + 8 * (i >> 1))
                        e = 0;
                    s[n][i] = e;
                    dp[n][i] = e * (dp[n][i] - delta[now * COLS + c]);
                }
            round_left<N>(p, s);
            round_left<N>(ds, dp);
            products_begin<GROUP>();
            product_nn<GROUP, HD, N>(dv, p, d);
            product_nn<GROUP, HD, N>(dk, ds, q);
            products_end<GROUP>();
        }
        __syncthreads();
    }
    float one[2] = {1, 1}, by[2] = {scale, scale};
    store_rows<HD>(x.dk + (size_t)first * a.ld_k + kvh * HD, a.ld_k, dk, row, len, by);
    store_rows<HD>(x.dv + (size_t)first * a.ld_v + kvh * HD, a.ld_v, dv, row, len, one);
}

/* ---- launches ---- */

template <class K> static K *with_shared(struct nn_queue *q, K *kernel, size_t bytes)
{
    queue_check(q, "shared memory", cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                         (int)bytes));
    return kernel;
}

template <bool GROUP, int HD, int N>
static void forward(struct nn_queue *q, const struct nn_attn *a, const struct tensors *x)
{
    size_t bytes = (size_t)(ROWS + 4 * N * 8) * HD * sizeof(bf16);

    launch(q, "attention", (with_shared(q, flash_kernel<GROUP, HD, N>, bytes)), a->n_tiles * a->heads, THREADS, bytes,
           *a, *x, 1 / sqrtf((float)HD));
}

template <bool GROUP, int HD, int N>
static void backward(struct nn_queue *q, const struct nn_attn *a, const struct tensors *x)
{
    size_t bytes = (size_t)(2 * ROWS + 4 * N * 8) * HD * sizeof(bf16), rows = 4 * N * 8 * sizeof(float);
    float scale = 1 / sqrtf((float)HD);

    launch(q, "attention delta", (delta_kernel<HD>), ceil_div((long)a->T * a->heads * (HD / 8), 256), 256, 0, *a,
           (const bf16 *)x->o, x->dout, x->delta);
    launch(q, "attention dq", (with_shared(q, flash_dq_kernel<GROUP, HD, N>, bytes)), a->n_tiles * a->heads, THREADS,
           bytes, *a, *x, scale);
    bytes += rows;
    launch(q, "attention dk dv", (with_shared(q, flash_dkv_kernel<GROUP, HD, N>, bytes)), a->n_tiles * a->kv_heads,
           THREADS, bytes, *a, *x, scale);
}

bool flash_fits(enum nn_dtype dt, const struct nn_attn *a) { return dt == NN_BF16 && (a->dim == 64 || a->dim == 128); }

void flash_forward(struct nn_queue *q, const struct nn_attn *a, const void *query, const void *key, const void *value,
                   void *o, float *lse)
{
    struct tensors x = {(const bf16 *)query, (const bf16 *)key, (const bf16 *)value, NULL, (bf16 *)o, NULL, NULL, NULL,
                        lse,
                        NULL};

    if (a->dim == 64)
        q->groups ? forward<true, 64, 8>(q, a, &x) : forward<false, 64, 8>(q, a, &x);
    else
        q->groups ? forward<true, 128, 8>(q, a, &x) : forward<false, 128, 8>(q, a, &x);
}

void flash_backward(struct nn_queue *q, const struct nn_attn *a, const void *query, const void *key, const void *value,
                    const void *o, const float *lse, const void *dout, float *delta, void *dq, void *dk, void *dv)
{
    struct tensors x = {(const bf16 *)query, (const bf16 *)key, (const bf16 *)value, (const bf16 *)dout, (bf16 *)o,
                        (bf16 *)dq, (bf16 *)dk, (bf16 *)dv, (float *)lse, delta};

    if (a->dim == 64)
        q->groups ? backward<true, 64, 8>(q, a, &x) : backward<false, 64, 8>(q, a, &x);
    else
        q->groups ? backward<true, 128, 8>(q, a, &x) : backward<false, 128, 4>(q, a, &x);
}

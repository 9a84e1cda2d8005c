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
    int from = row - col - 2 * (threadIdx.x & 3); /* columns behind it are masked */
    float top[2] = {m[0], m[1]};

    if (masked)
#pragma unroll
        for (int n = 0; n < N; n++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                if (n * 8 + (i & 1) - 8 * (i >> 1) > from)
                    s[n][i] = -INFINITY;
#pragma unroll
    for (int n = 0; n < N; n++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            top[i >> 1] = fmaxf(top[i >> 1], s[n][i]);
#pragma unroll
    for (int h = 0; h < 2; h++) {
        top[h] = fmaxf(top[h], __shfl_xor_sync(FULL_WARP, top[h], 1));
        top[h] = fmaxf(top[h], __shfl_xor_sync(FULL_WARP, top[h], 2));
        shrink[h] = exp2_short((m[h] - top[h]) * scale); /* the first block holds column 0, so top is finite */
        m[h] = top[h];
        l[h] *= shrink[h];
    }
    float base[2] = {m[0] * scale, m[1] * scale};
#pragma unroll
    for (int n = 0; n < N; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            s[n][i] = exp2_short(fmaf(s[n][i], scale, -base[i >> 1]));
            l[i >> 1] += s[n][i];
        }
}

/* Keys and values (backward: the same) of a sequence, block by block, COLS rows at a time. */
template <int HD, int COLS> struct stream {
    const bf16 *k, *v;
    int ld_k, ld_v, len;
    bf16 *tk, *tv;

    __device__ __forceinline__ void keys(int b, int slot) const
    {
        tile_load<HD, COLS, THREADS>(tk + slot * COLS * HD, k + (size_t)b * COLS * ld_k, ld_k, len - b * COLS);
    }
    __device__ __forceinline__ void values(int b, int slot) const
    {
        tile_load<HD, COLS, THREADS>(tv + slot * COLS * HD, v + (size_t)b * COLS * ld_v, ld_v, len - b * COLS);
    }
};

/* What was copied for this step is there, and all threads are done with the step before. */
template <bool GROUP> __device__ __forceinline__ void next_step()
{
    copy_wait<0>();
    tiles_ready<GROUP, THREADS>();
}

/* Step b of forward: keys of block b and values of block b - 1 are there; the next ones are asked for. */
template <bool GROUP, int HD, int COLS>
__device__ __forceinline__ void forward_step(const struct stream<HD, COLS> &t, int b, int blocks)
{
    next_step<GROUP>();
    if (b + 1 < blocks)
        t.keys(b + 1, (b + 1) & 1);
    if (b < blocks)
        t.values(b, b & 1);
    copy_commit();
}

/* Scores of block b soften while block b - 1 multiplies its values. */
template <bool GROUP, int HD, int N>
__global__ void __launch_bounds__(THREADS, HD == 64 ? 2 : 1)
flash_kernel(struct nn_attn a, struct tensors x, float scale)
{
    constexpr int COLS = N * 8;
    SHARED_BYTES(shared);
    bf16 *tq = (bf16 *)shared, *tk = tq + ROWS * HD, *tv = tk + 2 * COLS * HD;
    int h = blockIdx.x % a.heads, tile = blockIdx.x / a.heads, kvh = h / (a.heads / a.kv_heads);
    int first = a.cu[a.tiles[2 * tile]], len = a.cu[a.tiles[2 * tile] + 1] - first, row0 = a.tiles[2 * tile + 1] * ROWS;
    int warp = warp_index(), g = (threadIdx.x & 31) / 4, row = row0 + warp * 16;
    int end = row0 + ROWS < len ? row0 + ROWS : len, blocks = (end + COLS - 1) / COLS;
    int last = GROUP ? row0 + (warp / 4 + 1) * 64 : row + 16, mine = (last + COLS - 1) / COLS; /* others are masked */
    struct stream<HD, COLS> kv = {x.k + (size_t)first * a.ld_k + kvh * HD, x.v + (size_t)first * a.ld_v + kvh * HD,
                                  a.ld_k, a.ld_v, len, tk, tv};
    float o[HD / 8][4], s[N][4], m[2] = {-INFINITY, -INFINITY}, l[2] = {0, 0}, shrink[2];
    uint32_t qa[HD / 16][4], p[N / 2][4];

    mine = mine < blocks ? mine : blocks;
    tile_load<HD, ROWS, THREADS>(tq, x.q + (size_t)(first + row0) * a.ld_q + h * HD, a.ld_q, len - row0);
    kv.keys(0, 0);
    copy_commit();
    clear<HD / 8>(o);
    forward_step<GROUP, HD, COLS>(kv, 0, blocks);
    for (int i = 0; i < HD / 16; i++)
        tile_a<ROWS>(qa[i], tq, warp * 16, i);
    products_begin<GROUP>();
    product_nt<GROUP, HD, N>(s, qa, tk);
    products_end<GROUP>();
    settle<GROUP, N>(s);
    soften<N>(s, m, l, shrink, scale * LOG2E, row + g, 0, COLS > row);
    round_left<N>(p, s);
    for (int b = 1; b < mine; b++) {
        forward_step<GROUP, HD, COLS>(kv, b, blocks);
        products_begin<GROUP>();
        product_nt<GROUP, HD, N>(s, qa, tk + (b & 1) * COLS * HD);
        products_commit<GROUP>();
        product_nn<GROUP, HD, N>(o, p, tv + (~b & 1) * COLS * HD);
        products_commit<GROUP>();
        products_wait<GROUP, 1>();
        settle<GROUP, N>(s);
        soften<N>(s, m, l, shrink, scale * LOG2E, row + g, b * COLS, b * COLS + COLS > row);
        products_wait<GROUP, 0>();
        settle<GROUP, HD / 8>(o);
        if (__any_sync(FULL_WARP, shrink[0] != 1 || shrink[1] != 1)) /* most blocks bring no new maximum */
#pragma unroll
            for (int i = 0; i < HD / 8; i++)
                o[i][0] *= shrink[0], o[i][1] *= shrink[0], o[i][2] *= shrink[1], o[i][3] *= shrink[1];
        round_left<N>(p, s);
    }
    forward_step<GROUP, HD, COLS>(kv, mine, blocks);
    products_begin<GROUP>();
    product_nn<GROUP, HD, N>(o, p, tv + (~mine & 1) * COLS * HD);
    products_end<GROUP>();
    settle<GROUP, HD / 8>(o);
    for (int b = mine + 1; b <= blocks; b++) /* other warps go on */
        forward_step<GROUP, HD, COLS>(kv, b, blocks);
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

/* Step b: keys and values of block b are there, keys of block b - 1 still. next: the third place for keys. */
template <bool GROUP, int HD, int COLS>
__device__ __forceinline__ void dq_step(const struct stream<HD, COLS> &t, int b, int blocks, int next)
{
    next_step<GROUP>();
    if (b + 1 < blocks) {
        t.keys(b + 1, next);
        t.values(b + 1, (b + 1) & 1);
    }
    copy_commit();
}

/* s: scores to probabilities. */
template <int N>
__device__ __forceinline__ void row_probabilities(float (*s)[4], float scale, const float *lse, int row, int col,
                                                  bool masked)
{
    int from = row - col - 2 * (threadIdx.x & 3);

#pragma unroll
    for (int n = 0; n < N; n++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            s[n][i] = exp2_short(fmaf(s[n][i], scale, -lse[i >> 1]));
    if (masked)
#pragma unroll
        for (int n = 0; n < N; n++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                if (n * 8 + (i & 1) - 8 * (i >> 1) > from)
                    s[n][i] = 0;
}

/* s: probabilities to gradients of scores, given those of probabilities. */
template <int N> __device__ __forceinline__ void row_gradients(float (*s)[4], const float (*dp)[4], const float *delta)
{
#pragma unroll
    for (int n = 0; n < N; n++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            s[n][i] *= dp[n][i] - delta[i >> 1];
}

/* The product of block b - 1's score gradients with its keys runs behind the scores of block b. */
template <bool GROUP, int HD, int N>
__global__ void __launch_bounds__(THREADS, 1) flash_dq_kernel(struct nn_attn a, struct tensors x, float scale)
{
    constexpr int COLS = N * 8;
    SHARED_BYTES(shared);
    bf16 *tq = (bf16 *)shared, *td = tq + ROWS * HD, *tk = td + ROWS * HD, *tv = tk + 3 * COLS * HD;
    int h = blockIdx.x % a.heads, tile = blockIdx.x / a.heads, kvh = h / (a.heads / a.kv_heads);
    int first = a.cu[a.tiles[2 * tile]], len = a.cu[a.tiles[2 * tile] + 1] - first, row0 = a.tiles[2 * tile + 1] * ROWS;
    int warp = warp_index(), g = (threadIdx.x & 31) / 4, row = row0 + warp * 16;
    int end = row0 + ROWS < len ? row0 + ROWS : len, blocks = (end + COLS - 1) / COLS;
    int last = GROUP ? row0 + (warp / 4 + 1) * 64 : row + 16, mine = (last + COLS - 1) / COLS;
    struct stream<HD, COLS> kv = {x.k + (size_t)first * a.ld_k + kvh * HD, x.v + (size_t)first * a.ld_v + kvh * HD,
                                  a.ld_k, a.ld_v, len, tk, tv};
    float dq[HD / 8][4], s[N][4], dp[N][4], lse[2], delta[2];
    uint32_t qa[HD / 16][4], da[HD / 16][4], ds[N / 2][4];
    int now = 0; /* where the keys of a block are */

    mine = mine < blocks ? mine : blocks;
    tile_load<HD, ROWS, THREADS>(tq, x.q + (size_t)(first + row0) * a.ld_q + h * HD, a.ld_q, len - row0);
    tile_load<HD, ROWS, THREADS>(td, x.dout + (size_t)(first + row0) * a.ld_o + h * HD, a.ld_o, len - row0);
    kv.keys(0, 0);
    kv.values(0, 0);
    copy_commit();
    for (int i = 0; i < 2; i++) {
        bool there = row + g + 8 * i < len;
        size_t at = (size_t)(first + row + g + 8 * i) * a.heads + h;
        lse[i] = there ? x.lse[at] * LOG2E : INFINITY;
        delta[i] = there ? x.delta[at] : 0;
    }
    clear<HD / 8>(dq);
    dq_step<GROUP, HD, COLS>(kv, 0, blocks, 1);
    for (int i = 0; i < HD / 16; i++) {
        tile_a<ROWS>(qa[i], tq, warp * 16, i);
        tile_a<ROWS>(da[i], td, warp * 16, i);
    }
    products_begin<GROUP>();
    product_nt<GROUP, HD, N>(s, qa, tk);
    product_nt<GROUP, HD, N>(dp, da, tv);
    products_end<GROUP>();
    settle<GROUP, N>(s);
    settle<GROUP, N>(dp);
    row_probabilities<N>(s, scale * LOG2E, lse, row + g, 0, COLS > row);
    row_gradients<N>(s, dp, delta);
    round_left<N>(ds, s);
    for (int b = 1; b < mine; b++) {
        int before = now;
        now = now == 2 ? 0 : now + 1;
        dq_step<GROUP, HD, COLS>(kv, b, blocks, now == 2 ? 0 : now + 1);
        products_begin<GROUP>();
        product_nt<GROUP, HD, N>(s, qa, tk + now * COLS * HD);
        products_commit<GROUP>();
        product_nt<GROUP, HD, N>(dp, da, tv + (b & 1) * COLS * HD);
        products_commit<GROUP>();
        product_nn<GROUP, HD, N>(dq, ds, tk + before * COLS * HD);
        products_commit<GROUP>();
        products_wait<GROUP, 2>();
        settle<GROUP, N>(s);
        row_probabilities<N>(s, scale * LOG2E, lse, row + g, b * COLS, b * COLS + COLS > row);
        products_wait<GROUP, 1>();
        settle<GROUP, N>(dp);
        row_gradients<N>(s, dp, delta);
        products_wait<GROUP, 0>();
        settle<GROUP, HD / 8>(dq);
        round_left<N>(ds, s);
    }
    products_begin<GROUP>();
    product_nn<GROUP, HD, N>(dq, ds, tk + now * COLS * HD);
    products_end<GROUP>();
    settle<GROUP, HD / 8>(dq);
    for (int b = mine; b < blocks; b++) { /* other warps go on */
        now = now == 2 ? 0 : now + 1;
        dq_step<GROUP, HD, COLS>(kv, b, blocks, now == 2 ? 0 : now + 1);
    }
    float by[2] = {scale, scale};
    store_rows<HD>(x.dq + (size_t)first * a.ld_q + h * HD, a.ld_q, dq, row, len, by);
}

/* ---- backward with keys as rows: dk, dv. Columns are the queries of all heads that share the keys ---- */

/* The queries of a group of heads as one row of steps; STAGES steps are in shared memory. */
#define STAGES 3
template <int HD, int COLS> struct queries {
    const struct nn_attn *a;
    const struct tensors *x;
    int first, len, head, col0, col, slot, left; /* of the next load: head, column, place; loads that are left */
    bf16 *tq, *td;
    float *lse, *delta;

    __device__ __forceinline__ void load()
    {
        size_t at = (size_t)(first + col);

        tile_load<HD, COLS, THREADS>(tq + slot * COLS * HD, x->q + at * a->ld_q + head * HD, a->ld_q, len - col);
        tile_load<HD, COLS, THREADS>(td + slot * COLS * HD, x->dout + at * a->ld_o + head * HD, a->ld_o, len - col);
        if ((int)threadIdx.x < COLS) {
            bool there = col + (int)threadIdx.x < len;
            at = (at + threadIdx.x) * a->heads + head;
            lse[slot * COLS + threadIdx.x] = there ? x->lse[at] * LOG2E : INFINITY; /* a probability of 0 */
            delta[slot * COLS + threadIdx.x] = there ? x->delta[at] : 0;
        }
        left--;
        slot = slot + 1 == STAGES ? 0 : slot + 1;
        col += COLS;
        if (col >= len)
            col = col0, head++;
    }
};

/* The step that was loaded last is there, the one before it still. */
template <bool GROUP, int HD, int COLS> __device__ __forceinline__ void dkv_step(struct queries<HD, COLS> *t)
{
    next_step<GROUP>();
    if (t->left)
        t->load();
    copy_commit();
}

template <int N>
__device__ __forceinline__ void column_probabilities(float (*s)[4], float scale, const float *lse, int row, int col,
                                                     bool masked)
{
    int t = threadIdx.x & 3, from = row - col - 2 * t;

#pragma unroll
    for (int n = 0; n < N; n++)
#pragma unroll
        for (int i = 0; i < 2; i++) {
            float l = lse[n * 8 + 2 * t + i];
            s[n][i] = exp2_short(fmaf(s[n][i], scale, -l));
            s[n][i + 2] = exp2_short(fmaf(s[n][i + 2], scale, -l));
        }
    if (masked)
#pragma unroll
        for (int n = 0; n < N; n++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                if (n * 8 + (i & 1) - 8 * (i >> 1) < from)
                    s[n][i] = 0;
}

/* dp: gradients of probabilities to those of scores. */
template <int N>
__device__ __forceinline__ void column_gradients(float (*dp)[4], const float (*s)[4], const float *delta)
{
    int t = threadIdx.x & 3;

#pragma unroll
    for (int n = 0; n < N; n++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            dp[n][i] = s[n][i] * (dp[n][i] - delta[n * 8 + 2 * t + (i & 1)]);
}

/* The products of step b - 1 with its queries and gradients run behind the scores of step b. */
template <bool GROUP, int HD, int N>
__global__ void __launch_bounds__(THREADS, 1) flash_dkv_kernel(struct nn_attn a, struct tensors x, float scale)
{
    constexpr int COLS = N * 8;
    SHARED_BYTES(shared);
    bf16 *tk = (bf16 *)shared, *tv = tk + ROWS * HD, *tq = tv + ROWS * HD, *td = tq + STAGES * COLS * HD;
    float *lse = (float *)(td + STAGES * COLS * HD), *delta = lse + STAGES * COLS;
    int tile = a.n_tiles - 1 - blockIdx.x / a.kv_heads, kvh = blockIdx.x % a.kv_heads, group = a.heads / a.kv_heads;
    int first = a.cu[a.tiles[2 * tile]], len = a.cu[a.tiles[2 * tile] + 1] - first, row0 = a.tiles[2 * tile + 1] * ROWS;
    int warp = warp_index(), g = (threadIdx.x & 31) / 4, row = row0 + warp * 16;
    int steps = ((len - row0 + COLS - 1) / COLS) * group, col = row0, now = 0, before;
    struct queries<HD, COLS> t = {&a, &x, first, len, kvh * group, row0, row0, 0, steps, tq, td, lse, delta};
    float dk[HD / 8][4], dv[HD / 8][4], s[N][4], dp[N][4];
    uint32_t p[N / 2][4], ds[N / 2][4];

    tile_load<HD, ROWS, THREADS>(tk, x.k + (size_t)(first + row0) * a.ld_k + kvh * HD, a.ld_k, len - row0);
    tile_load<HD, ROWS, THREADS>(tv, x.v + (size_t)(first + row0) * a.ld_v + kvh * HD, a.ld_v, len - row0);
    t.load();
    copy_commit();
    clear<HD / 8>(dk);
    clear<HD / 8>(dv);
    dkv_step<GROUP, HD, COLS>(&t);
    products_begin<GROUP>();
    product_nt_tile<GROUP, HD, N, ROWS>(s, tk, warp, tq);
    product_nt_tile<GROUP, HD, N, ROWS>(dp, tv, warp, td);
    products_end<GROUP>();
    settle<GROUP, N>(s);
    settle<GROUP, N>(dp);
    column_probabilities<N>(s, scale * LOG2E, lse, row + g, col, true);
    column_gradients<N>(dp, s, delta);
    round_left<N>(p, s);
    round_left<N>(ds, dp);
    for (int b = 1; b < steps; b++) {
        before = now;
        now = now + 1 == STAGES ? 0 : now + 1;
        col = col + COLS < len ? col + COLS : row0;
        dkv_step<GROUP, HD, COLS>(&t);
        products_begin<GROUP>();
        product_nt_tile<GROUP, HD, N, ROWS>(s, tk, warp, tq + now * COLS * HD);
        products_commit<GROUP>();
        product_nt_tile<GROUP, HD, N, ROWS>(dp, tv, warp, td + now * COLS * HD);
        products_commit<GROUP>();
        product_nn<GROUP, HD, N>(dv, p, td + before * COLS * HD);
        product_nn<GROUP, HD, N>(dk, ds, tq + before * COLS * HD);
        products_commit<GROUP>();
        products_wait<GROUP, 2>();
        settle<GROUP, N>(s);
        column_probabilities<N>(s, scale * LOG2E, lse + now * COLS, row + g, col, col < row + 16);
        products_wait<GROUP, 1>();
        settle<GROUP, N>(dp);
        column_gradients<N>(dp, s, delta + now * COLS);
        products_wait<GROUP, 0>();
        settle<GROUP, HD / 8>(dk);
        settle<GROUP, HD / 8>(dv);
        round_left<N>(p, s);
        round_left<N>(ds, dp);
    }
    products_begin<GROUP>();
    product_nn<GROUP, HD, N>(dv, p, td + now * COLS * HD);
    product_nn<GROUP, HD, N>(dk, ds, tq + now * COLS * HD);
    products_end<GROUP>();
    settle<GROUP, HD / 8>(dk);
    settle<GROUP, HD / 8>(dv);
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
    size_t dq_bytes = (size_t)(2 * ROWS + 5 * N * 8) * HD * sizeof(bf16);
    size_t dkv_bytes = (size_t)(2 * ROWS + 6 * N * 8) * HD * sizeof(bf16) + 6 * N * 8 * sizeof(float);
    float scale = 1 / sqrtf((float)HD);

    launch(q, "attention delta", (delta_kernel<HD>), ceil_div((long)a->T * a->heads * (HD / 8), 256), 256, 0, *a,
           (const bf16 *)x->o, x->dout, x->delta);
    launch(q, "attention dq", (with_shared(q, flash_dq_kernel<GROUP, HD, N>, dq_bytes)), a->n_tiles * a->heads,
           THREADS, dq_bytes, *a, *x, scale);
    launch(q, "attention dk dv", (with_shared(q, flash_dkv_kernel<GROUP, HD, N>, dkv_bytes)), a->n_tiles * a->kv_heads,
           THREADS, dkv_bytes, *a, *x, scale);
}

bool flash_fits(enum nn_dtype dt, const struct nn_attn *a)
{
#ifdef NN_MUSA /* its warps wait for each other by barriers that PTX has */
    return false;
#else
    return dt == NN_BF16 && (a->dim == 64 || a->dim == 128);
#endif
}

void flash_forward(struct nn_queue *q, const struct nn_attn *a, const void *query, const void *key, const void *value,
                   void *o, float *lse)
{
    struct tensors x = {(const bf16 *)query, (const bf16 *)key, (const bf16 *)value, NULL, (bf16 *)o, NULL, NULL, NULL,
                        lse,
                        NULL};

    if (a->dim == 64)
        q->groups ? forward<true, 64, 8>(q, a, &x) : forward<false, 64, 8>(q, a, &x);
    else
        q->groups ? forward<true, 128, 16>(q, a, &x) : forward<false, 128, 8>(q, a, &x);
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

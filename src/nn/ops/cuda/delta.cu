/* delta.cu - the gated delta rule (Yang et al., arXiv 2412.06464) by chunks of 64 positions, backward, and by single
 * steps.
 * The mathematics stands in ops/cpu/delta.c.
 *
 * Forward: a block is one sequence, one value head and a tile of the state's columns, which are independent of each
 * other;
 * it walks over the chunks with the state in shared memory. Backward: the same walk leaves the state before every
 * chunk in
 * memory; then a block a sequence and value head walks back, all tiles of columns in each chunk, and writes the
 * gradient of
 * each state over the state. Partial sums of dq and dk lie there per value head until a last kernel adds them, in
 * order, over
 * the heads that share a key. All arithmetic is fp32. */
#include "nn/ops/cuda/ops.cuh"

#define CH NN_DELTA_CHUNK
#define THREADS 256
#define MAX_K 128

struct delta_args {
    nn_delta s;
    const int32_t *cu;
    const void *c, *b, *a;
    const float *a_log, *dt_bias;
    float *states;       /* before chunk 1, 2, ... of each sequence: (T / CH, v_heads, k_dim, v_dim) */
};

__device__ __forceinline__ float delta_sigmoid(float x) { return 1 / (1 + expf(-x)); }
__device__ __forceinline__ float delta_softplus(float x) { return x > 20 ? x : log1pf(expf(x)); }

/* Of chunk n > 0 of the sequence that begins at row first: a sequence has at most length / CH of them. */
__device__ __forceinline__ float *state_at(const delta_args &p, int first, int n, int h)
{
    size_t size = (size_t)p.s.k_dim * p.s.v_dim;

    return p.states + ((size_t)(first / CH + n - 1) * p.s.v_heads + h) * size;
}

/* What all tiles of a chunk share, in shared memory. */
struct chunk {
    float *k, *q;        /* (CH, ld): normalised, q scaled; rows beyond the sequence are 0 */
    float *kd, *p;       /* (CH, CH + 1): k_i.k_j D_ij below the diagonal; q_i.k_j D_ij up to it; 0 elsewhere */
    float *beta, *up, *down; /* (CH) */
    double *cum;         /* (CH) cumulated decay */
    int ld;              /* k_dim + 1: rows in different banks */
};

#define LD (CH + 1)

__device__ __forceinline__ float *chunk_place(chunk *x, int k_dim, char *at)
{
    x->ld = k_dim + 1;
    x->cum = (double *)at;
    x->k = (float *)(x->cum + CH);
    x->q = x->k + CH * x->ld;
    x->kd = x->q + CH * x->ld;
    x->p = x->kd + CH * LD;
    x->beta = x->p + CH * LD;
    x->up = x->beta + CH;
    x->down = x->up + CH;
    return x->down + CH;
}

static size_t chunk_floats(int k_dim) { return 2 * CH + 2 * CH * (k_dim + 1) + 2 * CH * LD + 3 * CH; }

/* out(i, j, sum_p a(i, p) b(p, j)) for i < m, j < n. A thread has R x C elements, 16 apart; the same ones at each
 * call. */
template <int R, int C, class A, class B, class O>
__device__ __forceinline__ void product(int m, int n, int k, A a, B b, O out)
{
    int tx = threadIdx.x & 15, ty = threadIdx.x >> 4;

    for (int m0 = 0; m0 < m; m0 += 16 * R)
        for (int n0 = 0; n0 < n; n0 += 16 * C) {
            float acc[R][C], x[R], y[C];
            int row[R], col[C];
            for (int r = 0; r < R; r++)
                row[r] = min(m0 + ty + 16 * r, m - 1);
            for (int c = 0; c < C; c++)
                col[c] = min(n0 + tx + 16 * c, n - 1);
#pragma unroll
            for (int r = 0; r < R; r++)
#pragma unroll
                for (int c = 0; c < C; c++)
                    acc[r][c] = 0;
            for (int p = 0; p < k; p++) {
#pragma unroll
                for (int r = 0; r < R; r++)
                    x[r] = a(row[r], p);
#pragma unroll
                for (int c = 0; c < C; c++)
                    y[c] = b(p, col[c]);
#pragma unroll
                for (int r = 0; r < R; r++)
#pragma unroll
                    for (int c = 0; c < C; c++)
                        acc[r][c] += x[r] * y[c];
            }
#pragma unroll
            for (int r = 0; r < R; r++)
#pragma unroll
                for (int c = 0; c < C; c++)
                    if (m0 + ty + 16 * r < m && n0 + tx + 16 * c < n)
                        out(row[r], col[c], acc[r][c]);
        }
}

/* Rows of one chunk, normalised, by a warp each. */
template <class T>
__device__ void load_keys(const chunk &x, const T *from, size_t stride, int rows, int k_dim, float size, float *to)
{
    int lane = threadIdx.x & 31;

    for (int i = threadIdx.x >> 5; i < CH; i += THREADS / 32) {
        float v[MAX_K / 32], sum = 0;
        for (int j = 0; j < MAX_K / 32; j++) {
            v[j] = i < rows && lane + 32 * j < k_dim ? to_float(from[i * stride + lane + 32 * j]) : 0;
            sum += v[j] * v[j];
        }
        sum = size * rsqrtf(warp_sum(sum) + 1e-6f);
        for (int j = 0; j < MAX_K / 32; j++)
            if (lane + 32 * j < k_dim)
                to[i * x.ld + lane + 32 * j] = v[j] * sum;
    }
}

/* Positions [at, at + rows) of head h: keys, gates and scores. Ends with a barrier. */
template <class T> __device__ void load_chunk(const delta_args &p, const chunk &x, int at, int rows, int h)
{
    const nn_delta &s = p.s;
    int K = s.k_dim, kh = h / (s.v_heads / s.k_heads), i = threadIdx.x;
    size_t width = 2 * (size_t)s.k_heads * K + (size_t)s.v_heads * s.v_dim;
    const T *c = (const T *)p.c + at * width + kh * K;

    __syncthreads(); /* the chunk before is done with */
    load_keys(x, c, width, rows, K, rsqrtf((float)K), x.q);
    load_keys(x, c + (size_t)s.k_heads * K, width, rows, K, 1, x.k);
    if (i < CH) {
        size_t g = (size_t)(at + i) * s.ld_gate + h;
        x.beta[i] = i < rows ? delta_sigmoid(to_float(((const T *)p.b)[g])) : 0;
        x.cum[i] = i < rows ? -expf(p.a_log[h]) * delta_softplus(to_float(((const T *)p.a)[g]) + p.dt_bias[h]) : 0;
    }
    __syncthreads();
    if (i == 0)
        for (int j = 1; j < CH; j++)
            x.cum[j] += x.cum[j - 1];
    __syncthreads();
    if (i < CH) {
        x.up[i] = expf((float)x.cum[i]);
        x.down[i] = expf((float)(x.cum[CH - 1] - x.cum[i]));
    }
    auto key = [&](int q, int j) { return x.k[j * x.ld + q]; };
    product<4, 4>(CH, CH, K, [&](int r, int q) { return x.k[r * x.ld + q]; }, key, [&](int r, int j, float v) {
        x.kd[r * LD + j] = j < r ? v * expf((float)(x.cum[r] - x.cum[j])) : 0;
    });
    product<4, 4>(CH, CH, K, [&](int r, int q) { return x.q[r * x.ld + q]; }, key, [&](int r, int j, float v) {
        x.p[r * LD + j] = j <= r ? v * expf((float)(x.cum[r] - x.cum[j])) : 0;
    });
    __syncthreads();
}

/* (I + A) y = what stands in y (CH, V + 1), A_ij = beta_i kd_ij; or the transposed system. Ends with a barrier. */
template <int V, bool BACK> __device__ void solve(const chunk &x, float *y)
{
    int c = threadIdx.x % V, step = THREADS / V;

    for (int n = 0; n < CH; n++) {
        int j = BACK ? CH - 1 - n : n;
        float v = y[j * (V + 1) + c];
        for (int i = threadIdx.x / V; i < CH; i += step)
            if (BACK ? i < j : i > j)
                y[i * (V + 1) + c] -= (BACK ? x.beta[j] * x.kd[j * LD + i] : x.beta[i] * x.kd[i * LD + j]) * v;
        __syncthreads();
    }
}

/* E and V' of a tile of columns from state S (k_dim, V + 1). e may be NULL. v: the tile's first value; n: its
 * columns. */
template <class T, int V>
__device__ void tile_values(const delta_args &p, const chunk &x, const T *v, size_t width, int rows, int n,
                            const float *S, float *e, float *y)
{
    product<4, V / 16>(CH, V, p.s.k_dim, [&](int i, int q) { return x.k[i * x.ld + q]; },
                       [&](int q, int j) { return S[q * (V + 1) + j]; }, [&](int i, int j, float sum) {
                           float in = i < rows && j < n ? to_float(v[i * width + j]) : 0;
                           in -= x.up[i] * sum;
                           if (e)
                               e[i * (V + 1) + j] = in;
                           y[i * (V + 1) + j] = x.beta[i] * in;
                       });
    __syncthreads();
    solve<V, false>(x, y);
}

/* ---- forward ---- */

#define FV 64 /* columns of a tile */

/* Outputs to o and last states to slots; or, with STATES, only the state before every chunk but the first. */
template <class T, bool STATES>
__global__ void __launch_bounds__(THREADS)
delta_kernel(delta_args p, T *o, const int32_t *slot, size_t stride, float *last)
{
    SHARED_BYTES(shared);
    const nn_delta &s = p.s;
    int K = s.k_dim, tile = blockIdx.x * FV, h = blockIdx.y, seq = blockIdx.z, first = p.cu[seq], end = p.cu[seq + 1];
    int n = min(FV, s.v_dim - tile);
    size_t values = (size_t)s.v_heads * s.v_dim, width = 2 * (size_t)s.k_heads * K + values;
    chunk x;
    float *S = chunk_place(&x, K, shared), *y = S + K * (FV + 1);

    if (STATES && end - first <= CH)
        return;
    for (int i = threadIdx.x; i < K * (FV + 1); i += THREADS)
        S[i] = 0;
    for (int at = first; at < end; at += CH) {
        int rows = min(CH, end - at);
        if (STATES && at > first) {
            float *to = state_at(p, first, (at - first) / CH, h) + tile;
            __syncthreads();
            for (int i = threadIdx.x; i < K * FV; i += THREADS)
                if (i % FV < n)
                    to[(size_t)(i / FV) * s.v_dim + i % FV] = S[i / FV * (FV + 1) + i % FV];
            if (at + CH >= end)
                return;
        }
        load_chunk<T>(p, x, at, rows, h);
        const T *v = (const T *)p.c + at * width + (width - values) + (size_t)h * s.v_dim + tile;
        tile_values<T, FV>(p, x, v, width, rows, n, S, NULL, y);
        if (!STATES)
            product<4, 4>(CH, n, K + CH,
                          [&](int i, int q) { return q < K ? x.up[i] * x.q[i * x.ld + q] : x.p[i * LD + q - K]; },
                          [&](int q, int j) { return q < K ? S[q * (FV + 1) + j] : y[(q - K) * (FV + 1) + j]; },
                          [&](int i, int j, float sum) {
                              if (i < rows)
                                  o[(at + i) * values + (size_t)h * s.v_dim + tile + j] = from_float<T>(sum);
                          });
        __syncthreads();
        product<4, 4>(K, FV, CH, [&](int i, int q) { return x.down[q] * x.k[q * x.ld + i]; },
                      [&](int q, int j) { return y[q * (FV + 1) + j]; },
                      [&](int i, int j, float sum) { S[i * (FV + 1) + j] = x.up[CH - 1] * S[i * (FV + 1) + j] + sum; });
    }
    if (!STATES && slot && slot[seq] >= 0) {
        float *to = last + (size_t)slot[seq] * stride + (size_t)h * K * s.v_dim + tile;
        __syncthreads();
        for (int i = threadIdx.x; i < K * FV; i += THREADS)
            if (i % FV < n)
                to[(size_t)(i / FV) * s.v_dim + i % FV] = S[i / FV * (FV + 1) + i % FV];
    }
}

static size_t forward_bytes(int K) { return (chunk_floats(K) + (size_t)K * (FV + 1) + CH * (FV + 1)) * sizeof(float); }

template <class K> static K *with_shared(struct nn_queue *q, K *kernel, size_t bytes)
{
    queue_check(q, "delta: shared memory",
                cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes));
    return kernel;
}

static bool delta_fits(struct nn_queue *q, const nn_delta *s)
{
    if (s->k_dim <= MAX_K && s->v_dim % 8 == 0)
        return true;
    queue_fail(q, "delta", "key heads wider than 128, or value heads not in multiples of 8");
    return false;
}

template <class T, bool STATES>
static void delta_walk(struct nn_queue *q, const delta_args *p, int n_seq, void *o, const int32_t *slot, size_t stride,
                       float *last)
{
    dim3 grid(ceil_div(p->s.v_dim, FV), p->s.v_heads, n_seq);
    size_t bytes = forward_bytes(p->s.k_dim);

    launch(q, STATES ? "delta_states" : "delta", with_shared(q, (delta_kernel<T, STATES>), bytes), grid, THREADS,
           bytes, *p, (T *)o, slot,
           stride, last);
}

template <class T>
static void delta_t(struct nn_queue *q, const delta_args *p, int n_seq, void *o, const int32_t *slot, size_t stride,
                    float *last)
{
    delta_walk<T, false>(q, p, n_seq, o, slot, stride, last);
}

static delta_args args_of(const struct nn_delta_in *in, float *states)
{
    return (delta_args){in->s, in->cu, in->c, in->b, in->a, in->a_log, in->dt_bias, states};
}

void op_delta(struct nn_queue *q, enum nn_dtype dt, const struct nn_delta_in *in, void *o, const int32_t *slot,
              size_t stride, float *last)
{
    delta_args p = args_of(in, NULL);

    if (delta_fits(q, &in->s))
        by_dtype(dt, delta_t, q, &p, in->n_seq, o, slot, stride, last);
}

/* ---- backward ---- */

#define BV 32 /* columns of a tile */

struct delta_out {
    void *dc, *db, *da;
    float *dq, *dk;      /* (T, v_heads, k_dim) partial */
    float *da32;         /* (T, v_heads) */
};

/* One row's sum over the 16 threads that own parts of it, in order. */
__device__ __forceinline__ float row_sum(const float *red, int i)
{
    float s = 0;

    for (int t = 0; t < 16; t++)
        s += red[i * 17 + t];
    return s;
}

template <class T>
__global__ void __launch_bounds__(THREADS) delta_backward_kernel(delta_args p, delta_out g, const T *dout)
{
    SHARED_BYTES(shared);
    __shared__ float dbeta[CH], dc[CH], plus[CH * 17], minus[CH * 17], part[32];
    const nn_delta &s = p.s;
    int K = s.k_dim, h = blockIdx.x, seq = blockIdx.y, first = p.cu[seq], end = p.cu[seq + 1], tx = threadIdx.x & 15;
    size_t values = (size_t)s.v_heads * s.v_dim, width = 2 * (size_t)s.k_heads * K + values;
    chunk x;
    float *S = chunk_place(&x, K, shared), *G = S + K * (BV + 1), *e = G + K * (BV + 1), *y = e + CH * (BV + 1);
    float *r = y + CH * (BV + 1), *d = r + CH * (BV + 1), *dp = d + CH * (BV + 1), *dkd = dp + CH * LD;

    for (int at = first + (end - first - 1) / CH * CH; at >= first; at -= CH) {
        int rows = min(CH, end - at), number = (at - first) / CH;
        size_t keys = ((size_t)at * s.v_heads + h) * K, key_row = (size_t)s.v_heads * K;
        float inner = 0;
        load_chunk<T>(p, x, at, rows, h);
        for (int i = threadIdx.x; i < CH * 17; i += THREADS)
            plus[i] = minus[i] = 0;
        for (int i = threadIdx.x; i < CH * LD; i += THREADS)
            dp[i] = dkd[i] = 0;
        if (threadIdx.x < CH)
            dbeta[threadIdx.x] = 0;
        for (int tile = 0; tile < s.v_dim; tile += BV) {
            int n = min(BV, s.v_dim - tile);
            const float *S0 = number ? state_at(p, first, number, h) + tile : NULL;
            const float *G1 = at + CH < end ? state_at(p, first, number + 1, h) + tile : NULL;
            const T *dO = dout + (size_t)at * values + (size_t)h * s.v_dim + tile;
            __syncthreads();
            for (int i = threadIdx.x; i < K * BV; i += THREADS) {
                int row = i / BV, col = i % BV;
                float sv = S0 && col < n ? S0[(size_t)row * s.v_dim + col] : 0;
                float gv = G1 && col < n ? G1[(size_t)row * s.v_dim + col] : 0;
                S[row * (BV + 1) + col] = sv;
                G[row * (BV + 1) + col] = gv;
                inner += sv * gv;
            }
            for (int i = threadIdx.x; i < CH * BV; i += THREADS)
                d[i / BV * (BV + 1) + i % BV] = i / BV < rows && i % BV < n ? to_float(dO[i / BV * values +
                                                                                          i % BV]) : 0;
            __syncthreads();
            size_t v_at = at * width + (width - values) + (size_t)h * s.v_dim + tile;
            tile_values<T, BV>(p, x, (const T *)p.c + v_at, width, rows, n, S, e, y);
            /* dV', then dR */
            product<4, 2>(CH, BV, CH + K,
                          [&](int i, int q) { return q < CH ? x.p[q * LD + i] : x.down[i] * x.k[i * x.ld + q - CH]; },
                          [&](int q, int j) { return q < CH ? d[q * (BV + 1) + j] : G[(q - CH) * (BV + 1) + j]; },
                          [&](int i, int j, float v) { r[i * (BV + 1) + j] = v; });
            __syncthreads();
            solve<BV, true>(x, r);
            auto value = [&](int q, int j) { return y[j * (BV + 1) + q]; };
            product<4, 4>(CH, CH, BV, [&](int i, int q) { return d[i * (BV + 1) + q]; }, value,
                          [&](int i, int j, float v) { dp[i * LD + j] += v; });
            product<4, 4>(CH, CH, BV, [&](int i, int q) { return r[i * (BV + 1) + q]; }, value,
                          [&](int i, int j, float v) { dkd[i * LD + j] -= v; });
            __syncthreads();
            if (threadIdx.x < CH)
                for (int j = 0; j < BV; j++)
                    dbeta[threadIdx.x] += r[threadIdx.x * (BV + 1) + j] * e[threadIdx.x * (BV + 1) + j];
            __syncthreads();
            for (int i = threadIdx.x; i < CH * BV; i += THREADS) { /* dE, which is dv */
                int row = i / BV, col = i % BV;
                float v = x.beta[row] * r[row * (BV + 1) + col];
                r[row * (BV + 1) + col] = v;
                if (row < rows && col < n)
                    ((T *)g.dc)[v_at + row * width + col] = from_float<T>(v);
            }
            __syncthreads();
            auto before = [&](int q, int j) { return S[j * (BV + 1) + q]; };
            product<4, 4>(CH, K, BV, [&](int i, int q) { return d[i * (BV + 1) + q]; }, before,
                          [&](int i, int j, float v) {
                              v *= x.up[i];
                              plus[i * 17 + tx] += x.q[i * x.ld + j] * v;
                              if (i < rows)
                                  g.dq[keys + i * key_row + j] = tile ? g.dq[keys + i * key_row + j] + v : v;
                          });
            product<4, 4>(CH, K, BV, [&](int i, int q) { return r[i * (BV + 1) + q]; }, before,
                          [&](int i, int j, float v) {
                              v *= -x.up[i];
                              plus[i * 17 + tx] += x.k[i * x.ld + j] * v;
                              if (i < rows)
                                  g.dk[keys + i * key_row + j] = tile ? g.dk[keys + i * key_row + j] + v : v;
                          });
            product<4, 4>(CH, K, BV, [&](int i, int q) { return y[i * (BV + 1) + q]; },
                          [&](int q, int j) { return G[j * (BV + 1) + q]; }, [&](int i, int j, float v) {
                              v *= x.down[i];
                              minus[i * 17 + tx] += x.k[i * x.ld + j] * v;
                              if (i < rows)
                                  g.dk[keys + i * key_row + j] += v;
                          });
            if (number) { /* over the state that nobody reads any more */
                float *to = state_at(p, first, number, h) + tile;
                product<4, 2>(K, n, 2 * CH,
                              [&](int i, int q) {
                                  return q < CH ? x.up[q] * x.q[q * x.ld + i]
                                                : -x.up[q - CH] * x.k[(q - CH) * x.ld + i];
                              },
                              [&](int q, int j) { return q < CH ? d[q * (BV + 1) + j] : r[(q - CH) * (BV + 1) + j]; },
                              [&](int i, int j, float v) {
                                  to[(size_t)i * s.v_dim + j] = x.up[CH - 1] * G[i * (BV + 1) + j] + v;
                              });
            }
        }
        inner = block_sum(inner, part);
        /* through the scores: dp and dkd become gradients of q k^T and k k^T */
        if (threadIdx.x < CH) {
            int i = threadIdx.x;
            float sum = row_sum(plus, i) - row_sum(minus, i), b = 0;
            for (int j = 0; j <= i; j++) {
                sum += dp[i * LD + j] * x.p[i * LD + j] + x.beta[i] * dkd[i * LD + j] * x.kd[i * LD + j];
                b += dkd[i * LD + j] * x.kd[i * LD + j];
            }
            for (int j = i; j < CH; j++)
                sum -= dp[j * LD + i] * x.p[j * LD + i] + x.beta[j] * dkd[j * LD + i] * x.kd[j * LD + i];
            dc[i] = sum;
            dbeta[i] += b;
        }
        __syncthreads();
        for (int i = threadIdx.x; i < CH * CH; i += THREADS) {
            int row = i / CH, col = i % CH;
            float decay = col <= row ? expf((float)(x.cum[row] - x.cum[col])) : 0;
            dp[row * LD + col] *= decay;
            dkd[row * LD + col] *= col < row ? x.beta[row] * decay : 0;
        }
        if (threadIdx.x == 0) {
            float sum = x.up[CH - 1] * inner;
            for (int i = 0; i < CH; i++)
                sum += row_sum(minus, i);
            dc[CH - 1] += sum;
            for (int i = CH - 2; i >= 0; i--)
                dc[i] += dc[i + 1]; /* dg */
        }
        __syncthreads();
        product<4, 4>(CH, K, CH, [&](int i, int q) { return dp[i * LD + q]; },
                      [&](int q, int j) { return x.k[q * x.ld + j]; }, [&](int i, int j, float v) {
                          if (i < rows)
                              g.dq[keys + i * key_row + j] += v;
                      });
        product<4, 4>(CH, K, 2 * CH,
                      [&](int i, int q) { return q < CH ? dp[q * LD + i] : dkd[i * LD + q - CH] + dkd[(q - CH) * LD +
                                                                                                      i]; },
                      [&](int q, int j) { return q < CH ? x.q[q * x.ld + j] : x.k[(q - CH) * x.ld + j]; },
                      [&](int i, int j, float v) {
                          if (i < rows)
                              g.dk[keys + i * key_row + j] += v;
                      });
        if ((int)threadIdx.x < rows) {
            int i = threadIdx.x;
            size_t to = (size_t)(at + i) * s.ld_gate + h;
            float da = dc[i] * -expf(p.a_log[h]) * delta_sigmoid(to_float(((const T *)p.a)[to]) + p.dt_bias[h]);
            ((T *)g.db)[to] = from_float<T>(dbeta[i] * x.beta[i] * (1 - x.beta[i]));
            ((T *)g.da)[to] = from_float<T>(da);
            g.da32[(size_t)(at + i) * s.v_heads + h] = da;
        }
    }
}

/* A warp a row and key head: partial sums in order of the value heads, then through x / |x|. */
template <class T>
__global__ void delta_keys_kernel(int rows, delta_args p, delta_out g)
{
    const nn_delta &s = p.s;
    int K = s.k_dim, group = s.v_heads / s.k_heads, lane = threadIdx.x & 31;
    int row = blockIdx.x * (THREADS / 32) + (threadIdx.x >> 5), t = row / s.k_heads, kh = row % s.k_heads;
    size_t width = 2 * (size_t)s.k_heads * K + (size_t)s.v_heads * s.v_dim;

    if (row >= rows * s.k_heads)
        return;
    for (int side = 0; side < 2; side++) {
        const float *from = (side ? g.dk : g.dq) + ((size_t)t * s.v_heads + (size_t)kh * group) * K;
        size_t at = t * width + (size_t)side * s.k_heads * K + (size_t)kh * K;
        float v[MAX_K / 32], d[MAX_K / 32], sum = 0, dot = 0, size = side ? 1 : rsqrtf((float)K);
        for (int j = 0; j < MAX_K / 32; j++) {
            int i = lane + 32 * j;
            v[j] = d[j] = 0;
            if (i < K) {
                v[j] = to_float(((const T *)p.c)[at + i]);
                for (int h = 0; h < group; h++)
                    d[j] += from[(size_t)h * K + i];
            }
            d[j] *= size;
            sum += v[j] * v[j];
        }
        sum = rsqrtf(warp_sum(sum) + 1e-6f);
        for (int j = 0; j < MAX_K / 32; j++)
            dot += v[j] * sum * d[j];
        dot = warp_sum(dot);
        for (int j = 0; j < MAX_K / 32; j++)
            if (lane + 32 * j < K)
                ((T *)g.dc)[at + lane + 32 * j] = from_float<T>(sum * (d[j] - v[j] * sum * dot));
    }
}

/* d dt_bias += sum da; d A_log += sum dg g = sum da softplus(x) / sigmoid(x), a quotient that goes to 1 for small x. */
template <class T>
__global__ void delta_gates_kernel(int rows, delta_args p, const float *da, float *da_log, float *ddt_bias)
{
    __shared__ float part[32];
    int h = blockIdx.x;
    float bias = 0, rate = 0;

    for (int t = threadIdx.x; t < rows; t += THREADS) {
        float x = to_float(((const T *)p.a)[(size_t)t * p.s.ld_gate + h]) + p.dt_bias[h];
        float d = da[(size_t)t * p.s.v_heads + h];
        bias += d;
        rate += d * (x < -15 ? 1 : delta_softplus(x) / delta_sigmoid(x));
    }
    bias = block_sum(bias, part);
    rate = block_sum(rate, part);
    if (threadIdx.x == 0) {
        ddt_bias[h] += bias;
        da_log[h] += rate;
    }
}

static size_t backward_bytes(int K)
{
    return (chunk_floats(K) + 2 * (size_t)K * (BV + 1) + 4 * CH * (BV + 1) + 2 * CH * LD) * sizeof(float);
}

template <class T>
static void delta_backward_t(struct nn_queue *q, const delta_args *p, int n_seq, int rows, delta_out g,
                             const void *dout,
                             float *da_log, float *ddt_bias)
{
    size_t bytes = backward_bytes(p->s.k_dim);

    delta_walk<T, true>(q, p, n_seq, NULL, NULL, 0, NULL);
    launch(q, "delta_backward", with_shared(q, (delta_backward_kernel<T>), bytes), dim3(p->s.v_heads, n_seq), THREADS,
           bytes, *p, g,
           (const T *)dout);
    launch(q, "delta_keys", (delta_keys_kernel<T>), ceil_div((long)rows * p->s.k_heads, THREADS / 32), THREADS, 0, rows,
           *p, g);
    launch(q, "delta_gates", (delta_gates_kernel<T>), p->s.v_heads, THREADS, 0, rows, *p, g.da32, da_log, ddt_bias);
}

void op_delta_backward(struct nn_queue *q, enum nn_dtype dt, const struct nn_delta_in *in, int T, const void *dout,
                       void *dc, void *db, void *da, float *da_log, float *ddt_bias, float *scratch)
{
    size_t heads = (size_t)in->s.v_heads, K = (size_t)in->s.k_dim, keys = (size_t)T * heads * K;
    float *dq = scratch + (size_t)(T / CH) * heads * K * in->s.v_dim;
    delta_args p = args_of(in, scratch);
    delta_out g = {dc, db, da, dq, dq + keys, dq + 2 * keys};

    if (delta_fits(q, &in->s))
        by_dtype(dt, delta_backward_t, q, &p, in->n_seq, T, g, dout, da_log, ddt_bias);
}

/* ---- one position of each sequence ---- */

/* A block is a row and a value head; a thread owns one column of its state. */
template <class T>
__global__ void delta_step_kernel(delta_args p, const int32_t *slot, size_t stride, float *state, T *o)
{
    __shared__ float q[MAX_K], k[MAX_K];
    const nn_delta &s = p.s;
    int K = s.k_dim, V = s.v_dim, h = blockIdx.x, b = blockIdx.y, kh = h / (s.v_heads / s.k_heads), j = threadIdx.x;
    size_t values = (size_t)s.v_heads * V, width = 2 * (size_t)s.k_heads * K + values, g = (size_t)b * s.ld_gate + h;
    const T *row = (const T *)p.c + b * width;

    if (slot[b] < 0)
        return;
    if (threadIdx.x < 64) { /* two warps: q and k */
        int side = threadIdx.x >> 5, lane = threadIdx.x & 31;
        const T *from = row + ((size_t)side * s.k_heads + kh) * K;
        float v[MAX_K / 32], sum = 0;
        for (int i = 0; i < MAX_K / 32; i++) {
            v[i] = lane + 32 * i < K ? to_float(from[lane + 32 * i]) : 0;
            sum += v[i] * v[i];
        }
        sum = rsqrtf(warp_sum(sum) + 1e-6f) * (side ? 1 : rsqrtf((float)K));
        for (int i = 0; i < MAX_K / 32; i++)
            if (lane + 32 * i < K)
                (side ? k : q)[lane + 32 * i] = v[i] * sum;
    }
    __syncthreads();
    if (j >= V)
        return;
    float *S = state + (size_t)slot[b] * stride + (size_t)h * K * V + j, read = 0, out = 0;
    float beta = delta_sigmoid(to_float(((const T *)p.b)[g]));
    float keep = expf(-expf(p.a_log[h]) * delta_softplus(to_float(((const T *)p.a)[g]) + p.dt_bias[h]));
    for (int i = 0; i < K; i++)
        read += k[i] * S[(size_t)i * V];
    float d = beta * (to_float(row[width - values + (size_t)h * V + j]) - keep * read);
    for (int i = 0; i < K; i++) {
        float x = keep * S[(size_t)i * V] + k[i] * d;
        S[(size_t)i * V] = x;
        out += q[i] * x;
    }
    o[(size_t)b * values + (size_t)h * V + j] = from_float<T>(out);
}

template <class T>
static void delta_step_t(struct nn_queue *q, const delta_args *p, int B, const int32_t *slot, size_t stride,
                         float *state, void *o)
{
    int threads = p->s.v_dim < 64 ? 64 : (p->s.v_dim + 31) / 32 * 32;

    launch(q, "delta_step", (delta_step_kernel<T>), dim3(p->s.v_heads, B), threads, 0, *p, slot, stride, state, (T *)o);
}

void op_delta_step(struct nn_queue *q, enum nn_dtype dt, const struct nn_delta_in *in, const int32_t *slot,
                   size_t stride, float *state, void *o)
{
    delta_args p = args_of(in, NULL);

    if (delta_fits(q, &in->s))
        by_dtype(dt, delta_step_t, q, &p, in->n_seq, slot, stride, state, o);
}

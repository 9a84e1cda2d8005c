/* rope.cu - RMSNorm of each query and key head (w NULL: none), then rotary positions (Su et al., arXiv 2104.09864;
 * half-split as in Hugging Face). A team of dim / 8 lanes a head; a lane owns four pairs. Pair p < rot / 2 is
 * rotated; the elements behind rot pass, in pairs too. WIDE: four pairs lie side by side, which they do where rot is
 * a multiple of 8. */
#include "nn/ops/cuda/ops.cuh"

#define THREADS 256
#define PAIRS 4

__device__ __forceinline__ int first_of(int p, int rot) { return p < rot / 2 ? p : p + rot / 2; }
__device__ __forceinline__ int second_of(int p, int rot, int dim) { return p < rot / 2 ? p + rot / 2 : p + dim / 2; }

template <bool WIDE, class T>
__device__ __forceinline__ void load_pairs(const T *x, int p, const nn_heads &s, float *a, float *b)
{
    if (WIDE) {
        load4(x + first_of(p, s.rot), a);
        load4(x + second_of(p, s.rot, s.dim), b);
        return;
    }
    for (int j = 0; j < PAIRS; j++) {
        a[j] = to_float(x[first_of(p + j, s.rot)]);
        b[j] = to_float(x[second_of(p + j, s.rot, s.dim)]);
    }
}

template <bool WIDE, class T>
__device__ __forceinline__ void store_pairs(T *x, int p, const nn_heads &s, const float *a, const float *b)
{
    if (WIDE) {
        store4(x + first_of(p, s.rot), a);
        store4(x + second_of(p, s.rot, s.dim), b);
        return;
    }
    for (int j = 0; j < PAIRS; j++) {
        x[first_of(p + j, s.rot)] = from_float<T>(a[j]);
        x[second_of(p + j, s.rot, s.dim)] = from_float<T>(b[j]);
    }
}

/* cos and sin of the pairs at one position; a pair behind rot is turned by nothing. */
template <bool WIDE> __device__ __forceinline__ void turns_of(const float *cs, int p, int rot, float *c, float *s)
{
    if (WIDE && p < rot / 2) {
        load4(cs + p, c);
        load4(cs + rot / 2 + p, s);
        return;
    }
    for (int j = 0; j < PAIRS; j++) {
        c[j] = p + j < rot / 2 ? cs[p + j] : 1;
        s[j] = p + j < rot / 2 ? cs[rot / 2 + p + j] : 0;
    }
}

/* Weights of the norm; none: numbers that multiply by one. */
template <bool WIDE, class T>
__device__ __forceinline__ void weights_of(const T *w, int p, const nn_heads &s, float *a, float *b)
{
    if (w) {
        load_pairs<WIDE>(w, p, s, a, b);
        return;
    }
    for (int j = 0; j < PAIRS; j++)
        a[j] = b[j] = 1 - s.plus;
}

__device__ __forceinline__ float team_sum(float x, int lanes)
{
    for (int i = lanes / 2; i; i >>= 1)
        x += __shfl_xor_sync(FULL_WARP, x, i);
    return x;
}

template <class T, bool WIDE>
__global__ void rope_kernel(int rows, nn_heads s, const T *in, int ld_in, const T *w, float eps, const int32_t *pos,
                            const float *rope, T *out, int ld_out, float *rstd)
{
    int lanes = s.dim / (2 * PAIRS), lane = threadIdx.x % lanes, p = lane * PAIRS;
    int row = blockIdx.x * (THREADS / lanes) + threadIdx.x / lanes;
    bool mine = row < rows; /* lanes of a warp go together: sums need them */
    int t = mine ? row / s.heads : 0, h = mine ? row % s.heads : 0;
    const float *cs = rope + (size_t)pos[t] * s.rot;
    float a[PAIRS], b[PAIRS], wa[PAIRS], wb[PAIRS], c[PAIRS], d[PAIRS], sum = 0;

    load_pairs<WIDE>(in + (size_t)t * ld_in + (size_t)h * s.step, p, s, a, b);
    weights_of<WIDE>(w, p, s, wa, wb);
    turns_of<WIDE>(cs, p, s.rot, c, d);
    for (int j = 0; j < PAIRS; j++)
        sum += a[j] * a[j] + b[j] * b[j];
    sum = w ? rsqrtf(team_sum(sum, lanes) / (float)s.dim + eps) : 1;
    if (!mine)
        return;
    for (int j = 0; j < PAIRS; j++) {
        float x = a[j] * sum * (s.plus + wa[j]), y = b[j] * sum * (s.plus + wb[j]);
        a[j] = x * c[j] - y * d[j];
        b[j] = y * c[j] + x * d[j];
    }
    store_pairs<WIDE>(out + (size_t)t * ld_out + (size_t)h * s.dim, p, s, a, b);
    if (rstd && w && lane == 0)
        rstd[row] = sum;
}

template <class T, bool WIDE>
__global__ void rope_backward_kernel(int rows, nn_heads s, const T *in, int ld_in, const T *w, const float *rstd,
                                     const int32_t *pos, const float *rope, const T *dout, int ld_dout, T *din,
                                     int ld_din, float *partial)
{
    __shared__ float sums[THREADS * 2 * PAIRS]; /* (teams, dim) */
    int lanes = s.dim / (2 * PAIRS), teams = THREADS / lanes, team = threadIdx.x / lanes;
    int lane = threadIdx.x % lanes, p = lane * PAIRS;
    float dwa[PAIRS], dwb[PAIRS], wa[PAIRS], wb[PAIRS];

    for (int j = 0; j < PAIRS; j++)
        dwa[j] = dwb[j] = 0;
    weights_of<WIDE>(w, p, s, wa, wb);
    for (int first = blockIdx.x * teams; first < rows; first += gridDim.x * teams) {
        bool mine = first + team < rows;
        int row = mine ? first + team : first, t = row / s.heads, h = row % s.heads;
        float r = w ? rstd[row] : 1, dot = 0, a[PAIRS], b[PAIRS], ga[PAIRS], gb[PAIRS], c[PAIRS], d[PAIRS];
        load_pairs<WIDE>(in + (size_t)t * ld_in + (size_t)h * s.step, p, s, a, b);
        load_pairs<WIDE>(dout + (size_t)t * ld_dout + (size_t)h * s.dim, p, s, ga, gb);
        turns_of<WIDE>(rope + (size_t)pos[t] * s.rot, p, s.rot, c, d);
        for (int j = 0; j < PAIRS; j++) {
            float x = ga[j] * c[j] + gb[j] * d[j], y = gb[j] * c[j] - ga[j] * d[j];
            a[j] *= r;
            b[j] *= r;
            dwa[j] += mine ? x * a[j] : 0;
            dwb[j] += mine ? y * b[j] : 0;
            ga[j] = x * (s.plus + wa[j]);
            gb[j] = y * (s.plus + wb[j]);
            dot += ga[j] * a[j] + gb[j] * b[j];
        }
        dot = w ? team_sum(dot, lanes) / (float)s.dim : 0;
        for (int j = 0; j < PAIRS; j++) {
            ga[j] = r * (ga[j] - a[j] * dot);
            gb[j] = r * (gb[j] - b[j] * dot);
        }
        if (mine)
            store_pairs<WIDE>(din + (size_t)t * ld_din + (size_t)h * s.step, p, s, ga, gb);
    }
    if (!w)
        return;
    for (int j = 0; j < PAIRS; j++) {
        sums[team * s.dim + first_of(p + j, s.rot)] = dwa[j];
        sums[team * s.dim + second_of(p + j, s.rot, s.dim)] = dwb[j];
    }
    __syncthreads();
    if ((int)threadIdx.x < s.dim) {
        float sum = 0;
        for (int k = 0; k < teams; k++)
            sum += sums[k * s.dim + threadIdx.x];
        partial[(size_t)blockIdx.x * s.dim + threadIdx.x] = sum;
    }
}

static int teams_of(const nn_heads &s) { return THREADS / (s.dim / (2 * PAIRS)); }

/* Where four neighbours of a row can be had at once. */
static bool is_wide(const nn_heads &s, int ld_a, int ld_b) { return s.rot % 8 == 0 && ld_a % 8 == 0 && ld_b % 8 == 0; }

template <class T>
static void rope_t(struct nn_queue *q, int rows, nn_heads s, const void *in, int ld_in, const void *w, float eps,
                   const int32_t *pos, const float *rope, void *out, int ld_out, float *rstd)
{
    auto kernel = is_wide(s, ld_in, ld_out) ? rope_kernel<T, true> : rope_kernel<T, false>;

    launch(q, "qk_norm_rope", kernel, ceil_div(rows, teams_of(s)), THREADS, 0, rows, s, (const T *)in, ld_in,
           (const T *)w, eps, pos, rope, (T *)out, ld_out, rstd);
}

void op_qk_norm_rope(struct nn_queue *q, enum nn_dtype dt, int T, struct nn_heads s, const void *in, int ld_in,
                     const void *w, float eps, const int32_t *pos, const float *rope, void *out, int ld_out,
                     float *rstd)
{
    by_dtype(dt, rope_t, q, T * s.heads, s, in, ld_in, w, eps, pos, rope, out, ld_out, rstd);
}

template <class T>
static void rope_backward_t(struct nn_queue *q, int rows, nn_heads s, const void *in, int ld_in, const void *w,
                            const float *rstd, const int32_t *pos, const float *rope, const void *dout, int ld_dout,
                            void *din, int ld_din, float *dw)
{
    auto kernel = is_wide(s, ld_in, ld_dout) && ld_din % 8 == 0 ? rope_backward_kernel<T, true> :
                                                                  rope_backward_kernel<T, false>;
    int blocks = at_most(PARTIAL_BLOCKS, ceil_div(rows, teams_of(s)));

    launch(q, "qk_norm_rope_backward", kernel, blocks, THREADS, 0, rows, s, (const T *)in, ld_in, (const T *)w, rstd,
           pos, rope, (const T *)dout, ld_dout, (T *)din, ld_din, q->scratch);
    if (w)
        add_partials(q, blocks, s.dim, q->scratch, dw);
}

void op_qk_norm_rope_backward(struct nn_queue *q, enum nn_dtype dt, int T, struct nn_heads s, const void *in,
                              int ld_in, const void *w, const float *rstd, const int32_t *pos, const float *rope,
                              const void *dout, int ld_dout, void *din, int ld_din, float *dw)
{
    by_dtype(dt, rope_backward_t, q, T * s.heads, s, in, ld_in, w, rstd, pos, rope, dout, ld_dout, din, ld_din, dw);
}

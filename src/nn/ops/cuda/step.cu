/* step.cu - one decoding step through all layers for a few rows in one kernel: at batch 1 a step is the reading of all
 * weights, and hundreds of small kernels read them at a fifth of the memory's speed.
 *
 * As many blocks as processors stay for the whole step and meet at a barrier between two products. Before it every lane
 * asks for the next product's first weights, which depend on nothing, so that memory works on. A block owns
 * neighbouring rows of a weight; a warp owns a row of it, or a part of one. Sums have a fixed order: a row's result
 * depends on the numbers of processors and of rows alone. */
#include "nn/ops/cuda/attend.cuh"
#include "nn/ops/cuda/ops.cuh"

#ifdef NN_EMULATED
#include <cooperative_groups.h>
#endif

#define WARPS 16
#define THREADS (WARPS * 32)
#define AHEAD 8       /* 16-byte loads of weights that a lane has under way */
#define SPLIT 64      /* positions of one attention unit, as long as there are units enough */
#define MAX_SPLITS 16
#define G 2           /* query heads of one attention unit: more keep too many registers, and compile for minutes */
#define PART(dim) ((dim) + 2) /* of attention: maximum, sum, values */

/* Where a step keeps what blocks tell each other; sizes in elements, rows first. */
struct notes {
    unsigned *arrived;
    bf16 *x, *mid, *qkv, *act;
    float *parts; /* (B, heads, splits, PART) */
};

/* ---- memory that other blocks write, and weights that are read once ---- */

#ifdef NN_PORTABLE
__device__ inline uint4 fresh16(const void *p) { return *(const uint4 *)p; }
__device__ inline float fresh(const float *p) { return *p; }
__device__ inline uint4 weights16(const void *p) { return *(const uint4 *)p; }
#ifdef NN_EMULATED
__device__ inline void meet(unsigned *arrived, unsigned *due) { cooperative_groups::this_grid().sync(); }
#else
__device__ void meet(unsigned *arrived, unsigned *due); /* op_step refuses: there is none */
#endif
#else
__device__ __forceinline__ uint4 fresh16(const void *p) { return __ldcg((const uint4 *)p); }
__device__ __forceinline__ float fresh(const float *p) { return __ldcg(p); }
__device__ __forceinline__ uint4 weights16(const void *p)
{
    uint4 v;

    asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));
    return v;
}
/* All blocks: what they wrote before is seen by all after. due: what 'arrived' is when all have come. */
__device__ __forceinline__ void meet(unsigned *arrived, unsigned *due)
{
    __syncthreads();
    *due += gridDim.x;
    if (threadIdx.x == 0) {
        unsigned seen;
        __threadfence();
        asm volatile("red.release.gpu.global.add.u32 [%0], 1;" :: "l"(arrived) : "memory");
        do
            asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(arrived) : "memory");
        while (seen < *due);
        __threadfence();
    }
    __syncthreads();
}
#endif

__device__ __forceinline__ float rounded(float x) { return to_float(from_float<bf16>(x)); }

/* ---- a product of a weight (rows, K) with B vectors ---- */

/* This block's rows of a weight, cut into units: a row, or one of 1 << shift pieces of it. The gate's and the up
 * projection's
 * rows of a pair are neighbours here: row j is row j / 2 of the gate where j is even, of the other where it is odd. */
struct rows {
    const bf16 *w;
    int K, first, n, shift, len, paired; /* paired: rows from a gate to its other half; 0: plain */

    __device__ __forceinline__ rows(const void *weight, int N, int depth, int pair)
        : w((const bf16 *)weight), K(depth), shift(0), paired(pair)
    {
        int own = (N + gridDim.x - 1) / gridDim.x;

        first = blockIdx.x * own;
        n = first >= N ? 0 : N - first < own ? N - first : own;
        n *= pair ? 2 : 1;
        while ((own * (pair ? 2 : 1)) << (shift + 1) <= WARPS && K % (16 << shift) == 0)
            shift++;
        len = K >> shift;
    }
    __device__ __forceinline__ int units() const { return n << shift; }
    __device__ __forceinline__ int part(int unit) const { return (unit & ((1 << shift) - 1)) * len; } /* its start */
    __device__ __forceinline__ const bf16 *at(int unit) const
    {
        int j = unit >> shift, row = paired ? first + (j >> 1) + (j & 1) * paired : first + j;

        return w + (size_t)row * K + part(unit);
    }
};

/* The walk of a warp over its units, 256 elements at a time. */
struct walk {
    int unit, at;

    __device__ __forceinline__ void step(const struct rows &r)
    {
        at += 256;
        if (at >= r.len)
            at = 0, unit += WARPS;
    }
};

__device__ __forceinline__ void ask(const struct rows &r, struct walk *c, uint4 *v)
{
    int lane = (threadIdx.x & 31) * 8;

#pragma unroll
    for (int i = 0; i < AHEAD; i++) {
        if (c->unit < r.units() && c->at + lane < r.len)
            v[i] = weights16(r.at(c->unit) + c->at + lane);
        c->step(r);
    }
}

/* x (B, K) in shared memory. sums (units, B): one for each unit. v holds what ask() asked for first. */
template <int B>
__device__ __forceinline__ void multiply(const struct rows &r, struct walk *asked, uint4 *v, const float *x,
                                         float *sums)
{
    int lane = (threadIdx.x & 31) * 8, units = r.units();
    struct walk c = {warp_index(), 0};
    float acc[B];
    uint4 next[AHEAD];

#pragma unroll
    for (int b = 0; b < B; b++)
        acc[b] = 0;
    while (c.unit < units) {
        ask(r, asked, next);
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            if (c.unit < units) {
                if (c.at + lane < r.len) {
                    const float *from = x + r.part(c.unit) + c.at + lane;
                    float w[8];
                    unpack8(v[i], w);
#pragma unroll
                    for (int b = 0; b < B; b++) {
                        float4 lo = ((const float4 *)(from + b * r.K))[0], hi = ((const float4 *)(from + b * r.K))[1];
                        acc[b] += w[0] * lo.x + w[1] * lo.y + w[2] * lo.z + w[3] * lo.w + w[4] * hi.x + w[5] * hi.y +
                                  w[6] * hi.z + w[7] * hi.w;
                    }
                }
                if (c.at + 256 >= r.len) {
#pragma unroll
                    for (int b = 0; b < B; b++) {
                        float s = warp_sum(acc[b]);
                        if (lane == 0)
                            sums[c.unit * B + b] = s;
                        acc[b] = 0;
                    }
                }
            }
            c.step(r);
        }
#pragma unroll
        for (int i = 0; i < AHEAD; i++)
            v[i] = next[i];
    }
    __syncthreads();
}

/* Of row j, vector b: its parts in order. */
template <int B> __device__ __forceinline__ float total(const struct rows &r, const float *sums, int j, int b)
{
    float s = 0;

    for (int p = 0; p < 1 << r.shift; p++)
        s += sums[((j << r.shift) + p) * B + b];
    return s;
}

/* ---- between the products ---- */

/* out (B, d) in shared memory: the norm of B rows, as the kernel of its own rounds it. Every warp sums by itself, in
 * one round of loads where the row is short enough, and writes its share. */
template <int B>
__device__ __forceinline__ void norm_rows(const bf16 *const *x, int d, const bf16 *w, float plus, float eps, float *out)
{
    constexpr int HELD = 8; /* chunks of 256 elements */
    int lane = (threadIdx.x & 31) * 8, warp = threadIdx.x / 32;

#pragma unroll
    for (int b = 0; b < B; b++) {
        float sum = 0, v[8], u[8];
        uint4 held[HELD];
#pragma unroll
        for (int k = 0; k < HELD; k++)
            held[k] = k * 256 + lane < d ? fresh16(x[b] + k * 256 + lane) : make_uint4(0, 0, 0, 0);
        if (warp * 256 + lane < d)
            load8(w + warp * 256 + lane, u);
#pragma unroll
        for (int k = 0; k < HELD; k++) {
            unpack8(held[k], v);
            for (int j = 0; j < 8; j++)
                sum += v[j] * v[j];
        }
        for (int i = HELD * 256 + lane; i < d; i += 256) {
            unpack8(fresh16(x[b] + i), v);
            for (int j = 0; j < 8; j++)
                sum += v[j] * v[j];
        }
        sum = rsqrtf(warp_sum(sum) / (float)d + eps);
#pragma unroll
        for (int k = 0; k < HELD; k++)
            if (k == warp && k * 256 + lane < d) {
                unpack8(held[k], v);
                for (int j = 0; j < 8; j++)
                    out[b * d + k * 256 + lane + j] = rounded(v[j] * sum * (plus + u[j]));
            }
        for (int i = HELD * 256 + warp * 256 + lane; i < d; i += WARPS * 256) {
            unpack8(fresh16(x[b] + i), v);
            load8(w + i, u);
            for (int j = 0; j < 8; j++)
                out[b * d + i + j] = rounded(v[j] * sum * (plus + u[j]));
        }
    }
    __syncthreads();
}

/* Norm (w NULL: none) and rotation of one head by a warp: in (DIM) to out in shared memory. */
template <int DIM>
__device__ __forceinline__ void head_of(const bf16 *in, const bf16 *w, float plus, float eps, const float *rope,
                                        float *out)
{
    constexpr int E = DIM / 32, HALF = DIM / 2;
    int lane = threadIdx.x & 31;
    float v[E], sum = 0;

#pragma unroll
    for (int k = 0; k < E; k++) {
        v[k] = to_float(in[lane + 32 * k]);
        sum += v[k] * v[k];
    }
    if (w) {
        sum = rsqrtf(warp_sum(sum) / (float)DIM + eps);
#pragma unroll
        for (int k = 0; k < E; k++)
            v[k] = v[k] * sum * (plus + to_float(w[lane + 32 * k]));
    }
#pragma unroll
    for (int k = 0; k < E / 2; k++) {
        float c = rope[lane + 32 * k], s = rope[HALF + lane + 32 * k], a = v[k], b = v[k + E / 2];
        out[lane + 32 * k] = rounded(a * c - b * s);
        out[lane + 32 * k + HALF] = rounded(b * c + a * s);
    }
}

__device__ __forceinline__ int splits_of(const struct nn_step &s, int b, int most)
{
    int n = s.pos[b] / SPLIT + 1;

    return n < most ? n : most;
}

/* G query heads from h on, which share keys, of one row over one stretch of its positions: the new key and value too,
 * where it is the last. heads: how many of the G there are. */
template <int DIM>
__device__ __forceinline__ void attend(const struct nn_step &s, const struct nn_step_layer &y, const struct notes &t,
                                       int b, int h, int heads, int split, int splits, int most, float *shared)
{
    constexpr int LANES = DIM / 8, TEAMS = THREADS / LANES, N = 4;
    int group = s.heads / s.kv_heads, kvh = h / group, width = s.kv_heads * DIM, len = s.pos[b] + 1;
    int per = (len + splits - 1) / splits, from = split * per, to = len < from + per ? len : from + per;
    int lane = threadIdx.x % LANES, team = threadIdx.x / LANES, warp = threadIdx.x / 32, old = to < len ? to : len - 1;
    const bf16 *qkv = t.qkv + (size_t)b * (s.heads + 2 * s.kv_heads) * DIM;
    const bf16 *newv = qkv + (s.heads + s.kv_heads + kvh) * DIM;
    const float *rope = s.rope + (size_t)s.pos[b] * DIM;
    size_t row = ((size_t)s.slot[b] * s.max_len) * width + kvh * DIM;
    bf16 *k = (bf16 *)y.cache_k + row, *v = (bf16 *)y.cache_v + row;
    float *query = shared, *key = query + G * DIM, *so = key + DIM, *sm = so + WARPS * G * DIM, *sl = sm + WARPS * G;
    struct attending<G> a;

    if (warp < heads)
        head_of<DIM>(qkv + (h + warp) * DIM, (const bf16 *)y.q_norm, s.plus, s.eps, rope, query + warp * DIM);
    if (warp == G && to == len)
        head_of<DIM>(qkv + (s.heads + kvh) * DIM, (const bf16 *)y.k_norm, s.plus, s.eps, rope, key);
    __syncthreads();
    if (to == len && h % group == 0) /* one of the units that share them keeps the new ones */
        for (int i = threadIdx.x; i < DIM; i += THREADS) {
            k[(size_t)(len - 1) * width + i] = from_float<bf16>(key[i]);
            v[(size_t)(len - 1) * width + i] = newv[i];
        }
    attend_begin<G>(a);
    for (int g = 0; g < G; g++)
        for (int j = 0; j < 8; j++)
            a.x[g][j] = query[(g < heads ? g : 0) * DIM + lane * 8 + j] * (LOG2E * rsqrtf((float)DIM));
    for (int p = from; p < old; p += N * TEAMS)
        attend_some<bf16, LANES, G, N>(a, k + lane * 8, v + lane * 8, width, p + team, TEAMS, old);
    if (to == len) { /* its newest position, by the first team */
        bf16 packed[8];
        for (int j = 0; j < 8; j++)
            packed[j] = from_float<bf16>(key[lane * 8 + j]);
        struct eight<bf16> kr, vr = eight_at(newv + lane * 8);
        memcpy(&kr, packed, sizeof kr);
        bool there = team == 0;
        attend_to<bf16, LANES, G, 1>(a, &kr, &vr, &there);
    }
    attend_merge<LANES, G>(a, sm, sl, so);
    __syncthreads();
    for (int i = threadIdx.x; i < heads * DIM; i += THREADS) {
        float *out = t.parts + (((size_t)b * s.heads + h + i / DIM) * most + split) * PART(DIM), best, sum, o;
        o = attend_total<G>(WARPS, DIM, sm, sl, so, i / DIM, i % DIM, &best, &sum);
        if (i % DIM == 0)
            out[0] = best, out[1] = sum;
        out[2 + i % DIM] = o;
    }
    __syncthreads();
}

/* All units of a layer, dealt to the blocks in turn. */
template <int B, int DIM>
__device__ __forceinline__ void attend_all(const struct nn_step &s, const struct nn_step_layer &y,
                                           const struct notes &t, int most, float *shared)
{
    int group = s.heads / s.kv_heads, chunks = (group + G - 1) / G, units = s.kv_heads * chunks;

    for (int u = blockIdx.x; u < B * units * most; u += gridDim.x) {
        int split = u % most, at = u / most % units, b = u / most / units, splits = splits_of(s, b, most);
        int h = at / chunks * group + at % chunks * G, left = (at / chunks + 1) * group - h;
        if (s.slot[b] >= 0 && split < splits)
            attend<DIM>(s, y, t, b, h, left < G ? left : G, split, splits, most, shared);
    }
}

/* out (B, heads * DIM) in shared memory: the stretches of every head together. */
template <int B, int DIM>
__device__ __forceinline__ void gather(const struct nn_step &s, const struct notes &t, int most, float *out)
{
    for (int i = threadIdx.x; i < B * s.heads * DIM; i += THREADS) {
        int at = i / DIM, b = at / s.heads, splits = splits_of(s, b, most);
        const float *p = t.parts + (size_t)at * most * PART(DIM);
        float best = -INFINITY, sum = 0, o = 0;
        for (int k = 0; k < splits; k++)
            best = fmaxf(best, fresh(p + k * PART(DIM)));
        for (int k = 0; k < splits; k++) {
            float g = exp2_short(fresh(p + k * PART(DIM)) - best);
            sum += g * fresh(p + k * PART(DIM) + 1);
            o += g * fresh(p + k * PART(DIM) + 2 + i % DIM);
        }
        out[i] = rounded(o / sum);
    }
    __syncthreads();
}

/* ---- the step ---- */

__host__ __device__ static size_t table_bytes(int layers)
{
    return ((size_t)layers * sizeof(struct nn_step_layer) + 255) / 256 * 256;
}

template <int B, int DIM>
__global__ void __launch_bounds__(THREADS, 1) step_kernel(struct nn_step s, struct notes t, int most)
{
    SHARED_BYTES(shared);
    int q = s.heads * DIM, qkv = (s.heads + 2 * s.kv_heads) * DIM, widest = q > s.f ? q : s.f;
    struct nn_step_layer *layer = (struct nn_step_layer *)shared; /* here, a pointer is a short way off */
    float *x = (float *)(shared + table_bytes(s.layers)), *sums = x + B * (widest > s.d ? widest : s.d);
    unsigned due = 0;
    const bf16 *row[B];
    uint4 v[AHEAD];
    struct walk c = {warp_index(), 0};
    struct rows r(s.layer[0].qkv, qkv, s.d, 0);

    ask(r, &c, v);
    for (size_t i = threadIdx.x; i < s.layers * sizeof *layer / sizeof(void *); i += THREADS)
        ((void **)layer)[i] = ((void *const *)s.layer)[i];
    __syncthreads();
    for (int b = 0; b < B; b++)
        row[b] = (const bf16 *)s.embed + (size_t)s.token[b] * s.d;
    for (int i = 0; i < s.layers; i++) {
        const struct nn_step_layer &y = layer[i];
        norm_rows<B>(row, s.d, (const bf16 *)y.norm1, s.plus, s.eps, x);
        multiply<B>(r, &c, v, x, sums);
        for (int k = threadIdx.x; k < r.n * B; k += THREADS) {
            float bias = y.bias ? to_float(((const bf16 *)y.bias)[r.first + k / B]) : 0;
            t.qkv[(size_t)(k % B) * qkv + r.first + k / B] = from_float<bf16>(bias + total<B>(r, sums, k / B, k % B));
        }
        r = rows(y.o, s.d, q, 0);
        c = {warp_index(), 0};
        meet(t.arrived, &due);

        attend_all<B, DIM>(s, y, t, most, x);
        ask(r, &c, v);
        meet(t.arrived, &due);

        gather<B, DIM>(s, t, most, x);
        multiply<B>(r, &c, v, x, sums);
        for (int k = threadIdx.x; k < r.n * B; k += THREADS) {
            int at = r.first + k / B;
            const bf16 *old = i ? t.x + (size_t)(k % B) * s.d : (const bf16 *)s.embed + (size_t)s.token[k % B] * s.d;
            t.mid[(size_t)(k % B) * s.d + at] = from_float<bf16>(to_float(old[at]) + total<B>(r, sums, k / B, k % B));
        }
        r = rows(y.gate_up, s.f, s.d, s.f);
        c = {warp_index(), 0};
        ask(r, &c, v);
        meet(t.arrived, &due);

        for (int b = 0; b < B; b++)
            row[b] = t.mid + (size_t)b * s.d;
        norm_rows<B>(row, s.d, (const bf16 *)y.norm2, s.plus, s.eps, x);
        multiply<B>(r, &c, v, x, sums);
        for (int k = threadIdx.x; k < r.n / 2 * B; k += THREADS) {
            float g = rounded(total<B>(r, sums, k / B * 2, k % B));
            float u = rounded(total<B>(r, sums, k / B * 2 + 1, k % B));
            t.act[(size_t)(k % B) * s.f + r.first + k / B] = from_float<bf16>(g / (1 + expf(-g)) * u);
        }
        r = rows(y.down, s.d, s.f, 0);
        c = {warp_index(), 0};
        ask(r, &c, v);
        meet(t.arrived, &due);

        for (int k = threadIdx.x * 8; k < B * s.f; k += THREADS * 8) {
            float a[8];
            unpack8(fresh16(t.act + k), a);
            for (int j = 0; j < 8; j++)
                x[k + j] = a[j];
        }
        __syncthreads();
        multiply<B>(r, &c, v, x, sums);
        for (int k = threadIdx.x; k < r.n * B; k += THREADS) {
            size_t at = (size_t)(k % B) * s.d + r.first + k / B;
            t.x[at] = from_float<bf16>(to_float(t.mid[at]) + total<B>(r, sums, k / B, k % B));
        }
        r = i + 1 < s.layers ? rows(layer[i + 1].qkv, qkv, s.d, 0) : rows(s.head, s.V, s.d, 0);
        c = {warp_index(), 0};
        ask(r, &c, v);
        meet(t.arrived, &due);
        for (int b = 0; b < B; b++)
            row[b] = t.x + (size_t)b * s.d;
    }
    norm_rows<B>(row, s.d, (const bf16 *)s.final_norm, s.plus, s.eps, x);
    multiply<B>(r, &c, v, x, sums);
    for (int k = threadIdx.x; k < r.n * B; k += THREADS)
        ((bf16 *)s.logits)[(size_t)(k / r.n) * s.ld_logits + r.first + k % r.n] =
            from_float<bf16>(total<B>(r, sums, k % r.n, k / r.n));
}

/* ---- launch ---- */

static void *take(char **at, size_t bytes)
{
    void *p = *at;

    *at += (bytes + 255) / 256 * 256;
    return p;
}

static size_t shared_bytes(const struct nn_step *s, int blocks)
{
    int q = s->heads * s->dim, widest = q > s->f ? q : s->f, most = s->V;

    widest = widest > s->d ? widest : s->d;
    most = most > 2 * s->f ? most : 2 * s->f;
    size_t attention = (size_t)((WARPS * G + G + 1) * s->dim + 2 * WARPS * G) * sizeof(float);
    size_t x = (size_t)s->B * widest * sizeof(float);
    /* a block's rows, and up to WARPS units of parts */
    return table_bytes(s->layers) + (x > attention ? x : attention) +
           (size_t)s->B * (2 * (most / blocks + 2) + WARPS) * sizeof(float);
}

template <int B, int DIM>
static bool step_b(struct nn_queue *q, const struct nn_step *s, const struct notes *t, int blocks, int most)
{
    size_t bytes = shared_bytes(s, blocks);

    if (bytes > 220 << 10)
        return false;
#ifdef NN_EMULATED
    struct nn_step own = *s;
    struct notes notes = *t;
    void *args[] = {&own, &notes, &most};
    queue_check(q, "step", cudaLaunchCooperativeKernel(step_kernel<B, DIM>, dim3((unsigned)blocks), dim3(THREADS), args,
                                                       bytes, 0));
#else
    queue_check(q, "step", cudaFuncSetAttribute(step_kernel<B, DIM>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                (int)bytes));
    queue_check(q, "step", cudaMemsetAsync(t->arrived, 0, sizeof *t->arrived, q->stream));
    launch(q, "step", (step_kernel<B, DIM>), blocks, THREADS, bytes, *s, *t, most);
#endif
    return true;
}

template <int DIM>
static bool step_dim(struct nn_queue *q, const struct nn_step *s, const struct notes *t, int blocks, int most)
{
    switch (s->B) {
    case 1: return step_b<1, DIM>(q, s, t, blocks, most);
    case 2: return step_b<2, DIM>(q, s, t, blocks, most);
    case 4: return step_b<4, DIM>(q, s, t, blocks, most);
    }
    return false;
}

#ifdef NN_MUSA
bool op_step(struct nn_queue *q, enum nn_dtype dt, const struct nn_step *s) { return false; }
#else
bool op_step(struct nn_queue *q, enum nn_dtype dt, const struct nn_step *s)
{
    int units = s->B * s->kv_heads * ceil_div(s->heads / s->kv_heads, G);
    int blocks = q->processors ? q->processors : 8, most = blocks / units;
    size_t B = (size_t)s->B, qkv = (size_t)(s->heads + 2 * s->kv_heads) * s->dim;
    char *at = (char *)q->scratch;
    struct notes t;

    if (dt != NN_BF16 || s->d % 8 || s->f % 8)
        return false;
    most = most < 1 ? 1 : at_most(most, MAX_SPLITS);
    t.arrived = (unsigned *)take(&at, sizeof *t.arrived);
    t.x = (bf16 *)take(&at, B * s->d * sizeof(bf16));
    t.mid = (bf16 *)take(&at, B * s->d * sizeof(bf16));
    t.qkv = (bf16 *)take(&at, B * qkv * sizeof(bf16));
    t.act = (bf16 *)take(&at, B * s->f * sizeof(bf16));
    t.parts = (float *)take(&at, B * s->heads * most * PART(s->dim) * sizeof(float));
    return s->dim == 64 ? step_dim<64>(q, s, &t, blocks, most) : s->dim == 128 ? step_dim<128>(q, s, &t, blocks, most) :
           false;
}
#endif

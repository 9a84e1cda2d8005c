/* decode.cu - one step of generation over a batch: keys and values into the cache, attention of one query a row, and
 * the choice of a token (temperature; top-p, Holtzman et al., arXiv 1904.09751). A row never depends on the others. */
#include "nn/ops/cuda/attend.cuh"
#include "nn/ops/cuda/ops.cuh"

/* ---- the cache ---- */

template <class T>
__global__ void kv_store_kernel(size_t n, int width, int max_len, const int32_t *slot, const int32_t *pos, const T *k,
                                int ld_k, const T *v, int ld_v, T *cache_k, T *cache_v)
{
    size_t i = ((size_t)blockIdx.x * 256 + threadIdx.x) * 8;
    float x[8];

    if (i >= n)
        return;
    int t = (int)(i / (size_t)width), c = (int)(i % (size_t)width);
    if (slot[t] < 0)
        return;
    size_t to = ((size_t)slot[t] * max_len + pos[t]) * width + c;
    load8(k + (size_t)t * ld_k + c, x);
    store8(cache_k + to, x);
    load8(v + (size_t)t * ld_v + c, x);
    store8(cache_v + to, x);
}

template <class T>
static void kv_store_t(struct nn_queue *q, int rows, int width, int max_len, const int32_t *slot, const int32_t *pos,
                       const void *k, int ld_k, const void *v, int ld_v, void *cache_k, void *cache_v)
{
    size_t n = (size_t)rows * width;

    launch(q, "kv_store", (kv_store_kernel<T>), ceil_div((long)(n / 8), 256), 256, 0, n, width, max_len, slot, pos,
           (const T *)k, ld_k, (const T *)v, ld_v, (T *)cache_k, (T *)cache_v);
}

void op_kv_store(struct nn_queue *q, enum nn_dtype dt, int T, int width, int max_len, const int32_t *slot,
                 const int32_t *pos, const void *k, int ld_k, const void *v, int ld_v, void *cache_k, void *cache_v)
{
    by_dtype(dt, kv_store_t, q, T, width, max_len, slot, pos, k, ld_k, v, ld_v, cache_k, cache_v);
}

/* ---- attention of one query ----
 *
 * A block: one row, one kv head, up to G of the query heads that share it; teams are merged at the end. */
#define WARPS 8

/* Four blocks a processor where registers allow it: 64 rows of a model with 8 kv heads are then one wave on an H200. */
template <class T, int LANES, int G>
__global__ void __launch_bounds__(WARPS * 32, sizeof(T) == 2 && G <= 2 ? 4 : 1)
attn_decode_kernel(struct nn_decode d, float scale, const T *q, int ld_q, T *o, int ld_o)
{
    constexpr int TEAMS = WARPS * 32 / LANES, N = G > 1 ? 2 : 4;
    __shared__ float sm[WARPS * G], sl[WARPS * G], so[WARPS * G * LANES * 8];
    int group = d.heads / d.kv_heads, chunks = (group + G - 1) / G, b = blockIdx.y;
    int kvh = blockIdx.x / chunks, h0 = kvh * group + blockIdx.x % chunks * G, heads = (kvh + 1) * group - h0;
    int lane = threadIdx.x % LANES, team = threadIdx.x / LANES, end = d.pos[b] + 1, width = d.kv_heads * d.dim;
    struct attending<G> a;

    if (d.slot[b] < 0)
        return;
    size_t row = (size_t)d.slot[b] * d.max_len * width + kvh * d.dim + lane * 8;
    const T *k = (const T *)d.k + row, *v = (const T *)d.v + row;
    attend_begin<G>(a);
    for (int g = 0; g < G; g++) {
        load8(q + (size_t)b * ld_q + (size_t)(h0 + (g < heads ? g : 0)) * d.dim + lane * 8, a.x[g]);
        for (int j = 0; j < 8; j++)
            a.x[g][j] *= scale;
    }
    for (int p = 0; p < end; p += N * TEAMS)
        attend_some<T, LANES, G, N>(a, k, v, width, p + team, TEAMS, end);
    attend_merge<LANES, G>(a, sm, sl, so);
    __syncthreads();
    for (int i = threadIdx.x; i < G * LANES * 8; i += WARPS * 32) {
        int g = i / (LANES * 8), c = i % (LANES * 8);
        float best, sum, out;
        if (g >= heads)
            break;
        out = attend_total<G>(WARPS, LANES * 8, sm, sl, so, g, c, &best, &sum);
        o[(size_t)b * ld_o + (size_t)(h0 + g) * d.dim + c] = from_float<T>(out / sum);
    }
}

template <class T, int LANES, int G>
static void attn_decode_g(struct nn_queue *q, const struct nn_decode *s, const void *query, int ld_q, void *o, int ld_o)
{
    int chunks = ceil_div(s->heads / s->kv_heads, G);

    launch(q, "attention of one query", (attn_decode_kernel<T, LANES, G>),
           dim3((unsigned)(s->kv_heads * chunks), (unsigned)s->B), WARPS * 32, 0, *s, LOG2E / sqrtf((float)s->dim),
           (const T *)query, ld_q, (T *)o, ld_o);
}

template <class T, int LANES>
static void attn_decode_lanes(struct nn_queue *q, const struct nn_decode *s, const void *query, int ld_q, void *o,
                              int ld_o)
{
    int group = s->heads / s->kv_heads;

    if (group == 1)
        attn_decode_g<T, LANES, 1>(q, s, query, ld_q, o, ld_o);
    else if (group == 2)
        attn_decode_g<T, LANES, 2>(q, s, query, ld_q, o, ld_o);
    else if (group == 3 || group == 6)
        attn_decode_g<T, LANES, 3>(q, s, query, ld_q, o, ld_o);
    else
        attn_decode_g<T, LANES, 4>(q, s, query, ld_q, o, ld_o);
}

template <class T>
static void attn_decode_t(struct nn_queue *q, const struct nn_decode *s, const void *query, int ld_q, void *o, int ld_o)
{
    switch (s->dim) {
    case 16: attn_decode_lanes<T, 2>(q, s, query, ld_q, o, ld_o); break;
    case 32: attn_decode_lanes<T, 4>(q, s, query, ld_q, o, ld_o); break;
    case 64: attn_decode_lanes<T, 8>(q, s, query, ld_q, o, ld_o); break;
    case 128: attn_decode_lanes<T, 16>(q, s, query, ld_q, o, ld_o); break;
    case 256: attn_decode_lanes<T, 32>(q, s, query, ld_q, o, ld_o); break;
    default: queue_fail(q, "attention of one query", "head_dim must be 16, 32, 64, 128 or 256");
    }
}

void op_attn_decode(struct nn_queue *q, enum nn_dtype dt, const struct nn_decode *s, const void *query, int ld_q,
                    void *o,
                    int ld_o)
{
    by_dtype(dt, attn_decode_t, q, s, query, ld_q, o, ld_o);
}

/* ---- the choice ---- */

#define THREADS 1024
#define SEGMENTS 32 /* of a row of logits, a warp each, in order of ids */

/* A uniform number in [0, 1) from seed and position: the finaliser of SplitMix64 (Steele et al., 2014). */
__device__ __forceinline__ float uniform(uint64_t seed, int pos)
{
    uint64_t x = seed + (uint64_t)(pos + 1) * 0x9E3779B97F4A7C15ull;

    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ x >> 27) * 0x94D049BB133111EBull;
    return (float)((x ^ x >> 31) >> 40) * 0x1p-24f;
}

/* Unsigned integers in the order of the floats. */
__device__ __forceinline__ uint32_t order_of(float x)
{
    uint32_t b = __float_as_uint(x);

    return b & 0x80000000u ? ~b : b | 0x80000000u;
}

/* Eight logits from id i on as e^((z - top) / T); 0 beyond V and below the threshold. */
template <class T>
__device__ __forceinline__ void weights8(const T *z, int i, int V, float top, float inv, uint32_t from, float *e)
{
    load8(z + i, e); /* rows are padded to 8 */
    for (int j = 0; j < 8; j++)
        e[j] = i + j < V && order_of(e[j]) >= from ? expf((e[j] - top) * inv) : 0;
}

/* sums (SEGMENTS): the weight of each segment, which returns their sum; all threads get it. */
template <class T>
__device__ float mass(const T *z, int V, int segment, float top, float inv, uint32_t from, float *sums)
{
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, end = (warp + 1) * segment;
    float s = 0, e[8];

    for (int i = warp * segment + lane * 8; i < end && i < V; i += 256) {
        weights8(z, i, V, top, inv, from, e);
        for (int j = 0; j < 8; j++)
            s += e[j];
    }
    s = warp_sum(s);
    __syncthreads(); /* the sums of the call before have been read */
    if (lane == 0)
        sums[warp] = s;
    __syncthreads();
    s = 0;
    for (int k = 0; k < SEGMENTS; k++)
        s += sums[k];
    return s;
}

/* The largest threshold that keeps at least the weight wanted; equal logits are kept or dropped together. */
template <class T>
__device__ uint32_t threshold(const T *z, int V, int segment, float top, float inv, float want, float *sums)
{
    uint32_t low = 0; /* keeps all */

    for (int bit = 31; bit >= (sizeof(T) == 2 ? 16 : 0); bit--) {
        uint32_t trial = low | 1u << bit;
        if (mass(z, V, segment, top, inv, trial, sums) >= want)
            low = trial;
    }
    return low;
}

/* The lowest id among the largest logits: one warp, in order of ids. */
template <class T> __device__ int first_largest(const T *z, int V, float top)
{
    int lane = threadIdx.x & 31;
    float v[8];

    for (int i = lane * 8; i - lane * 8 < V; i += 256) {
        int found = V;
        if (i < V) {
            load8(z + i, v);
            for (int j = 7; j >= 0; j--)
                found = i + j < V && v[j] == top ? i + j : found;
        }
        for (int k = 16; k; k >>= 1) {
            int other = __shfl_xor_sync(FULL_WARP, found, k);
            found = other < found ? other : found;
        }
        if (found < V)
            return found;
    }
    return 0;
}

/* The id at which the weights of the segment, added in order of ids, pass u; else the last one with a weight. One
 * warp. */
template <class T>
__device__ int walk(const T *z, int V, int from_id, int segment, float top, float inv, uint32_t from, float u)
{
    int lane = threadIdx.x & 31, last = from_id, end = from_id + segment < V ? from_id + segment : V;
    float at = 0, e[8];

    for (int base = from_id; base < end; base += 256) {
        int i = base + lane * 8, mine = -1, tail = -1;
        float s = 0, before;
        for (int j = 0; j < 8; j++)
            e[j] = 0;
        if (i < end)
            weights8(z, i, end, top, inv, from, e);
        for (int j = 0; j < 8; j++)
            s += e[j];
        before = s; /* sum over lanes up to this one, then without it */
        for (int k = 1; k < 32; k <<= 1) {
            float other = __shfl_up_sync(FULL_WARP, before, k);
            before += lane >= k ? other : 0;
        }
        float upto = before;
        before = at + before - s;
        for (int j = 0; j < 8; j++) {
            before += e[j];
            if (e[j] > 0) {
                tail = i + j;
                if (mine < 0 && before > u)
                    mine = i + j;
            }
        }
        unsigned hit = __ballot_sync(FULL_WARP, mine >= 0), any = __ballot_sync(FULL_WARP, tail >= 0);
        if (hit)
            return __shfl_sync(FULL_WARP, mine, __ffs((int)hit) - 1);
        if (any)
            last = __shfl_sync(FULL_WARP, tail, 31 - __clz((int)any));
        at += __shfl_sync(FULL_WARP, upto, 31);
    }
    return last;
}

/* A word of 32 ids a thread. */
template <class T>
__device__ void mark_kept(const T *z, int ids, float top, float inv, uint32_t from, uint32_t *words)
{
    float e[8];

    for (int w = threadIdx.x; w * 32 < ids; w += THREADS) {
        uint32_t bits = 0;
        for (int k = 0; k < 4 && w * 32 + k * 8 < ids; k++) {
            weights8(z, w * 32 + k * 8, ids, top, inv, from, e);
            for (int j = 0; j < 8; j++)
                bits |= (e[j] > 0 ? 1u : 0u) << (k * 8 + j);
        }
        words[w] = bits;
    }
}

template <class T> __global__ void __launch_bounds__(THREADS) sample_kernel(struct nn_sample a)
{
    __shared__ float sums[SEGMENTS], part[32];
    int row = blockIdx.x, V = a.V, ids = a.ids, segment = ((V + SEGMENTS - 1) / SEGMENTS + 7) / 8 * 8, id;
    const T *z = (const T *)a.logits + (size_t)row * a.ld;
    float top = -INFINITY, best = -INFINITY, inv = a.temperature > 0 ? 1 / a.temperature : 1, total, v[8];

    for (int i = threadIdx.x * 8; i < V; i += THREADS * 8) {
        load8(z + i, v);
        for (int j = 0; j < 8; j++) {
            top = i + j < V ? fmaxf(top, v[j]) : top;
            best = i + j < ids ? fmaxf(best, v[j]) : best;
        }
    }
    top = block_max(top, part);
    best = block_max(best, part);
    total = mass(z, V, segment, top, inv, 0, sums);
    uint32_t from = 0;
    float kept = ids < V ? mass(z, ids, segment, top, inv, 0, sums) : total;
    if (a.temperature > 0 && a.top_p < 1) {
        from = threshold(z, ids, segment, top, inv, a.top_p * kept, sums);
        kept = mass(z, ids, segment, top, inv, from, sums);
    }
    if (a.kept)
        mark_kept(z, ids, top, inv, from, a.kept + (size_t)row * ((ids + 31) / 32));
    if (threadIdx.x >= 32)
        return;
    if (a.temperature <= 0) {
        id = first_largest(z, ids, best);
    } else {
        float u = uniform(a.seed[row], a.pos[row]) * kept;
        int k = 0, had = 0;
        for (int i = 0; i < SEGMENTS; i++) /* the last segment with a weight ends the walk whatever rounding did */
            had = sums[i] > 0 ? i : had;
        while (k < had && sums[k] <= u)
            u -= sums[k++];
        id = walk(z, ids, k * segment, segment, top, inv, from, u);
    }
    if (threadIdx.x == 0) {
        a.token[row] = id;
        a.out_token[row] = id;
        a.out_logp[row] = (to_float(z[id]) - top) * inv - logf(a.kept ? kept : total);
        a.pos[row]++;
    }
}

template <class T> static void sample_t(struct nn_queue *q, const struct nn_sample *s)
{
    launch(q, "sample", (sample_kernel<T>), s->B, THREADS, 0, *s);
}

void op_sample(struct nn_queue *q, enum nn_dtype dt, const struct nn_sample *s) { by_dtype(dt, sample_t, q, s); }

/* judge_kernels.cu - the judge's kernels: compare, mark, group, checksum. See judge_kernels.h for their arguments and
 * device.h for what they mean. One pass each; results do not depend on the number of blocks or on their order: integers
 * are added, minima, maxima and (error, index) pairs are merged, floating sums do not occur. Built without fused
 * multiply-add, as the host's twins in host_kernels.c. */
#include "device/judge_kernels.h"

#include <cuda_bf16.h>

extern "C" __device__ const int judge_cuda_version = CUDART_VERSION;

static __device__ __forceinline__ int64_t thread_index()
{
    return (int64_t)blockIdx.x * K_THREADS + threadIdx.x;
}

static __device__ __forceinline__ int64_t thread_count()
{
    return (int64_t)gridDim.x * K_THREADS;
}

static __device__ __forceinline__ void add_i64(int64_t *to, int64_t x)
{
    atomicAdd(reinterpret_cast<unsigned long long *>(to), static_cast<unsigned long long>(x));
}

static __device__ __forceinline__ int64_t shuffle_down(int64_t x, int by)
{
    return __shfl_down_sync(0xffffffffu, static_cast<long long>(x), by);
}

/* ---- compare ---- */

/* The block's tally, at thread 0. */
static __device__ void merge_block(el_tally &t)
{
    __shared__ el_tally all[K_THREADS];

    all[threadIdx.x] = t;
    __syncthreads();
    for (int half = K_THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half)
            el_tally_merge(&all[threadIdx.x], &all[threadIdx.x + half]);
        __syncthreads();
    }
    t = all[0];
}

static __device__ int64_t offset_of(const k_diff &a, const k_operand &o, int64_t i)
{
    int64_t at = 0;

    if (a.contiguous)
        return i;
    if (a.n <= INT32_MAX) { /* 32-bit division is several times cheaper */
        uint32_t rest = static_cast<uint32_t>(i);

        for (int d = a.ndim - 1; d > 0; d--) {
            uint32_t size = static_cast<uint32_t>(a.shape[d]), q = rest / size;

            at += static_cast<int64_t>(rest - q * size) * o.stride[d];
            rest = q;
        }
        return at + rest * o.stride[0];
    }
    for (int d = a.ndim - 1; d > 0; d--) {
        at += i % a.shape[d] * o.stride[d];
        i /= a.shape[d];
    }
    return at + i * o.stride[0];
}

struct element {
    double oracle, got;
};

/* One element of any dtype and layout. */
static __device__ bool check_any(const k_diff &a, el_tally &t, int64_t i, element &x)
{
    const void *op = reinterpret_cast<const void *>(a.oracle.ptr), *gp = reinterpret_cast<const void *>(a.got.ptr);
    int64_t oi = offset_of(a, a.oracle, i), gi = offset_of(a, a.got, i);

    x.oracle = el_value(op, a.oracle.dtype, oi);
    x.got = el_value(gp, a.got.dtype, gi);
    if (a.is_float)
        return el_float(&t, i, x.oracle, x.got, &a.tol);
    int64_t g = el_int(gp, a.got.dtype, gi);
    bool agrees = g == el_int(reinterpret_cast<const void *>(a.eager.ptr), a.eager.dtype, offset_of(a, a.eager, i)) ||
                  (a.oracle_counts && g == el_int(op, a.oracle.dtype, oi));

    return el_exact(&t, i, x.oracle, x.got, agrees);
}

static __device__ element read_any(const k_diff &a, int64_t i)
{
    return {el_value(reinterpret_cast<const void *>(a.oracle.ptr), a.oracle.dtype, offset_of(a, a.oracle, i)),
            el_value(reinterpret_cast<const void *>(a.got.ptr), a.got.dtype, offset_of(a, a.got, i))};
}

/* The last block to arrive merges all partial tallies and looks up the values of the first and the worst element. */
static __device__ void finish(const k_diff &a, el_tally &t)
{
    el_tally *partial = reinterpret_cast<el_tally *>(a.partial);
    uint32_t *arrivals = reinterpret_cast<uint32_t *>(a.arrivals);
    __shared__ bool last;

    merge_block(t);
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = t;
        __threadfence();
        last = atomicAdd(arrivals, 1u) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last)
        return;
    __threadfence();
    el_tally_init(&t);
    for (unsigned b = threadIdx.x; b < gridDim.x; b += K_THREADS) {
        el_tally p = partial[b];

        el_tally_merge(&t, &p);
    }
    merge_block(t);
    if (threadIdx.x == 0) {
        k_diff_result r = {t, 0, 0, 0, 0};

        if (t.n_bad) {
            element first = read_any(a, t.first), worst = read_any(a, t.worst);

            r.first_oracle = first.oracle, r.first_got = first.got;
            r.worst_oracle = worst.oracle, r.worst_got = worst.got;
        }
        *reinterpret_cast<k_diff_result *>(a.result) = r;
        *arrivals = 0;
    }
}

extern "C" __global__ void __launch_bounds__(K_THREADS) judge_diff_any(const __grid_constant__ k_diff a)
{
    el_tally t;
    element x;

    el_tally_init(&t);
    for (int64_t i = thread_index(); i < a.n; i += thread_count())
        check_any(a, t, i, x);
    finish(a, t);
}

static __device__ __forceinline__ double value(float x) { return x; }
static __device__ __forceinline__ double value(double x) { return x; }
static __device__ __forceinline__ double value(__half x) { return __half2float(x); }
static __device__ __forceinline__ double value(__nv_bfloat16 x) { return __bfloat162float(x); }

template <class T, int V> struct alignas(sizeof(T) * V) value_pack {
    T v[V];
};

/* Data is read once: it need not stay in any cache. */
template <class T> static __device__ __forceinline__ T load_once(const T *p)
{
    if constexpr (sizeof(T) == 2) {
        unsigned short b = __ldcs(reinterpret_cast<const unsigned short *>(p));
        return *reinterpret_cast<T *>(&b);
    } else if constexpr (sizeof(T) == 4) {
        unsigned b = __ldcs(reinterpret_cast<const unsigned *>(p));
        return *reinterpret_cast<T *>(&b);
    } else if constexpr (sizeof(T) == 8) {
        uint2 b = __ldcs(reinterpret_cast<const uint2 *>(p));
        return *reinterpret_cast<T *>(&b);
    } else {
        static_assert(sizeof(T) == 16, "a load of at most 16 bytes");
        uint4 b = __ldcs(reinterpret_cast<const uint4 *>(p));
        return *reinterpret_cast<T *>(&b);
    }
}

/* Contiguous floating tensors: U packs of V elements per thread are in flight. */
template <class G, class O, int V, int U>
static __device__ __forceinline__ void diff_float(const k_diff &a, el_tally &t)
{
    using gp = value_pack<G, V>;
    using op = value_pack<O, V>;
    const gp *got = reinterpret_cast<const gp *>(a.got.ptr);
    const op *oracle = reinterpret_cast<const op *>(a.oracle.ptr);
    const el_tolerance tol = a.tol;
    const int64_t packs = a.n / V, step = static_cast<int64_t>(gridDim.x) * K_THREADS * U;
    int64_t base = static_cast<int64_t>(blockIdx.x) * K_THREADS * U + threadIdx.x;

    for (; base + (U - 1) * K_THREADS < packs; base += step) {
        gp g[U];
        op o[U];

#pragma unroll
        for (int u = 0; u < U; u++) {
            g[u] = load_once(got + base + u * K_THREADS);
            o[u] = load_once(oracle + base + u * K_THREADS);
        }
#pragma unroll
        for (int u = 0; u < U; u++)
#pragma unroll
            for (int v = 0; v < V; v++)
                el_float(&t, (base + u * K_THREADS) * V + v, value(o[u].v[v]), value(g[u].v[v]), &tol);
    }
    for (; base < packs; base += K_THREADS) /* the last, unfinished step of this thread */
        for (int v = 0; v < V; v++)
            el_float(&t, base * V + v, value(oracle[base].v[v]), value(got[base].v[v]), &tol);
    if (packs * V < a.n && thread_index() == 0) {
        el_tally rest;

        el_tally_init(&rest); /* of its own: a tally's elements rise */
        for (int64_t i = packs * V; i < a.n; i++)
            el_float(&rest, i, value(reinterpret_cast<const O *>(oracle)[i]),
                     value(reinterpret_cast<const G *>(got)[i]), &tol);
        el_tally_merge(&t, &rest);
    }
}

/* Where both operands have one short type, arithmetic costs more than memory. Most elements are dull (el_dull): a pack
 * of them is passed over without a branch. Bounds are shared within the warp whenever one of its threads raised its
 * own. */
static __device__ double warp_max(double x) /* x >= 0: its bits order as integers */
{
    uint64_t bits = el_f64_bits(x);
    uint32_t high = static_cast<uint32_t>(bits >> 32), top = __reduce_max_sync(0xffffffffu, high);
    uint32_t low = __reduce_max_sync(0xffffffffu, high == top ? static_cast<uint32_t>(bits) : 0);

    return el_bits_f64(static_cast<uint64_t>(top) << 32 | low);
}

/* The elements of four bytes, in order. */
template <class T> struct word_of;
template <> struct word_of<float> {
    static constexpr int n = 1;
    static __device__ __forceinline__ float at(uint32_t w, int) { return __uint_as_float(w); }
};
template <> struct word_of<__half> {
    static constexpr int n = 2;
    static __device__ __forceinline__ float at(uint32_t w, int k)
    {
        float2 v = __half22float2(*reinterpret_cast<__half2 *>(&w));
        return k ? v.y : v.x;
    }
};
template <> struct word_of<__nv_bfloat16> {
    static constexpr int n = 2;
    static __device__ __forceinline__ float at(uint32_t w, int k)
    {
        return __uint_as_float(k ? w & 0xffff0000u : w << 16);
    }
};

struct words {
    uint32_t v[4];
};

template <class T>
static __device__ __forceinline__ bool dull_pack(const words &o, const words &g, const el_bounds &b,
                                                 const el_tolerance &tol)
{
    bool dull = true;

#pragma unroll
    for (int w = 0; w < 4; w++)
#pragma unroll
        for (int k = 0; k < word_of<T>::n; k++)
            dull = dull & el_dull(word_of<T>::at(o.v[w], k), word_of<T>::at(g.v[w], k), &b, &tol);
    return dull;
}

template <class T, int U> static __device__ __forceinline__ void diff_filtered(const k_diff &a, el_tally &t)
{
    constexpr int V = 16 / sizeof(T);
    const words *gots = reinterpret_cast<const words *>(a.got.ptr),
                *oracles = reinterpret_cast<const words *>(a.oracle.ptr);
    const el_tolerance tol = a.tol;
    const int64_t packs = a.n / V, step = static_cast<int64_t>(gridDim.x) * K_THREADS * U;
    el_bounds bounds = {0, 0};

    for (int64_t from = static_cast<int64_t>(blockIdx.x) * K_THREADS * U; from < packs; from += step) { /* by warps */
        int64_t base = from + threadIdx.x;
        words g[U], o[U];
        unsigned odd = 0;

#pragma unroll
        for (int u = 0; u < U; u++) { /* beyond the end: zeros, which el_float would find right; left out below */
            bool inside = base + u * K_THREADS < packs;

            g[u] = inside ? load_once(gots + base + u * K_THREADS) : words{};
            o[u] = inside ? load_once(oracles + base + u * K_THREADS) : words{};
        }
#pragma unroll
        for (int u = 0; u < U; u++)
            odd |= (dull_pack<T>(o[u], g[u], bounds, tol) ? 0u : 1u) << u;
#pragma unroll
        for (int u = 0; u < U; u++) {
            if (!(odd >> u & 1) || base + u * K_THREADS >= packs)
                continue;
#pragma unroll 1
            for (int w = 0; w < 4; w++) {
                uint32_t ow = w == 0 ? o[u].v[0] : w == 1 ? o[u].v[1] : w == 2 ? o[u].v[2] : o[u].v[3];
                uint32_t gw = w == 0 ? g[u].v[0] : w == 1 ? g[u].v[1] : w == 2 ? g[u].v[2] : g[u].v[3];

#pragma unroll
                for (int k = 0; k < word_of<T>::n; k++)
                    el_float(&t, (base + u * K_THREADS) * V + w * word_of<T>::n + k, word_of<T>::at(ow, k),
                             word_of<T>::at(gw, k), &tol);
            }
        }
        if (__any_sync(0xffffffffu, odd != 0))
            bounds = el_bounds_of(warp_max(t.max_abs), warp_max(t.max_rel));
    }
    if (packs * V < a.n && thread_index() == 0) {
        const T *got = reinterpret_cast<const T *>(gots), *oracle = reinterpret_cast<const T *>(oracles);
        el_tally rest;

        el_tally_init(&rest);
        for (int64_t i = packs * V; i < a.n; i++)
            el_float(&rest, i, value(oracle[i]), value(got[i]), &tol);
        el_tally_merge(&t, &rest);
    }
}

template <class G, class O> struct same_short {
    static constexpr bool yes = false;
};
template <class G> struct same_short<G, G> {
    static constexpr bool yes = sizeof(G) <= 4;
};

template <class G, class O> static __device__ __forceinline__ void diff_contiguous(const k_diff &a)
{
    el_tally t;

    el_tally_init(&t);
    if constexpr (same_short<G, O>::yes) {
        if (a.wide)
            diff_filtered<G, 2>(a, t);
        else
            diff_float<G, O, 1, 4>(a, t);
    } else if (a.vector) {
        diff_float<G, O, 2, 4>(a, t);
    } else {
        diff_float<G, O, 1, 4>(a, t);
    }
    finish(a, t);
}

#define DIFF(name, G, O)                                                                                               \
    extern "C" __global__ void __launch_bounds__(K_THREADS) name(const __grid_constant__ k_diff a)                     \
    {                                                                                                                  \
        diff_contiguous<G, O>(a);                                                                                      \
    }
DIFF(judge_diff_f16_f64, __half, double)
DIFF(judge_diff_bf16_f64, __nv_bfloat16, double)
DIFF(judge_diff_f32_f64, float, double)
DIFF(judge_diff_f64_f64, double, double)
DIFF(judge_diff_f16_f16, __half, __half)
DIFF(judge_diff_bf16_bf16, __nv_bfloat16, __nv_bfloat16)
DIFF(judge_diff_f32_f32, float, float)

/* Integers: 16 equal bytes hold no error; only where they differ are elements looked at. */
extern "C" __global__ void __launch_bounds__(K_THREADS) judge_diff_exact(const __grid_constant__ k_diff a)
{
    const int size = a.got.dtype <= EL_I8 ? 1 : a.got.dtype == EL_I16 ? 2 : a.got.dtype == EL_I32 ? 4 : 8;
    const int per = 16 / size;
    const int64_t packs = a.n / per;
    const uint4 *got = reinterpret_cast<const uint4 *>(a.got.ptr),
                *oracle = reinterpret_cast<const uint4 *>(a.oracle.ptr);
    el_tally t;
    element x;

    el_tally_init(&t);
#pragma unroll 4
    for (int64_t p = thread_index(); p < packs; p += thread_count()) {
        uint4 g = load_once(got + p), o = load_once(oracle + p);

        if ((g.x ^ o.x) | (g.y ^ o.y) | (g.z ^ o.z) | (g.w ^ o.w))
            for (int k = 0; k < per; k++)
                check_any(a, t, p * per + k, x);
    }
    for (int64_t i = packs * per + thread_index(); i < a.n; i += thread_count())
        check_any(a, t, i, x);
    finish(a, t);
}

/* ---- where the wrong ones are ---- */

extern "C" __global__ void __launch_bounds__(K_THREADS) judge_mark(const __grid_constant__ k_mark a)
{
    uint32_t *mask = reinterpret_cast<uint32_t *>(a.mask);
    const int64_t padded = (a.diff.n + 31) / 32 * 32;
    uint32_t held = EL_RELATIONS;
    el_tally t;
    element x;

    el_tally_init(&t);
    for (int64_t i = thread_index(); i < padded; i += thread_count()) { /* whole warps: padded is a multiple of 32 */
        bool bad = i < a.diff.n && !check_any(a.diff, t, i, x);
        uint32_t word = __ballot_sync(0xffffffffu, bad);

        if (bad)
            held &= el_relation(x.oracle, x.got, a.first_oracle, a.first_got);
        if ((i & 31) == 0)
            mask[i / 32] = word;
    }
    held = __reduce_and_sync(0xffffffffu, held);
    if (threadIdx.x % 32 == 0 && held != EL_RELATIONS)
        atomicAnd(reinterpret_cast<uint32_t *>(a.relations), held);
}

/* Bits [from, to) of the mask that are set. */
static __device__ int64_t count_bits(const uint32_t *mask, int64_t from, int64_t to)
{
    int64_t n = 0;

    for (int64_t w = from / 32; w * 32 < to; w++) {
        uint32_t bits = mask[w];

        if (w * 32 < from)
            bits &= 0xffffffffu << (from % 32);
        if (to - w * 32 < 32)
            bits &= (1u << (to - w * 32)) - 1;
        n += __popc(bits);
    }
    return n;
}

extern "C" __global__ void __launch_bounds__(K_THREADS) judge_group_count(const __grid_constant__ k_group_count a)
{
    const uint32_t *mask = reinterpret_cast<const uint32_t *>(a.mask);
    unsigned long long *counts = reinterpret_cast<unsigned long long *>(a.counts);
    __shared__ uint32_t near[K_HISTOGRAM]; /* a block sees fewer than 2^32 elements of one group */
    const bool small = a.width <= K_HISTOGRAM;

    for (int k = threadIdx.x; small && k < a.width; k += K_THREADS)
        near[k] = 0;
    __syncthreads();
    for (int64_t item = thread_index(); item < a.items; item += thread_count()) {
        int64_t run = item / a.pieces, k = run % a.width;
        int64_t begin = (run / a.width * a.n_groups + a.from + k) * a.inner, end = begin + a.inner;
        int64_t bits, from = begin + item % a.pieces * a.piece, to = from + a.piece < end ? from + a.piece : end;

        bits = from < a.n ? count_bits(mask, from, to < a.n ? to : a.n) : 0;
        if (bits && small)
            atomicAdd(&near[k], static_cast<uint32_t>(bits));
        else if (bits)
            atomicAdd(counts + k, static_cast<unsigned long long>(bits));
    }
    __syncthreads();
    for (int k = threadIdx.x; small && k < a.width; k += K_THREADS)
        if (near[k])
            atomicAdd(counts + k, static_cast<unsigned long long>(near[k]));
}

extern "C" __global__ void __launch_bounds__(K_THREADS) judge_group_sum(const __grid_constant__ k_group_sum a)
{
    const int64_t *counts = reinterpret_cast<const int64_t *>(a.counts);
    uint32_t *wrong = reinterpret_cast<uint32_t *>(a.wrong);
    k_group_result *r = reinterpret_cast<k_group_result *>(a.result);
    const int64_t padded = (a.width + 31) / 32 * 32;
    int64_t n_bad = 0, first = INT64_MAX, last = -1, stray = 0;

    for (int64_t k = thread_index(); k < padded; k += thread_count()) {
        int64_t n = k < a.width ? counts[k] : 0;
        bool bad = k < a.width && n * 10 >= a.per * 8;
        uint32_t word = __ballot_sync(0xffffffffu, bad);

        if (k % 32 == 0)
            wrong[(a.from + k) / 32] = word;
        if (bad) {
            n_bad++;
            first = first < a.from + k ? first : a.from + k;
            last = a.from + k;
        } else {
            stray += n;
        }
    }
    for (int by = 16; by > 0; by /= 2) {
        int64_t f = shuffle_down(first, by), l = shuffle_down(last, by);

        n_bad += shuffle_down(n_bad, by);
        stray += shuffle_down(stray, by);
        first = f < first ? f : first;
        last = l > last ? l : last;
    }
    if (threadIdx.x % 32 == 0) {
        if (n_bad) {
            add_i64(&r->n_bad, n_bad);
            atomicMin(reinterpret_cast<long long *>(&r->first), static_cast<long long>(first));
            atomicMax(reinterpret_cast<long long *>(&r->last), static_cast<long long>(last));
        }
        if (stray)
            add_i64(&r->stray, stray);
    }
}

extern "C" __global__ void __launch_bounds__(K_THREADS) judge_group_step(const __grid_constant__ k_group_step a)
{
    const uint32_t *wrong = reinterpret_cast<const uint32_t *>(a.wrong);
    bool uneven = false;

    for (int64_t k = thread_index(); k < a.n_groups; k += thread_count())
        uneven |= (wrong[k / 32] >> (k % 32) & 1) && (k - a.first) % a.step != 0;
    if (uneven)
        reinterpret_cast<k_group_result *>(a.result)->uneven = 1; /* all writers write the same */
}

/* ---- checksum ---- */

extern "C" __global__ void __launch_bounds__(K_THREADS) judge_checksum(const __grid_constant__ k_checksum a)
{
    const uint8_t *p = reinterpret_cast<const uint8_t *>(a.p);
    const int64_t whole = a.p % 8 ? 0 : a.n / 8, words = (a.n + 7) / 8; /* the others are read byte by byte */
    uint64_t sum = 0;

#pragma unroll 4
    for (int64_t i = thread_index(); i < whole; i += thread_count())
        sum += el_mix(__ldcs(reinterpret_cast<const unsigned long long *>(p) + i), a.first + i);
    for (int64_t i = whole + thread_index(); i < words; i += thread_count())
        sum += el_mix(el_word(p, i * 8, a.n), a.first + i);
    for (int by = 16; by > 0; by /= 2)
        sum += shuffle_down(sum, by);
    if (threadIdx.x % 32 == 0)
        atomicAdd(reinterpret_cast<unsigned long long *>(a.result), sum);
}

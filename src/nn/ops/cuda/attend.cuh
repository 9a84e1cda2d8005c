/* attend.cuh - attention of one query a head over cached keys and values, as a step of generation needs it. A team of
 * LANES = dim / 8 lanes holds one position, eight elements each, for the G query heads that share it. A team takes
 * every so many positions, N at a time: all on their way before the first is used, and one new maximum for N. Scores
 * carry log2 e, so that powers are of two. */
#ifndef MC_NN_ATTEND_CUH
#define MC_NN_ATTEND_CUH

#include "nn/ops/cuda/warp.cuh"

#define LOG2E 1.4426950408889634f

/* Eight elements as they lie in memory. */
template <class T> struct eight {
    uint4 v[sizeof(T) / 2];
};
template <class T> __device__ __forceinline__ struct eight<T> eight_at(const T *p)
{
    struct eight<T> r;

    for (size_t i = 0; i < sizeof(T) / 2; i++)
        r.v[i] = ((const uint4 *)p)[i];
    return r;
}
__device__ __forceinline__ void unpack8(uint4 a, float *x)
{
    x[0] = low2(a.x), x[1] = high2(a.x), x[2] = low2(a.y), x[3] = high2(a.y);
    x[4] = low2(a.z), x[5] = high2(a.z), x[6] = low2(a.w), x[7] = high2(a.w);
}
__device__ __forceinline__ void unpack(const struct eight<bf16> &a, float *x) { unpack8(a.v[0], x); }
__device__ __forceinline__ void unpack(const struct eight<float> &a, float *x)
{
    for (int i = 0; i < 2; i++) {
        x[4 * i] = __uint_as_float(a.v[i].x), x[4 * i + 1] = __uint_as_float(a.v[i].y);
        x[4 * i + 2] = __uint_as_float(a.v[i].z), x[4 * i + 3] = __uint_as_float(a.v[i].w);
    }
}

/* What a lane knows of its team's positions so far: of each head the query's share, values, maximum and sum. */
template <int G> struct attending {
    float x[G][8], acc[G][8], m[G], l[G];
};

template <int G> __device__ __forceinline__ void attend_begin(struct attending<G> &a)
{
#pragma unroll
    for (int g = 0; g < G; g++) {
        for (int j = 0; j < 8; j++)
            a.acc[g][j] = 0;
        a.m[g] = -INFINITY, a.l[g] = 0;
    }
}

/* N positions of a team; those that are not 'there' count nothing. All lanes of a warp come here together. */
template <class T, int LANES, int G, int N>
__device__ __forceinline__ void attend_to(struct attending<G> &a, const struct eight<T> *k, const struct eight<T> *v,
                                          const bool *there)
{
    float s[G][N], e[8];

#pragma unroll
    for (int u = 0; u < N; u++) {
        unpack(k[u], e);
#pragma unroll
        for (int g = 0; g < G; g++) {
            s[g][u] = 0;
            for (int j = 0; j < 8; j++)
                s[g][u] += a.x[g][j] * e[j];
        }
    }
#pragma unroll
    for (int g = 0; g < G; g++) {
        float top = a.m[g];
#pragma unroll
        for (int u = 0; u < N; u++) {
            for (int i = LANES / 2; i; i >>= 1)
                s[g][u] += __shfl_xor_sync(FULL_WARP, s[g][u], i);
            s[g][u] = there[u] ? s[g][u] : -INFINITY;
            top = fmaxf(top, s[g][u]);
        }
        float base = top > -INFINITY ? top : 0, shrink = exp2_short(a.m[g] - base);
        a.m[g] = top;
        a.l[g] *= shrink;
#pragma unroll
        for (int u = 0; u < N; u++) {
            s[g][u] = exp2_short(s[g][u] - base);
            a.l[g] += s[g][u];
        }
        if (shrink != 1) /* most positions bring no new maximum */
            for (int j = 0; j < 8; j++)
                a.acc[g][j] *= shrink;
    }
#pragma unroll
    for (int u = 0; u < N; u++) {
        unpack(v[u], e);
#pragma unroll
        for (int g = 0; g < G; g++)
            for (int j = 0; j < 8; j++)
                a.acc[g][j] += s[g][u] * e[j];
    }
}

/* Positions first, first + teams and so on, below 'to', which is above 0; k and v: this lane's elements of position
 * 0. */
template <class T, int LANES, int G, int N>
__device__ __forceinline__ void attend_some(struct attending<G> &a, const T *k, const T *v, size_t width, int first,
                                            int teams, int to)
{
    struct eight<T> kr[N], vr[N];
    bool there[N];

#pragma unroll
    for (int u = 0; u < N; u++) {
        int p = first + u * teams;
        there[u] = p < to;
        size_t at = (size_t)(there[u] ? p : to - 1) * width;
        kr[u] = eight_at(k + at);
        vr[u] = eight_at(v + at);
    }
    attend_to<T, LANES, G, N>(a, kr, vr, there);
}

/* Teams of a warp become one, which goes to shared memory: sm, sl (warps, G), so (warps, G, LANES * 8). */
template <int LANES, int G>
__device__ __forceinline__ void attend_merge(struct attending<G> &a, float *sm, float *sl, float *so)
{
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;

#pragma unroll
    for (int g = 0; g < G; g++) {
        float top = a.m[g];
        for (int i = LANES; i < 32; i <<= 1)
            top = fmaxf(top, __shfl_xor_sync(FULL_WARP, top, i));
        float f = a.m[g] > -INFINITY ? exp2_short(a.m[g] - top) : 0;
        a.l[g] *= f;
        for (int j = 0; j < 8; j++)
            a.acc[g][j] *= f;
        for (int i = LANES; i < 32; i <<= 1) {
            a.l[g] += __shfl_xor_sync(FULL_WARP, a.l[g], i);
            for (int j = 0; j < 8; j++)
                a.acc[g][j] += __shfl_xor_sync(FULL_WARP, a.acc[g][j], i);
        }
        if (lane < LANES) {
            sm[warp * G + g] = top, sl[warp * G + g] = a.l[g];
            for (int j = 0; j < 8; j++)
                so[(warp * G + g) * LANES * 8 + lane * 8 + j] = a.acc[g][j];
        }
    }
}

/* Of head g all warps in order: its element c, maximum and sum; what is missing is the division by the sum. */
template <int G>
__device__ __forceinline__ float attend_total(int warps, int dim, const float *sm, const float *sl, const float *so,
                                              int g, int c, float *best, float *sum)
{
    float top = -INFINITY, out = 0;

    *sum = 0;
    for (int w = 0; w < warps; w++)
        top = fmaxf(top, sm[w * G + g]);
    for (int w = 0; w < warps; w++) {
        float f = sm[w * G + g] > -INFINITY ? exp2_short(sm[w * G + g] - top) : 0;
        *sum += f * sl[w * G + g];
        out += f * so[(w * G + g) * dim + c];
    }
    *best = top;
    return out;
}

#endif

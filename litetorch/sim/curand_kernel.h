/* curand_kernel.h as candidates include it: Philox-4x32-10 behind every generator type. Numbers are of the right
 * distribution and reproducible, but not cuRAND's own sequence. */
#pragma once
#include <cuda_runtime.h>

struct curandStatePhilox4_32_10 {
    unsigned key[2], ctr[4], out[4];
    int at;
    float spare;
    bool has_spare;
};
typedef curandStatePhilox4_32_10 curandStatePhilox4_32_10_t, curandState, curandState_t, curandStateXORWOW_t,
    curandStateXORWOW;

inline void lt_philox(curandState *s)
{
    unsigned c[4] = {s->ctr[0], s->ctr[1], s->ctr[2], s->ctr[3]}, k0 = s->key[0], k1 = s->key[1];
    for (int i = 0; i < 10; i++, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
        unsigned long long a = 0xD2511F53ull * c[0], b = 0xCD9E8D57ull * c[2];
        unsigned n[4] = {unsigned(b >> 32) ^ c[1] ^ k0, unsigned(b), unsigned(a >> 32) ^ c[3] ^ k1, unsigned(a)};
        c[0] = n[0], c[1] = n[1], c[2] = n[2], c[3] = n[3];
    }
    s->out[0] = c[0], s->out[1] = c[1], s->out[2] = c[2], s->out[3] = c[3];
    s->at = 0;
    if (!++s->ctr[0])
        ++s->ctr[1];
}
inline void curand_init(unsigned long long seed, unsigned long long seq, unsigned long long offset, curandState *s)
{
    s->key[0] = unsigned(seed), s->key[1] = unsigned(seed >> 32);
    s->ctr[0] = unsigned(offset / 4), s->ctr[1] = unsigned(offset / 4 >> 32);
    s->ctr[2] = unsigned(seq), s->ctr[3] = unsigned(seq >> 32);
    s->has_spare = false;
    lt_philox(s);
    s->at = int(offset % 4);
}
inline unsigned curand(curandState *s)
{
    if (s->at == 4)
        lt_philox(s);
    return s->out[s->at++];
}
inline float curand_uniform(curandState *s) { return (float(curand(s)) + 1.0f) * 2.3283064e-10f; }
inline double curand_uniform_double(curandState *s) { return (double(curand(s)) + 1.0) * 2.3283064365386963e-10; }
inline float curand_normal(curandState *s)
{
    if (s->has_spare) {
        s->has_spare = false;
        return s->spare;
    }
    float r = sqrtf(-2.0f * logf(curand_uniform(s))), a = 6.2831853f * curand_uniform(s);
    s->spare = r * cosf(a);
    s->has_spare = true;
    return r * sinf(a);
}
inline float4 curand_uniform4(curandState *s)
{
    float4 r;
    r.x = curand_uniform(s), r.y = curand_uniform(s), r.z = curand_uniform(s), r.w = curand_uniform(s);
    return r;
}
inline float4 curand_normal4(curandState *s)
{
    float4 r;
    r.x = curand_normal(s), r.y = curand_normal(s), r.z = curand_normal(s), r.w = curand_normal(s);
    return r;
}

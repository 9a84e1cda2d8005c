/* rng.h - reproducible random numbers: xoshiro256** seeded by splitmix64 (Blackman & Vigna, 2018).
 * Same seed and stream, same numbers, on every machine. The state is plain data: checkpoints store it as it is. */
#ifndef MC_RNG_H
#define MC_RNG_H

#include <stddef.h>
#include <stdint.h>

struct rng {
    uint64_t s[4];
};

void rng_seed(struct rng *r, uint64_t seed, uint64_t stream); /* streams of one seed are independent */
uint64_t rng_u64(struct rng *r);
uint64_t rng_below(struct rng *r, uint64_t n); /* uniform in [0, n), n > 0, unbiased */
double rng_f64(struct rng *r);                 /* uniform in [0, 1) */
double rng_normal(struct rng *r);              /* N(0,1); two uniforms a call, no hidden state */
void rng_shuffle(struct rng *r, void *v, size_t n, size_t size);

#endif

/* rng.c - see rng.h. */
#include "base/rng.h"

#include <math.h>
#include <string.h>

/* The next number of SplitMix64, whose state x moves on. */
static uint64_t rng_splitmix(uint64_t *x)
{
    uint64_t z = (*x += 0x9e3779b97f4a7c15u);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

void rng_seed(struct rng *r, uint64_t seed, uint64_t stream)
{
    uint64_t x = seed;

    x = rng_splitmix(&x) ^ (stream * 0xd1342543de82ef95u + 1);
    for (int i = 0; i < 4; i++)
        r->s[i] = rng_splitmix(&x);
}

static uint64_t rng_rotl(uint64_t x, int k)
{
    return (x << k) | (x >> (64 - k));
}

uint64_t rng_u64(struct rng *r)
{
    uint64_t *s = r->s, out = rng_rotl(s[1] * 5, 7) * 9, t = s[1] << 17;

    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rng_rotl(s[3], 45);
    return out;
}

uint64_t rng_below(struct rng *r, uint64_t n)
{
    uint64_t limit = -n % n, x; /* values below 2^64 mod n would be over-represented */

    do
        x = rng_u64(r);
    while (x < limit);
    return x % n;
}

double rng_f64(struct rng *r)
{
    return (double)(rng_u64(r) >> 11) * 0x1p-53;
}

double rng_normal(struct rng *r)
{
    double u = 1.0 - rng_f64(r), v = rng_f64(r); /* u in (0, 1]: the logarithm stays finite */

    return sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v);
}

void rng_shuffle(struct rng *r, void *v, size_t n, size_t size)
{
    unsigned char *p = v, tmp[256];

    for (size_t i = n; i > 1; i--) {
        size_t j = (size_t)rng_below(r, i);
        unsigned char *a = p + (i - 1) * size, *b = p + j * size;
        for (size_t off = 0; off < size && i - 1 != j; off += sizeof tmp) {
            size_t k = size - off < sizeof tmp ? size - off : sizeof tmp;
            memcpy(tmp, a + off, k);
            memcpy(a + off, b + off, k);
            memcpy(b + off, tmp, k);
        }
    }
}

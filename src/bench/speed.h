/* speed.h - what a verdict record says about speed, read in one place. */
#ifndef MC_BENCH_SPEED_H
#define MC_BENCH_SPEED_H

#include <jansson.h>
#include <stdbool.h>

enum speed_baseline { BASE_EAGER, BASE_COMPILE, N_BASELINES };

const char *baseline_key(enum speed_baseline b);  /* "eager", "compile" */
const char *baseline_name(enum speed_baseline b); /* "eager", "torch.compile" */

struct speed {
    bool timed;       /* there is a speedup, and the judge trusts it */
    bool untrusted;   /* there is one that it does not trust ("trusted":false): counted, never used */
    double point;     /* baseline time / candidate time */
    double lo, hi;    /* its 95 % interval; NaN where the record has none */
};

/* From performance.speedup_KEY and performance.speedup_KEY_ci ([lo, hi]). All zero and NaN without a measurement. */
struct speed verdict_speed(const json_t *verdict, enum speed_baseline b);

/* The value that Faster Rate compares: the lower bound where there is an interval, else the point; NaN when not
 * timed. */
double speed_claim(const struct speed *s);

/* The task itself cannot be judged here (its reference fails, is too large, ...): no candidate is to blame. */
bool verdict_is_skip(const json_t *verdict);

#endif

/* trivial.c - see trivial.h. */
#include "task/trivial.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

const char *trivial_name(enum trivial k)
{
    static const char *const names[N_TRIVIAL] = {"zeros", "ones", "a constant", "the input", "the last answer", "nan"};

    return names[k];
}

static double trivial_mean(const double *v, size_t n)
{
    double s = 0;

    for (size_t i = 0; i < n; i++)
        s += v[i] / (double)n;
    return s;
}

static bool trivial_fill(double *out, size_t n, double value)
{
    for (size_t i = 0; i < n; i++)
        out[i] = value;
    return true;
}

static bool trivial_copy(double *out, const double *from, size_t n)
{
    if (from)
        memcpy(out, from, n * sizeof *out);
    return from != NULL;
}

bool trivial_answer(enum trivial k, const struct trivial_case *c, double *out)
{
    switch (k) {
    case TRIVIAL_ZEROS: return trivial_fill(out, c->n, 0);
    case TRIVIAL_ONES: return trivial_fill(out, c->n, 1);
    case TRIVIAL_CONSTANT: return c->n > 1 && trivial_fill(out, c->n, trivial_mean(c->want, c->n));
    case TRIVIAL_INPUT: return trivial_copy(out, c->input, c->n);
    case TRIVIAL_STALE: return trivial_copy(out, c->last, c->n);
    case TRIVIAL_NAN: return trivial_fill(out, c->n, NAN);
    case N_TRIVIAL: break;
    }
    return false;
}

void battery_run(struct battery *b, const struct trivial_case *c,
                 bool (*passes)(enum trivial k, const double *got, void *ctx), void *ctx)
{
    double *out = xcalloc(c->n + 1, sizeof *out);

    for (enum trivial k = 0; k < N_TRIVIAL; k++) {
        if (b->asked[k] != b->passed[k] || (k == TRIVIAL_STALE && !c->last))
            continue;
        b->asked[k]++;
        b->passed[k] += trivial_answer(k, c, out) && passes(k, out, ctx);
    }
    free(out);
}

bool battery_passed(const struct battery *b, enum trivial k)
{
    return b->asked[k] > 0 && b->asked[k] == b->passed[k];
}

/* mixture.c - see mixture.h. */
#include "train/mixture.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/rng.h"

/* Kinds that a stage of the loop makes: a model that solves nothing, or all, leaves them empty, and the run goes on. */
static bool mixture_is_made_by_runs(const char *name, size_t n)
{
    static const char *const kinds[] = {"rft", "own", "repair", "review"};

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strlen(kinds[i]) == n && !strncmp(kinds[i], name, n))
            return true;
    return false;
}

/* Sets the share of one "NAME=VALUE" of mix. A kind that only runs make may be absent: the log says so. */
static int mixture_set_share(const struct dataset *d, const char *name, size_t n, const char *value, double *share,
                             struct err *e)
{
    char *end;
    double w = strtod(value, &end);

    if (end == value || (*end && *end != ',') || !(w >= 0 && w <= 1))
        return err_set(e, ERR_INPUT, "mix: '%.*s' wants its share of the tokens, 0 to 1, such as %.*s=0.4", (int)n,
                       name, (int)n, name);
    for (int k = 0; k < d->n_kinds; k++)
        if (strlen(d->kinds[k]) == n && !strncmp(d->kinds[k], name, n)) {
            share[k] = w;
            return 0;
        }
    if (mixture_is_made_by_runs(name, n)) {
        log_warn("mix: no record is of kind '%.*s'; the others share its part", (int)n, name);
        return 0;
    }
    return err_set(e, ERR_INPUT, "mix names the kind '%.*s', which no record has", (int)n, name);
}

/* share: -1 where the text does not name a kind. */
static int mixture_read_shares(const struct dataset *d, const char *text, double *share, struct err *e)
{
    for (int k = 0; k < DATA_MAX_KINDS; k++)
        share[k] = -1;
    while (text && *text) {
        size_t n = strcspn(text, "=,");

        if (text[n] != '=')
            return err_set(e, ERR_INPUT, "mix '%s' wants KIND=SHARE,...", text);
        if (mixture_set_share(d, text, n, text + n + 1, share, e) < 0)
            return -1;
        text += strcspn(text, ",");
        text += *text == ',';
    }
    return 0;
}

/* The sum of the positive shares. */
static double mixture_sum(const double *v)
{
    double s = 0;

    for (int k = 0; k < DATA_MAX_KINDS; k++)
        s += v[k] > 0 ? v[k] : 0;
    return s;
}

int mixture_shares(const struct dataset *d, const uint32_t *pick, size_t n_pick, const char *text, double *share,
                   struct err *e)
{
    double tokens[DATA_MAX_KINDS] = {0}, named, unnamed = 0;

    for (size_t i = 0; i < n_pick; i++)
        tokens[d->ex[pick[i]].kind] += d->ex[pick[i]].n;
    if (mixture_read_shares(d, text, share, e) < 0)
        return -1;
    if ((named = mixture_sum(share)) > 1 + 1e-9)
        return err_set(e, ERR_INPUT, "mix '%s' gives away %g of the tokens; shares sum to at most 1", text, named);
    for (int k = 0; k < DATA_MAX_KINDS; k++)
        unnamed += share[k] < 0 ? tokens[k] : 0;
    for (int k = 0; k < DATA_MAX_KINDS; k++)
        share[k] = tokens[k] == 0 ? 0 : share[k] >= 0 ? share[k] : (1 - named) * tokens[k] / unnamed;
    if (!((named = mixture_sum(share)) > 0))
        return err_set(e, ERR_INPUT, "no record has a share above 0; look at --mix");
    for (int k = 0; k < DATA_MAX_KINDS; k++)
        share[k] /= named;
    return 0;
}

void mixture_limit(const struct dataset *d, const uint32_t *pick, size_t n_pick, double *share, double run_tokens)
{
    double tokens[DATA_MAX_KINDS] = {0}, limit[DATA_MAX_KINDS], kept = 0, others = 0;

    for (size_t i = 0; i < n_pick; i++)
        tokens[d->ex[pick[i]].kind] += d->ex[pick[i]].n;
    for (int k = 0; k < DATA_MAX_KINDS; k++) {
        limit[k] = MIXTURE_PASSES * tokens[k] / run_tokens;
        if (!(share[k] > limit[k]) || !mixture_is_made_by_runs(d->kinds[k], strlen(d->kinds[k])))
            limit[k] = INFINITY, others += share[k];
    }
    for (int k = 0; k < DATA_MAX_KINDS && others > 0; k++)
        if (limit[k] < INFINITY) {
            log_warn("mix: %.0f tokens of kind '%s' would be shown %.0f times; its share is %.1f %%, not %.1f %%",
                     tokens[k], d->kinds[k], share[k] * run_tokens / tokens[k], 100 * limit[k], 100 * share[k]);
            share[k] = limit[k];
            kept += limit[k];
        }
    for (int k = 0; k < DATA_MAX_KINDS && others > 0; k++)
        if (!(limit[k] < INFINITY))
            share[k] *= (1 - kept) / others;
}

struct mixture_pass {
    uint32_t *ids;
    size_t n, at;
    bool begun;
};

/* A pass over the picked examples for each kind. */
static void mixture_split_kinds(struct mixture_pass *p, const struct dataset *d, const uint32_t *pick, size_t n_pick)
{
    for (int k = 0; k < DATA_MAX_KINDS; k++)
        p[k] = (struct mixture_pass){xcalloc(n_pick, sizeof(uint32_t)), 0, 0, false};
    for (size_t i = 0; i < n_pick; i++) {
        struct mixture_pass *q = &p[d->ex[pick[i]].kind];

        q->ids[q->n++] = pick[i];
    }
}

/* Stable: counts, places, copies. Difficulties beyond DIFFICULTIES count as that. An example without one keeps its
 * place. */
#define DIFFICULTIES 256
/* Sorts a pass's examples by difficulty; equal ones keep their order. */
static void mixture_sort_by_difficulty(struct mixture_pass *p, const struct dataset *d)
{
    size_t at[DIFFICULTIES + 1] = {0};
    uint32_t *sorted = xcalloc(p->n + 1, sizeof *sorted);

    for (int second = 0; second < 2; second++)
        for (size_t i = 0; i < p->n; i++) {
            int v = d->ex[p->ids[i]].difficulty;
            if (v < 0)
                continue;
            v = v >= DIFFICULTIES ? DIFFICULTIES - 1 : v;
            if (second)
                sorted[at[v]++] = p->ids[i];
            else
                for (int k = v + 1; k <= DIFFICULTIES; k++)
                    at[k]++;
        }
    for (size_t i = 0, next = 0; i < p->n; i++)
        if (d->ex[p->ids[i]].difficulty >= 0)
            p->ids[i] = sorted[next++];
    free(sorted);
}

/* The kind's next example; each pass is shuffled anew, the first one by difficulty if easy_first. */
static uint32_t mixture_next_of(struct mixture_pass *p, const struct dataset *d, bool easy_first, struct rng *r)
{
    if (p->at == 0)
        rng_shuffle(r, p->ids, p->n, sizeof *p->ids);
    if (easy_first && !p->begun)
        mixture_sort_by_difficulty(p, d);
    p->begun = true;
    uint32_t id = p->ids[p->at++];

    if (p->at == p->n)
        p->at = 0;
    return id;
}

/* The kind that is furthest behind its share. given: tokens so far; ahead: what is given out next, about. */
static int mixture_next_kind(const double *share, const double *given, double ahead)
{
    double total = ahead, most = 0;
    int best = -1;

    for (int k = 0; k < DATA_MAX_KINDS; k++)
        total += given[k];
    for (int k = 0; k < DATA_MAX_KINDS; k++)
        if (share[k] > 0 && (best < 0 || share[k] * total - given[k] > most))
            most = share[k] * total - given[k], best = k;
    return best;
}

void mixture_plan(struct mixture *m, const struct dataset *d, const uint32_t *pick, size_t n_pick, const double *share,
                  int64_t steps, int64_t batch_tokens, uint64_t seed, bool easy_first)
{
    struct mixture_pass p[DATA_MAX_KINDS];
    double given[DATA_MAX_KINDS] = {0};
    struct rng r;
    size_t n = 0, cap = 0;

    *m = (struct mixture){.steps = steps, .start = xcalloc((size_t)steps + 1, sizeof *m->start)};
    mixture_split_kinds(p, d, pick, n_pick);
    rng_seed(&r, seed, 17);
    for (int64_t s = 0; s < steps; s++) {
        for (int64_t tokens = 0; tokens == 0 || tokens < batch_tokens;) {
            int k = mixture_next_kind(share, given, (double)batch_tokens);
            if (n == cap)
                m->order = xrealloc(m->order, (cap = cap ? 2 * cap : 4096) * sizeof *m->order);
            m->order[n] = mixture_next_of(&p[k], d, easy_first, &r);
            given[k] += d->ex[m->order[n]].n;
            tokens += d->ex[m->order[n++]].n;
        }
        m->start[s + 1] = n;
    }
    for (int k = 0; k < DATA_MAX_KINDS; k++)
        free(p[k].ids);
}

void mixture_free(struct mixture *m)
{
    free(m->order);
    free(m->start);
    *m = (struct mixture){0};
}

/* mixture.c - see mixture.h. */
#include "train/mixture.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/rng.h"

/* Kinds that a stage of the loop makes: a model that solves nothing, or all, leaves them empty, and the run goes on. */
static bool is_made_by_runs(const char *name, size_t n)
{
    static const char *const kinds[] = {"rft", "own", "repair", "review"};

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strlen(kinds[i]) == n && !strncmp(kinds[i], name, n))
            return true;
    return false;
}

static int set_weight(const struct dataset *d, const char *name, size_t n, const char *value, double *weight,
                      struct err *e)
{
    char *end;
    double w = strtod(value, &end);

    if (end == value || (*end && *end != ',') || !(w >= 0 && w < 1e9))
        return err_set(e, ERR_INPUT, "mix weight of '%.*s' wants a number of at least 0", (int)n, name);
    for (int k = 0; k < d->n_kinds; k++)
        if (strlen(d->kinds[k]) == n && !strncmp(d->kinds[k], name, n)) {
            weight[k] = w;
            return 0;
        }
    if (is_made_by_runs(name, n)) {
        log_warn("mix: no record is of kind '%.*s'", (int)n, name);
        return 0;
    }
    return err_set(e, ERR_INPUT, "mix names the kind '%.*s', which no record has", (int)n, name);
}

int mixture_weights(const struct dataset *d, const char *text, double *weight, struct err *e)
{
    for (int k = 0; k < DATA_MAX_KINDS; k++)
        weight[k] = 1;
    while (text && *text) {
        size_t n = strcspn(text, "=,");

        if (text[n] != '=')
            return err_set(e, ERR_INPUT, "mix '%s' wants KIND=WEIGHT,...", text);
        if (set_weight(d, text, n, text + n + 1, weight, e) < 0)
            return -1;
        text += strcspn(text, ",");
        text += *text == ',';
    }
    return 0;
}

struct pass {
    uint32_t *ids;
    size_t n, at;
    bool begun;
};

static void split_kinds(struct pass *p, const struct dataset *d, const uint32_t *pick, size_t n_pick)
{
    for (int k = 0; k < DATA_MAX_KINDS; k++)
        p[k] = (struct pass){xcalloc(n_pick, sizeof(uint32_t)), 0, 0, false};
    for (size_t i = 0; i < n_pick; i++) {
        struct pass *q = &p[d->ex[pick[i]].kind];

        q->ids[q->n++] = pick[i];
    }
}

/* Stable: counts, places, copies. Difficulties beyond DIFFICULTIES count as that. An example without one keeps its
 * place. */
#define DIFFICULTIES 256
static void sort_by_difficulty(struct pass *p, const struct dataset *d)
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

static uint32_t next_of(struct pass *p, const struct dataset *d, bool easy_first, struct rng *r)
{
    if (p->at == 0)
        rng_shuffle(r, p->ids, p->n, sizeof *p->ids);
    if (easy_first && !p->begun)
        sort_by_difficulty(p, d);
    p->begun = true;
    uint32_t id = p->ids[p->at++];

    if (p->at == p->n)
        p->at = 0;
    return id;
}

static int draw_kind(const struct pass *p, const double *weight, double total, struct rng *r)
{
    double u = rng_f64(r) * total;
    int last = -1;

    for (int k = 0; k < DATA_MAX_KINDS; k++) {
        double w = weight[k] * (double)p[k].n;

        if (w <= 0)
            continue;
        last = k;
        if (u < w)
            return k;
        u -= w;
    }
    return last; // rounding only
}

int mixture_plan(struct mixture *m, const struct dataset *d, const uint32_t *pick, size_t n_pick, const double *weight,
                 int64_t steps, int64_t batch_tokens, uint64_t seed, bool easy_first, struct err *e)
{
    struct pass p[DATA_MAX_KINDS];
    struct rng r;
    double total = 0;
    size_t n = 0, cap = 0;

    *m = (struct mixture){.steps = steps};
    split_kinds(p, d, pick, n_pick);
    for (int k = 0; k < DATA_MAX_KINDS; k++)
        total += weight[k] * (double)p[k].n;
    m->start = xcalloc((size_t)steps + 1, sizeof *m->start);
    rng_seed(&r, seed, 17);
    for (int64_t s = 0; s < steps && total > 0; s++) {
        for (int64_t tokens = 0; tokens == 0 || tokens < batch_tokens;) {
            if (n == cap)
                m->order = xrealloc(m->order, (cap = cap ? 2 * cap : 4096) * sizeof *m->order);
            m->order[n] = next_of(&p[draw_kind(p, weight, total, &r)], d, easy_first, &r);
            tokens += d->ex[m->order[n++]].n;
        }
        m->start[s + 1] = n;
    }
    for (int k = 0; k < DATA_MAX_KINDS; k++)
        free(p[k].ids);
    if (total > 0)
        return 0;
    mixture_free(m);
    return err_set(e, ERR_INPUT, "no record has a weight above 0; look at --mix");
}

void mixture_free(struct mixture *m)
{
    free(m->order);
    free(m->start);
    *m = (struct mixture){0};
}

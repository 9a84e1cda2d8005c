/* recording_held.c - is an answer that somebody still holds overwritten by a later call? See recording.h. */
#include "eval/candidate/recording_parts.h"

#include <string.h>

#include "base/json.h"
#include "eval/candidate/job.h"

#define SPANS 64 /* of all held answers together, at most */

struct recording_span {
    uint64_t at, bytes;
    uint32_t call;
    char path[64];
};

struct recording_spans {
    const struct job *j;
    struct recording_span v[SPANS];
    size_t n;
    uint32_t call;
    size_t input; /* of a walk over inputs: the next one's number */
    bool meets;   /* of such a walk: an input lies where v[n - 1] does */
};

static bool recording_spans_meet(uint64_t a, uint64_t a_bytes, uint64_t b, uint64_t b_bytes)
{
    return a_bytes && b_bytes && a < b + b_bytes && b < a + a_bytes;
}

/* A callback of tree_each over a draw's inputs: does one of its two places meet the last span? */
static int recording_look_at_input(const json_t *leaf, const char *path, void *ctx, struct err *e)
{
    struct recording_spans *s = ctx;
    const struct recording_span *last = &s->v[s->n - 1];
    struct recording_place p;

    (void)path;
    if (!tree_is_tensor(leaf) || place_tensor(leaf, &p, e) < 0)
        return tree_is_tensor(leaf) ? -1 : 0;
    for (uint32_t k = 0; k < 2; k++)
        s->meets |= recording_spans_meet(last->at, last->bytes, recording_input_at(s->j, s->input, k), p.span);
    s->input++;
    return 0;
}

/* Does the last span lie in an input, or in a parameter or buffer? There the task decides what may be there. */
static bool recording_is_bound(struct recording_spans *s, const struct ref_draw *d)
{
    const struct recording *l = s->j->recording;
    const struct recording_span *last = &s->v[s->n - 1];

    s->meets = false;
    s->input = 0;
    if (tree_each(d->inputs.tree, recording_look_at_input, s, NULL) < 0)
        return true;
    for (size_t i = 0; i < l->n_bindings; i++)
        s->meets |= recording_spans_meet(last->at, last->bytes, l->bindings[i].address, l->bindings[i].bytes);
    return s->meets;
}

/* A callback of tree_each over a call's answer: adds where its tensors lie. */
static int recording_add_span(const json_t *leaf, const char *path, void *ctx, struct err *e)
{
    struct recording_spans *s = ctx;
    struct recording_place p;

    if (!tree_is_tensor(leaf) || s->n == SPANS || place_tensor(leaf, &p, e) < 0 || !p.span || !p.address)
        return 0;
    s->v[s->n] = (struct recording_span){.at = p.address, .bytes = p.span, .call = s->call};
    snprintf(s->v[s->n++].path, sizeof s->v[0].path, "%s", path);
    return 0;
}

/* The first span of another call that the last one lies upon; NULL: it lies apart from all. */
static const struct recording_span *recording_same_place(const struct recording_spans *s)
{
    const struct recording_span *last = &s->v[s->n - 1];

    for (size_t i = 0; i + 1 < s->n; i++)
        if (s->v[i].call != last->call && recording_spans_meet(last->at, last->bytes, s->v[i].at, s->v[i].bytes))
            return &s->v[i];
    return NULL;
}

bool recording_overwrites(const struct job *j, const struct ref_draw *d, uint32_t *ret_calls, char *path, size_t size)
{
    struct recording *l = j->recording;
    struct recording_spans s = {.j = j}, one = {.j = j};
    const struct recording_span *before;

    for (uint32_t call = 1; call <= RECORDING_HELD && call <= l->calls; call++) {
        const json_t *tree = *recording_output_at(l, call);

        if (!tree || recording_is_others(l, call))
            continue;
        one.n = 0;
        one.call = call;
        tree_each(tree, recording_add_span, &one, NULL);
        for (size_t i = 0; i < one.n && s.n < SPANS; i++) {
            s.v[s.n++] = one.v[i];
            if (recording_is_bound(&s, d)) {
                s.n--;
            } else if ((before = recording_same_place(&s))) {
                *ret_calls = call - before->call;
                snprintf(path, size, "%s", one.v[i].path);
                return true;
            }
        }
    }
    return false;
}

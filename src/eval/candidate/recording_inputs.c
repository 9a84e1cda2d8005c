/* recording_inputs.c - a draw's inputs on the executor. See recording.h. */
#include "eval/candidate/recording_parts.h"

#include "base/mem.h"
#include "eval/candidate/job.h"

uint8_t *recording_input_bytes(const struct ref_draw *d, const json_t *leaf, struct recording_place *p,
                               struct err *e)
{
    struct tensor t;

    if (tensor_parse(leaf, (const uint8_t *)d->inputs.bytes, d->inputs.n, &t, e) < 0 || place_tensor(leaf, p, e) < 0)
        return NULL;
    return recording_laid_out(p, (uint8_t *)(uintptr_t)t.data);
}

int recording_allocate_leaf(const json_t *leaf, const char *path, void *ctx, struct err *e)
{
    struct recording_inputs *in = ctx;
    struct recording *l = in->j->recording;
    struct recording_place p;
    int rc = 0;

    (void)path;
    if (!tree_is_tensor(leaf))
        return 0;
    if (place_tensor(leaf, &p, e) < 0)
        return -1;
    l->inputs = xrealloc(l->inputs, (l->n_inputs + 2) * sizeof *l->inputs);
    for (int k = 0; k < 2 && rc == 0; k++) {
        uint64_t *at = &l->inputs[l->n_inputs++];

        *at = 0;
        if (p.span && (rc = executor_alloc(l->x, p.span, at, e)) == 0)
            rc = executor_typed(l->x, *at, p.span, p.t.dtype, e);
    }
    return rc;
}

uint64_t recording_input_at(const struct job *j, size_t i, uint32_t call)
{
    const struct recording *l = j->recording;

    return j->held.ref->streamed ? l->inputs[i] : l->inputs[2 * i + call % 2];
}

int recording_bind_leaf(const json_t *leaf, const char *path, void *ctx, struct err *e)
{
    struct recording_inputs *in = ctx;
    struct recording *l = in->j->recording;
    struct recording_place p;
    uint8_t *bytes;
    int rc = 0;

    (void)path;
    if (!tree_is_tensor(leaf))
        return 0;
    if (!(bytes = recording_input_bytes(in->d, leaf, &p, e)))
        return -1;
    if (p.span)
        rc = executor_bind(l->x, recording_input_at(in->j, in->i, l->calls), bytes, p.span,
                           TAG_INPUTS + (uint32_t)in->i, e);
    in->i++;
    free(bytes);
    return rc;
}

json_t *recording_placed_leaf(const json_t *leaf, void *ctx)
{
    struct recording_inputs *in = ctx;
    json_t *copy = json_deep_copy(leaf);
    struct recording_place p;

    place_tensor(leaf, &p, NULL);
    json_object_set_new(copy, "address",
                        json_integer((json_int_t)recording_input_at(in->j, in->i++, in->j->recording->calls)));
    json_object_set_new(copy, "bytes", json_integer((json_int_t)p.span));
    return copy;
}

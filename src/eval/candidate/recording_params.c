/* recording_params.c - what is bound for parameters: real and made-up values, and weights that the construction
 * arranged anew. See recording.h. */
#include "eval/candidate/recording_parts.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/numbers.h"
#include "base/rng.h"
#include "device/element.h"
#include "eval/candidate/arrange.h"
#include "eval/candidate/job.h"

/* ---- parameters ---- */

bool recording_ascends(const struct tensor *t, int64_t n)
{
    for (int64_t i = 1; i < n; i++)
        if (tensor_at(t, i) < tensor_at(t, i - 1))
            return false;
    return true;
}

/* Whole numbers: each is one of the real ones, so a kernel that takes them for places stays where it was. What ascends
 * goes on ascending (the starts of rows). */
static void recording_make_up_whole(const struct tensor *t, uint8_t *out, int64_t n, struct rng *r)
{
    double *v = xmalloc((size_t)n * sizeof *v);

    for (int64_t i = 0; i < n; i++)
        v[i] = tensor_at(t, (int64_t)rng_below(r, (uint64_t)n));
    if (recording_ascends(t, n))
        numbers_sort(v, (size_t)n);
    for (int64_t i = 0; i < n; i++)
        tensor_put(t->dtype, out, i, v[i]);
    free(v);
}

#define MADE_UP ((int64_t)1 << 20) /* elements of a parameter that are drawn; a larger one repeats them */

/* Values of another draw of the same kind: the client may look at these. Positive ones stay positive (variances). */
static void recording_make_up(const struct recording_place *p, const uint8_t *real, uint8_t *out, struct rng *r)
{
    struct tensor t = p->t;
    double sum = 0, square = 0, least = INFINITY, v;
    int64_t n = t.n * dt_components(t.dtype), all = n;
    size_t item = dt_size(t.dtype);

    t.data = real;
    if (!dt_is_float(t.dtype)) {
        memcpy(out, real, (size_t)t.n * p->item);
        recording_make_up_whole(&t, out, n, r);
        return;
    }
    n = n < MADE_UP ? n : MADE_UP;
    if (n == 0)
        return;
    for (int64_t i = 0; i < n; i++) {
        v = tensor_at(&t, i);
        sum += v;
        square += v * v;
        least = fmin(least, v);
    }
    sum /= (double)n;
    square = sqrt(fmax(square / (double)n - sum * sum, 1e-4 * (sum * sum + 1e-4)));
    for (int64_t i = 0; i < n; i++) {
        v = sum + square * rng_normal(r);
        tensor_put(t.dtype, out, i, least > 0 ? fabs(v) + least * 0.5 : v);
    }
    for (int64_t i = n; i < all; i += n)
        memcpy(out + (size_t)i * item, out, (size_t)(all - i < n ? all - i : n) * item);
}

/* The reference's value of one row, in the candidate's type: n elements in C order. */
static uint8_t *recording_converted(const struct tensor *from, enum dtype to, size_t item)
{
    uint8_t *out = xmalloc((size_t)from->n * item + 1);
    int64_t n = from->n * dt_components(from->dtype);

    if (from->dtype == to) {
        memcpy(out, from->data, (size_t)from->n * item);
        return out;
    }
    for (int64_t i = 0; i < n; i++)
        tensor_put(to, out, i, tensor_at(from, i));
    return out;
}

uint8_t *recording_laid_out(const struct recording_place *p, uint8_t *packed)
{
    uint8_t *out = xcalloc(1, p->span + 1);

    recording_permute(p, out, packed, true);
    return out;
}

/* A buffer that state_dict leaves out belongs to the construction: it may hold something else than the task's. Where it
 * holds the very same values they are bound as well, so that they count as no constant of the program's own. */
static bool recording_holds_already(struct recording *l, const struct recording_place *p, const uint8_t *packed)
{
    uint8_t *now;
    bool same;

    if (!place_is_packed(p) || p->span > MAX_OUTPUT)
        return false;
    now = xmalloc(p->span + 1);
    same = executor_peek(l->x, p->address, now, p->span, NULL) == 0 && !memcmp(now, packed, p->span);
    free(now);
    return same;
}

/* The values of row 'at' in a set of the reference's parameters. */
static int row_of_set(const struct reference *ref, int set, size_t at, struct tensor *ret, struct err *e)
{
    const struct section *s = set ? &ref->other_states[set - 1] : &ref->state_values;
    const json_t *node = json_array_get(json_object_get(s->tree, "v"), at);

    if (tensor_parse(node, (const uint8_t *)s->bytes, s->n, ret, e) < 0)
        return err_set(e, ERR_BUG, "the reference side sent broken parameters");
    return 0;
}

/* Gives a bound parameter its values of each further set of the reference's parameters. */
static int add_other_sets(const struct reference *ref, struct recording_binding *binding,
                          const struct recording_place *p, struct err *e)
{
    struct tensor from;
    uint8_t *packed;

    for (int k = 1; k < ref->n_sets; k++) {
        if (row_of_set(ref, k, binding->row, &from, e) < 0)
            return -1;
        if (from.n != p->t.n)
            return err_set(e, ERR_BUG, "the reference side sent broken parameters");
        packed = recording_converted(&from, p->t.dtype, p->item);
        binding->real[k] = recording_laid_out(p, packed);
        free(packed);
    }
    return 0;
}

/* ERR_INPUT: what the client said of this row is no tensor, or none in one allocation that it holds. Nothing is made of
 * its size before that is known. */
static int recording_add_binding(struct job *j, size_t at, const json_t *row, struct rng *r, struct err *e)
{
    struct recording *l = j->recording;
    bool constant = !strcmp(json_str(row, "kind", ""), "constant");
    bool known = constant || json_is_true(json_object_get(json_array_get(j->held.ref->state, at), "alike"));
    struct recording_place p;
    struct tensor from;
    uint8_t *packed, *other;

    if (row_of_set(j->held.ref, 0, at, &from, e) < 0)
        return -1;
    if (place_tensor(row, &p, e) < 0)
        return -1;
    if (!p.address || from.n != p.t.n || dt_components(from.dtype) != dt_components(p.t.dtype) || !p.t.n)
        return 0;
    if (executor_typed(l->x, p.address, p.span, p.t.dtype, e) < 0)
        return -1;
    packed = recording_converted(&from, p.t.dtype, p.item);
    if (constant && !recording_holds_already(l, &p, packed)) {
        free(packed);
        return 0;
    }
    other = xmalloc((size_t)p.t.n * p.item + 1);
    if (known) /* no secret: other values might be none that a program can meet */
        memcpy(other, packed, (size_t)p.t.n * p.item);
    else
        recording_make_up(&p, packed, other, r);
    l->bindings = xrealloc(l->bindings, (l->n_bindings + 1) * sizeof *l->bindings);
    l->bindings[l->n_bindings++] = (struct recording_binding){
        p.address, p.span, p.t.dtype, {recording_laid_out(&p, packed)}, recording_laid_out(&p, other),
                                                              !strcmp(json_str(row, "kind", ""), "buffer"), false,
                                                                  "", at,
                                                              place_is_packed(&p)};
    if (!strcmp(json_str(row, "kind", ""), "param"))
        snprintf(l->bindings[l->n_bindings - 1].name, sizeof l->bindings->name, "%s", json_str(row, "name", "?"));
    free(packed);
    free(other);
    return add_other_sets(j->held.ref, &l->bindings[l->n_bindings - 1], &p, e);
}

int recording_params(struct job *j, const json_t *const *pairs, struct err *e)
{
    struct rng r;
    int rc = 0;

    recording_bindings_free(j->recording);
    rng_seed(&r, (uint64_t)j->seed, 77);
    for (size_t i = 0; i < json_array_size(j->held.ref->state) && rc == 0; i++)
        if (pairs[i])
            rc = recording_add_binding(j, i, pairs[i], &r, e);
    return rc;
}

/* ---- weights that the construction arranged anew ---- */

/* The tensors of a section of the reference's state; owned array. NULL: it is broken. */
static struct tensor *rows_of(const struct section *s, size_t n)
{
    const json_t *list = json_object_get(s->tree, "v");
    struct tensor *rows = xcalloc(n + 1, sizeof *rows);

    for (size_t i = 0; i < n; i++)
        if (tensor_parse(json_array_get(list, i), (const uint8_t *)s->bytes, s->n, &rows[i], NULL) < 0) {
            free(rows);
            return NULL;
        }
    return rows;
}

int64_t *recording_read_row(struct job *j, const json_t *row)
{
    size_t n = json_array_size(j->held.ref->state);
    struct tensor *rows, packed;
    uint8_t *strided, *dense;
    int64_t *of = NULL;
    struct recording_place p;

    if (!j->held.ref->built.tree || place_tensor(row, &p, NULL) < 0 || !p.address || !p.t.n || p.span > MAX_OUTPUT ||
        !(rows = rows_of(&j->held.ref->built, n)))
        return NULL;
    strided = xmalloc(p.span + 1);
    dense = xmalloc((size_t)p.t.n * p.item + 1);
    if (executor_peek(j->recording->x, p.address, strided, p.span, NULL) == 0) {
        recording_permute(&p, strided, dense, false);
        packed = p.t;
        packed.data = dense;
        of = arrange_read(rows, n, &packed);
    }
    free(strided);
    free(dense);
    free(rows);
    return of;
}

/* The values of a section's n tensors at elements of[], in p's dtype; the caller frees. */
static uint8_t *gathered(const struct section *s, size_t n, const struct recording_place *p, const int64_t *of)
{
    struct tensor *rows = rows_of(s, n);
    uint8_t *out = xcalloc((size_t)p->t.n + 1, p->item);

    for (int64_t i = 0; rows && i < p->t.n; i++)
        tensor_put(p->t.dtype, out, i, arrange_value(rows, n, of[i]));
    free(rows);
    return out;
}

int recording_bind_packed(struct job *j, const json_t *row, const int64_t *of, struct err *e)
{
    size_t n = json_array_size(j->held.ref->state);
    struct recording *l = j->recording;
    struct recording_binding binding = {.row = SIZE_MAX};
    struct recording_place p;
    struct rng r;

    if (place_tensor(row, &p, e) < 0 || executor_typed(l->x, p.address, p.span, p.t.dtype, e) < 0)
        return -1;
    binding.address = p.address, binding.bytes = p.span, binding.dtype = p.t.dtype,
        binding.packed = place_is_packed(&p);
    for (int k = 0; k < j->held.ref->n_sets; k++) {
        uint8_t *dense = gathered(k ? &j->held.ref->other_states[k - 1] : &j->held.ref->state_values, n, &p, of);

        binding.real[k] = recording_laid_out(&p, dense);
        if (!k) {
            uint8_t *other = xcalloc((size_t)p.t.n + 1, p.item);

            rng_seed(&r, (uint64_t)j->seed, 81 + l->n_bindings);
            recording_make_up(&p, dense, other, &r);
            binding.made_up = recording_laid_out(&p, other);
            free(other);
        }
        free(dense);
    }
    if (!strcmp(json_str(row, "kind", ""), "param"))
        snprintf(binding.name, sizeof binding.name, "%s", json_str(row, "name", "?"));
    l->bindings = xrealloc(l->bindings, (l->n_bindings + 1) * sizeof *l->bindings);
    l->bindings[l->n_bindings++] = binding;
    return 0;
}

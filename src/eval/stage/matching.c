/* matching.c - makes the parameters equal: which of the candidate's state takes which of the reference's values. See
 * stage.h (correct_parameters). */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "eval/candidate/recording.h"
#include "eval/stage/stage.h"
#include "eval/verdict/record.h"

static bool matching_is_float_row(const json_t *row)
{
    const char *d = json_str(row, "dtype", "");

    return !strncmp(d, "float", 5) || !strncmp(d, "bfloat", 6) || !strncmp(d, "complex", 7);
}

/* A buffer that state_dict leaves out: both sides have it by their construction, or they do not. */
static bool matching_is_constant(const json_t *row)
{
    return !strcmp(json_str(row, "kind", ""), "constant");
}

static bool matching_is_to_match(const json_t *row)
{
    return matching_is_float_row(row) && !matching_is_constant(row);
}

/* The row of 'rows' with the name and kind (constant or parameter) of 'like'; NULL: none. */
static const json_t *matching_row_by_name(const json_t *rows, const json_t *like)
{
    const json_t *r;
    size_t i;

    json_array_foreach(rows, i, r)
        if (!strcmp(json_str(r, "name", ""), json_str(like, "name", "")) &&
            matching_is_constant(r) == matching_is_constant(like))
            return r;
    return NULL;
}

static size_t matching_parameters_of(const json_t *rows)
{
    const json_t *r;
    size_t i, n = 0;

    json_array_foreach(rows, i, r)
        n += !matching_is_constant(r);
    return n;
}

/* The next axis of 'shape' from *i on that has not one element, which *i then stands behind; 1: none is left. */
static json_int_t matching_next_axis(const json_t *shape, size_t *i)
{
    json_int_t n = 1;

    while (n == 1 && *i < json_array_size(shape))
        n = json_integer_value(json_array_get(shape, (*i)++));
    return n;
}

/* loose: axes of one element do not count, so 16 elements may take the values of 16 x 1 x 1. */
static bool matching_same_shape(const json_t *a, const json_t *b, bool loose)
{
    const json_t *x = json_object_get(a, "shape"), *y = json_object_get(b, "shape");
    size_t i = 0, k = 0;
    json_int_t n;

    if (!loose)
        return json_equal(x, y);
    while ((n = matching_next_axis(x, &i)) == matching_next_axis(y, &k))
        if (n == 1)
            return true;
    return false;
}

static int64_t matching_row_elements(const json_t *row)
{
    const json_t *d;
    int64_t n = 1;
    size_t i;

    json_array_foreach((json_t *)json_object_get(row, "shape"), i, d)
        n *= json_integer_value(d);
    return n;
}

/* How the candidate's state takes the reference's. */
struct matching {
    size_t n, m;          /* rows of the reference, of the candidate */
    const json_t **pairs; /* of each row of the reference: the candidate's; NULL: none */
    bool *used;           /* of each row of the candidate: it takes values */
    int64_t **packed;     /* of each row of the candidate: an arrangement of the reference's (arrange.h), or NULL */
    bool *covered;        /* of each row of the reference: nothing need take its values any more */
    bool loose;           /* axes of one element do not count */
};

/* An empty matching of the reference's parameters with the candidate's; freed by matching_free. */
static struct matching matching_open(const json_t *ref, const json_t *cand)
{
    struct matching m = {.n = json_array_size(ref), .m = json_array_size(cand)};

    m.pairs = xcalloc(m.n + 1, sizeof *m.pairs);
    m.used = xcalloc(m.m + 1, sizeof *m.used);
    m.packed = xcalloc(m.m + 1, sizeof *m.packed);
    m.covered = xcalloc(m.n + 1, sizeof *m.covered);
    return m;
}

static void matching_free(struct matching *m)
{
    for (size_t q = 0; q < m->m; q++)
        free(m->packed[q]);
    free(m->packed);
    free(m->pairs);
    free(m->used);
    free(m->covered);
}

/* Pairs the reference's rows with the candidate's of the same name and shape, but for axes of one element; NULL where
 * none fits. */
static void matching_names(struct matching *m, const json_t *ref, const json_t *cand)
{
    for (size_t i = 0; i < m->n; i++) {
        const json_t *r = json_array_get(ref, i), *c = matching_row_by_name(cand, r);

        m->pairs[i] = c && matching_same_shape(r, c, true) ? c : NULL;
        for (size_t q = 0; q < m->m; q++)
            m->used[q] = m->used[q] || json_array_get(cand, q) == m->pairs[i];
    }
}

/* True for a parameter of the reference that has no partner yet. */
static bool matching_is_left(const struct matching *m, const json_t *ref, size_t i)
{
    return !m->pairs[i] && !m->covered[i] && matching_is_to_match(json_array_get(ref, i));
}

/* How many of the reference's rows have no partner. */
static size_t matching_rows_left(const struct matching *m, const json_t *ref)
{
    size_t left = 0;

    for (size_t i = 0; i < m->n; i++)
        left += matching_is_left(m, ref, i);
    return left;
}

/* Which rows of the reference lie in arrangements as a whole? */
static void matching_note_covered(struct matching *m, const json_t *ref, const json_t *cand)
{
    const json_t *r;
    size_t i;
    int64_t at = 0;

    json_array_foreach((json_t *)ref, i, r) {
        int64_t n = matching_row_elements(r), there = 0;
        bool *seen = xcalloc((size_t)n + 1, sizeof *seen);

        for (size_t q = 0; q < m->m; q++)
            for (int64_t k = 0; m->packed[q] && k < matching_row_elements(json_array_get(cand, q)); k++)
                if (m->packed[q][k] >= at && m->packed[q][k] < at + n && !seen[m->packed[q][k] - at])
                    seen[m->packed[q][k] - at] = true, there++;
        m->covered[i] = n > 0 && there == n;
        free(seen);
        at += n;
    }
}

/* Rows that nothing is bound in by name: weights that the construction arranged anew, or under other names. Each costs
 * a look at all of the model, so a program has as many as the model has, and a few. */
static bool matching_packed(struct matching *m, struct job *j)
{
    size_t tries = m->n + 32;
    bool any = false;

    for (size_t q = 0; q < m->m; q++) {
        const json_t *c = json_array_get(j->state, q);

        if (m->used[q] || !matching_is_float_row(c) || !tries)
            continue;
        tries--;
        if (!(m->packed[q] = recording_read_row(j, c)))
            continue;
        m->used[q] = any = true;
    }
    if (any)
        matching_note_covered(m, j->held.ref->state, j->state);
    return any;
}

/* The rest in order by shape, if the shapes that are left are the same list on both sides. */
static bool matching_order(struct matching *m, const json_t *ref, const json_t *cand)
{
    const json_t **pairs = xcalloc(m->n + 1, sizeof *pairs);
    size_t k = 0;
    bool ok = true;

    for (size_t i = 0; ok && i < m->n; i++) {
        if (!matching_is_left(m, ref, i))
            continue;
        while (k < m->m && (m->used[k] || !matching_is_to_match(json_array_get(cand, k))))
            k++;
        ok = k < m->m && matching_same_shape(json_array_get(ref, i), json_array_get(cand, k), m->loose);
        pairs[i] = ok ? json_array_get(cand, k++) : NULL;
    }
    while (ok && k < m->m) /* one left over: which one it was would be a guess */
        ok = m->used[k] || !matching_is_to_match(json_array_get(cand, k)), k++;
    for (size_t i = 0; ok && i < m->n; i++)
        m->pairs[i] = pairs[i] ? pairs[i] : m->pairs[i];
    free(pairs);
    return ok;
}

/* The only row left of this shape among the candidate's; SIZE_MAX: none, or several. */
static size_t matching_only_of_shape(const struct matching *m, const json_t *cand, const json_t *like)
{
    size_t at = SIZE_MAX, found = 0;

    for (size_t q = 0; q < m->m; q++)
        if (!m->used[q] && matching_is_to_match(json_array_get(cand, q)) &&
            matching_same_shape(like, json_array_get(cand, q), m->loose))
            at = q, found++;
    return found == 1 ? at : SIZE_MAX;
}

/* The rest by shapes that stand once on each side. */
static bool matching_shapes(struct matching *m, const json_t *ref, const json_t *cand)
{
    size_t q;

    for (size_t i = 0; i < m->n; i++) {
        if (!matching_is_left(m, ref, i))
            continue;
        if ((q = matching_only_of_shape(m, cand, json_array_get(ref, i))) == SIZE_MAX)
            return false;
        m->pairs[i] = json_array_get(cand, q);
        m->used[q] = true;
    }
    for (q = 0; q < m->m; q++)
        if (!m->used[q] && matching_is_to_match(json_array_get(cand, q)))
            return false;
    return true;
}

/* The rest in order, else by shapes that stand once. Where neither fits, nothing is paired. */
static bool matching_rest(struct matching *m, const json_t *ref, const json_t *cand)
{
    struct matching was = matching_open(ref, cand);
    bool ok;

    memcpy(was.pairs, m->pairs, m->n * sizeof *m->pairs);
    memcpy(was.used, m->used, m->m * sizeof *m->used);
    ok = matching_order(m, ref, cand) || matching_shapes(m, ref, cand);
    if (!ok) {
        memcpy(m->pairs, was.pairs, m->n * sizeof *m->pairs);
        memcpy(m->used, was.used, m->m * sizeof *m->used);
    }
    matching_free(&was);
    return ok;
}

/* A mask or a table that each construction makes alike is no secret: a program may do without it, for its values
 * decide. */
static void matching_excuse_alike(struct matching *m, const json_t *ref)
{
    for (size_t i = 0; i < m->n; i++)
        m->covered[i] = m->covered[i] || json_is_true(json_object_get(json_array_get(ref, i), "alike"));
}

/* By name and shape; what is left by the values that the construction gave it, else in order by shape, else by shapes
 * that stand once; then without what each construction makes alike, and without axes of one element. Returns "none",
 * "name", "packed", "order", or "seed" if nothing fits. */
static const char *matching_state(struct matching *m, struct job *j)
{
    const json_t *ref = j->held.ref->state, *cand = j->state;
    bool packed;

    matching_names(m, ref, cand);
    if (!matching_parameters_of(ref))
        return "none";
    packed = matching_packed(m, j);
    if (!matching_rows_left(m, ref))
        return packed ? "packed" : "name";
    if (matching_rest(m, ref, cand))
        return "order";
    matching_excuse_alike(m, ref);
    if (!matching_rows_left(m, ref))
        return packed ? "packed" : "name";
    if (matching_rest(m, ref, cand))
        return "order";
    m->loose = true;
    return matching_rest(m, ref, cand) ? "order" : "seed";
}

/* Rows that name no memory of the program, or no such tensor, take no values: that is said of the program. */
static int matching_bind_params(struct job *j, const json_t *const *pairs, struct err *e)
{
    int rc = recording_params(j, pairs, e);

    if (rc == 0 || e->kind != ERR_INPUT)
        return rc;
    record_blame(j->rec, "correctness_error", "correctness", "ModelNew's parameters cannot take the task's values: %s",
                 e->msg);
    *e = (struct err)ERR_INIT;
    return 0;
}

/* Binds each tensor that several of the reference's are packed into. */
static int matching_bind_packed(struct job *j, const struct matching *m, struct err *e)
{
    int rc = 0;

    for (size_t q = 0; q < m->m && rc == 0; q++)
        if (m->packed[q])
            rc = recording_bind_packed(j, json_array_get(j->state, q), m->packed[q], e);
    return rc;
}

int correct_parameters(struct job *j, struct err *e)
{
    struct matching m = matching_open(j->held.ref->state, j->state);
    int rc = 0;

    j->params = !j->protocol->binds_params ? matching_parameters_of(j->held.ref->state) ? "seed" : "none"
        : matching_state(&m, j);
    if (!strcmp(j->params, "seed") && j->protocol->binds_params) {
        record_blame(j->rec, "correctness_error", "correctness", "the model's parameters do not fit ModelNew's, by "
                     "name and shape or in order: what cannot take the weights replaces nothing");
    } else if (strcmp(j->params, "seed")) {
        rc = matching_bind_params(j, m.pairs, e);
        rc = rc == 0 && !job_blamed(j) ? matching_bind_packed(j, &m, e) : rc;
    }
    matching_free(&m);
    return rc;
}

/* op.c - the registry's questions, and what rows share. The table itself is collected from ops/ by the build. */
#include "synth/op.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/opt.h"

#define OPS_FILE(name) extern const struct opdef name##_ops[];
#include "ops_list.h"
#undef OPS_FILE

#define OPS_FILE(name) name##_ops,
static const struct opdef *const files[] = {
#include "ops_list.h"
};
#undef OPS_FILE

#define ROWS_MAX 512
static const struct opdef *rows[ROWS_MAX];
static int n_rows;

static int op_by_name(const void *a, const void *b)
{
    return strcmp((*(const struct opdef *const *)a)->name, (*(const struct opdef *const *)b)->name);
}

__attribute__((constructor)) static void op_collect(void)
{
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        for (const struct opdef *p = files[i]; p->name; p++)
            if (n_rows < ROWS_MAX)
                rows[n_rows++] = p;
    qsort(rows, (size_t)n_rows, sizeof *rows, op_by_name);
}

const struct opdef *const *op_rows(int *n)
{
    *n = n_rows;
    return rows;
}

const struct opdef *op_find_row(const char *name)
{
    for (int i = 0; i < n_rows; i++)
        if (!strcmp(rows[i]->name, name))
            return rows[i];
    return NULL;
}

static const char *op_word_at(const void *ctx, int i)
{
    (void)ctx;
    return i < n_rows ? rows[i]->name : i < 2 * n_rows ? rows[i - n_rows]->family : NULL;
}

/* Sets the mask of each operator that a word names ('all', an operator or a family); false: none. */
static bool op_take(const char *word, uint8_t *mask)
{
    bool any = false;

    for (int i = 0; i < n_rows; i++)
        if (!strcmp(word, "all") || !strcmp(word, rows[i]->name) || !strcmp(word, rows[i]->family))
            mask[i] = 1, any = true;
    return any;
}

uint8_t *op_select(const char *list, struct err *e)
{
    uint8_t *mask = xcalloc((size_t)n_rows, 1);
    char *copy = xstrdup(list ? list : "all"), *save = NULL;
    int rc = 0, n = 0;

    for (char *w = strtok_r(copy, ", \n", &save); w && !rc; w = strtok_r(NULL, ", \n", &save), n++)
        if (!op_take(w, mask)) {
            const char *near = nearest_word(w, op_word_at, NULL);
            rc = err_set(e, ERR_INPUT, "no operator or family '%s'; did you mean '%s'? 'musacoder synth --list' names "
                         "them", w, near ? near : "activation");
        }
    if (!rc && !n)
        rc = err_set(e, ERR_INPUT, "the list of operators is empty; leave it out for all");
    free(copy);
    if (rc)
        free(mask), mask = NULL;
    return mask;
}

/* ---- drawing ---- */

/* One of the ranks whose bit is set. */
static int op_draw_rank(struct rng *r, unsigned ranks)
{
    int v[8], n = 0;

    for (int i = 0; i < 8; i++)
        if (ranks >> i & 1)
            v[n++] = i;
    return draw_pick(r, v, n);
}

/* One of the dtypes of the mask that the operator takes. */
static uint8_t op_draw_dtype(struct rng *r, const struct opdef *op, unsigned mask)
{
    uint8_t v[N_DTYPES];
    int n = 0;

    if (op->no_halves)
        return DT_F32;
    for (uint8_t i = 0; i < N_DTYPES; i++)
        if (mask >> i & 1 && (i != DT_I64 || op->takes_ints))
            v[n++] = i;
    return n ? v[draw_below(r, (uint64_t)n)] : DT_F32;
}

bool op_draw_on(const struct opdef *op, struct rng *r, const struct op_limits *l, const struct tdesc *x,
                struct op_call *ret)
{
    if (!(op->ranks >> x->rank & 1) || (op->no_halves && x->dtype != DT_F32) || (x->dtype == DT_I64 && !op->takes_ints))
        return false;
    ret->op = op;
    ret->n_in = 1;
    ret->in[0] = *x;
    memset(ret->i, 0, sizeof ret->i);
    memset(ret->below, 0, sizeof ret->below);
    memset(ret->f, 0, sizeof ret->f);
    return (!op->draw || op->draw(r, l, ret)) && op->shape(ret) && tdesc_numel(&ret->out) <= l->max_numel;
}

bool op_draw(const struct opdef *op, struct rng *r, const struct op_limits *l, struct op_call *ret)
{
    for (int i = 0; i < 500; i++) {
        struct tdesc x = {.dtype = op_draw_dtype(r, op, l->dtypes)};
        draw_shape(r, op_draw_rank(r, op->ranks), l->max_numel, &x);
        if (op_draw_on(op, r, l, &x, ret))
            return true;
    }
    return false;
}

void op_lower(const struct op_call *c, struct arena *a, struct nest *ret)
{
    nest_init(ret, a, c->op->class, c->in, c->n_in, &c->out);
    ret->about = c->op->name;
    c->op->lower(c, ret);
    if (!ret->store)
        nest_store(ret, NULL);
    if (!ret->out)
        ret->out = ax_id(a, "s0");
    nest_simplify(ret);
}

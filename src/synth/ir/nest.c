/* nest.c - building loop nests, and the transformations of nest.h. */
#include "synth/ir/nest.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const nest_class_names[N_NEST_CLASSES] = {"map",         "reduction", "row statistic", "window",
                                                      "contraction", "scan",      "scatter",       "attention"};

void nest_init(struct nest *k, struct arena *a, enum nest_class c, const struct tdesc *in, int n_in,
    const struct tdesc *out)
{
    memset(k, 0, sizeof *k);
    k->arena = a;
    k->class = c;
    k->out_t = *out;
    k->init = -1;
    k->n_in = n_in;
    for (int i = 0; i < n_in; i++)
        k->in[i] = (struct operand){in[i], -1};
}

void nest_dim(struct nest *k, int group, int n, const char *fmt, ...)
{
    char s[32];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(s, sizeof s, fmt, ap);
    va_end(ap);
    k->dim[k->n_dims++] = (struct dim){arena_strdup(k->arena, s), n, (int8_t)group};
}

/* The extents of a tensor's positions, in the arena. */
static struct ext *nest_extents_of(struct arena *a, const struct tdesc *t)
{
    struct ext *e = arena_alloc(a, sizeof *e * (size_t)(t->rank + 1));

    for (int i = 0; i < t->rank; i++)
        e[i] = (struct ext){t->d[i], (int8_t)i, (int8_t)i};
    return e;
}

/* Gives all loads below x the extents of their operands. */
static void nest_bind_loads(struct nest *k, struct ax *x)
{
    for (int i = 0; i < x->n; i++)
        nest_bind_loads(k, x->kid[i]);
    if (x->kind == AX_LOAD && !x->ext) {
        if (x->i >= k->n_in || k->in[x->i].t.rank != x->n) {
            fprintf(stderr, "musacoder: %s loads operand %lld with %d indices\n", k->about ? k->about : "a nest",
                x->i, x->n);
            abort();
        }
        x->ext = nest_extents_of(k->arena, &k->in[x->i].t);
    }
}

struct ax *nest_expr(struct nest *k, const char *fmt, ...)
{
    char s[1024];
    va_list ap;
    struct ax *x;

    va_start(ap, fmt);
    vsnprintf(s, sizeof s, fmt, ap);
    va_end(ap);
    x = ax_parse(k->arena, s);
    nest_bind_loads(k, x);
    return x;
}

void nest_stat(struct nest *k, enum combine c, struct ax *elem, const char *fin)
{
    k->stat[k->n_stats++] = (struct stat){c, elem, fin ? ax_parse(k->arena, fin) : NULL};
}

static bool nest_is_output(const struct nest *k, int group)
{
    static const unsigned char masks[N_NEST_CLASSES] = {1, 1, 3, 1, 7, 3, 1, 1 | 2 | 16};

    return masks[k->class] >> group & 1;
}

void nest_store(struct nest *k, const char *order)
{
    char s[256] = "L0(";

    if (order) {
        snprintf(s, sizeof s, "L0(%s)", order);
    } else {
        for (int i = 0; i < k->n_dims; i++)
            if (nest_is_output(k, k->dim[i].group)) {
                strcat(s, s[3] ? ", " : "");
                strcat(s, k->dim[i].name);
            }
        strcat(s, ")");
    }
    k->store = ax_parse(k->arena, s);
    k->store->i = -1; /* no operand */
    k->store->ext = nest_extents_of(k->arena, &k->out_t);
    for (int i = 0; i < k->store->n; i++) /* indices of a scatter may load */
        nest_bind_loads(k, k->store->kid[i]);
}

struct ax *nest_broadcast(struct nest *k, int i, const char *const names[], int n)
{
    const struct tdesc *t = &k->in[i].t;
    struct ax *x = ax_new(k->arena, AX_LOAD, NULL, t->rank);

    x->i = i;
    x->ext = nest_extents_of(k->arena, t);
    for (int d = 0; d < t->rank; d++)
        x->kid[d] = t->d[d] == 1 ? ax_int(k->arena, 0) : ax_id(k->arena, names[n - t->rank + d]);
    return x;
}

int nest_find_dim(const struct nest *k, const char *name)
{
    for (int i = 0; i < k->n_dims; i++)
        if (k->dim[i].name[0] == name[0] && !strcmp(k->dim[i].name, name)) /* the oracle asks for each element */
            return i;
    return -1;
}

int nest_group(const struct nest *k, int group, int ret[NEST_DIMS])
{
    int n = 0;

    for (int i = 0; i < k->n_dims; i++)
        if (k->dim[i].group == group)
            ret[n++] = i;
    return n;
}

int64_t nest_extent(const struct nest *k, int group)
{
    int64_t n = 1;

    for (int i = 0; i < k->n_dims; i++)
        if (k->dim[i].group == group)
            n *= k->dim[i].n;
    return n;
}

/* True where x loads an element of that operand; -1: of any. */
static bool nest_loads(const struct ax *x, int operand)
{
    if (!x)
        return false;
    if (x->kind == AX_LOAD && (operand < 0 || x->i == operand))
        return true;
    for (int i = 0; i < x->n; i++)
        if (nest_loads(x->kid[i], operand))
            return true;
    return false;
}

/* ---- rewriting with sharing kept: every pass maps a node once ---- */

struct nest_pass {
    struct arena *a;
    struct ax *(*f)(struct nest_pass *p, struct ax *x); /* of a node whose children are done */
    const struct ax *from[512];
    struct ax *to[512];
    int n;
    const void *ctx;
};

/* A copy of x with pass p applied from the leaves up; shared nodes stay shared. */
static struct ax *nest_rewrite(struct nest_pass *p, const struct ax *x)
{
    struct ax *y;

    if (!x)
        return NULL;
    for (int i = 0; i < p->n; i++)
        if (p->from[i] == x)
            return p->to[i];
    y = arena_alloc(p->a, sizeof *y);
    *y = *x;
    y->kid = x->n ? arena_alloc(p->a, sizeof *y->kid * (size_t)x->n) : NULL;
    for (int i = 0; i < x->n; i++)
        y->kid[i] = nest_rewrite(p, x->kid[i]);
    y = p->f(p, y);
    if (p->n < 512)
        p->from[p->n] = x, p->to[p->n++] = y;
    return y;
}

/* Every expression of a nest through one pass, so that what is shared between them stays shared. */
static void nest_rewrite_nest(struct nest *k, struct nest_pass *p)
{
    for (int i = 0; i < k->n_stats; i++)
        k->stat[i].elem = nest_rewrite(p, k->stat[i].elem), k->stat[i].fin = nest_rewrite(p, k->stat[i].fin);
    k->a = nest_rewrite(p, k->a), k->b = nest_rewrite(p, k->b), k->c = nest_rewrite(p, k->c);
    k->out = nest_rewrite(p, k->out);
    k->store = nest_rewrite(p, k->store);
}

struct subst {
    const char *const *id;
    struct ax *const *with;
    int n;
};

/* A pass: replaces names by expressions. */
static struct ax *nest_subst_node(struct nest_pass *p, struct ax *x)
{
    const struct subst *s = p->ctx;

    for (int i = 0; x->kind == AX_ID && i < s->n; i++)
        if (!strcmp(x->s, s->id[i]))
            return s->with[i];
    return x;
}

struct ax *ax_subst(struct arena *a, const struct ax *x, const char *const id[], struct ax *const with[], int n)
{
    struct subst s = {id, with, n};
    struct nest_pass *p = xcalloc(1, sizeof *p);
    struct ax *y;

    p->a = a, p->f = nest_subst_node, p->ctx = &s;
    y = nest_rewrite(p, x);
    free(p);
    return y;
}

bool ax_equal(const struct ax *x, const struct ax *y)
{
    if (x == y)
        return true;
    if (x->kind != y->kind || x->n != y->n || x->i != y->i || x->f != y->f || !x->s != !y->s || (x->s && strcmp(x->s,
        y->s)))
        return false;
    for (int i = 0; i < x->n; i++)
        if (!ax_equal(x->kid[i], y->kid[i]))
            return false;
    return true;
}

/* ---- simplification of integer arithmetic ---- */

struct nest_range {
    long long lo, hi;
    bool known;
};

static struct nest_range nest_range_of(const struct ax *x, const struct nest *k);

/* Bounds of an integer operation; unknown for what has no rule. */
static struct nest_range nest_range_binary(const struct ax *x, const struct nest *k)
{
    struct nest_range a = nest_range_of(x->kid[0], k), b = nest_range_of(x->kid[1], k), r = {0};

    if (!a.known || !b.known || x->s[1])
        return r;
    switch (x->s[0]) {
    case '+': return (struct nest_range){a.lo + b.lo, a.hi + b.hi, true};
    case '-': return (struct nest_range){a.lo - b.hi, a.hi - b.lo, true};
    case '*':
        if (b.lo == b.hi && b.lo >= 0)
            return (struct nest_range){a.lo * b.lo, a.hi * b.lo, true};
        break;
    case '/':
        if (b.lo == b.hi && b.lo > 0 && a.lo >= 0)
            return (struct nest_range){a.lo / b.lo, a.hi / b.lo, true};
        break;
    case '%':
        if (b.lo == b.hi && b.lo > 0 && a.lo >= 0)
            return (struct nest_range){0, a.hi < b.lo ? a.hi : b.lo - 1, true};
        break;
    }
    return r;
}

/* Bounds of an integer expression by the dimensions; unknown where nothing is known. */
static struct nest_range nest_range_of(const struct ax *x, const struct nest *k)
{
    int d;

    if (x->kind == AX_INT)
        return (struct nest_range){x->i, x->i, true};
    if (x->kind == AX_ID && k && (d = nest_find_dim(k, x->s)) >= 0)
        return (struct nest_range){0, k->dim[d].n - 1, true};
    if (x->kind == AX_BINARY)
        return nest_range_binary(x, k);
    return (struct nest_range){0};
}

static bool nest_is_int(const struct ax *x, long long i)
{
    return x->kind == AX_INT && x->i == i;
}

static struct ax *nest_fold_ints(struct arena *a, const struct ax *x)
{
    long long p = x->kid[0]->i, q = x->kid[1]->i;

    if (!x->s[1])
        switch (x->s[0]) {
        case '+': return ax_int(a, p + q);
        case '-': return ax_int(a, p - q);
        case '*': return ax_int(a, p * q);
        case '/': return q ? ax_int(a, p / q) : NULL;
        case '%': return q ? ax_int(a, p % q) : NULL;
        }
    return NULL;
}

/* (x + 3) - 1 -> x + 2; x + -1 -> x - 1 */
static struct ax *nest_fold_offsets(struct arena *a, struct ax *x)
{
    struct ax *l = x->kid[0], *r = x->kid[1];
    long long c;

    if (r->kind != AX_INT || (x->s[0] != '+' && x->s[0] != '-') || x->s[1])
        return x;
    c = x->s[0] == '+' ? r->i : -r->i;
    if (l->kind == AX_BINARY && !l->s[1] && (l->s[0] == '+' || l->s[0] == '-') && l->kid[1]->kind == AX_INT) {
        c += l->s[0] == '+' ? l->kid[1]->i : -l->kid[1]->i;
        l = l->kid[0];
    }
    if (!c)
        return l;
    return ax_bin(a, c > 0 ? "+" : "-", l, ax_int(a, c > 0 ? c : -c));
}

/* Simplifies an integer operation by constants and by the bounds of its operands. */
static struct ax *nest_simplify_arithmetic(struct arena *a, struct ax *x, const struct nest *k)
{
    struct ax *l = x->kid[0], *r = x->kid[1], *f;
    struct nest_range p;

    if (l->kind == AX_INT && r->kind == AX_INT && (f = nest_fold_ints(a, x)))
        return f;
    switch (x->s[0]) {
    case '*':
        if (nest_is_int(l, 0) || nest_is_int(r, 0))
            return ax_int(a, 0);
        if (nest_is_int(l, 1) || nest_is_int(r, 1))
            return nest_is_int(l, 1) ? r : l;
        break;
    case '+':
        if (nest_is_int(l, 0))
            return r;
        return nest_fold_offsets(a, x);
    case '-': return nest_fold_offsets(a, x);
    case '/':
        p = nest_range_of(l, k);
        if (r->kind == AX_INT && (r->i == 1 || (p.known && p.lo >= 0 && p.hi < r->i)))
            return r->i == 1 ? l : ax_int(a, 0);
        break;
    case '%':
        p = nest_range_of(l, k);
        if (r->kind == AX_INT && (r->i == 1 || (p.known && p.lo >= 0 && p.hi < r->i)))
            return r->i == 1 ? ax_int(a, 0) : l;
        break;
    }
    return x;
}

/* 1 true, 0 false, -1 not known. */
static int nest_truth(const struct ax *x, const struct nest *k)
{
    struct nest_range a, b;

    if (x->kind == AX_INT)
        return x->i != 0;
    if (x->kind != AX_BINARY || !strchr("<>=!", x->s[0]))
        return -1;
    a = nest_range_of(x->kid[0], k), b = nest_range_of(x->kid[1], k);
    if (!a.known || !b.known)
        return -1;
    if (!strcmp(x->s, "<"))
        return a.hi < b.lo ? 1 : a.lo >= b.hi ? 0 : -1;
    if (!strcmp(x->s, "<="))
        return a.hi <= b.lo ? 1 : a.lo > b.hi ? 0 : -1;
    if (!strcmp(x->s, ">"))
        return a.lo > b.hi ? 1 : a.hi <= b.lo ? 0 : -1;
    if (!strcmp(x->s, ">="))
        return a.lo >= b.hi ? 1 : a.hi < b.lo ? 0 : -1;
    if (!strcmp(x->s, "=="))
        return a.lo == a.hi && b.lo == b.hi && a.lo == b.lo ? 1 : a.hi < b.lo || a.lo > b.hi ? 0 : -1;
    return -1;
}

/* A pass: decides conditions whose truth follows from the dimensions. */
static struct ax *nest_simplify_node(struct nest_pass *p, struct ax *x)
{
    const struct nest *k = p->ctx;
    int t;

    if (x->kind == AX_COND && (t = nest_truth(x->kid[0], k)) >= 0)
        return x->kid[t ? 1 : 2];
    if (x->kind != AX_BINARY)
        return x;
    if (!strcmp(x->s, "&&")) {
        int l = nest_truth(x->kid[0], k), r = nest_truth(x->kid[1], k);
        return l == 0 || r == 0 ? ax_int(p->a, 0) : l == 1 ? x->kid[1] : r == 1 ? x->kid[0] : x;
    }
    if ((t = nest_truth(x, k)) >= 0)
        return ax_int(p->a, t);
    return strchr("+-*/%", x->s[0]) && !x->s[1] ? nest_simplify_arithmetic(p->a, x, k) : x;
}

struct ax *ax_simplify(struct arena *a, struct ax *x, const struct nest *k)
{
    struct nest_pass *p = xcalloc(1, sizeof *p);

    p->a = a, p->f = nest_simplify_node, p->ctx = k;
    x = nest_rewrite(p, x);
    free(p);
    return x;
}

void nest_simplify(struct nest *k)
{
    struct nest_pass *p = xcalloc(1, sizeof *p);

    p->a = k->arena, p->f = nest_simplify_node, p->ctx = k;
    nest_rewrite_nest(k, p);
    free(p);
}

/* ---- collapsing ---- */

struct nest_pair {
    const char *first, *second, *name;
    int n_first, n_second;
    bool ok;
    bool apply;
};

/* Position of an index that is exactly the dimension, or -1. */
static int nest_position_of(const struct ax *load, const char *dim)
{
    for (int i = 0; i < load->n; i++)
        if (ax_is_id(load->kid[i], dim))
            return i;
    return -1;
}

/* May the pair be merged as far as this expression can tell? */
static bool nest_do_pair_fits(const struct ax *x, const struct nest_pair *q)
{
    if (!x)
        return true;
    if (x->kind == AX_ID)
        return strcmp(x->s, q->first) && strcmp(x->s, q->second);
    if (x->kind == AX_LOAD) {
        int p = nest_position_of(x, q->first);
        bool both = p >= 0 && p + 1 < x->n && ax_is_id(x->kid[p + 1], q->second) && x->ext[p + 1].n == q->n_second;
        for (int i = 0; i < x->n; i++)
            if (!(both && (i == p || i == p + 1)) && !nest_do_pair_fits(x->kid[i], q))
                return false;
        return true;
    }
    for (int i = 0; i < x->n; i++)
        if (!nest_do_pair_fits(x->kid[i], q))
            return false;
    return true;
}

/* A pass: replaces the two indices of a merged pair of dimensions by one. */
static struct ax *nest_merge_node(struct nest_pass *p, struct ax *x)
{
    const struct nest_pair *q = p->ctx;
    int at;
    struct ax *y;

    if (x->kind != AX_LOAD || (at = nest_position_of(x, q->first)) < 0)
        return x;
    y = ax_new(p->a, AX_LOAD, NULL, x->n - 1);
    y->i = x->i, y->let = x->let;
    y->ext = arena_alloc(p->a, sizeof *y->ext * (size_t)x->n);
    for (int i = 0, o = 0; i < x->n; i++) {
        if (i == at + 1)
            continue;
        y->kid[o] = i == at ? ax_id(p->a, q->name) : x->kid[i];
        y->ext[o++] = i == at ? (struct ext){x->ext[i].n * x->ext[i + 1].n, x->ext[i].from, x->ext[i + 1].to} :
            x->ext[i];
    }
    return y;
}

/* True where every load allows that both dimensions become one. */
static bool nest_pair_fits(const struct nest *k, const struct nest_pair *q)
{
    for (int i = 0; i < k->n_stats; i++)
        if (!nest_do_pair_fits(k->stat[i].elem, q) || !nest_do_pair_fits(k->stat[i].fin, q))
            return false;
    return nest_do_pair_fits(k->a, q) && nest_do_pair_fits(k->b, q) && nest_do_pair_fits(k->c, q) &&
           nest_do_pair_fits(k->out, q) &&
        nest_do_pair_fits(k->store, q);
}

static void nest_remove_dim(struct nest *k, int d)
{
    memmove(k->dim + d, k->dim + d + 1, sizeof *k->dim * (size_t)(k->n_dims - d - 1));
    k->n_dims--;
}

/* Merges the first two neighbouring dimensions that all loads allow. False: there are none. */
static bool nest_collapse_once(struct nest *k)
{
    for (int d = 0; d + 1 < k->n_dims; d++) {
        struct nest_pair q = {.first = k->dim[d].name, .second = k->dim[d + 1].name, .n_second = k->dim[d + 1].n};
        struct nest_pass *p;
        char name[40];

        if (k->dim[d].group != k->dim[d + 1].group || !nest_pair_fits(k, &q))
            continue;
        snprintf(name, sizeof name, "%.12s%.12s", q.first, q.second);
        q.name = arena_strdup(k->arena, name);
        p = xcalloc(1, sizeof *p);
        p->a = k->arena, p->f = nest_merge_node, p->ctx = &q;
        nest_rewrite_nest(k, p);
        free(p);
        k->dim[d].name = q.name;
        k->dim[d].n *= k->dim[d + 1].n;
        nest_remove_dim(k, d + 1);
        return true;
    }
    return false;
}

static bool nest_is_unit(const struct ax *load, int i)
{
    return load->ext[i].n == 1 && load->kid[i]->kind == AX_INT && !load->kid[i]->i;
}

/* A load without its positions of extent 1, which are 0: their neighbours can then be merged. */
static struct ax *nest_unit_node(struct nest_pass *p, struct ax *x)
{
    struct ax *y;
    int keep = 0;

    if (x->kind != AX_LOAD)
        return x;
    for (int i = 0; i < x->n; i++)
        keep += !nest_is_unit(x, i);
    if (keep == x->n)
        return x;
    y = ax_new(p->a, AX_LOAD, NULL, keep);
    y->i = x->i, y->let = x->let;
    y->ext = arena_alloc(p->a, sizeof *y->ext * (size_t)(keep + 1));
    for (int i = 0, o = 0; i < x->n; i++)
        if (!nest_is_unit(x, i))
            y->kid[o] = x->kid[i], y->ext[o++] = x->ext[i];
    return y;
}

/* Removes dimensions of size 1. */
static void nest_drop_units(struct nest *k)
{
    struct nest_pass *p;

    for (int d = k->n_dims - 1; d >= 0; d--)
        if (k->dim[d].n == 1) {
            struct ax *zero = ax_int(k->arena, 0);
            struct subst s = {&k->dim[d].name, &zero, 1};
            p = xcalloc(1, sizeof *p);
            p->a = k->arena, p->f = nest_subst_node, p->ctx = &s;
            nest_rewrite_nest(k, p);
            free(p);
            nest_remove_dim(k, d);
        }
    p = xcalloc(1, sizeof *p);
    p->a = k->arena, p->f = nest_unit_node;
    nest_rewrite_nest(k, p);
    free(p);
}

void nest_collapse(struct nest *k)
{
    nest_drop_units(k);
    nest_simplify(k);
    while (nest_collapse_once(k))
        ;
}

/* ---- fusion ---- */

/* The operand's number, new or found by its value; -1: there are too many. */
static int nest_add_operand(struct nest *k, const struct operand *x)
{
    for (int i = 0; i < k->n_in; i++)
        if (x->value >= 0 && k->in[i].value == x->value)
            return i;
    if (k->n_in == NEST_OPERANDS)
        return -1;
    k->in[k->n_in] = *x;
    return k->n_in++;
}

struct inlining {
    const struct nest *producer;
    int operand;
    int map[NEST_OPERANDS]; /* the producer's operands in k */
    const struct ax *at[64]; /* loads met before, and what they became */
    struct ax *is[64];
    int n;
};

/* A pass: gives operands their new numbers. */
static struct ax *nest_renumber_node(struct nest_pass *p, struct ax *x)
{
    const int *map = p->ctx;

    if (x->kind == AX_LOAD && x->i >= 0)
        x->i = map[x->i];
    return x;
}

/* A copy of x with operands numbered by map. */
static struct ax *nest_renumbered(struct arena *a, const struct ax *x, const int map[])
{
    struct nest_pass *p = xcalloc(1, sizeof *p);
    struct ax *y;

    p->a = a, p->f = nest_renumber_node, p->ctx = map;
    y = nest_rewrite(p, x);
    free(p);
    return y;
}

/* A pass: replaces loads of the operand by the producer's expression. */
static struct ax *nest_inline_node(struct nest_pass *p, struct ax *x)
{
    struct inlining *q = (struct inlining *)(uintptr_t)p->ctx;
    const char *id[NEST_DIMS];
    struct ax *y;

    if (x->kind != AX_LOAD || x->i != q->operand)
        return x;
    for (int i = 0; i < q->n; i++)
        if (ax_equal(q->at[i], x))
            return q->is[i];
    for (int i = 0; i < q->producer->n_dims; i++)
        id[i] = q->producer->dim[i].name;
    y = ax_subst(p->a, nest_renumbered(p->a, q->producer->out, q->map), id, x->kid, q->producer->n_dims);
    y->let = true;
    if (q->n < 64)
        q->at[q->n] = x, q->is[q->n++] = y;
    return y;
}

int nest_inline(struct nest *k, int i, const struct nest *producer)
{
    struct inlining q = {.producer = producer, .operand = i};
    struct nest_pass *p;

    for (int j = 0; j < producer->n_in; j++)
        if ((q.map[j] = nest_add_operand(k, &producer->in[j])) < 0)
            return -1;
    p = xcalloc(1, sizeof *p);
    p->a = k->arena, p->f = nest_inline_node, p->ctx = &q;
    nest_rewrite_nest(k, p);
    free(p);
    return 0;
}

struct appending {
    int operand;
    struct ax *value;
};

static struct ax *nest_append_node(struct nest_pass *p, struct ax *x)
{
    const struct appending *q = p->ctx;

    return x->kind == AX_LOAD && x->i == q->operand ? q->value : x;
}

/* Is every load of operand i in x at exactly the map's own place? */
static bool nest_reads_in_place(const struct nest *map, const struct ax *x, int i)
{
    if (x->kind == AX_LOAD && x->i == i) {
        for (int d = 0; d < x->n; d++)
            if (!ax_is_id(x->kid[d], map->dim[d].name) || x->ext[d].n != map->dim[d].n)
                return x->ext[d].n == 1 && map->dim[d].n == 1 ? true : false;
        return x->n == map->n_dims;
    }
    for (int k = 0; k < x->n; k++)
        if (!nest_reads_in_place(map, x->kid[k], i))
            return false;
    return true;
}

int nest_append(struct nest *k, const struct nest *map, int i)
{
    struct appending q = {-1, k->out};
    int slot[NEST_OPERANDS];
    const char *id[NEST_DIMS];
    struct ax *x;
    struct nest_pass *p;

    if (!tdesc_same_shape(&k->out_t, &map->out_t) || !nest_reads_in_place(map, map->out, i) ||
        map->n_dims != k->store->n)
        return -1;
    for (int j = 0; j < map->n_in; j++)
        if ((slot[j] = j == i ? NEST_OPERANDS : nest_add_operand(k, &map->in[j])) < 0)
            return -1;
    for (int j = 0; j < map->n_dims; j++)
        id[j] = map->dim[j].name;
    /* loads of the value itself first, while their indices are still the map's */
    x = nest_renumbered(k->arena, map->out, slot);
    q.operand = NEST_OPERANDS;
    q.value->let = true;
    x = ax_subst(k->arena, x, id, k->store->kid, map->n_dims);
    p = xcalloc(1, sizeof *p);
    p->a = k->arena, p->f = nest_append_node, p->ctx = &q;
    k->out = nest_rewrite(p, x);
    free(p);
    k->out_t = map->out_t;
    return 0;
}

/* ---- evaluation ---- */

double combine_identity(enum combine c)
{
    switch (c) {
    case C_SUM: return 0;
    case C_PROD: return 1;
    case C_MAX:
    case C_ARGMAX:
    case C_LOGADDEXP: return -INFINITY;
    case C_MIN:
    case C_ARGMIN: return INFINITY;
    }
    return 0;
}

#define SEEN_NAMES 64 /* a power of 2 */

/* seen: what a name meant when it was last asked for, by where its text lies. To compare texts for each element is
 * slow. */
struct env {
    const struct nest *k;
    const double *const *in;
    int at[NEST_DIMS];
    double stat[NEST_STATS];
    double acc;
    struct seen {
        const char *name;
        int what;
    } *seen;
};

/* Where the name's meaning is remembered, by its address. */
static struct seen *nest_seen_slot(const struct env *v, const char *name)
{
    return &v->seen[((uintptr_t)name >> 3 ^ (uintptr_t)name >> 9) & (SEEN_NAMES - 1)];
}

static double nest_do_eval(const struct env *v, const struct ax *x);

/* The flat element that a load reads. */
static int64_t nest_load_offset(const struct env *v, const struct ax *x)
{
    int64_t o = 0;

    for (int i = 0; i < x->n; i++)
        o = o * x->ext[i].n + (int64_t)nest_do_eval(v, x->kid[i]);
    return o;
}

/* The value of a name: an index, a statistic or the accumulator. A name without value aborts. */
static double nest_eval_id(const struct env *v, const char *s)
{
    struct seen *known = nest_seen_slot(v, s);

    if (known->name != s)
        *known = (struct seen){s, nest_find_dim(v->k, s)};
    if (known->what >= 0)
        return v->at[known->what];
    if (s[0] == 's' && s[1] >= '0' && s[1] <= '9')
        return v->stat[s[1] - '0'];
    if (!strcmp(s, "acc"))
        return v->acc;
    if (!strcmp(s, "INFINITY"))
        return INFINITY;
    fprintf(stderr, "musacoder: '%s' has no value in a nest\n", s);
    abort();
}

/* The value of a binary operation in doubles; && and || stop early. */
static double nest_eval_binary(const struct env *v, const struct ax *x)
{
    double a = nest_do_eval(v, x->kid[0]), b;
    bool ints = x->kid[1]->kind == AX_INT;

    if (x->s[0] == '&')
        return a && nest_do_eval(v, x->kid[1]);
    if (x->s[0] == '|')
        return a || nest_do_eval(v, x->kid[1]);
    b = nest_do_eval(v, x->kid[1]);
    if (x->s[1] == '=')
        return x->s[0] == '<' ? a <= b : x->s[0] == '>' ? a >= b : x->s[0] == '=' ? a == b : a != b;
    switch (x->s[0]) {
    case '+': return a + b;
    case '-': return a - b;
    case '*': return a * b;
    case '/': return ints ? (double)((long long)a / (long long)b) : a / b;
    case '%': return (double)((long long)a % (long long)b);
    case '<': return a < b;
    case '>': return a > b;
    }
    return NAN;
}

static double nest_as_float(double x)
{
    return x;
}

static const struct {
    const char *name;
    double (*f)(double);
} calls[] = {{"expf", exp},     {"logf", log},     {"tanhf", tanh},   {"erff", erf},     {"sqrtf", sqrt},   {"fabsf",
    fabs},
             {"log1pf", log1p}, {"expm1f", expm1}, {"floorf", floor}, {"ceilf", ceil},   {"rintf", rint},   {"sinf",
                 sin},
             {"cosf", cos},     {"tanf", tan},     {"asinf", asin},   {"acosf", acos},   {"atanf", atan},   {"sinhf",
                 sinh},
             {"coshf", cosh},   {"exp2f", exp2},   {"log2f", log2},   {"log10f", log10}, {"truncf", trunc}, {"float",
                 nest_as_float},
             {"asinhf", asinh}, {"acoshf", acosh}, {"atanhf", atanh}, {"cbrtf", cbrt},   {"lgammaf", lgamma},
                 {"erfcf", erfc}};

/* The function's row; -1: none. */
static int nest_find_call(const char *s)
{
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (!strcmp(s, calls[i].name))
            return (int)i;
    return -1;
}

/* The value of a call of CUDA's mathematics, in doubles. */
static double nest_eval_call(const struct env *v, const struct ax *x)
{
    const char *s = x->kid[0]->s;
    double a = nest_do_eval(v, x->kid[1]), b = x->n > 2 ? nest_do_eval(v, x->kid[2]) : 0;
    struct seen *known = nest_seen_slot(v, s);

    if (known->name != s)
        *known = (struct seen){s, nest_find_call(s)};
    if (known->what >= 0)
        return calls[known->what].f(a);
    if (!strcmp(s, "fmaxf") || !strcmp(s, "max"))
        return isnan(a) || isnan(b) ? NAN : a > b ? a : b;
    if (!strcmp(s, "fminf") || !strcmp(s, "min"))
        return isnan(a) || isnan(b) ? NAN : a < b ? a : b;
    if (!strcmp(s, "rsqrtf"))
        return 1 / sqrt(a);
    if (!strcmp(s, "powf"))
        return pow(a, b);
    if (!strcmp(s, "fmodf"))
        return fmod(a, b);
    if (!strcmp(s, "atan2f"))
        return atan2(a, b);
    if (!strcmp(s, "hypotf"))
        return hypot(a, b);
    if (!strcmp(s, "copysignf"))
        return copysign(a, b);
    if (!strcmp(s, "fmaf"))
        return a * b + nest_do_eval(v, x->kid[3]);
    fprintf(stderr, "musacoder: no meaning of '%s' in a nest\n", s);
    abort();
}

/* The value of an expression at the indices of v. */
static double nest_do_eval(const struct env *v, const struct ax *x)
{
    switch (x->kind) {
    case AX_ID: return nest_eval_id(v, x->s);
    case AX_INT: return (double)x->i;
    case AX_FLOAT: return x->f;
    case AX_UNARY: return x->s[0] == '!' ? !nest_do_eval(v, x->kid[0]) : -nest_do_eval(v, x->kid[0]);
    case AX_BINARY: return nest_eval_binary(v, x);
    case AX_COND: return nest_do_eval(v, x->kid[nest_do_eval(v, x->kid[0]) ? 1 : 2]);
    case AX_CALL: return nest_eval_call(v, x);
    case AX_CAST:
        return strstr(x->s, "int") || strstr(x->s, "long") ? trunc(nest_do_eval(v, x->kid[0]))
               : nest_do_eval(v, x->kid[0]);
    case AX_LOAD: return v->in[x->i][nest_load_offset(v, x)];
    default: return NAN;
    }
}

/* Moves to the next indices of these groups. False: they are at their first again. */
static bool nest_advance(const struct nest *k, unsigned groups, int at[])
{
    for (int i = k->n_dims - 1; i >= 0; i--) {
        if (!(groups >> k->dim[i].group & 1))
            continue;
        if (++at[i] < k->dim[i].n)
            return true;
        at[i] = 0;
    }
    return false;
}

struct nest_running {
    double v, index, n;
};

/* Takes x into a running reduction; NaN wins in maximum and minimum. */
static void nest_accumulate(struct nest_running *r, enum combine c, double x)
{
    bool better = c == C_ARGMAX ? x > r->v : x < r->v;

    switch (c) {
    case C_SUM: r->v += x; break;
    case C_PROD: r->v *= x; break;
    case C_MAX: r->v = isnan(x) || x > r->v ? x : r->v; break;
    case C_MIN: r->v = isnan(x) || x < r->v ? x : r->v; break;
    case C_ARGMAX:
    case C_ARGMIN:
        if (better || !r->n)
            r->v = x, r->index = r->n;
        break;
    case C_LOGADDEXP:
        r->v = r->v == -INFINITY ? x : x == -INFINITY ? r->v : fmax(r->v, x) + log1p(exp(-fabs(r->v - x)));
        break;
    }
    r->n++;
}

static double nest_finish(struct env *v, const struct stat *s, const struct nest_running *r)
{
    v->acc = s->c == C_ARGMAX || s->c == C_ARGMIN ? r->index : r->v;
    return s->fin ? nest_do_eval(v, s->fin) : v->acc;
}

/* Computes all statistics over the reduced groups. */
static void nest_run_stats(struct env *v, unsigned reduced)
{
    for (int i = 0; i < v->k->n_stats; i++) {
        const struct stat *s = &v->k->stat[i];
        struct nest_running r = {combine_identity(s->c), 0, 0};
        for (int d = 0; d < v->k->n_dims; d++)
            if (reduced >> v->k->dim[d].group & 1)
                v->at[d] = 0;
        do
            nest_accumulate(&r, s->c, nest_do_eval(v, s->elem));
        while (nest_advance(v->k, reduced, v->at));
        v->stat[i] = nest_finish(v, s, &r);
    }
}

static void nest_do_store(struct env *v, double *out)
{
    out[nest_load_offset(v, v->k->store)] = nest_do_eval(v, v->k->out);
}

/* Evaluates a nest that reduces: outer groups, reduced ones, and those that run again for the outputs. */
static void nest_eval_reducing(struct env *v, unsigned outer, unsigned reduced, unsigned again, double *out)
{
    do {
        nest_run_stats(v, reduced);
        for (int d = 0; d < v->k->n_dims; d++)
            if (again >> v->k->dim[d].group & 1)
                v->at[d] = 0;
        do
            nest_do_store(v, out);
        while (again && nest_advance(v->k, again, v->at));
    } while (nest_advance(v->k, outer, v->at));
}

/* Evaluates a nest of class scan into out. */
static void nest_eval_scan(struct env *v, double *out)
{
    int axis[NEST_DIMS], n_axis = nest_group(v->k, 1, axis), n = n_axis ? v->k->dim[axis[0]].n : 1;
    const struct stat *s = &v->k->stat[0];

    do {
        struct nest_running r = {combine_identity(s->c), 0, 0};
        for (int j = 0; j < n; j++) {
            if (n_axis)
                v->at[axis[0]] = v->k->flags & SCAN_REVERSE ? n - 1 - j : j;
            if (!(v->k->flags & SCAN_EXCLUSIVE))
                nest_accumulate(&r, s->c, nest_do_eval(v, s->elem));
            v->stat[0] = nest_finish(v, s, &r);
            nest_do_store(v, out);
            if (v->k->flags & SCAN_EXCLUSIVE)
                nest_accumulate(&r, s->c, nest_do_eval(v, s->elem));
        }
    } while (nest_advance(v->k, 1, v->at));
}

/* Evaluates a nest of class scatter into out. */
static void nest_eval_scatter(struct env *v, double *out)
{
    int64_t n = tdesc_numel(&v->k->out_t);

    for (int64_t i = 0; i < n; i++)
        out[i] = v->k->init < 0 ? 0 : v->in[v->k->init][i];
    do {
        struct nest_running r = {out[nest_load_offset(v, v->k->store)], 0, 1};
        nest_accumulate(&r, v->k->stat[0].c, nest_do_eval(v, v->k->stat[0].elem));
        out[nest_load_offset(v, v->k->store)] = r.v;
    } while (nest_advance(v->k, 1, v->at));
}

/* The attention score at the current indices. */
static double nest_score(struct env *v)
{
    double s = 0;

    do
        s += nest_do_eval(v, v->k->a) * nest_do_eval(v, v->k->b);
    while (nest_advance(v->k, 8, v->at));
    v->stat[0] = s;
    return nest_do_eval(v, v->k->stat[0].elem);
}

/* Evaluates a nest of class attend into out. */
static void nest_eval_attend(struct env *v, double *out)
{
    int n = (int)nest_extent(v->k, 2), i;
    double *p = xcalloc((size_t)n, sizeof *p), max, sum;

    do {
        max = -INFINITY, sum = 0, i = 0;
        do
            max = fmax(max, p[i] = nest_score(v)), i++;
        while (nest_advance(v->k, 4, v->at));
        for (i = 0; i < n; i++)
            sum += p[i] = exp(p[i] - max);
        do {
            double y = 0;
            i = 0;
            do
                y += p[i++] * nest_do_eval(v, v->k->c);
            while (nest_advance(v->k, 4, v->at));
            v->stat[0] = y / sum;
            nest_do_store(v, out);
        } while (nest_advance(v->k, 16, v->at));
    } while (nest_advance(v->k, 3, v->at));
    free(p);
}

void nest_eval(const struct nest *k, const double *const in[], double *out)
{
    struct seen seen[SEEN_NAMES] = {{0}};
    struct env v = {.k = k, .in = in, .seen = seen};

    switch (k->class) {
    case NEST_MAP:
        do
            nest_do_store(&v, out);
        while (nest_advance(k, 1, v.at));
        break;
    case NEST_REDUCE:
    case NEST_WINDOW: nest_eval_reducing(&v, 1, 2, 0, out); break;
    case NEST_ROW: nest_eval_reducing(&v, 1, 2, 2, out); break;
    case NEST_CONTRACT: nest_eval_reducing(&v, 7, 8, 0, out); break;
    case NEST_SCAN: nest_eval_scan(&v, out); break;
    case NEST_SCATTER: nest_eval_scatter(&v, out); break;
    case NEST_ATTEND: nest_eval_attend(&v, out); break;
    case N_NEST_CLASSES: break;
    }
}

/* ---- operands ---- */

bool nest_is_pure_map(const struct nest *k)
{
    if (k->class != NEST_MAP || k->store->n != k->n_dims)
        return false;
    for (int i = 0; i < k->n_dims; i++)
        if (!ax_is_id(k->store->kid[i], k->dim[i].name))
            return false;
    return true;
}

void nest_unify(struct nest *k)
{
    int map[NEST_OPERANDS + 1], n = 0;
    struct operand kept[NEST_OPERANDS];
    struct nest_pass *p = xcalloc(1, sizeof *p);

    for (int i = 0; i < k->n_in; i++) {
        bool used = nest_loads(k->a, i) || nest_loads(k->b, i) || nest_loads(k->c, i) || nest_loads(k->out, i);
        map[i] = -1;
        used |= k->class == NEST_SCATTER && i == k->init;
        for (int j = 0; j < k->n_stats; j++)
            used |= nest_loads(k->stat[j].elem, i);
        for (int j = 0; k->store && j < k->store->n; j++)
            used |= nest_loads(k->store->kid[j], i);
        for (int j = 0; j < n && map[i] < 0; j++)
            if (k->in[i].value >= 0 && kept[j].value == k->in[i].value)
                map[i] = j;
        if (map[i] < 0 && (used || (i == 0 && k->n_in == 1)))
            map[i] = n, kept[n++] = k->in[i];
    }
    for (int i = 0; i < k->n_in; i++)
        map[i] = map[i] < 0 ? 0 : map[i];
    p->a = k->arena, p->f = nest_renumber_node, p->ctx = map;
    nest_rewrite_nest(k, p);
    free(p);
    memcpy(k->in, kept, sizeof *kept * (size_t)n);
    k->n_in = n;
    if (k->init >= 0)
        k->init = (int8_t)map[k->init];
}

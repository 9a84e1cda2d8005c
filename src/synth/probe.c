/* probe.c - see probe.h. */
#include "synth/probe.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/folder.h"
#include "base/json.h"
#include "base/listing.h"
#include "base/log.h"
#include "synth/dag_draw.h"
#include "synth/program.h"
#include "synth/triviality.h"

struct probe {
    const struct probe_options *o;
    struct probe_stats n;
    FILE *values;
    struct listing *listing; /* of the folder; NULL without one */
};

struct probe_numbers {
    double *in[OP_INPUTS];
    double *out;
};

/* Multiples of 1/64: exact in every dtype that tasks use, up to 4 in bfloat16. */
static double probe_draw_value(struct rng *r, const struct op_call *c, int i)
{
    double v = rng_normal(r);

    if (c->in[i].dtype == DT_I64)
        return c->below[i] ? (double)rng_below(r, (uint64_t)c->below[i]) : (double)(int)rng_below(r, 40) - 20;
    v = (v < -3 ? -3 : v > 3 ? 3 : v) * 16;
    v = (double)(long)v / 16;
    if (c->op->domain.lo < c->op->domain.hi && i == 0) {
        double lo = c->op->domain.lo < -3 ? -3 : c->op->domain.lo, hi = c->op->domain.hi < lo + 6 ? c->op->domain.hi :
            lo + 6;
        v = lo + (double)(1 + rng_below(r, 62)) / 64 * (hi - lo);
    }
    return v;
}

/* Draws a call's inputs and computes its output in double. Freed by probe_free_numbers. */
static void probe_draw_numbers(struct rng *r, const struct op_call *c, struct probe_numbers *n)
{
    for (int i = 0; i < c->n_in; i++) {
        int64_t m = tdesc_numel(&c->in[i]);
        n->in[i] = xcalloc((size_t)m + 1, sizeof(double));
        for (int64_t k = 0; k < m; k++)
            n->in[i][k] = probe_draw_value(r, c, i);
    }
    n->out = xcalloc((size_t)tdesc_numel(&c->out) + 1, sizeof(double));
    c->op->ref(c, (const double *const *)n->in, n->out);
}

static void probe_free_numbers(const struct op_call *c, struct probe_numbers *n)
{
    for (int i = 0; i < c->n_in; i++)
        free(n->in[i]);
    free(n->out);
}

/* Do the loop nest and the reference disagree anywhere? Both compute in double: 1e-7 allows another order of sums. */
static bool probe_differs(const struct op_call *c, const struct nest *k, const struct probe_numbers *n)
{
    int64_t m = tdesc_numel(&c->out);
    double *got = xcalloc((size_t)m + 1, sizeof *got);
    bool bad = false;

    nest_eval(k, (const double *const *)n->in, got);
    for (int64_t i = 0; i < m && !bad; i++)
        bad = !(fabs(got[i] - n->out[i]) <= 1e-7 * (1 + fabs(n->out[i])) || (isnan(got[i]) && isnan(n->out[i])) ||
                got[i] == n->out[i]);
    free(got);
    return bad;
}

/* Compares the call's loop nest, plain and collapsed, with its reference; warns and counts. */
static void probe_check_ir(struct probe *p, const struct op_call *c, const struct probe_numbers *n)
{
    struct arena a = {0};
    struct nest k;
    bool before, after;
    struct buf b;

    op_lower(c, &a, &k);
    before = probe_differs(c, &k, n);
    nest_collapse(&k);
    after = probe_differs(c, &k, n);
    if (before || after) {
        buf_init(&b, 1 << 16);
        op_signature(c, &b);
        log_warn("the loop nest%s disagrees with the reference: %s", before ? "" : ", collapsed,", b.p);
        buf_free(&b);
        p->n.wrong++;
    }
    arena_free(&a);
}

/* New array; infinities and NaN as texts. */
static json_t *probe_numbers_json(const double *v, const struct tdesc *t)
{
    json_t *a = json_array();
    int64_t n = tdesc_numel(t);

    for (int64_t i = 0; i < n; i++)
        json_array_append_new(a, isfinite(v[i]) ? json_real(v[i]) : json_string(isnan(v[i]) ? "nan" : v[i] > 0 ?
            "inf" : "-inf"));
    return a;
}

/* Writes inputs and expected values of a call, for a check against PyTorch. */
static void probe_write_values(struct probe *p, const struct dag *g, const char *code, const struct probe_numbers *n)
{
    static const char *const dtypes[] = {"float32", "float16", "bfloat16", "int64"};
    const struct op_call *c = &g->node[0].c;
    json_t *v = json_pack("{s:s, s:s, s:[], s:o, s:o, s:s}", "op", c->op->name, "code", code, "inputs", "shape",
                          json_ints(c->out.d, c->out.rank), "output", probe_numbers_json(n->out, &c->out), "dtype",
                          dtypes[c->out.dtype]);
    char *text;

    for (int i = 0; i < c->n_in; i++)
        json_array_append_new(json_object_get(v, "inputs"),
                              json_pack("{s:o, s:o, s:s, s:b}", "shape", json_ints(c->in[i].d, c->in[i].rank), "data",
                                        probe_numbers_json(n->in[i], &c->in[i]), "dtype", dtypes[c->in[i].dtype],
                                        "param", g->value[g->node[0].in[i]].kind == VALUE_PARAM));
    text = json_text(v);
    fprintf(p->values, "%s\n", text);
    free(text);
    json_decref(v);
}

/* Writes the call's program under one schedule. */
static int probe_write_program(struct probe *p, const struct dag *g, struct kernels *k, const char *stem, struct rng *r,
    struct err *e)
{
    struct program_style s = {.sizes = (enum size_style)rng_below(r, 3)};
    struct arena a = {0};
    struct buf b;
    char *name = xasprintf("%s.%s.py", stem, k->k[0].s->name);
    struct afun *f;
    int rc;

    ast_style_draw(r, &s.c);
    buf_init(&b, BUF_MAX_TEXT);
    f = program_cuda(g, k, &s, &a, e);
    if (f)
        program_file(g, k, f, &s, &b);
    rc = f ? listing_write(p->listing, name, b.p, b.n, e) : -1;
    buf_free(&b);
    arena_free(&a);
    free(name);
    p->n.programs++;
    return rc;
}

/* Writes a program for each schedule that fits. */
static int probe_write_programs(struct probe *p, const struct dag *g, const char *stem, struct rng *r, struct err *e)
{
    const struct sched *fit[64];
    struct arena a = {0};
    struct kernels k;
    int n, rc = 0;

    fuse(g, FUSE_NONE, &a, &k);
    n = sched_for(&k.k[0].nest, fit, 64);
    if (!n)
        log_warn("no schedule fits %s (%s)", g->node[0].c.op->name, nest_class_names[k.k[0].nest.class]);
    for (int i = 0; i < n && !rc; i++) {
        k.k[0].s = fit[i];
        for (int t = 0; t < 3; t++)
            k.k[0].tuned[t] = sched_tune(fit[i], t, r);
        rc = probe_write_program(p, g, &k, stem, r, e);
    }
    arena_free(&a);
    return rc;
}

/* A graph of this call alone, in a drawn spelling. */
static void probe_one_node(const struct op_call *c, struct rng *r, struct dag *g)
{
    int in[OP_INPUTS] = {-1, -1, -1, -1, -1}, n = 0;

    while (n < OP_SPELLINGS && c->op->spell[n].call)
        n++;
    *g = (struct dag){0};
    dag_add(g, c, in, (uint8_t)rng_below(r, (uint64_t)n));
}

/* Probes one drawn call: nest, values, task and programs. */
static int probe_call(struct probe *p, const struct op_call *c, const char *stem, struct rng *r, struct err *e)
{
    struct dag g;
    int rc = 0;
    struct program_style s = {0};
    struct probe_numbers v;
    struct buf b;

    probe_one_node(c, r, &g);
    buf_init(&b, BUF_MAX_TEXT);
    program_task(&g, &s, &b);
    probe_draw_numbers(r, c, &v);
    probe_check_ir(p, c, &v);
    if (p->values)
        probe_write_values(p, &g, b.p, &v);
    if (p->o->out) {
        char *name = xasprintf("%s.py", stem);
        rc = listing_write(p->listing, name, b.p, b.n, e) < 0 || probe_write_programs(p, &g, stem, r, e) < 0 ? -1 : 0;
        free(name);
    }
    probe_free_numbers(c, &v);
    buf_free(&b);
    p->n.tasks++;
    return rc;
}

/* ---- whole graphs ---- */

/* Writes inputs and expected values of a graph. */
static void probe_graph_values(struct probe *p, const struct dag *g, const char *code, struct rng *r)
{
    static const char *const dtypes[] = {"float32", "float16", "bfloat16", "int64"};
    const struct tdesc *t = &g->value[dag_result(g)].t;
    double *leaf[DAG_VALUES], *out;
    json_t *inputs = json_array(), *v;
    int n = 0;
    char *text;

    for (int i = 0; i < g->n_values; i++)
        if (g->value[i].kind != VALUE_NODE) {
            int64_t m = tdesc_numel(&g->value[i].t);
            int below = dag_bound(g, i);
            leaf[n] = xcalloc((size_t)m + 1, sizeof(double));
            for (int64_t k = 0; k < m; k++)
                leaf[n][k] = g->value[i].t.dtype == DT_I64 ? (double)rng_below(r, below ? (uint64_t)below : 20)
                                                           : (double)(long)(rng_normal(r) * 16) / 16;
            json_array_append_new(inputs, json_pack("{s:o, s:o, s:s, s:b}", "shape",
                                                    json_ints(g->value[i].t.d, g->value[i].t.rank), "data",
                                                    probe_numbers_json(leaf[n], &g->value[i].t), "dtype",
                                                    dtypes[g->value[i].t.dtype], "param",
                                                    g->value[i].kind == VALUE_PARAM));
            n++;
        }
    out = dag_eval(g, (const double *const *)leaf);
    v = json_pack("{s:s, s:s, s:o, s:o, s:o, s:s}", "op", "graph", "code", code, "inputs", inputs, "shape",
        json_ints(t->d, t->rank),
                  "output", probe_numbers_json(out, t), "dtype", dtypes[t->dtype]);
    text = json_text(v);
    fprintf(p->values, "%s\n", text);
    for (int i = 0; i < n; i++)
        free(leaf[i]);
    free(out), free(text), json_decref(v);
}

/* Writes a graph's program at one level of fusion. */
static int probe_graph_program(struct probe *p, const struct dag *g, enum fusion level, const char *stem, struct rng *r,
    struct err *e)
{
    struct program_style s = {.sizes = (enum size_style)rng_below(r, 3)};
    struct arena a = {0};
    struct kernels *k = arena_alloc(&a, sizeof *k);
    char *name = xasprintf("%s.%s.py", stem, fusion_names[level]);
    struct afun *f = NULL;
    struct buf b;
    int rc = 0;

    buf_init(&b, BUF_MAX_TEXT);
    fuse(g, level, &a, k);
    ast_style_draw(r, &s.c);
    if (fuse_schedule(k, r) < 0)
        log_warn("a kernel of %s has no schedule", stem);
    else if (!(f = program_cuda(g, k, &s, &a, e)))
        rc = -1;
    if (f) {
        program_file(g, k, f, &s, &b);
        rc = listing_write(p->listing, name, b.p, b.n, e);
        p->n.programs++;
    }
    buf_free(&b), free(name), arena_free(&a);
    return rc;
}

/* Probes one drawn graph. */
static int probe_graph(struct probe *p, const struct dag_table *t, int i, struct err *e)
{
    struct dag_limits l = {.l = {.max_numel = p->o->max_numel, .max_work = (int64_t)p->o->max_numel * 64,
                                 .dtypes = p->o->dtypes}, .min_ops = 2, .max_ops = 7, .anchors = 2};
    struct program_style s = {.docstring = i % 2, .reuse = i % 3 == 0};
    struct dag g;
    struct rng r;
    struct buf b;
    char stem[40];
    int rc = 0;

    rng_seed(&r, p->o->seed, (uint64_t)i);
    snprintf(stem, sizeof stem, "graph_%04d", i);
    dag_draw(t, &r, &l, &g);
    buf_init(&b, BUF_MAX_TEXT);
    program_task(&g, &s, &b);
    if (p->values)
        probe_graph_values(p, &g, b.p, &r);
    if (p->o->out) {
        char *name = xasprintf("%s.py", stem);
        rc = listing_write(p->listing, name, b.p, b.n, e);
        for (int f = 0; f < N_FUSIONS && !rc; f++)
            rc = probe_graph_program(p, &g, (enum fusion)f, stem, &r, e);
        free(name);
    }
    buf_free(&b);
    p->n.tasks++;
    return rc;
}

/* Probes as many drawn graphs as there are tasks wanted. */
static int probe_graphs(struct probe *p, struct err *e)
{
    struct dag_table *t = dag_table_new(NULL);
    int rc = 0;

    for (int i = 0; i < p->o->tasks && !rc; i++)
        rc = probe_graph(p, t, i, e);
    dag_table_free(t);
    p->n.ops = 1;
    return rc;
}

#define TRIVIALITY_TRIES 60

/* Of a task that is written, one that an answer without work would not pass, where the operator has such uses. */
static bool probe_draw_use(struct probe *p, const struct opdef *op, const struct op_limits *l, struct rng *r,
                           struct op_call *ret)
{
    const char *why = NULL;

    for (int i = 0; i < (p->o->out ? TRIVIALITY_TRIES : 1); i++) {
        struct dag g;
        struct rng again;
        if (!op_draw(op, r, l, ret))
            return false;
        if (!p->o->out)
            return true;
        again = *r;
        probe_one_node(ret, &again, &g);
        why = triviality_reason(&g, &again);
        if (!why)
            return true;
    }
    log_warn("of '%s' no use was drawn that is worth asking for: %s", op->name, why);
    return true;
}

/* Probes an operator with drawn calls. */
static int probe_op(struct probe *p, const struct opdef *op, int index, struct err *e)
{
    struct op_limits l = {.max_numel = p->o->max_numel, .max_work = (int64_t)p->o->max_numel * 64,
                          .dtypes = p->o->dtypes};
    struct rng r;

    (void)index;
    for (int i = 0; i < p->o->tasks; i++) {
        struct op_call c;
        char stem[80];
        rng_seed(&r, p->o->seed + (unsigned long long)i,
            (uint64_t)op->name[0] << 40 | (uint64_t)strlen(op->name) << 32 | (uint64_t)i);
        snprintf(stem, sizeof stem, "%.60s_%04d", op->name, i);
        if (!probe_draw_use(p, op, &l, &r, &c))
            return err_set(e, ERR_BUG, "operator '%s' draws nothing within %d elements", op->name, l.max_numel);
        if (probe_call(p, &c, stem, &r, e) < 0)
            return -1;
    }
    p->n.ops++;
    return 0;
}

int probe_write(const struct probe_options *o, struct probe_stats *ret, struct err *e)
{
    struct probe p = {.o = o};
    bool graphs = o->ops && !strcmp(o->ops, "graphs");
    uint8_t *mask = graphs ? NULL : op_select(o->ops, e);
    int n, rc = !graphs && !mask ? -1 : o->out ? folder_claim(o->out, "these probes", e) : 0;
    const struct opdef *const *rows = op_rows(&n);

    if (!rc && o->out)
        rc = listing_begin(o->out, NULL, &p.listing, e);
    if (!rc && o->values && !(p.values = fopen(o->values, "w")))
        rc = err_sys(e, "cannot write '%s'", o->values);
    if (!rc && graphs)
        rc = probe_graphs(&p, e);
    for (int i = 0; i < n && !rc; i++)
        if (mask && mask[i])
            rc = probe_op(&p, rows[i], i, e);
    if (p.values && fclose(p.values))
        rc = err_sys(e, "cannot write '%s'", o->values);
    if (!rc && p.listing)
        rc = listing_end(p.listing, false, NULL, e);
    listing_free(p.listing);
    free(mask);
    *ret = p.n;
    return rc;
}

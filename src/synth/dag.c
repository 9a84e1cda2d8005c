/* dag.c - see dag.h. */
#include "synth/dag.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* A new value; its number. */
static int dag_add_value(struct dag *g, const struct tdesc *t, enum value_kind kind)
{
    struct dag_value *v = &g->value[g->n_values];

    *v = (struct dag_value){.t = *t, .kind = (uint8_t)kind, .node = -1, .range = {-VALUE_RANGE, VALUE_RANGE}};
    return g->n_values++;
}

int dag_add_input(struct dag *g, const struct tdesc *t)
{
    return g->n_values < DAG_VALUES ? dag_add_value(g, t, VALUE_INPUT) : -1;
}

static bool dag_is_param(const struct op_call *c, int i, uint8_t spelling)
{
    return c->op->n_params && c->op->spell[spelling].init && i > 0;
}

int dag_add(struct dag *g, const struct op_call *c, const int in[], uint8_t spelling)
{
    struct dag_node *p = &g->node[g->n_nodes];

    if (g->n_nodes == DAG_NODES || g->n_values + c->n_in + 1 > DAG_VALUES)
        return -1;
    p->c = *c;
    p->spelling = spelling;
    for (int i = 0; i < c->n_in; i++) {
        int v = in[i];
        if (v < 0) {
            v = dag_add_value(g, &c->in[i], dag_is_param(c, i, spelling) ? VALUE_PARAM : VALUE_INPUT);
            g->value[v].node = (int8_t)g->n_nodes, g->value[v].slot = (int8_t)i;
        }
        g->value[v].uses++;
        p->in[i] = (int16_t)v;
    }
    p->out = (int16_t)dag_add_value(g, &c->out, VALUE_NODE);
    g->value[p->out].node = (int8_t)g->n_nodes;
    return g->n_nodes++;
}

int dag_result(const struct dag *g)
{
    return g->node[g->n_nodes - 1].out;
}

int dag_bound(const struct dag *g, int value)
{
    int below = 0;

    for (int n = 0; n < g->n_nodes; n++)
        for (int i = 0; i < g->node[n].c.n_in; i++)
            if (g->node[n].in[i] == value && g->node[n].c.below[i] && (!below || g->node[n].c.below[i] < below))
                below = g->node[n].c.below[i];
    return below;
}

/* The part that holds most of what people would feed: six wide at most. */
struct op_interval dag_domain(const struct dag *g, int value)
{
    for (int n = 0; n < g->n_nodes && g->value[value].kind == VALUE_INPUT; n++) {
        struct op_interval d = g->node[n].c.op->domain;
        if (!g->node[n].c.n_in || g->node[n].in[0] != value || d.lo >= d.hi ||
            (d.lo <= -VALUE_RANGE && d.hi >= VALUE_RANGE))
            continue;
        d.lo = d.lo < -3 ? -3 : d.lo;
        d.hi = d.hi < d.lo + 6 ? d.hi : d.lo + 6;
        return d;
    }
    return (struct op_interval){0, 0};
}

void dag_pop(struct dag *g)
{
    const struct dag_node *p = &g->node[--g->n_nodes];

    for (int i = 0; i < p->c.n_in; i++)
        g->value[p->in[i]].uses--;
    g->n_values = p->out;
    while (g->n_values && g->value[g->n_values - 1].node == g->n_nodes && g->value[g->n_values - 1].uses == 0 &&
           g->value[g->n_values - 1].kind != VALUE_NODE)
        g->n_values--;
}

/* Marks the nodes and values that the result depends on. */
static void dag_mark_needed(const struct dag *g, bool node[], bool value[])
{
    value[dag_result(g)] = true;
    for (int n = g->n_nodes - 1; n >= 0; n--) {
        node[n] = value[g->node[n].out];
        for (int i = 0; i < g->node[n].c.n_in && node[n]; i++)
            value[g->node[n].in[i]] = true;
    }
}

void dag_prune(struct dag *g)
{
    bool node[DAG_NODES] = {0}, value[DAG_VALUES] = {0};
    int16_t new_node[DAG_NODES], new_value[DAG_VALUES];
    int nodes = 0, values = 0;

    dag_mark_needed(g, node, value);
    for (int n = 0; n < g->n_nodes; n++)
        new_node[n] = (int16_t)nodes, nodes += node[n];
    for (int i = 0; i < g->n_values; i++)
        new_value[i] = (int16_t)values, values += value[i];
    if (nodes == g->n_nodes && values == g->n_values)
        return;
    for (int i = 0; i < g->n_values; i++)
        if (value[i]) {
            struct dag_value v = g->value[i];
            v.uses = 0;
            v.node = v.node < 0 ? v.node : (int8_t)new_node[v.node];
            g->value[new_value[i]] = v;
        }
    for (int n = 0; n < g->n_nodes; n++)
        if (node[n]) {
            struct dag_node *p = &g->node[new_node[n]];
            if (p != &g->node[n])
                *p = g->node[n];
            p->out = new_value[p->out];
            for (int i = 0; i < p->c.n_in; i++)
                p->in[i] = new_value[p->in[i]], g->value[p->in[i]].uses++;
        }
    g->n_nodes = nodes, g->n_values = values;
}

static double *dag_new_value(const struct tdesc *t)
{
    return xcalloc((size_t)tdesc_numel(t) + 1, sizeof(double));
}

/* v: the values before it. */
static void dag_eval_node(const struct dag *g, int node, double *const v[], double *out)
{
    const double *operand[OP_INPUTS];
    const struct dag_node *n = &g->node[node];

    for (int k = 0; k < n->c.n_in; k++)
        operand[k] = v[n->in[k]];
    n->c.op->ref(&n->c, operand, out);
}

void dag_eval_all(const struct dag *g, const double *const in[], double *v[])
{
    int leaves = 0;

    for (int i = 0; i < g->n_values; i++) {
        const struct dag_value *p = &g->value[i];
        v[i] = dag_new_value(&p->t);
        if (p->kind == VALUE_NODE)
            dag_eval_node(g, p->node, v, v[i]);
        else
            memcpy(v[i], in[leaves++], sizeof(double) * (size_t)tdesc_numel(&p->t));
    }
}

void dag_values_free(const struct dag *g, double *v[])
{
    for (int i = 0; i < g->n_values; i++)
        free(v[i]);
}

double *dag_eval(const struct dag *g, const double *const in[])
{
    double *v[DAG_VALUES], *ret;

    dag_eval_all(g, in, v);
    ret = v[dag_result(g)];
    v[dag_result(g)] = NULL;
    dag_values_free(g, v);
    return ret;
}

/* Evaluates a node by another nest. */
static void dag_replace_node(const struct dag *g, int node, const struct nest *nest, double *const v[], double *out)
{
    const double *operand[OP_INPUTS];

    for (int k = 0; k < g->node[node].c.n_in; k++)
        operand[k] = v[g->node[node].in[k]];
    if (nest)
        nest_eval(nest, operand, out);
    else
        memcpy(out, operand[0], sizeof(double) * (size_t)tdesc_numel(&g->node[node].c.out));
}

/* True where one of the node's inputs was changed. */
static bool dag_reads_changed(const struct dag_node *n, const bool changed[])
{
    for (int k = 0; k < n->c.n_in; k++)
        if (changed[n->in[k]])
            return true;
    return false;
}

double *dag_eval_with(const struct dag *g, double *const v[], int node, const struct nest *nest)
{
    double *w[DAG_VALUES], *ret;
    bool changed[DAG_VALUES] = {false};
    int last = dag_result(g);

    for (int i = 0; i < g->n_values; i++) {
        const struct dag_value *p = &g->value[i];
        w[i] = v[i];
        changed[i] = p->kind == VALUE_NODE && (p->node == node || dag_reads_changed(&g->node[p->node], changed));
        if (!changed[i])
            continue;
        w[i] = dag_new_value(&p->t);
        if (p->node == node)
            dag_replace_node(g, node, nest, w, w[i]);
        else
            dag_eval_node(g, p->node, w, w[i]);
    }
    ret = changed[last] ? w[last] : dag_new_value(&g->value[last].t);
    if (!changed[last])
        memcpy(ret, v[last], sizeof(double) * (size_t)tdesc_numel(&g->value[last].t));
    for (int i = 0; i < g->n_values; i++)
        if (changed[i] && i != last)
            free(w[i]);
    return ret;
}

/* ---- hash ---- */

/* The hash h with x mixed in. */
static uint64_t dag_mix(uint64_t h, uint64_t x)
{
    h ^= x + 0x9e3779b97f4a7c15u + (h << 6) + (h >> 2);
    h ^= h >> 30;
    h *= 0xbf58476d1ce4e5b9u;
    h ^= h >> 27;
    return h * 0x94d049bb133111ebu;
}

static uint64_t dag_hash_text(const char *s)
{
    uint64_t h = 1469598103934665603u;

    for (; *s; s++)
        h = (h ^ (unsigned char)*s) * 1099511628211u;
    return h;
}

/* h mixed with a tensor's dtype and sizes. */
static uint64_t dag_hash_shape(uint64_t h, const struct tdesc *t)
{
    h = dag_mix(h, (uint64_t)t->dtype << 8 | t->rank);
    for (int i = 0; i < t->rank; i++)
        h = dag_mix(h, (uint64_t)t->d[i]);
    return h;
}

/* Hash of an operator and its arguments; without shapes, of its name alone. */
static uint64_t dag_hash_call(const struct op_call *c, bool with_shapes)
{
    uint64_t h = dag_hash_text(c->op->name), u;

    for (int i = 0; i < OP_INTS && with_shapes; i++)
        h = dag_mix(h, (uint64_t)c->i[i]);
    for (int i = 0; i < OP_REALS && with_shapes; i++)
        memcpy(&u, &c->f[i], sizeof u), h = dag_mix(h, u);
    return h;
}

/* Values are in topological order, so one pass downwards labels what each value is computed from. A second pass upwards
 * adds how values are shared: two uses of one value differ from two equal values. */
uint64_t dag_hash(const struct dag *g, bool with_shapes)
{
    uint64_t down[DAG_VALUES], up[DAG_VALUES] = {0}, h = 0;

    for (int i = 0; i < g->n_values; i++) {
        const struct dag_value *v = &g->value[i];
        down[i] = dag_mix(v->kind == VALUE_NODE ? 7 : 3, v->kind == VALUE_PARAM ? (uint64_t)v->slot + 11 : 5);
        if (v->kind == VALUE_NODE) {
            const struct dag_node *p = &g->node[v->node];
            uint64_t sum = 0;
            down[i] = dag_mix(down[i], dag_hash_call(&p->c, with_shapes));
            for (int k = 0; k < p->c.n_in; k++)
                if (p->c.op->commutes)
                    sum += dag_mix(down[p->in[k]], 13);
                else
                    down[i] = dag_mix(down[i], down[p->in[k]]);
            down[i] = dag_mix(down[i], sum);
        }
        if (with_shapes)
            down[i] = dag_hash_shape(down[i], &v->t);
    }
    for (int n = g->n_nodes - 1; n >= 0; n--) {
        const struct dag_node *p = &g->node[n];
        for (int k = 0; k < p->c.n_in; k++)
            up[p->in[k]] += dag_mix(dag_mix(up[p->out], dag_hash_text(p->c.op->name)),
                                    p->c.op->commutes ? 0 : (uint64_t)k + 1);
    }
    for (int i = 0; i < g->n_values; i++)
        h += dag_mix(down[i], up[i]);
    return dag_mix(h, down[dag_result(g)]);
}

/* dag.c - see dag.h. */
#include "synth/dag.h"

#include <string.h>

static int add_value(struct dag *g, const struct tdesc *t, enum value_kind kind)
{
    struct dag_value *v = &g->value[g->n_values];

    *v = (struct dag_value){.t = *t, .kind = (uint8_t)kind, .node = -1, .range = {-VALUE_RANGE, VALUE_RANGE}};
    return g->n_values++;
}

int dag_add_input(struct dag *g, const struct tdesc *t)
{
    return g->n_values < DAG_VALUES ? add_value(g, t, VALUE_INPUT) : -1;
}

static bool is_param(const struct call *c, int i, uint8_t spelling)
{
    return c->op->n_params && c->op->spell[spelling].init && i > 0;
}

int dag_add(struct dag *g, const struct call *c, const int in[], uint8_t spelling)
{
    struct dag_node *p = &g->node[g->n_nodes];

    if (g->n_nodes == DAG_NODES || g->n_values + c->n_in + 1 > DAG_VALUES)
        return -1;
    p->c = *c;
    p->spelling = spelling;
    for (int i = 0; i < c->n_in; i++) {
        int v = in[i];
        if (v < 0) {
            v = add_value(g, &c->in[i], is_param(c, i, spelling) ? VALUE_PARAM : VALUE_INPUT);
            g->value[v].node = (int8_t)g->n_nodes, g->value[v].slot = (int8_t)i;
        }
        g->value[v].uses++;
        p->in[i] = (int16_t)v;
    }
    p->out = (int16_t)add_value(g, &c->out, VALUE_NODE);
    g->value[p->out].node = (int8_t)g->n_nodes;
    return g->n_nodes++;
}

int dag_result(const struct dag *g)
{
    return g->node[g->n_nodes - 1].out;
}

/* ---- hash ---- */

static uint64_t mix(uint64_t h, uint64_t x)
{
    h ^= x + 0x9e3779b97f4a7c15u + (h << 6) + (h >> 2);
    h ^= h >> 30;
    h *= 0xbf58476d1ce4e5b9u;
    h ^= h >> 27;
    return h * 0x94d049bb133111ebu;
}

static uint64_t hash_text(const char *s)
{
    uint64_t h = 1469598103934665603u;

    for (; *s; s++)
        h = (h ^ (unsigned char)*s) * 1099511628211u;
    return h;
}

static uint64_t hash_shape(uint64_t h, const struct tdesc *t)
{
    h = mix(h, (uint64_t)t->dtype << 8 | t->rank);
    for (int i = 0; i < t->rank; i++)
        h = mix(h, (uint64_t)t->d[i]);
    return h;
}

static uint64_t hash_call(const struct call *c, bool with_shapes)
{
    uint64_t h = hash_text(c->op->name), u;

    for (int i = 0; i < OP_INTS && with_shapes; i++)
        h = mix(h, (uint64_t)c->i[i]);
    for (int i = 0; i < OP_REALS && with_shapes; i++)
        memcpy(&u, &c->f[i], sizeof u), h = mix(h, u);
    return h;
}

/* Values are in topological order, so one pass downwards labels what each value is computed from. A second pass upwards
 * adds how values are shared: two uses of one value differ from two equal values. */
uint64_t dag_hash(const struct dag *g, bool with_shapes)
{
    uint64_t down[DAG_VALUES], up[DAG_VALUES] = {0}, h = 0;

    for (int i = 0; i < g->n_values; i++) {
        const struct dag_value *v = &g->value[i];
        down[i] = mix(v->kind == VALUE_NODE ? 7 : 3, v->kind == VALUE_PARAM ? (uint64_t)v->slot + 11 : 5);
        if (v->kind == VALUE_NODE) {
            const struct dag_node *p = &g->node[v->node];
            uint64_t sum = 0;
            down[i] = mix(down[i], hash_call(&p->c, with_shapes));
            for (int k = 0; k < p->c.n_in; k++)
                if (p->c.op->commutes)
                    sum += mix(down[p->in[k]], 13);
                else
                    down[i] = mix(down[i], down[p->in[k]]);
            down[i] = mix(down[i], sum);
        }
        if (with_shapes)
            down[i] = hash_shape(down[i], &v->t);
    }
    for (int n = g->n_nodes - 1; n >= 0; n--) {
        const struct dag_node *p = &g->node[n];
        for (int k = 0; k < p->c.n_in; k++)
            up[p->in[k]] += mix(mix(up[p->out], hash_text(p->c.op->name)), p->c.op->commutes ? 0 : (uint64_t)k + 1);
    }
    for (int i = 0; i < g->n_values; i++)
        h += mix(down[i], up[i]);
    return mix(h, down[dag_result(g)]);
}

void dag_text(const struct dag *g, struct buf *out)
{
    for (int n = 0; n < g->n_nodes; n++) {
        const struct dag_node *p = &g->node[n];
        buf_addf(out, "v%d =", p->out);
        for (int k = 0; k < p->c.n_in; k++)
            buf_addf(out, " v%d", p->in[k]);
        buf_addc(out, ' ');
        op_signature(&p->c, out);
        buf_addc(out, '\n');
    }
}

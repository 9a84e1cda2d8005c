/* heldout.c - see heldout.h. */
#include "synth/heldout.h"

#include <math.h>
#include <string.h>

#include "base/hash.h"

const char *const heldout_names[N_HELD] = {"same", "attributes", "operators", "style"};

/* One or two of each family; no two that are each other's only relatives. */
static const char *const operators[] = {
    "atan",        "cosh",      "ceil",    "log1p",      "minimum",   "sq_diff",   "hardswish", "softsign",
    "amin",        "mean_abs",  "cummin",  "avg_pool1d", "conv1d",    "mv",        "softmin",   "l1_normalize",
    "smooth_l1_loss", "flip",   "narrow",  "index_add",
};

bool heldout_graph(uint64_t hash)
{
    return hash % 8 == 0;
}

bool heldout_operator(const struct opdef *op)
{
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        if (!strcmp(op->name, operators[i]))
            return true;
    return false;
}

/* Sizes up to eight are everybody's; of the others, one in four. */
bool heldout_size(int n)
{
    return n > 8 && hash64(&n, sizeof n, 41) % 4 == 0;
}

bool heldout_constant(double x)
{
    long thousandths = lround(x * 1000);

    return thousandths != 0 && thousandths != 1000 && thousandths != -1000 &&
           hash64(&thousandths, sizeof thousandths, 42) % 4 == 0;
}

/* "$0.tanh()", "$0.abs().sum(..)" */
bool heldout_spelling(const struct opdef *op, int spelling)
{
    return !strncmp(op->spell[spelling].call, "$0.", 3);
}

bool heldout_has_operator(const struct dag *g)
{
    for (int n = 0; n < g->n_nodes; n++)
        if (heldout_operator(g->node[n].c.op))
            return true;
    return false;
}

bool heldout_has_attribute(const struct dag *g)
{
    for (int i = 0; i < g->n_values; i++)
        for (int d = 0; g->value[i].kind != VALUE_NODE && d < g->value[i].t.rank; d++)
            if (heldout_size(g->value[i].t.d[d]))
                return true;
    for (int n = 0; n < g->n_nodes; n++) // a clamp's bounds are mostly the next operator's domain
        for (int i = 0; i < OP_REALS && strcmp(g->node[n].c.op->name, "clamp"); i++)
            if (heldout_constant(g->node[n].c.f[i]))
                return true;
    return false;
}

/* -1 if the operator has none of this kind. Whether a spelling is a module decides what is a parameter: that stays. */
static int other_spelling(const struct dag_node *p, bool held, struct rng *r)
{
    const struct opdef *op = p->c.op;
    bool module = op->spell[p->spelling].init != NULL;
    int fit[OP_SPELLINGS], n = 0;

    for (int i = 0; i < OP_SPELLINGS && op->spell[i].call; i++)
        if (heldout_spelling(op, i) == held && (op->spell[i].init != NULL) == module)
            fit[n++] = i;
    return n ? fit[draw_below(r, (uint64_t)n)] : -1;
}

bool heldout_spell(struct dag *g, bool held, struct rng *r)
{
    int changed = 0;

    for (int n = 0; n < g->n_nodes; n++) {
        int s = other_spelling(&g->node[n], held, r);
        if (s < 0 && !held && heldout_spelling(g->node[n].c.op, g->node[n].spelling))
            return false;
        if (s >= 0)
            g->node[n].spelling = (uint8_t)s, changed++;
    }
    return !held || changed > 0;
}

/* heldout.c - see heldout.h. */
#include "synth/heldout.h"

#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"

const char *const heldout_names[N_HELD] = {"same", "attributes", "style", "learned", "unseen"};
const char *const op_class_names[N_OP_CLASSES] = {"taught", "known", "unseen"};

/* One or two of each family; no two that are each other's only relatives. */
static const char *const unseen[] = {
    "atan",        "cosh",      "ceil",    "log1p",      "minimum",   "sq_diff",   "hardswish", "softsign",
    "amin",        "mean_abs",  "cummin",  "avg_pool1d", "conv1d",    "mv",        "softmin",   "l1_normalize",
    "smooth_l1_loss", "flip",   "narrow",  "index_add",
};

/* By rule, at 171 operators: each family's rows in the order of hash64(name, length, 43), without unseen ones and
 * without 30 that most networks are made of (relu, add, matmul, conv2d, ..); of these the first sixth of the family,
 * at least one. */
static const char *const known[] = {
    "softplus",   "softshrink",       "clamp_min",   "threshold",  "celu",    "attention_causal",  "div_safe",
    "maximum",    "abs_diff",         "conv_transpose2d", "gather", "pairwise_distance", "huber_loss", "hinge_loss",
    "erfc",       "expm1",            "tan",         "step",       "frac",    "sign",              "exp2",
    "add_scalar", "diag_matmul",      "tril",        "upsample_nearest", "pixel_shuffle", "frobenius_normalize",
    "l2_normalize", "max_pool3d",     "argmin",      "norm2",      "norm1",   "cummax",            "cumprod",
    "log_softmax",
};

bool heldout_graph(uint64_t hash)
{
    return hash % 8 == 0;
}

enum op_class heldout_name_class(const char *name)
{
    if (text_is_among(name, unseen, sizeof unseen / sizeof *unseen))
        return OP_UNSEEN;
    return text_is_among(name, known, sizeof known / sizeof *known) ? OP_KNOWN : OP_TAUGHT;
}

enum op_class heldout_class(const struct opdef *op)
{
    return heldout_name_class(op->name);
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

/* True where a node's operator is of that class. */
bool heldout_has_operator(const struct dag *g, enum op_class c)
{
    for (int n = 0; n < g->n_nodes; n++)
        if (heldout_class(g->node[n].c.op) == c)
            return true;
    return false;
}

bool heldout_has_attribute(const struct dag *g)
{
    for (int i = 0; i < g->n_values; i++)
        for (int d = 0; g->value[i].kind != VALUE_NODE && d < g->value[i].t.rank; d++)
            if (heldout_size(g->value[i].t.d[d]))
                return true;
    for (int n = 0; n < g->n_nodes; n++) /* a clamp's bounds are mostly the next operator's domain */
        for (int i = 0; i < OP_REALS && strcmp(g->node[n].c.op->name, "clamp"); i++)
            if (heldout_constant(g->node[n].c.f[i]))
                return true;
    return false;
}

/* -1 if the operator has none of this kind. Whether a spelling is a module decides what is a parameter: that stays. */
static int heldout_other_spelling(const struct dag_node *p, bool held, struct rng *r)
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
        int s = heldout_other_spelling(&g->node[n], held, r);
        if (s < 0 && !held && heldout_spelling(g->node[n].c.op, g->node[n].spelling))
            return false;
        if (s >= 0)
            g->node[n].spelling = (uint8_t)s, changed++;
    }
    return !held || changed > 0;
}

/* fuse.c - see fuse.h. */
#include "synth/fuse.h"

#include <string.h>

const char *const fusion_names[N_FUSIONS] = {"none", "epilogue", "all"};

/* One operand for each value: a value that a node reads twice is one pointer. */
static void fuse_lower_node(const struct dag *g, int n, struct arena *a, struct kernel *ret)
{
    const struct dag_node *p = &g->node[n];

    op_lower(&p->c, a, &ret->nest);
    for (int i = 0; i < p->c.n_in; i++)
        ret->nest.in[i].value = p->in[i];
    nest_unify(&ret->nest);
    ret->out = p->out;
    ret->s = NULL;
}

static void fuse_remove_kernel(struct kernels *k, int i)
{
    memmove(k->k + i, k->k + i + 1, sizeof *k->k * (size_t)(k->n - i - 1));
    k->n--;
}

/* The operand that reads the value; -1: none does. */
static int fuse_operand_of(const struct nest *k, int value)
{
    for (int i = 0; i < k->n_in; i++)
        if (k->in[i].value == value)
            return i;
    return -1;
}

/* How many kernels read the value. */
static int fuse_readers(const struct kernels *k, int value)
{
    int n = 0;

    for (int i = 0; i < k->n; i++)
        n += fuse_operand_of(&k->k[i].nest, value) >= 0;
    return n;
}

static bool fuse_may_append(const struct nest *k)
{
    return k->class != NEST_SCATTER;
}

/* The map at i joins the kernel that makes one of its operands, if nothing else reads that. */
static bool fuse_append_at(struct kernels *k, int i)
{
    struct kernel *c = &k->k[i];

    for (int j = 0; c->nest.class == NEST_MAP && j < i; j++) {
        int at = fuse_operand_of(&c->nest, k->k[j].out);
        struct nest trial;
        if (at < 0 || fuse_readers(k, k->k[j].out) != 1 || !fuse_may_append(&k->k[j].nest))
            continue;
        trial = k->k[j].nest;
        if (nest_append(&trial, &c->nest, at) < 0)
            continue;
        c->nest = trial;
        nest_unify(&c->nest);
        fuse_remove_kernel(k, j);
        return true;
    }
    return false;
}

static bool fuse_may_inline(const struct nest *producer, const struct nest *k)
{
    return producer->class == NEST_MAP && k->class != NEST_ATTEND && nest_is_pure_map(producer);
}

/* Inlines kernel j into its only reader. False: it has several, or the nest cannot take it. */
static bool fuse_inline_at(struct kernels *k, int j)
{
    for (int i = j + 1; i < k->n && fuse_readers(k, k->k[j].out) == 1; i++) {
        int at = fuse_operand_of(&k->k[i].nest, k->k[j].out);
        struct nest trial;
        if (at < 0 || !fuse_may_inline(&k->k[j].nest, &k->k[i].nest))
            continue;
        trial = k->k[i].nest;
        if (nest_inline(&trial, at, &k->k[j].nest) < 0)
            return false;
        k->k[i].nest = trial;
        nest_unify(&k->k[i].nest);
        fuse_remove_kernel(k, j);
        return true;
    }
    return false;
}

/* Lowers the graph to kernels and fuses them up to the level. */
void fuse(const struct dag *g, enum fusion level, struct arena *a, struct kernels *ret)
{
    ret->n = 0;
    for (int n = 0; n < g->n_nodes; n++)
        fuse_lower_node(g, n, a, &ret->k[ret->n++]);
    for (int i = 0; level >= FUSE_EPILOGUE && i < ret->n;)
        i = fuse_append_at(ret, i) ? 0 : i + 1;
    for (int j = 0; level >= FUSE_ALL && j < ret->n;)
        j = fuse_inline_at(ret, j) ? 0 : j + 1;
    for (int i = 0; i < ret->n; i++)
        nest_collapse(&ret->k[i].nest);
}

int fuse_schedule(struct kernels *k, struct rng *r)
{
    const struct sched *fit[64];

    for (int i = 0; i < k->n; i++) {
        int n = sched_for(&k->k[i].nest, fit, 64);
        if (!n)
            return -1;
        k->k[i].s = fit[r ? rng_below(r, (uint64_t)n) : 0];
        for (int t = 0; t < 3; t++)
            k->k[i].tuned[t] = sched_tune(k->k[i].s, t, r);
    }
    return 0;
}

void fuse_untuned(struct kernels *k)
{
    for (int i = 0; i < k->n; i++)
        for (int t = 0; t < 3; t++)
            k->k[i].tuned[t] = sched_tune(k->k[i].s, t, NULL);
}

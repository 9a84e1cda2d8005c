/* ast_mutate.c - see ast_mutate.h. A kind is a row: which nodes it may edit, and the edit. */
#include "synth/ir/ast_mutate.h"

#include <string.h>

/* A place: a statement in its list, or an expression. */
struct place {
    struct as **at;
    struct ax *x;
    const struct afun *f;
};

#define PLACES 256
struct places {
    struct place v[PLACES];
    int n;
};

typedef bool (*statement_test)(const struct as *s);
typedef bool (*expression_test)(const struct ax *x, const struct as *in);

static void add(struct places *p, struct as **at, struct ax *x, const struct afun *f)
{
    if (p->n < PLACES)
        p->v[p->n++] = (struct place){at, x, f};
}

static void find_expressions(struct places *p, struct ax *x, const struct as *in, expression_test fits,
    const struct afun *f)
{
    if (!x)
        return;
    if (fits(x, in))
        add(p, NULL, x, f);
    for (int i = 0; i < x->n; i++)
        find_expressions(p, x->kid[i], in, fits, f);
}

static void find(struct places *p, struct as **list, statement_test s, expression_test x, const struct afun *f)
{
    for (; *list; list = &(*list)->next) {
        struct as *q = *list;
        if (s && s(q))
            add(p, list, NULL, f);
        if (x) {
            find_expressions(p, q->e, q, x, f);
            find_expressions(p, q->e2, q, x, f);
            if (q->init)
                find_expressions(p, q->init->e, q, x, f);
        }
        find(p, &q->body, s, x, f);
        find(p, &q->other, s, x, f);
    }
}

static bool has_role(const struct as *s, const char *role)
{
    return s->role && !strcmp(s->role, role);
}

/* ---- tests ---- */

static bool is_sync(const struct as *s)
{
    return has_role(s, "sync") && s->kind == AS_EXPR;
}

static bool is_guarded(const struct as *s)
{
    return has_role(s, "guard") && s->kind == AS_IF && !s->other;
}

static bool is_identity(const struct as *s)
{
    return has_role(s, "identity") && s->kind == AS_DECL && s->e;
}

static bool is_tail(const struct as *s)
{
    return has_role(s, "tail") || has_role(s, "rescale");
}

static bool is_one(const struct as *s)
{
    return has_role(s, "one") && s->kind == AS_IF;
}

static bool is_bound(const struct ax *x, const struct as *in)
{
    return has_role(in, "guard") && x->kind == AX_BINARY && (!strcmp(x->s, "<") || !strcmp(x->s, ">="));
}

static bool is_loop_bound(const struct ax *x, const struct as *in)
{
    return in->kind == AS_FOR && x == in->e && x->kind == AX_BINARY && !strcmp(x->s, "<");
}

static bool is_ceiling(const struct ax *x, const struct as *in)
{
    (void)in;
    return x->kind == AX_LAUNCH && x->kid[1]->kind == AX_INT && x->kid[1]->i > 1;
}

static bool is_extremum(const struct ax *x, const struct as *in)
{
    (void)in;
    return x->kind == AX_CALL && (ax_is_id(x->kid[0], "fmaxf") || ax_is_id(x->kid[0], "fminf"));
}

static bool is_offset(const struct ax *x, const struct as *in)
{
    (void)in;
    return x->kind == AX_INDEX && x->kid[1]->kind == AX_BINARY && !strcmp(x->kid[1]->s, "+") &&
           x->kid[1]->kid[0]->kind == AX_BINARY && !strcmp(x->kid[1]->kid[0]->s, "*");
}

static bool is_accumulation(const struct ax *x, const struct as *in)
{
    return (has_role(in, "combine") || !in->role) && x == in->e && x->kind == AX_BINARY && !strcmp(x->s, "+=");
}

static bool is_shuffle(const struct ax *x, const struct as *in)
{
    (void)in;
    return x->kind == AX_CALL && x->kid[0]->kind == AX_ID && !strncmp(x->kid[0]->s, "__shfl", 6) && x->n == 4;
}

static bool is_constant(const struct ax *x, const struct as *in)
{
    return in->kind != AS_DECL && x->kind == AX_FLOAT && x->f != 0;
}

static bool is_difference(const struct ax *x, const struct as *in)
{
    return has_role(in, "store") && x->kind == AX_BINARY && !strcmp(x->s, "-");
}

static bool is_semicolon(const struct as *s)
{
    return s->kind == AS_DECL && s->e && !s->n_dim && !s->parens && !s->role;
}

static bool is_warp_loop(const struct ax *x, const struct as *in)
{
    return has_role(in, "warp") && in->kind == AS_FOR && in->init && x == in->init->e && x->kind == AX_INT && x->i ==
        16;
}

/* ---- edits ---- */

static void drop(struct arena *a, struct place *p)
{
    (void)a;
    *p->at = (*p->at)->next;
}

static void unguard(struct arena *a, struct place *p)
{
    struct as *s = *p->at, *end = s->body;

    (void)a;
    if (end && end->kind == AS_RETURN) { /* "if (i >= n) return;" */
        *p->at = s->next;
        return;
    }
    while (end && end->next)
        end = end->next;
    if (end)
        end->next = s->next, *p->at = s->body;
}

static void wrong_identity(struct arena *a, struct place *p)
{
    struct as *s = *p->at;
    double old = s->e->kind == AX_FLOAT ? s->e->f : -1;

    s->e = ax_new(a, AX_FLOAT, NULL, 0);
    s->e->f = old == 0 ? 1 : 0;
}

static void undeclare(struct arena *a, struct place *p)
{
    (void)a;
    *p->at = (*p->at)->next;
}

static void widen(struct arena *a, struct place *p)
{
    (void)a;
    p->x->s = !strcmp(p->x->s, "<") ? "<=" : ">";
}

static void shorten(struct arena *a, struct place *p)
{
    p->x->kid[1] = ax_bin(a, "-", p->x->kid[1], ax_int(a, 1));
}

static void fewer_blocks(struct arena *a, struct place *p)
{
    (void)a;
    p->x->kid[1]->i--;
}

static void other_extremum(struct arena *a, struct place *p)
{
    p->x->kid[0] = ax_id(a, ax_is_id(p->x->kid[0], "fmaxf") ? "fminf" : "fmaxf");
}

static void wrong_stride(struct arena *a, struct place *p)
{
    struct ax *product = p->x->kid[1]->kid[0];

    product->kid[1] = ax_bin(a, "+", product->kid[1], ax_int(a, 1));
}

static void overwrite(struct arena *a, struct place *p)
{
    (void)a;
    p->x->s = "=";
}

static void wrong_lane(struct arena *a, struct place *p)
{
    p->x->kid[3] = ax_int(a, 0);
}

static void wrong_constant(struct arena *a, struct place *p)
{
    (void)a;
    p->x->f = -p->x->f * 2;
}

static void flip_sign(struct arena *a, struct place *p)
{
    (void)a;
    p->x->s = "+";
}

static void half_warp(struct arena *a, struct place *p)
{
    (void)a;
    p->x->i = 8;
}

static const struct kind {
    const char *name;
    statement_test s;
    expression_test x;
    void (*edit)(struct arena *a, struct place *p);
    const char *reason;
} kinds[] = {
    {"missing_guard", is_guarded, NULL, unguard, "threads behind the end are not kept away"},
    {"bound_off_by_one", NULL, is_bound, widen, "a bound lets one element too many through"},
    {"loop_too_short", NULL, is_loop_bound, shorten, "a loop leaves its last element out"},
    {"missing_sync", is_sync, NULL, drop, "a barrier is missing, so shared memory is read too early"},
    {"wrong_identity", is_identity, NULL, wrong_identity, "an accumulator does not start at its operation's identity"},
    {"missing_tail", is_tail, NULL, drop, "what an unrolled or rescaled loop leaves over is forgotten"},
    {"everyone_stores", is_one, NULL, unguard, "every thread stores what only one of them holds"},
    {"too_few_blocks", NULL, is_ceiling, fewer_blocks, "the grid has too few blocks for the elements"},
    {"max_for_min", NULL, is_extremum, other_extremum, "a maximum and a minimum are mistaken for each other"},
    {"wrong_stride", NULL, is_offset, wrong_stride, "a row's stride is wrong"},
    {"overwritten_sum", NULL, is_accumulation, overwrite, "a sum is overwritten instead of added to"},
    {"wrong_lane", NULL, is_shuffle, wrong_lane, "a shuffle reads the wrong lane"},
    {"half_a_warp", NULL, is_warp_loop, half_warp, "a reduction by shuffles leaves half of the warp out"},
    {"wrong_constant", NULL, is_constant, wrong_constant, "a constant is wrong"},
    {"wrong_sign", NULL, is_difference, flip_sign, "a difference became a sum"},
    {"undeclared", is_semicolon, NULL, undeclare, "a variable is used that was never declared"},
};

int ast_mutations(void)
{
    return (int)(sizeof kinds / sizeof *kinds);
}

const char *ast_mutation_name(int kind)
{
    return kinds[kind].name;
}

const char *ast_mutation_reason(int kind)
{
    return kinds[kind].reason;
}

bool ast_mutate(struct arena *a, struct rng *r, int kind, struct afun *f)
{
    struct places p = {.n = 0};

    for (; f; f = f->next)
        if (f->body)
            find(&p, &f->body, kinds[kind].s, kinds[kind].x, f);
    if (!p.n)
        return false;
    kinds[kind].edit(a, &p.v[rng_below(r, (uint64_t)p.n)]);
    return true;
}

int ast_mutate_any(struct arena *a, struct rng *r, struct afun *f)
{
    int n = ast_mutations(), first = (int)rng_below(r, (uint64_t)n);

    for (int i = 0; i < n; i++)
        if (ast_mutate(a, r, (first + i) % n, f))
            return (first + i) % n;
    return -1;
}

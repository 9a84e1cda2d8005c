/* ast_mutate.c - see ast_mutate.h. A kind is a row: which nodes it may edit, and the edit. ast_mutate_is_NODE is
 * true of such a statement s, or of such an expression x of the statement 'in'; ast_mutate_EDIT edits it. */
#include "synth/ir/ast_mutate.h"

#include <string.h>

/* A place: a statement in its list, or an expression. */
struct ast_mutate_place {
    struct as **at;
    struct ax *x;
    const struct afun *f;
};

#define PLACES 256
struct places {
    struct ast_mutate_place v[PLACES];
    int n;
};

typedef bool (*statement_test)(const struct as *s);
typedef bool (*expression_test)(const struct ax *x, const struct as *in);

static void ast_mutate_add(struct places *p, struct as **at, struct ax *x, const struct afun *f)
{
    if (p->n < PLACES)
        p->v[p->n++] = (struct ast_mutate_place){at, x, f};
}

/* Collects the places below x that pass the test. */
static void ast_mutate_find_expressions(struct places *p, struct ax *x, const struct as *in, expression_test fits,
    const struct afun *f)
{
    if (!x)
        return;
    if (fits(x, in))
        ast_mutate_add(p, NULL, x, f);
    for (int i = 0; i < x->n; i++)
        ast_mutate_find_expressions(p, x->kid[i], in, fits, f);
}

/* Collects the places below a list of statements that pass the tests s or x; either may be NULL. */
static void ast_mutate_find(struct places *p, struct as **list, statement_test s, expression_test x,
                            const struct afun *f)
{
    for (; *list; list = &(*list)->next) {
        struct as *q = *list;
        if (s && s(q))
            ast_mutate_add(p, list, NULL, f);
        if (x) {
            ast_mutate_find_expressions(p, q->e, q, x, f);
            ast_mutate_find_expressions(p, q->e2, q, x, f);
            if (q->init)
                ast_mutate_find_expressions(p, q->init->e, q, x, f);
        }
        ast_mutate_find(p, &q->body, s, x, f);
        ast_mutate_find(p, &q->other, s, x, f);
    }
}

static bool ast_mutate_has_role(const struct as *s, const char *role)
{
    return s->role && !strcmp(s->role, role);
}

/* ---- tests ---- */

static bool ast_mutate_is_sync(const struct as *s)
{
    return ast_mutate_has_role(s, "sync") && s->kind == AS_EXPR;
}

static bool ast_mutate_is_guarded(const struct as *s)
{
    return ast_mutate_has_role(s, "guard") && s->kind == AS_IF && !s->other;
}

static bool ast_mutate_is_identity(const struct as *s)
{
    return ast_mutate_has_role(s, "identity") && s->kind == AS_DECL && s->e;
}

static bool ast_mutate_is_tail(const struct as *s)
{
    return ast_mutate_has_role(s, "tail") || ast_mutate_has_role(s, "rescale");
}

static bool ast_mutate_is_one(const struct as *s)
{
    return ast_mutate_has_role(s, "one") && s->kind == AS_IF;
}

static bool ast_mutate_is_bound(const struct ax *x, const struct as *in)
{
    return ast_mutate_has_role(in, "guard") && x->kind == AX_BINARY && (!strcmp(x->s, "<") || !strcmp(x->s, ">="));
}

static bool ast_mutate_is_loop_bound(const struct ax *x, const struct as *in)
{
    return in->kind == AS_FOR && x == in->e && x->kind == AX_BINARY && !strcmp(x->s, "<");
}

static bool ast_mutate_is_ceiling(const struct ax *x, const struct as *in)
{
    (void)in;
    return x->kind == AX_LAUNCH && x->kid[1]->kind == AX_INT && x->kid[1]->i > 1;
}

static bool ast_mutate_is_extremum(const struct ax *x, const struct as *in)
{
    (void)in;
    return x->kind == AX_CALL && (ax_is_id(x->kid[0], "fmaxf") || ax_is_id(x->kid[0], "fminf"));
}

static bool ast_mutate_is_offset(const struct ax *x, const struct as *in)
{
    (void)in;
    return x->kind == AX_INDEX && x->kid[1]->kind == AX_BINARY && !strcmp(x->kid[1]->s, "+") &&
           x->kid[1]->kid[0]->kind == AX_BINARY && !strcmp(x->kid[1]->kid[0]->s, "*");
}

static bool ast_mutate_is_accumulation(const struct ax *x, const struct as *in)
{
    return (ast_mutate_has_role(in, "combine") || !in->role) && x == in->e && x->kind == AX_BINARY &&
           !strcmp(x->s, "+=");
}

static bool ast_mutate_is_shuffle(const struct ax *x, const struct as *in)
{
    (void)in;
    return x->kind == AX_CALL && x->kid[0]->kind == AX_ID && !strncmp(x->kid[0]->s, "__shfl", 6) && x->n == 4;
}

static bool ast_mutate_is_constant(const struct ax *x, const struct as *in)
{
    return !ast_mutate_has_role(in, "identity") && x->kind == AX_FLOAT && x->f != 0;
}

static bool ast_mutate_is_difference(const struct ax *x, const struct as *in)
{
    return ast_mutate_has_role(in, "store") && x->kind == AX_BINARY && !strcmp(x->s, "-");
}

static bool ast_mutate_is_semicolon(const struct as *s)
{
    return s->kind == AS_DECL && s->e && !s->n_dim && !s->parens && !s->role;
}

static bool ast_mutate_is_warp_loop(const struct ax *x, const struct as *in)
{
    return ast_mutate_has_role(in, "warp") && in->kind == AS_FOR && in->init && x == in->init->e && x->kind == AX_INT &&
           x->i ==
        16;
}

/* "torch::empty({5, 9}, x.options())": the list. */
static bool ast_mutate_is_shape(const struct ax *x, const struct as *in)
{
    return in->kind == AS_DECL && x->kind == AX_LIST && in->e && in->e->kind == AX_CALL && in->e->n > 1 &&
           x == in->e->kid[1] && ax_is_id(in->e->kid[0], "torch::empty");
}

static bool ast_mutate_is_size(const struct ax *x, const struct as *in)
{
    (void)in;
    return x->kind == AX_CALL && x->n == 2 && x->kid[0]->kind == AX_MEMBER && !strcmp(x->kid[0]->s, ".size") &&
           x->kid[1]->kind == AX_INT;
}

/* A variable of a numbered family: v0, d1, D2. */
static bool ast_mutate_is_numbered(const struct ax *x, const struct as *in)
{
    size_t n = x->kind == AX_ID ? strlen(x->s) : 0;

    (void)in;
    return n == 2 && x->s[1] >= '0' && x->s[1] <= '8';
}

/* ---- edits ---- */

static void ast_mutate_drop(struct arena *a, struct rng *r, struct ast_mutate_place *p)
{
    (void)a, (void)r;
    *p->at = (*p->at)->next;
}

/* Bug: the guard of the border is gone. The next ones put their bugs in place too. */
static void ast_mutate_unguard(struct arena *a, struct rng *r, struct ast_mutate_place *p)
{
    struct as *s = *p->at, *end = s->body;

    (void)a, (void)r;
    if (end && end->kind == AS_RETURN) { /* "if (i >= n) return;" */
        *p->at = s->next;
        return;
    }
    while (end && end->next)
        end = end->next;
    if (end)
        end->next = s->next, *p->at = s->body;
}

/* Bug: the accumulator starts at another value. */
static void ast_mutate_wrong_identity(struct arena *a, struct rng *r, struct ast_mutate_place *p)
{
    (void)r;
    struct as *s = *p->at;
    double old = s->e->kind == AX_FLOAT ? s->e->f : -1;

    s->e = ax_new(a, AX_FLOAT, NULL, 0);
    s->e->f = old == 0 ? 1 : 0;
}

static void ast_mutate_undeclare(struct arena *a, struct rng *r, struct ast_mutate_place *p)
{
    (void)a, (void)r;
    *p->at = (*p->at)->next;
}

static void ast_mutate_widen(struct arena *a, struct rng *r, struct ast_mutate_place *p)
{
    (void)a, (void)r;
    p->x->s = !strcmp(p->x->s, "<") ? "<=" : ">";
}

static void ast_mutate_shorten(struct arena *a, struct rng *r, struct ast_mutate_place *p)
{
    (void)r;
    p->x->kid[1] = ax_bin(a, "-", p->x->kid[1], ax_int(a, 1));
}

static void ast_mutate_fewer_blocks(struct arena *a, struct rng *r, struct ast_mutate_place *p)
{
    (void)a, (void)r;
    p->x->kid[1]->i--;
}

static void ast_mutate_other_extremum(struct arena *a, struct rng *r, struct ast_mutate_place *p)
{
    (void)r;
    p->x->kid[0] = ax_id(a, ax_is_id(p->x->kid[0], "fmaxf") ? "fminf" : "fmaxf");
}

/* Bug: a stride is larger by 1. */
static void ast_mutate_wrong_stride(struct arena *a, struct rng *r, struct ast_mutate_place *p)
{
    (void)r;
    struct ax *product = p->x->kid[1]->kid[0];

    product->kid[1] = ax_bin(a, "+", product->kid[1], ax_int(a, 1));
}

static void ast_mutate_overwrite(struct arena *a, struct rng *r, struct ast_mutate_place *p)
{
    (void)a, (void)r;
    p->x->s = "=";
}

static void ast_mutate_wrong_lane(struct arena *a, struct rng *r, struct ast_mutate_place *p)
{
    (void)r;
    p->x->kid[3] = ax_int(a, 0);
}

/* What people write in its place: a round number, or the size missed. Signs are operators of their own. */
static void ast_mutate_wrong_constant(struct arena *a, struct rng *r, struct ast_mutate_place *p)
{
    static const double round[] = {0.01, 0.1, 0.2, 0.25, 0.5, 1, 1.5, 2, 3};
    double old = p->x->f;
    int n = (int)(sizeof round / sizeof *round), pick = (int)rng_below(r, (uint64_t)n + 2);

    (void)a;
    p->x->f = pick < n ? round[pick] : pick == n ? 10 * old : old / 2;
    if (p->x->f == old)
        p->x->f = 2 * old;
}

static void ast_mutate_flip_sign(struct arena *a, struct rng *r, struct ast_mutate_place *p)
{
    (void)a, (void)r;
    p->x->s = "+";
}

static void ast_mutate_half_warp(struct arena *a, struct rng *r, struct ast_mutate_place *p)
{
    (void)a, (void)r;
    p->x->i = 8;
}

/* One extent missed, forgotten, added, or two of them exchanged. */
static void ast_mutate_wrong_shape(struct arena *a, struct rng *r, struct ast_mutate_place *p)
{
    struct ax *old = p->x, *shape;
    int n = old->n, at = n ? (int)rng_below(r, (uint64_t)n) : 0, how = n ? (int)rng_below(r, 4) : 2;
    int next = n ? (at + 1) % n : 0;

    if (how == 3 && (old->kid[at]->kind != AX_INT || old->kid[next]->kind != AX_INT ||
                     old->kid[at]->i == old->kid[next]->i))
        how = 1;
    shape = ax_new(a, AX_LIST, old->s, how == 1 ? n - 1 : how == 2 ? n + 1 : n);
    for (int i = 0, from = 0; i < shape->n; i++) {
        if (how == 1 && from == at)
            from++;
        shape->kid[i] = how == 2 && i == at ? ax_int(a, 1 + (long long)rng_below(r, 8)) : old->kid[from++];
    }
    if (how == 3)
        shape->kid[at] = old->kid[next], shape->kid[next] = old->kid[at];
    if (how == 0)
        shape->kid[at] = ax_int(a, 1 + (old->kid[at]->kind == AX_INT ? old->kid[at]->i : 0) +
                                       (long long)rng_below(r, 4));
    *p->x = *shape;
}

static void ast_mutate_wrong_size(struct arena *a, struct rng *r, struct ast_mutate_place *p)
{
    long long i = p->x->kid[1]->i;

    p->x->kid[1] = ax_int(a, i > 0 && rng_below(r, 2) ? i - 1 : i + 1);
}

/* Bug: a neighbouring variable is used. */
static void ast_mutate_misname(struct arena *a, struct rng *r, struct ast_mutate_place *p)
{
    char name[3] = {p->x->s[0], p->x->s[1], 0};

    name[1] = (char)(name[1] > '0' && rng_below(r, 2) ? name[1] - 1 : name[1] + 1);
    p->x->s = arena_strdup(a, name);
}

static const struct ast_mutate_kind {
    const char *name;
    statement_test s;
    expression_test x;
    void (*edit)(struct arena *a, struct rng *r, struct ast_mutate_place *p);
    const char *reason;
} kinds[] = {
    {"missing_guard", ast_mutate_is_guarded, NULL, ast_mutate_unguard, "threads behind the end are not kept away"},
    {"bound_off_by_one", NULL, ast_mutate_is_bound, ast_mutate_widen, "a bound lets one element too many through"},
    {"loop_too_short", NULL, ast_mutate_is_loop_bound, ast_mutate_shorten, "a loop leaves its last element out"},
    {"missing_sync", ast_mutate_is_sync, NULL, ast_mutate_drop, "a barrier is missing, so threads read or write shared "
                                                                "memory too early"},
    {"wrong_identity", ast_mutate_is_identity, NULL, ast_mutate_wrong_identity, "an accumulator does not start at its "
                                                                                "operation's identity"},
    {"missing_tail", ast_mutate_is_tail, NULL, ast_mutate_drop, "what a loop needs besides its steps, a rest or a "
                                                                "rescaling, is forgotten"},
    {"everyone_stores", ast_mutate_is_one, NULL, ast_mutate_unguard, "every thread stores what only one of them holds"},
    {"too_few_blocks", NULL, ast_mutate_is_ceiling, ast_mutate_fewer_blocks, "the grid has too few blocks for the "
                                                                             "elements"},
    {"max_for_min", NULL, ast_mutate_is_extremum, ast_mutate_other_extremum, "a maximum and a minimum are mistaken for "
                                                                             "each other"},
    {"wrong_stride", NULL, ast_mutate_is_offset, ast_mutate_wrong_stride, "a row's stride is wrong"},
    {"overwritten_sum", NULL, ast_mutate_is_accumulation, ast_mutate_overwrite,
     "a sum is overwritten instead of added to"},
    {"wrong_lane", NULL, ast_mutate_is_shuffle, ast_mutate_wrong_lane, "a shuffle reads the wrong lane"},
    {"half_a_warp", NULL, ast_mutate_is_warp_loop, ast_mutate_half_warp, "a reduction by shuffles leaves half of the "
                                                                         "warp out"},
    {"wrong_constant", NULL, ast_mutate_is_constant, ast_mutate_wrong_constant, "a constant is wrong"},
    {"wrong_sign", NULL, ast_mutate_is_difference, ast_mutate_flip_sign, "a difference became a sum"},
    {"wrong_shape", NULL, ast_mutate_is_shape, ast_mutate_wrong_shape, "a tensor is allocated with another shape"},
    {"wrong_size", NULL, ast_mutate_is_size, ast_mutate_wrong_size, "a size is taken from the wrong dimension"},
    {"misnamed", NULL, ast_mutate_is_numbered, ast_mutate_misname, "another variable is meant"},
    {"undeclared", ast_mutate_is_semicolon, NULL, ast_mutate_undeclare, "a variable is used that was never declared"},
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

/* All places where a bug of that kind fits. */
static struct places ast_mutate_places_of(int kind, struct afun *f)
{
    struct places p = {.n = 0};

    for (; f; f = f->next)
        if (f->body)
            ast_mutate_find(&p, &f->body, kinds[kind].s, kinds[kind].x, f);
    return p;
}

bool ast_mutate(struct arena *a, struct rng *r, int kind, struct afun *f)
{
    struct places p = ast_mutate_places_of(kind, f);

    if (p.n)
        kinds[kind].edit(a, r, &p.v[rng_below(r, (uint64_t)p.n)]);
    return p.n > 0;
}

int ast_mutate_any(struct arena *a, struct rng *r, struct afun *f)
{
    int picked = -1;

    for (int k = 0, seen = 0; k < ast_mutations(); k++)
        if (ast_mutate_places_of(k, f).n && rng_below(r, (uint64_t)++seen) == 0)
            picked = k;
    if (picked >= 0)
        ast_mutate(a, r, picked, f);
    return picked;
}

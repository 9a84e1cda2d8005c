/* reason.c - see reason.h. */
#include "synth/reason.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* ---- numbers that may be said ---- */

#define NUMBERS 1024
struct reason_numbers {
    long long v[NUMBERS];
    int n;
};

static void reason_allow(struct reason_numbers *s, long long v)
{
    if (s->n < NUMBERS)
        s->v[s->n++] = v < 0 ? -v : v;
}

/* Enters all numbers of an expression among those that the text may name. */
static void reason_allow_expr(struct reason_numbers *s, const struct ax *x)
{
    if (!x)
        return;
    if (x->kind == AX_INT)
        reason_allow(s, x->i);
    if (x->kind == AX_FLOAT)
        reason_allow(s, (long long)x->f);
    for (int i = 0; i < x->n; i++)
        reason_allow_expr(s, x->kid[i]);
}

/* Enters all numbers of statements among those that the text may name. */
static void reason_allow_statements(struct reason_numbers *s, const struct as *x)
{
    for (; x; x = x->next) {
        reason_allow_expr(s, x->e), reason_allow_expr(s, x->e2);
        reason_allow_statements(s, x->init), reason_allow_statements(s, x->body), reason_allow_statements(s, x->other);
        for (int i = 0; i < x->n_dim; i++)
            reason_allow_expr(s, x->dim[i]);
    }
}

/* Collects the numbers that a reason may name: sizes, tile sizes, literals. */
static void reason_allow_all(struct reason_numbers *s, const struct dag *g, const struct kernels *k,
                             const struct afun *f)
{
    for (int i = 0; i < g->n_values; i++)
        for (int d = 0; d < g->value[i].t.rank; d++)
            reason_allow(s, g->value[i].t.d[d]);
    for (int i = 0; i < k->n; i++) {
        for (int q = 0; q < NEST_GROUPS; q++)
            reason_allow(s, nest_extent(&k->k[i].nest, q));
        for (int t = 0; t < 3; t++)
            reason_allow(s, k->k[i].tuned[t]);
        reason_allow(s, i + 1);
    }
    reason_allow(s, k->n);
    for (; f; f = f->next)
        reason_allow_statements(s, f->body);
}

/* True if the text may name v. */
static bool reason_known(const struct reason_numbers *s, long long v)
{
    for (int i = 0; i < s->n; i++)
        if (s->v[i] == v)
            return true;
    return false;
}

/* Digits that are part of a word ("float4", "s0", "conv2d") are names, and so are list numbers at a line's begin. */
static bool reason_numerals_known(const struct reason_numbers *s, const char *text)
{
    for (const char *p = text; *p;) {
        char *end;
        bool line = p == text || p[-1] == '\n', word = p > text && (isalnum((unsigned char)p[-1]) || strchr("_.",
            p[-1]));
        long long v;
        if (!isdigit((unsigned char)*p)) {
            p++;
            continue;
        }
        v = strtoll(p, &end, 10);
        if (!word && !(line && *end == '.') && !reason_known(s, v))
            return false;
        for (p = end; *p == '.' || isalnum((unsigned char)*p);)
            p++;
    }
    return true;
}

/* ---- the steps ---- */

static void reason_add_shape(const struct tdesc *t, struct buf *out)
{
    buf_addc(out, '(');
    for (int d = 0; d < t->rank; d++)
        buf_addf(out, "%s%d", d ? ", " : "", t->d[d]);
    buf_addc(out, ')');
}

/* Appends step 1: what each operator gives. */
static void reason_semantics(const struct dag *g, struct buf *out)
{
    buf_adds(out, "1. Semantics: ");
    for (int n = 0; n < g->n_nodes; n++) {
        const struct opdef *op = g->node[n].c.op;
        buf_addf(out, "%s%s gives %s", n ? "; then " : "", op->name, op->about ? op->about : "its result");
    }
    buf_adds(out, ".\n");
}

/* Appends what each kernel computes. */
static void reason_arithmetic(const struct kernels *k, struct buf *out)
{
    static const char *const words[] = {"sum", "product", "maximum", "minimum", "place of the maximum",
                                        "place of the minimum", "logarithm of a sum of exponentials"};

    buf_adds(out, "2. Arithmetic:");
    for (int i = 0; i < k->n; i++) {
        const struct nest *x = &k->k[i].nest;
        for (int s = 0; s < x->n_stats && x->class != NEST_ATTEND; s++)
            buf_addf(out, " %s is a %s over %lld elements%s;", s ? "then another statistic" : "the accumulator",
                     words[x->stat[s].c], (long long)nest_extent(x, x->class == NEST_CONTRACT ? 3 : 1),
                     x->stat[s].fin ? ", which is then finished" : "");
        if (!x->n_stats)
            buf_adds(out, " every output element is computed on its own;");
        if (x->class == NEST_ATTEND)
            buf_adds(out, " scores are exponentiated after their maximum is taken away, and weigh the values;");
    }
    out->p[out->n - 1] = '.';
    buf_addc(out, '\n');
}

/* Appends step 3: the shapes. */
static void reason_shapes(const struct dag *g, struct buf *out)
{
    buf_adds(out, "3. Shapes: ");
    for (int i = 0, first = 1; i < g->n_values; i++)
        if (g->value[i].kind != VALUE_NODE) {
            buf_adds(out, first ? "" : ", ");
            reason_add_shape(&g->value[i].t, out);
            first = 0;
        }
    buf_adds(out, " come in, ");
    reason_add_shape(&g->value[dag_result(g)].t, out);
    buf_adds(out, " goes out.\n");
}

/* Appends step 4: which kernel does what, under which schedule. */
static void reason_index_map(const struct kernels *k, struct buf *out)
{
    buf_adds(out, "4. Work:");
    for (int i = 0; i < k->n; i++)
        buf_addf(out, " kernel %d is a %s, run as '%s': %s%s", i + 1, nest_class_names[k->k[i].nest.class],
            k->k[i].s->name,
                 strchr(k->k[i].s->about, '$') ? "parts of a block share each result" : k->k[i].s->about,
                 i == k->n - 1 ? ".\n" : ";");
}

/* Appends up to three conditions that guard the borders. */
static void reason_guards_of(const struct as *x, struct buf *out, int *n)
{
    for (; x; x = x->next) {
        bool bounds = x->role && (!strcmp(x->role, "guard") || !strcmp(x->role, "inside"));

        if (bounds && (x->kind == AS_IF || x->kind == AS_WHILE) && *n < 3) {
            buf_adds(out, *n ? "; " : " ");
            buf_addc(out, '\'');
            ax_print(x->e, NULL, out);
            buf_addc(out, '\'');
            ++*n;
        }
        reason_guards_of(x->body, out, n), reason_guards_of(x->other, out, n);
    }
}

/* True if a statement, or one inside it, plays that role. */
static bool reason_has_role(const struct as *x, const char *role)
{
    for (; x; x = x->next)
        if ((x->role && !strcmp(x->role, role)) || reason_has_role(x->body, role) || reason_has_role(x->other, role))
            return true;
    return false;
}

/* Appends step 5: the tests at the edges. */
static void reason_boundaries(const struct afun *f, struct buf *out)
{
    int n = 0;

    buf_adds(out, "5. Boundaries: the tests are");
    for (; f; f = f->next)
        reason_guards_of(f->body, out, &n);
    buf_adds(out, n ? ".\n" : " not needed, every thread has work.\n");
}

/* Appends notes about the roles that the program's statements have. */
static void reason_pitfalls(const struct afun *f, struct buf *out)
{
    static const struct {
        const char *role, *text;
    } notes[] = {{"sync", "shared memory is read behind a barrier only"},
                 {"warp", "all lanes of a warp take part in each shuffle"},
                 {"identity", "accumulators start at the identity of their operation"},
                 {"rescale", "what was summed is rescaled when the maximum grows"},
                 {"one", "one thread alone stores the joined result"},
                 {"tail", "the rest behind the unrolled loop is added"}};
    bool any = false;

    buf_adds(out, "6. Pitfalls: ");
    for (size_t i = 0; i < sizeof notes / sizeof *notes; i++)
        for (const struct afun *p = f; p; p = p->next)
            if (reason_has_role(p->body, notes[i].role)) {
                buf_addf(out, "%s%s", any ? "; " : "", notes[i].text);
                any = true;
                break;
            }
    buf_adds(out, any ? ".\n" : "the output is written once by each thread, and nothing else is shared.\n");
}

bool reason_write(const struct dag *g, const struct kernels *k, const struct afun *cuda, struct buf *out)
{
    struct reason_numbers s = {.n = 0};
    struct buf b;
    bool good;

    buf_init(&b, BUF_MAX_TEXT);
    reason_semantics(g, &b), reason_arithmetic(k, &b), reason_shapes(g, &b), reason_index_map(k, &b),
        reason_boundaries(cuda, &b), reason_pitfalls(cuda, &b);
    reason_allow_all(&s, g, k, cuda);
    good = reason_numerals_known(&s, b.p);
    if (good)
        buf_adds(out, b.p);
    buf_free(&b);
    return good;
}

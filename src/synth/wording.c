/* wording.c - see wording.h. */
#include "synth/wording.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

int wording_draw(struct rng *r, int n)
{
    return n > 1 ? (int)draw_below(r, (uint64_t)(n < WORDINGS ? n : WORDINGS)) : 0;
}

/* ---- names ---- */

struct rename {
    const char *from, *to[WORDINGS];
};

static const struct rename renames[] = {
    {"N", {"N", "n", "size", "numel", "total", "count", "n_elements", "len"}},
    {"D0", {"D0", "rows", "n_rows", "m", "dim0", "outer", "n0", "batch"}},
    {"D1", {"D1", "cols", "n_cols", "n", "dim1", "inner", "n1", "width"}},
    {"D2", {"D2", "depth", "n_depth", "k", "dim2", "last", "n2", "length"}},
    {"D3", {"D3", "d3_size", "n_fourth", "p", "dim3", "fourth", "n3", "extent"}},
    {"D4", {"D4", "d4_size", "n_fifth", "q5", "dim4", "fifth", "n4", "span"}},
    {"out", {"out", "out", "output", "out", "result", "out", "dst", "res"}},
    {"i", {"i", "idx", "i", "index", "i", "gid", "id", "i"}},
    {"row", {"row", "row", "r", "row", "r", "row", "row_id", "line"}},
    {"kernel", {"kernel", "fused_kernel", "kernel", "forward_kernel", "compute", "run", "apply_kernel", "k"}},
};
#define N_RENAMES (sizeof renames / sizeof *renames)

struct wording_walk {
    int wording;
    bool used[N_RENAMES]; /* the new name is taken */
    bool marking;         /* else renaming */
};

/* Renames a name, or notes that its new one is taken. */
static void wording_visit(const char **name, struct wording_walk *w)
{
    for (size_t i = 0; *name && i < N_RENAMES; i++) {
        const char *to = renames[i].to[w->wording];
        if (w->marking) {
            w->used[i] |= !strcmp(*name, to);
        } else if (!strcmp(*name, renames[i].from)) {
            *name = w->used[i] ? *name : to;
            return;
        }
    }
}

/* Visits all names of an expression. */
static void wording_walk_expr(struct ax *x, struct wording_walk *w)
{
    if (!x)
        return;
    if (x->kind == AX_ID)
        wording_visit(&x->s, w);
    for (int i = 0; i < x->n; i++)
        wording_walk_expr(x->kid[i], w);
}

/* Visits all names of statements. */
static void wording_walk_statements(struct as *x, struct wording_walk *w)
{
    for (; x; x = x->next) {
        if (x->kind == AS_DECL)
            wording_visit(&x->s, w);
        wording_walk_expr(x->e, w), wording_walk_expr(x->e2, w);
        for (int i = 0; i < x->n_dim; i++)
            wording_walk_expr(x->dim[i], w);
        wording_walk_statements(x->init, w), wording_walk_statements(x->body, w), wording_walk_statements(x->other, w);
    }
}

/* Visits all names of functions. */
static void wording_walk_all(struct afun *f, struct wording_walk *w)
{
    for (; f; f = f->next) {
        wording_visit(&f->name, w);
        for (int i = 0; i < f->n_param; i++)
            wording_visit(&f->param[i].name, w);
        wording_walk_statements(f->body, w);
    }
}

void wording_names(struct afun *f, int wording)
{
    struct wording_walk w = {.wording = wording, .marking = true};

    if (wording <= 0 || wording >= WORDINGS)
        return;
    wording_walk_all(f, &w);
    w.marking = false;
    wording_walk_all(f, &w);
}

/* ---- formulas ---- */

static bool wording_is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* "fmaxf" is "max" to a reader, "erff" is "erf". */
static void wording_add_function(const char *s, size_t n, struct buf *out)
{
    static const char *const short_names[][2] = {{"fmaxf", "max"}, {"fminf", "min"}, {"fabsf", "abs"}};

    for (size_t i = 0; i < 3; i++)
        if (strlen(short_names[i][0]) == n && !strncmp(s, short_names[i][0], n)) {
            buf_adds(out, short_names[i][1]);
            return;
        }
    buf_add(out, s, n - (n > 1 && s[n - 1] == 'f'));
}

/* "3.0f" is "3", "0.5f" is "0.5". */
static void wording_add_numeral(const char *s, size_t n, struct buf *out)
{
    if (n && s[n - 1] == 'f')
        n--;
    while (n > 1 && memchr(s, '.', n) && s[n - 1] == '0')
        n--;
    if (n && s[n - 1] == '.')
        n--;
    buf_add(out, s, n);
}

/* C as people write formulas. */
static void wording_add_readable(const char *c, struct buf *out)
{
    while (*c) {
        size_t n = 0;
        if (isdigit((unsigned char)*c)) {
            while (wording_is_word(c[n]) || c[n] == '.' || ((c[n] == '+' || c[n] == '-') && c[n - 1] == 'e'))
                n++;
            wording_add_numeral(c, n, out);
        } else if (wording_is_word(*c)) {
            while (wording_is_word(c[n]))
                n++;
            if (c[n] == '(')
                wording_add_function(c, n, out);
            else
                buf_add(out, c, n);
        } else {
            buf_addc(out, c[n++]);
        }
        c += n;
    }
}

/* Appends the operator's name with operands x, y, .. */
static void wording_add_head(const struct op_call *c, struct buf *out)
{
    static const char *const operand[] = {"x", "y", "z", "u", "v"};

    buf_addf(out, "%s(", c->op->name);
    for (int i = 0; i < c->n_in; i++)
        buf_addf(out, "%s%s", i ? ", " : "", operand[i]);
    buf_addc(out, ')');
}

bool wording_formula(const struct op_call *c, struct buf *out)
{
    struct buf head, text, right;
    bool said;

    if (!c->op->expr) {
        buf_addf(out, "%s: %s", c->op->name, c->op->about ? c->op->about : "an operator");
        return true;
    }
    buf_init(&head, 4096), buf_init(&text, 4096), buf_init(&right, 4096);
    wording_add_head(c, &head);
    op_spell(c, c->op->expr, NULL, NULL, &text);
    wording_add_readable(text.p, &right);
    said = strcmp(head.p, right.p) != 0;
    if (said)
        buf_addf(out, "%s = %s", head.p, right.p);
    buf_free(&head), buf_free(&text), buf_free(&right);
    return said;
}

/* A comment as a line of its own between functions. */
static struct afun *wording_comment_of(struct arena *a, const char *text)
{
    struct afun *f = arena_alloc(a, sizeof *f);

    *f = (struct afun){.line = arena_alloc(a, sizeof *f->line)};
    *f->line = (struct as){.kind = AS_COMMENT, .s = arena_strdup(a, text)};
    return f;
}

void wording_explain(const struct dag *g, struct arena *a, struct afun *f)
{
    while (f->next && !f->next->name)
        f = f->next;
    for (int n = 0; n < g->n_nodes; n++) {
        struct buf b;
        buf_init(&b, 4096);
        if (wording_formula(&g->node[n].c, &b)) {
            struct afun *line = wording_comment_of(a, b.p);
            line->next = f->next, f->next = line;
            f = line;
        }
        buf_free(&b);
    }
}

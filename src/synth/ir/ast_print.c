/* ast_print.c - prints a tree of ast.h in a style. Parentheses are put where precedence needs them, and nowhere else.
 * Each function appends one kind of node. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "synth/ir/ast.h"

/* How tightly the operator binds; larger is tighter. */
static int ast_print_level_of(const char *op)
{
    static const char *const levels[] = {" = += -= *= /= %= &= |= ^= <<= >>= ", " ? ", " || ", " && ", " | ", " ^ ",
        " & ",
                                         " == != ", " < > <= >= ", " << >> ", " + - ", " * / % "};
    char key[8];

    snprintf(key, sizeof key, " %s ", op);
    for (int i = 0; i < (int)(sizeof levels / sizeof *levels); i++)
        if (strstr(levels[i], key))
            return i;
    return 12;
}

static int ast_print_level(const struct ax *x)
{
    return x->kind == AX_BINARY ? ast_print_level_of(x->s)
           : x->kind == AX_COND ? 1
           : x->kind == AX_UNARY || x->kind == AX_CAST || (x->kind == AX_INT && x->i < 0) || (x->kind == AX_FLOAT &&
               x->f < 0) ? 12
                                : 13;
}

static void ast_print_print(const struct ax *x, int min, const struct ast_style *s, struct buf *out);

static void ast_print_list(struct ax *const *v, int n, const struct ast_style *s, struct buf *out)
{
    for (int i = 0; i < n; i++) {
        if (i)
            buf_adds(out, ", ");
        ast_print_print(v[i], 0, s, out);
    }
}

/* Appends the shortest literal of 6 or 9 digits that is the same float. */
static void ast_print_float(double f, struct buf *out)
{
    char t[40];

    if (isinf(f)) {
        buf_adds(out, f > 0 ? "INFINITY" : "-INFINITY");
        return;
    }
    for (int digits = 6; digits <= 9; digits += 3) {
        snprintf(t, sizeof t, "%.*g", digits, f);
        double back = 0;
        sscanf(t, "%lf", &back);
        if ((float)back == (float)f)
            break;
    }
    buf_adds(out, t);
    if (!strpbrk(t, ".e"))
        buf_adds(out, ".0");
    buf_addc(out, 'f');
}

static void ast_print_unary(const struct ax *x, const struct ast_style *s, struct buf *out)
{
    bool post = x->s[0] == 'p', inc = post || !strcmp(x->s, "++") || !strcmp(x->s, "--");
    const char *op = post ? x->s + 1 : x->s;

    if (inc ? !post && !s->post_inc : true)
        buf_adds(out, op);
    ast_print_print(x->kid[0], *op == '-' ? 13 : 12, s, out);
    if (inc && (post || s->post_inc))
        buf_adds(out, op);
}

static void print_binary(const struct ax *x, const struct ast_style *s, struct buf *out)
{
    int l = ast_print_level_of(x->s);

    ast_print_print(x->kid[0], l ? l : 1, s, out);
    buf_addf(out, " %s ", x->s);
    ast_print_print(x->kid[1], l ? l + 1 : 0, s, out);
}

static void ast_print_cond(const struct ax *x, const struct ast_style *s, struct buf *out)
{
    ast_print_print(x->kid[0], 2, s, out);
    buf_adds(out, " ? ");
    ast_print_print(x->kid[1], 2, s, out);
    buf_adds(out, " : ");
    ast_print_print(x->kid[2], 1, s, out);
}

static void print_launch(const struct ax *x, const struct ast_style *s, struct buf *out)
{
    ast_print_print(x->kid[0], 13, s, out);
    buf_adds(out, "<<<");
    ast_print_list(x->kid + 1, (int)x->i, s, out);
    buf_adds(out, ">>>(");
    ast_print_list(x->kid + 1 + x->i, x->n - 1 - (int)x->i, s, out);
    buf_addc(out, ')');
}

static void ast_print_type(const char *t, bool named, const struct ast_style *s, struct buf *out)
{
    size_t n = strlen(t);

    if (s->star_right && named && n && t[n - 1] == '*')
        buf_addf(out, "%.*s *", (int)n - 1, t);
    else
        buf_addf(out, "%s%s", t, named ? " " : "");
}

/* Appends an expression without parentheses around it. */
static void ast_print_node(const struct ax *x, const struct ast_style *s, struct buf *out)
{
    switch (x->kind) {
    case AX_ID:
    case AX_STR: buf_adds(out, x->s); break;
    case AX_INT: buf_addf(out, "%lld", x->i); break;
    case AX_FLOAT: ast_print_float(x->f, out); break;
    case AX_UNARY: ast_print_unary(x, s, out); break;
    case AX_BINARY: print_binary(x, s, out); break;
    case AX_COND: ast_print_cond(x, s, out); break;
    case AX_CALL:
        ast_print_print(x->kid[0], 13, s, out);
        buf_addc(out, '(');
        ast_print_list(x->kid + 1, x->n - 1, s, out);
        buf_addc(out, ')');
        break;
    case AX_INDEX:
        ast_print_print(x->kid[0], 13, s, out);
        buf_addc(out, '[');
        ast_print_print(x->kid[1], 0, s, out);
        buf_addc(out, ']');
        break;
    case AX_MEMBER:
        ast_print_print(x->kid[0], 13, s, out);
        buf_adds(out, x->s);
        break;
    case AX_CAST:
        buf_addc(out, '(');
        ast_print_type(x->s, false, s, out);
        buf_addc(out, ')');
        ast_print_print(x->kid[0], 12, s, out);
        break;
    case AX_LIST:
        buf_addc(out, '{');
        ast_print_list(x->kid, x->n, s, out);
        buf_addc(out, '}');
        break;
    case AX_LAUNCH: print_launch(x, s, out); break;
    case AX_LOAD:
        buf_addf(out, "L%lld(", x->i);
        ast_print_list(x->kid, x->n, s, out);
        buf_addc(out, ')');
        break;
    }
}

/* Appends an expression, in parentheses where it binds less tightly than 'min'. */
static void ast_print_print(const struct ax *x, int min, const struct ast_style *s, struct buf *out)
{
    bool wrap = ast_print_level(x) < min;

    if (wrap)
        buf_addc(out, '(');
    ast_print_node(x, s, out);
    if (wrap)
        buf_addc(out, ')');
}

void ax_print(const struct ax *x, const struct ast_style *s, struct buf *out)
{
    static const struct ast_style plain;

    ast_print_print(x, 0, s ? s : &plain, out);
}

/* ---- statements ---- */

static void ast_print_pad(int depth, const struct ast_style *s, struct buf *out)
{
    for (int i = 0; i < depth * (s->indent ? s->indent : 4); i++)
        buf_addc(out, ' ');
}

static void ast_print_all(const struct as *x, int depth, const struct ast_style *s, struct buf *out);

static void ast_print_open_brace(int depth, const struct ast_style *s, struct buf *out)
{
    if (s->own_line) {
        buf_addc(out, '\n');
        ast_print_pad(depth, s, out);
        buf_adds(out, "{\n");
    } else {
        buf_adds(out, " {\n");
    }
}

static bool ast_print_needs_brace(const struct as *body, const struct ast_style *s)
{
    return s->always_brace || !body || body->next || body->kind == AS_DECL || body->kind == AS_COMMENT ||
        body->kind == AS_HASH ||
           body->kind == AS_IF || body->kind == AS_FOR || body->kind == AS_BLOCK;
}

/* Returns whether braces were used. */
static bool ast_print_body(const struct as *body, int depth, const struct ast_style *s, struct buf *out)
{
    bool brace = ast_print_needs_brace(body, s);

    if (brace)
        ast_print_open_brace(depth, s, out);
    else
        buf_addc(out, '\n');
    ast_print_all(body, depth + 1, s, out);
    if (brace) {
        ast_print_pad(depth, s, out);
        buf_addc(out, '}');
    }
    return brace;
}

/* Appends a declaration without the semicolon. */
static void ast_print_decl(const struct as *x, const struct ast_style *s, struct buf *out)
{
    ast_print_type(x->type, true, s, out);
    buf_adds(out, x->s);
    for (int i = 0; i < x->n_dim; i++) {
        buf_addc(out, '[');
        if (x->dim[i])
            ast_print_print(x->dim[i], 0, s, out);
        buf_addc(out, ']');
    }
    if (x->parens) {
        buf_addc(out, '(');
        ast_print_list(x->e->kid, x->e->n, s, out);
        buf_addc(out, ')');
    } else if (x->e) {
        buf_adds(out, " = ");
        ast_print_print(x->e, 0, s, out);
    }
}

static void print_simple(const struct as *x, const struct ast_style *s, struct buf *out)
{
    if (x && x->kind == AS_DECL)
        ast_print_decl(x, s, out);
    else if (x && x->e)
        ast_print_print(x->e, 0, s, out);
}

static void ast_print_for(const struct as *x, int depth, const struct ast_style *s, struct buf *out)
{
    buf_adds(out, "for (");
    print_simple(x->init, s, out);
    buf_adds(out, "; ");
    if (x->e)
        ast_print_print(x->e, 0, s, out);
    buf_adds(out, "; ");
    if (x->e2)
        ast_print_print(x->e2, 0, s, out);
    buf_addc(out, ')');
    if (ast_print_body(x->body, depth, s, out))
        buf_addc(out, '\n');
}

/* Appends an if or while with its branches, in the style's braces. */
static void ast_print_print_if(const struct as *x, int depth, const struct ast_style *s, struct buf *out)
{
    bool brace;

    buf_adds(out, x->kind == AS_IF ? "if (" : "while (");
    ast_print_print(x->e, 0, s, out);
    buf_addc(out, ')');
    brace = ast_print_body(x->body, depth, s, out);
    if (!x->other) {
        if (brace)
            buf_addc(out, '\n');
        return;
    }
    if (!brace || s->own_line) {
        if (brace)
            buf_addc(out, '\n');
        ast_print_pad(depth, s, out);
        buf_adds(out, "else");
    } else {
        buf_adds(out, " else");
    }
    if (x->other->kind == AS_IF && !x->other->next) {
        buf_addc(out, ' ');
        ast_print_print_if(x->other, depth, s, out);
    } else if (ast_print_body(x->other, depth, s, out)) {
        buf_addc(out, '\n');
    }
}

void as_print(const struct as *x, int depth, const struct ast_style *s, struct buf *out)
{
    if (x->kind == AS_COMMENT && s->bare)
        return;
    ast_print_pad(depth, s, out);
    switch (x->kind) {
    case AS_COMMENT: buf_addf(out, "// %s\n", x->s); break;
    case AS_HASH: buf_addf(out, "%s\n", x->s); break;
    case AS_FOR: ast_print_for(x, depth, s, out); break;
    case AS_IF:
    case AS_WHILE: ast_print_print_if(x, depth, s, out); break;
    case AS_BREAK: buf_adds(out, "break;\n"); break;
    case AS_CONTINUE: buf_adds(out, "continue;\n"); break;
    case AS_BLOCK:
        buf_adds(out, "{\n");
        ast_print_all(x->body, depth + 1, s, out);
        ast_print_pad(depth, s, out);
        buf_adds(out, "}\n");
        break;
    case AS_RETURN: buf_adds(out, x->e ? "return " : "return"); /* fall through */
    case AS_DECL:
    case AS_EXPR:
        print_simple(x, s, out);
        buf_adds(out, ";\n");
        break;
    }
}

static void ast_print_all(const struct as *x, int depth, const struct ast_style *s, struct buf *out)
{
    for (; x; x = x->next)
        as_print(x, depth, s, out);
}

/* Appends a function with its body. */
static void print_function(const struct afun *f, const struct ast_style *s, struct buf *out)
{
    ast_print_type(f->type, true, s, out);
    buf_addf(out, "%s(", f->name);
    for (int i = 0; i < f->n_param; i++) {
        if (i)
            buf_adds(out, ", ");
        ast_print_type(f->param[i].type, true, s, out);
        buf_adds(out, f->param[i].name);
    }
    buf_addc(out, ')');
    ast_print_open_brace(0, s, out);
    ast_print_all(f->body, 1, s, out);
    buf_adds(out, "}\n");
}

void ast_print(const struct afun *f, const struct ast_style *s, struct buf *out)
{
    bool after_function = false, first = true;

    for (; f; f = f->next) {
        if (!first && (f->name || after_function))
            buf_addc(out, '\n');
        if (f->name)
            print_function(f, s, out);
        else if (f->line)
            as_print(f->line, 0, s, out);
        after_function = f->name != NULL;
        first = false;
    }
}

void ast_style_draw(struct rng *r, struct ast_style *ret)
{
    *ret = (struct ast_style){
        .indent = rng_below(r, 4) ? 4 : 2,
        .own_line = rng_below(r, 5) == 0,
        .always_brace = rng_below(r, 3) == 0,
        .star_right = rng_below(r, 2),
        .post_inc = rng_below(r, 2),
        .bare = rng_below(r, 3) == 0,
    };
}

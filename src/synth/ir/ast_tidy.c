/* ast_tidy.c - cleans what templates leave behind: declarations that nothing reads, blocks that need not be, "x *
 * 1". */
#include <string.h>

#include "synth/ir/ast.h"

static bool ast_tidy_expr_uses(const struct ax *x, const char *s)
{
    return x && ax_uses(x, s);
}

/* True where the list's statements use the name. */
static bool ast_tidy_uses(const struct as *x, const char *s)
{
    for (; x; x = x->next) {
        if (ast_tidy_expr_uses(x->e, s) || ast_tidy_expr_uses(x->e2, s) || ast_tidy_uses(x->init, s) ||
            ast_tidy_uses(x->body, s) || ast_tidy_uses(x->other, s))
            return true;
        for (int i = 0; i < x->n_dim; i++)
            if (ast_tidy_expr_uses(x->dim[i], s))
                return true;
    }
    return false;
}

/* True where evaluating x changes nothing. */
static bool ast_tidy_pure(const struct ax *x)
{
    if (!x)
        return true;
    if (x->kind == AX_CALL || x->kind == AX_LAUNCH || (x->kind == AX_UNARY && strchr("+p", x->s[0])))
        return false;
    for (int i = 0; i < x->n; i++)
        if (!ast_tidy_pure(x->kid[i]))
            return false;
    return true;
}

/* Folds integer constants and factors of 1 in place. */
static void ast_tidy_expr(struct ax *x)
{
    if (!x)
        return;
    for (int i = 0; i < x->n; i++)
        ast_tidy_expr(x->kid[i]);
    if (x->kind == AX_BINARY && !strcmp(x->s, "*"))
        for (int i = 0; i < 2; i++)
            if (x->kid[i]->kind == AX_INT && x->kid[i]->i == 1) {
                *x = *x->kid[1 - i];
                return;
            }
    if (x->kind == AX_BINARY && x->n == 2 && x->kid[0]->kind == AX_INT && x->kid[1]->kind == AX_INT && strchr("+-*/",
        *x->s) &&
        !x->s[1] && (*x->s != '/' || x->kid[1]->i)) {
        long long a = x->kid[0]->i, b = x->kid[1]->i;
        x->i = *x->s == '+' ? a + b : *x->s == '-' ? a - b : *x->s == '*' ? a * b : a / b;
        x->kind = AX_INT;
        x->n = 0;
    }
}

static bool ast_tidy_declares(const struct as *x)
{
    for (; x; x = x->next)
        if (x->kind == AS_DECL)
            return true;
    return false;
}

/* Removes unused declarations and empty statements once. True: something changed. */
static bool ast_tidy_tidy(struct as **list)
{
    bool changed = false;

    for (struct as **p = list; *p;) {
        struct as *x = *p;
        ast_tidy_expr(x->e), ast_tidy_expr(x->e2);
        for (int i = 0; i < x->n_dim; i++)
            ast_tidy_expr(x->dim[i]);
        if (x->init)
            ast_tidy_expr(x->init->e);
        changed |= ast_tidy_tidy(&x->body), changed |= ast_tidy_tidy(&x->other);
        if (x->kind == AS_DECL && !x->parens && ast_tidy_pure(x->e) && !ast_tidy_uses(x->next, x->s)) {
            *p = x->next;
            changed = true;
            continue;
        }
        if (x->kind == AS_BLOCK && !ast_tidy_declares(x->body)) {
            struct as **end = p;
            *p = x->body;
            while (*end)
                end = &(*end)->next;
            *end = x->next;
            changed = true;
            continue;
        }
        p = &x->next;
    }
    return changed;
}

void ast_tidy(struct afun *f)
{
    for (; f; f = f->next) {
        if (f->line)
            ast_tidy_expr(f->line->e);
        while (f->body && ast_tidy_tidy(&f->body))
            ;
    }
}

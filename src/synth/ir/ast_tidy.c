/* ast_tidy.c - cleans what templates leave behind: declarations that nothing reads, blocks that need not be, "x *
 * 1". */
#include <string.h>

#include "synth/ir/ast.h"

static bool expr_uses(const struct ax *x, const char *s)
{
    return x && ax_uses(x, s);
}

static bool uses(const struct as *x, const char *s)
{
    for (; x; x = x->next) {
        if (expr_uses(x->e, s) || expr_uses(x->e2, s) || uses(x->init, s) || uses(x->body, s) || uses(x->other, s))
            return true;
        for (int i = 0; i < x->n_dim; i++)
            if (expr_uses(x->dim[i], s))
                return true;
    }
    return false;
}

static bool pure(const struct ax *x)
{
    if (!x)
        return true;
    if (x->kind == AX_CALL || x->kind == AX_LAUNCH || (x->kind == AX_UNARY && strchr("+p", x->s[0])))
        return false;
    for (int i = 0; i < x->n; i++)
        if (!pure(x->kid[i]))
            return false;
    return true;
}

static void tidy_expr(struct ax *x)
{
    if (!x)
        return;
    for (int i = 0; i < x->n; i++)
        tidy_expr(x->kid[i]);
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

static bool declares(const struct as *x)
{
    for (; x; x = x->next)
        if (x->kind == AS_DECL)
            return true;
    return false;
}

static bool tidy(struct as **list)
{
    bool changed = false;

    for (struct as **p = list; *p;) {
        struct as *x = *p;
        tidy_expr(x->e), tidy_expr(x->e2);
        for (int i = 0; i < x->n_dim; i++)
            tidy_expr(x->dim[i]);
        if (x->init)
            tidy_expr(x->init->e);
        changed |= tidy(&x->body), changed |= tidy(&x->other);
        if (x->kind == AS_DECL && !x->parens && pure(x->e) && !uses(x->next, x->s)) {
            *p = x->next;
            changed = true;
            continue;
        }
        if (x->kind == AS_BLOCK && !declares(x->body)) {
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
            tidy_expr(f->line->e);
        while (f->body && tidy(&f->body))
            ;
    }
}

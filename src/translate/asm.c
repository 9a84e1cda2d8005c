/* asm.c - see asm.h. */
#include "translate/asm.h"

#include <string.h>

static bool asm_opens(const struct toks *t, size_t i)
{
    return tok_is_any(t, i, "(\0[\0{\0");
}

/* True where token i begins an asm statement, whose parts go to *a. */
bool asm_find(const struct toks *t, const struct asm_mates *m, size_t i, struct asm_statement *a)
{
    size_t k;

    if (!tok_is_any(t, i, "asm\0__asm__\0__asm\0"))
        return false;
    for (k = tok_next(t, i + 1); tok_is_any(t, k, "volatile\0__volatile__\0inline\0goto\0"); k = tok_next(t, k + 1))
        ;
    if (!tok_is(t, k, "(") || (a->close = m->close_of(m->ctx, k)) >= t->n)
        return false;
    if (!tok_is(t, tok_next(t, a->close + 1), ";") && !t->v[i].directive) /* a macro's body may lack it */
        return false;
    a->open = k;
    a->n_sections = 0;
    for (k = tok_next(t, k + 1); k < a->close; k = tok_next(t, k + 1)) {
        if (asm_opens(t, k) && (k = m->close_of(m->ctx, k)) >= t->n)
            return false;
        for (int c = tok_is(t, k, ":") ? 1 : tok_is(t, k, "::") ? 2 : 0; c > 0 && a->n_sections < 3; c--)
            a->section[a->n_sections++] = k + 1;
    }
    for (int s = a->n_sections; s < 4; s++)
        a->section[s] = a->close;
    return true;
}

/* Appends the text of a string literal's inside [p, p + n). */
static void asm_unescape(const char *p, size_t n, struct buf *out)
{
    for (size_t i = 0; i < n; i++) {
        if (p[i] != '\\' || i + 1 == n) {
            buf_addc(out, p[i]);
            continue;
        }
        switch (p[++i]) {
        case 'n': buf_addc(out, '\n'); break;
        case 't': buf_addc(out, '\t'); break;
        case '\n': break; /* a continued line */
        default: buf_addc(out, p[i]);
        }
    }
}

bool asm_text(const struct toks *t, const struct asm_statement *a, struct buf *out)
{
    size_t end = a->n_sections ? a->section[0] - 1 : a->close;

    for (size_t k = tok_next(t, a->open + 1); k < end; k = tok_next(t, k + 1)) {
        const char *p = t->src + t->v[k].at, *open;
        size_t n = t->v[k].n;

        if (t->v[k].kind != TOK_STRING || n < 2)
            return false;
        if (*p == 'R' && (open = memchr(p, '(', n))) {
            size_t d = (size_t)(open - p) - 1; /* quote and delimiter */

            buf_add(out, open + 1, n - (size_t)(open + 1 - p) - d - 1);
        } else if (*p == '"') {
            asm_unescape(p + 1, n - 2, out);
        } else {
            return false;
        }
    }
    return true;
}

/* One "[name] "constraint" (expression)" from token k; returns the token behind it, or 0. */
static size_t asm_operand(const struct toks *t, const struct asm_mates *m, size_t k, struct ptx_operand *o)
{
    size_t open, close;

    *o = (struct ptx_operand){.tied = -1};
    if (tok_is(t, k, "[")) {
        size_t name = tok_next(t, k + 1);

        o->name = t->src + t->v[name].at;
        o->n_name = t->v[name].n;
        k = tok_next(t, m->close_of(m->ctx, k) + 1);
    }
    if (k >= t->n || t->v[k].kind != TOK_STRING)
        return 0;
    for (size_t i = 1; i + 1 < t->v[k].n; i++) {
        char ch = t->src[t->v[k].at + i];

        if (ch >= '0' && ch <= '9')
            o->tied = ch - '0';
    }
    open = tok_next(t, k + 1);
    if (!tok_is(t, open, "(") || (close = m->close_of(m->ctx, open)) >= t->n)
        return 0;
    o->text = t->src + t->v[open].at + 1;
    o->n_text = t->v[close].at - t->v[open].at - 1;
    return tok_next(t, close + 1);
}

int asm_operands(const struct toks *t, const struct asm_mates *m, const struct asm_statement *a, struct ptx_operand *v)
{
    int n = 0;

    for (int s = 0; s < 2 && s < a->n_sections; s++) {
        if (s == 0 && a->n_sections > 1 && a->section[1] == a->section[0]) /* '::': no outputs */
            continue;
        for (size_t k = tok_next(t, a->section[s]); k < a->close && !tok_is_any(t, k, ":\0::\0");) {
            if (n == ASM_OPERANDS || !(k = asm_operand(t, m, k, &v[n])))
                return -1;
            v[n++].out = s == 0;
            if (tok_is(t, k, ","))
                k = tok_next(t, k + 1);
        }
    }
    return n;
}

/* 'int f() asm("name")' is a name. */
static bool asm_is_label(const char *text)
{
    for (; *text; text++)
        if (!strchr("_.$", *text) && !(*text >= '0' && *text <= '9') && !((*text | 32) >= 'a' && (*text | 32) <= 'z'))
            return false;
    return true;
}

bool asm_is_code(const struct asm_statement *a, const char *text)
{
    return text[strspn(text, " \t\n;")] && !(!a->n_sections && asm_is_label(text));
}

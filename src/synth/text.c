/* text.c - see text.h. */
#include "synth/text.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static void bind(struct bindings *t, const char *key, const char *value, bool call)
{
    if (t->n < TEXT_BINDINGS)
        t->b[t->n++] = (struct binding){key, value, call};
}

void text_bind(struct bindings *t, const char *key, const char *value)
{
    bind(t, key, value, false);
}

void text_bind_call(struct bindings *t, const char *key, const char *value)
{
    bind(t, key, value, true);
}

/* The binding whose key is the longest prefix of s; later bindings win. */
static const struct binding *find(const struct bindings *t, const char *s)
{
    const struct binding *best = NULL;

    for (int i = 0; i < t->n; i++)
        if (!strncmp(s, t->b[i].key, strlen(t->b[i].key)) && (!best || strlen(t->b[i].key) >= strlen(best->key)))
            best = &t->b[i];
    return best;
}

/* Splits "(a, b)" at depth one; returns what follows the closing parenthesis. args[1] is empty if there is one. */
static const char *split_call(const char *s, struct buf args[2])
{
    int depth = 0, k = 0;

    for (; *s; s++) {
        if (*s == '(' && depth++ == 0)
            continue;
        if (*s == ')' && --depth == 0)
            return s + 1;
        if (*s == ',' && depth == 1 && k == 0) {
            k = 1;
            while (s[1] == ' ')
                s++;
            continue;
        }
        buf_addc(&args[k], *s);
    }
    return s;
}

static void expand_inline(struct buf *out, const char *s, size_t n, const struct bindings *t);

static const char *expand_call(struct buf *out, const char *s, const struct binding *b, const struct bindings *t)
{
    struct buf raw[2], args[2];
    struct bindings inner = {0};

    for (int i = 0; i < 2; i++)
        buf_init(&raw[i], 4096), buf_init(&args[i], 4096);
    s = split_call(s, raw);
    for (int i = 0; i < 2; i++)
        expand_inline(&args[i], raw[i].p, raw[i].n, t);
    text_bind(&inner, "a", args[0].p);
    text_bind(&inner, "b", args[1].p);
    if (*b->value)
        expand_inline(out, b->value, strlen(b->value), &inner);
    else
        buf_add(out, args[0].p, args[0].n);
    for (int i = 0; i < 2; i++)
        buf_free(&raw[i]), buf_free(&args[i]);
    return s;
}

static void expand_inline(struct buf *out, const char *s, size_t n, const struct bindings *t)
{
    const char *end = s + n;

    while (s < end) {
        const struct binding *b = *s == '$' ? find(t, s + 1) : NULL;

        if (!b) {
            buf_addc(out, *s++);
            continue;
        }
        s += 1 + strlen(b->key);
        if (b->call && *s == '(')
            s = expand_call(out, s, b, t);
        else
            expand_inline(out, b->value, strlen(b->value), t);
    }
}

static void add_indented(struct buf *out, const char *value, const char *indent, size_t n_indent,
                         const struct bindings *t)
{
    while (*value) {
        size_t n = strcspn(value, "\n");

        buf_add(out, indent, n_indent);
        expand_inline(out, value, n, t);
        buf_addc(out, '\n');
        value += n + (value[n] == '\n');
    }
}

void text_expand(struct buf *out, const char *tmpl, const struct bindings *t)
{
    while (*tmpl) {
        size_t n = strcspn(tmpl, "\n"), blank = strspn(tmpl, " ");
        const struct binding *b = tmpl[blank] == '$' ? find(t, tmpl + blank + 1) : NULL;

        if (b && blank + 1 + strlen(b->key) == n) {
            add_indented(out, b->value, tmpl, blank, t);
        } else {
            expand_inline(out, tmpl, n, t);
            if (tmpl[n] == '\n')
                buf_addc(out, '\n');
        }
        tmpl += n + (tmpl[n] == '\n');
    }
}

void text_number(double x, char out[32])
{
    snprintf(out, 32, "%.6g", x);
    if (!strpbrk(out, ".en"))
        strcat(out, ".0");
}

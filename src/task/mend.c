/* mend.c - see mend.h. */
#include "task/mend.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"

/* A line without its end. */
struct line {
    const char *s;
    size_t n;
};

struct lines {
    struct line *v;
    size_t n;
};

static struct lines split(const char *text)
{
    struct lines l = {0};
    size_t most = 1;

    for (const char *p = text; *p; p++)
        most += *p == '\n';
    l.v = xcalloc(most + 1, sizeof *l.v);
    for (const char *p = text; *p;) {
        size_t n = strcspn(p, "\n");

        l.v[l.n++] = (struct line){p, n};
        p += n + (p[n] == '\n');
    }
    return l;
}

static bool same(struct line a, struct line b)
{
    return a.n == b.n && !memcmp(a.s, b.s, a.n);
}

static void quote(struct buf *out, struct line l)
{
    while (l.n && l.s[0] == ' ')
        l.s++, l.n--;
    buf_addf(out, "`%.*s`", (int)l.n, l.s);
}

/* Where they differ: lines [from, *a_to) of a became [from, *b_to) of b. */
static size_t differing(const struct lines *a, const struct lines *b, size_t *a_to, size_t *b_to)
{
    size_t from = 0, tail = 0;

    while (from < a->n && from < b->n && same(a->v[from], b->v[from]))
        from++;
    while (tail < a->n - from && tail < b->n - from && same(a->v[a->n - 1 - tail], b->v[b->n - 1 - tail]))
        tail++;
    *a_to = a->n - tail;
    *b_to = b->n - tail;
    return from;
}

static void name_place(struct buf *out, const struct lines *a, const struct lines *b)
{
    size_t a_to, b_to, from = differing(a, b, &a_to, &b_to);

    if (from == a_to && from == b_to) {
        buf_adds(out, "No line differs");
    } else if (from == a_to) {
        buf_adds(out, "A line is missing");
        if (from < a->n)
            buf_adds(out, " in front of "), quote(out, a->v[from]);
        buf_adds(out, ": "), quote(out, b->v[from]);
    } else {
        buf_adds(out, "The faulty line is "), quote(out, a->v[from]);
        buf_adds(out, from == b_to ? ". It does not belong there" : ". It should be ");
        if (from < b_to)
            quote(out, b->v[from]);
    }
}

char *mend_answer(const char *broken, const char *fixed, const char *why)
{
    struct lines a = split(broken), b = split(fixed);
    struct buf out;

    buf_init(&out, BUF_MAX_TEXT);
    name_place(&out, &a, &b);
    buf_addf(&out, "%s%s.\n\n```python\n%s```", why ? ": " : "", why ? why : "", fixed);
    free(a.v), free(b.v);
    return buf_detach(&out);
}

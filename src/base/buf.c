/* buf.c - see buf.h. */
#include "base/buf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* An empty buffer, freed by buf_free, that holds at most max bytes. */
void buf_init(struct buf *b, size_t max)
{
    b->cap = 64;
    b->p = xmalloc(b->cap);
    b->p[0] = 0;
    b->n = 0;
    b->max = max;
    b->cut = false;
}

void buf_free(struct buf *b)
{
    free(b->p);
    memset(b, 0, sizeof *b);
}

void buf_clear(struct buf *b)
{
    b->n = 0;
    b->p[0] = 0;
    b->cut = false;
}

/* Appends n bytes and keeps a NUL behind them. What exceeds b->max is left out, and b->cut tells it. */
void buf_add(struct buf *b, const void *data, size_t n)
{
    if (n > b->max - b->n) {
        n = b->max - b->n;
        b->cut = true;
    }
    if (b->n + n + 1 > b->cap) {
        while (b->n + n + 1 > b->cap)
            b->cap *= 2;
        b->p = xrealloc(b->p, b->cap);
    }
    if (n)
        memcpy(b->p + b->n, data, n);
    b->n += n;
    b->p[b->n] = 0;
}

void buf_adds(struct buf *b, const char *s)
{
    buf_add(b, s, strlen(s));
}

void buf_addc(struct buf *b, char c)
{
    buf_add(b, &c, 1);
}

/* Appends formatted text of any length; see buf_add. */
void buf_vaddf(struct buf *b, const char *fmt, va_list ap)
{
    char small[512], *big = NULL;
    va_list copy;
    int n;

    va_copy(copy, ap);
    n = vsnprintf(small, sizeof small, fmt, ap);
    if (n >= (int)sizeof small) {
        big = xmalloc((size_t)n + 1);
        vsnprintf(big, (size_t)n + 1, fmt, copy);
    }
    va_end(copy);
    if (n > 0)
        buf_add(b, big ? big : small, (size_t)n);
    free(big);
}

/* Appends formatted text; see buf_add. */
void buf_addf(struct buf *b, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    buf_vaddf(b, fmt, ap);
    va_end(ap);
}

char *buf_detach(struct buf *b)
{
    char *p = b->p;

    memset(b, 0, sizeof *b);
    return p;
}

void ivec_append(struct ivec *a, const int32_t *v, size_t n)
{
    if (a->n + n > a->cap) {
        a->cap = (a->n + n) * 2 < 16 ? 16 : (a->n + n) * 2;
        a->v = xrealloc(a->v, a->cap * sizeof *a->v);
    }
    if (n)
        memcpy(a->v + a->n, v, n * sizeof *v);
    a->n += n;
}

void ivec_push(struct ivec *a, int32_t x)
{
    ivec_append(a, &x, 1);
}

void ivec_free(struct ivec *a)
{
    free(a->v);
    memset(a, 0, sizeof *a);
}

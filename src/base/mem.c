/* mem.c - see mem.h. */
#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* p; ends the process where it is NULL. */
static void *mem_check(void *p)
{
    if (!p) {
        fputs("musacoder: out of memory\n", stderr);
        abort();
    }
    return p;
}

void *xmalloc(size_t n)
{
    return mem_check(malloc(n ? n : 1));
}

void *xcalloc(size_t n, size_t size)
{
    return mem_check(calloc(n ? n : 1, size ? size : 1));
}

void *xrealloc(void *p, size_t n)
{
    return mem_check(realloc(p, n ? n : 1));
}

char *xstrdup(const char *s)
{
    return mem_check(strdup(s));
}

char *xstrndup(const char *s, size_t n)
{
    return mem_check(strndup(s, n));
}

/* Formatted text in new memory; ends the process without memory. */
char *xasprintf(const char *fmt, ...)
{
    va_list ap;
    char *s = NULL;

    va_start(ap, fmt);
    if (vasprintf(&s, fmt, ap) < 0)
        s = NULL;
    va_end(ap);
    return mem_check(s);
}

struct arena_block {
    struct arena_block *next;
    size_t used, cap;
    _Alignas(16) unsigned char data[];
};

void *arena_alloc(struct arena *a, size_t n)
{
    struct arena_block *b = a->head;
    void *p;

    n = (n + 15) & ~(size_t)15;
    if (!b || b->cap - b->used < n) {
        size_t cap = n > 65536 ? n : 65536;
        b = xmalloc(sizeof *b + cap);
        b->cap = cap;
        b->used = 0;
        b->next = a->head;
        a->head = b;
    }
    p = b->data + b->used;
    b->used += n;
    return memset(p, 0, n);
}

char *arena_strndup(struct arena *a, const char *s, size_t n)
{
    char *p = arena_alloc(a, n + 1);

    return memcpy(p, s, n);
}

char *arena_strdup(struct arena *a, const char *s)
{
    return arena_strndup(a, s, strlen(s));
}

void arena_free(struct arena *a)
{
    while (a->head) {
        struct arena_block *next = a->head->next;
        free(a->head);
        a->head = next;
    }
}

/* mem.h - allocation that cannot fail silently, and arenas.
 *
 * xmalloc and friends abort on exhaustion: there is nothing sensible left to do for a small host allocation.
 * Big tensors are planned first and allocated with slab_alloc (nn/), which reports instead.
 * An arena argument *is* the ownership note: what is allocated there lives until arena_free. */
#ifndef MC_MEM_H
#define MC_MEM_H

#include <stddef.h>

void *xmalloc(size_t n);
void *xcalloc(size_t n, size_t size);
void *xrealloc(void *p, size_t n);
char *xstrdup(const char *s);
char *xstrndup(const char *s, size_t n);
char *xasprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

struct arena {
    struct arena_block *head;
};
void *arena_alloc(struct arena *a, size_t n); /* zeroed, 16-byte aligned */
char *arena_strdup(struct arena *a, const char *s);
char *arena_strndup(struct arena *a, const char *s, size_t n);
void arena_free(struct arena *a); /* the arena may be used again */

#endif

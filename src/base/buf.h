/* buf.h - a growing byte buffer with a mandatory maximum.
 *
 * p is never NULL after buf_init and always has a 0 byte behind the n bytes, so it reads as a string too.
 * Adding past max drops what does not fit and sets 'cut'; callers that care test it. */
#ifndef MC_BUF_H
#define MC_BUF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf {
    char *p;
    size_t n, cap, max;
    bool cut;
};

#define BUF_MAX_TEXT (64u << 20) /* enough for any source, log or record we handle */

void buf_init(struct buf *b, size_t max);
void buf_free(struct buf *b);
void buf_clear(struct buf *b);
void buf_add(struct buf *b, const void *data, size_t n);
void buf_adds(struct buf *b, const char *s);
void buf_addc(struct buf *b, char c);
void buf_addf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_vaddf(struct buf *b, const char *fmt, va_list ap);
char *buf_detach(struct buf *b); /* caller frees the string; b is empty and must be initialised again */

/* The end of a word that is counted: "1 task", "2 tasks". */
static inline const char *buf_plural(long long n)
{
    return n == 1 ? "" : "s";
}

/* A growing vector of token ids (or any int32). */
struct ivec {
    int32_t *v;
    size_t n, cap;
};
void ivec_push(struct ivec *a, int32_t x);
void ivec_append(struct ivec *a, const int32_t *v, size_t n);
void ivec_free(struct ivec *a);

#endif

/* words.c - see words.h. */
#include "chat/words.h"

#include <string.h>

#include "base/json.h"

#define TEXT_MAX ((size_t)64 << 20)

void words_begin(struct chat_words *w)
{
    *w = (struct chat_words){0};
    buf_init(&w->raw, 4096);
    buf_init(&w->text, TEXT_MAX);
}

void words_free(struct chat_words *w)
{
    buf_free(&w->raw);
    buf_free(&w->text);
}

/* Length of the longest beginning that does not end inside a character. */
static size_t words_whole(const struct buf *b)
{
    for (size_t back = 1; back <= 3 && back <= b->n; back++) {
        unsigned char c = (unsigned char)b->p[b->n - back];
        size_t need = c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : c >= 0xC0 ? 2 : 1;
        if ((c & 0xC0) != 0x80)
            return need > back ? b->n - back : b->n;
    }
    return b->n;
}

static void words_drop(struct buf *b, size_t n)
{
    memmove(b->p, b->p + n, b->n - n);
    b->n -= n;
    b->p[b->n] = 0;
}

/* Bytes at the end of text that begin a stop string. */
static size_t words_begun(const struct buf *t, const char *stop)
{
    size_t n = strlen(stop) - 1;

    for (n = n < t->n ? n : t->n; n > 0; n--)
        if (!memcmp(t->p + t->n - n, stop, n))
            return n;
    return 0;
}

/* Cuts the text at the first stop word; what may be the beginning of one is held back. */
static void words_look_for_stops(struct chat_words *w, size_t from, char *const *stop, int n_stop)
{
    size_t held = 0, at = w->text.n;

    for (int i = 0; i < n_stop; i++) {
        size_t n = strlen(stop[i]), begin = from > n - 1 ? from - (n - 1) : 0, partly = words_begun(&w->text, stop[i]);
        const char *hit = memmem(w->text.p + begin, w->text.n - begin, stop[i], n);
        if (hit && (size_t)(hit - w->text.p) < at)
            at = (size_t)(hit - w->text.p);
        held = partly > held ? partly : held;
    }
    w->stopped = at < w->text.n;
    if (w->stopped) {
        w->text.n = at;
        w->text.p[at] = 0;
    }
    w->safe = w->stopped ? at : w->text.n - held;
}

void words_add(struct chat_words *w, const char *bytes, size_t n, char *const *stop, int n_stop)
{
    size_t from = w->text.n, ready;

    if (w->stopped)
        return;
    buf_add(&w->raw, bytes, n);
    ready = words_whole(&w->raw);
    utf8_sanitize(&w->text, w->raw.p, ready);
    words_drop(&w->raw, ready);
    words_look_for_stops(w, from, stop, n_stop);
}

void words_end(struct chat_words *w)
{
    if (!w->stopped)
        utf8_sanitize(&w->text, w->raw.p, w->raw.n);
    buf_clear(&w->raw);
    w->safe = w->text.n;
}

/* words.h - the text of one sample while its tokens come: whole characters alone, and nothing that may be the beginning
 * of a stop string. Pure. */
#ifndef MC_CHAT_WORDS_H
#define MC_CHAT_WORDS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

struct chat_words {
    struct buf raw;  /* bytes that do not end a character yet */
    struct buf text; /* UTF-8 */
    size_t safe;     /* bytes of text that stay, whatever comes */
    bool stopped;    /* a stop string came: it and what follows are not in text */
};

void words_begin(struct chat_words *w);
void words_free(struct chat_words *w);
/* Bytes of the next token. stop: n_stop strings, none empty. */
void words_add(struct chat_words *w, const char *bytes, size_t n, char *const *stop, int n_stop);
void words_end(struct chat_words *w); /* what was held back is text after all */

#endif

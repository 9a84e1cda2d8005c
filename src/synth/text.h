/* text.h - template expansion for the emitters.
 *
 * '$key' is replaced by its value ('$' then the longest run of letters and digits that is a key). A line that holds
 * only blanks and one key takes a value of several lines, each indented alike, and vanishes if the value is empty.
 * '$M(a, b)' applies the two-argument template bound to a key marked 'call': its value uses $a and $b; an empty value
 * of a one-argument call '$P(a)' leaves just the argument. */
#ifndef MC_SYNTH_TEXT_H
#define MC_SYNTH_TEXT_H

#include "base/buf.h"

struct binding {
    const char *key, *value;
    bool call;
};

#define TEXT_BINDINGS 40
struct bindings {
    struct binding b[TEXT_BINDINGS];
    int n;
};

void text_bind(struct bindings *t, const char *key, const char *value); /* borrowed until expansion is over */
void text_bind_call(struct bindings *t, const char *key, const char *value);
void text_expand(struct buf *out, const char *tmpl, const struct bindings *t);

/* 0.5 -> "0.5", 2 -> "2.0": a Python float; CUDA adds 'f'. */
void text_number(double x, char out[32]);

#endif

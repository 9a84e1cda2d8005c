/* sample.c - what a sample owns. */
#include <stdlib.h>

#include "base/mem.h"
#include "nn/dev_model.h"
#include "nn/sampler.h"

void sample_free(struct sample *s)
{
    free(s->tokens);
    free(s->logp);
    free(s->kept);
    free(s->kept_to);
    s->tokens = s->kept = NULL;
    s->kept_to = NULL;
    s->logp = NULL;
}

/* Twice the room where it is full: blocks of 64 tokens, and powers of two of ids. */
void sample_keep_room(struct sample *o, int ids)
{
    int had = o->n ? o->kept_to[o->n - 1] : 0;
    int room = 256, had_room = 256;

    while (room < ids)
        room *= 2;
    while (had_room < had)
        had_room *= 2;
    if (!o->kept || room > had_room)
        o->kept = xrealloc(o->kept, (size_t)room * sizeof *o->kept);
    if (o->n % 64 == 0)
        o->kept_to = xrealloc(o->kept_to, (size_t)(o->n + 64) * sizeof *o->kept_to);
}

void samples_free(struct sample *s, size_t n)
{
    for (size_t i = 0; s && i < n; i++)
        sample_free(&s[i]);
    free(s);
}

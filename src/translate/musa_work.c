/* musa_work.c - what the passes write down: edits, notes, uses, and the program's own names. */
#include "translate/musa_work.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void musa_replace(struct musa_work *w, const struct musa_text *t, size_t i, size_t n, const char *text)
{
    size_t at = musa_place(t, i);

    if (w->n_edits == w->cap_edits) {
        w->cap_edits = w->cap_edits ? 2 * w->cap_edits : 64;
        w->edits = xrealloc(w->edits, w->cap_edits * sizeof *w->edits);
    }
    w->edits[w->n_edits++] = (struct musa_edit){at, musa_place(t, i + n) - at, text};
}

/* The line of a byte, from 1. */
static uint32_t musa_work_line_of(const struct musa_work *w, size_t at)
{
    uint32_t line = 1;

    for (const char *p = w->src; (p = memchr(p, '\n', (size_t)(w->src + at - p))); p++)
        line++;
    return line;
}

void musa_note(struct musa_work *w, const struct musa_text *t, size_t i, enum musa_note_kind kind, const char *rule,
               char evidence, const char *fmt, ...)
{
    struct musa_result *r = w->ret;
    uint32_t line = musa_work_line_of(w, musa_place(t, i));
    char text[300];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    r->refused |= kind == MUSA_REFUSED;
    r->lossy |= kind == MUSA_LOSSY;
    for (size_t k = 0; k < r->n_notes; k++)
        if (r->notes[k].line == line && r->notes[k].rule == rule && !strcmp(r->notes[k].text, text))
            return;
    if (r->n_notes == w->cap_notes) {
        w->cap_notes = w->cap_notes ? 2 * w->cap_notes : 16;
        r->notes = xrealloc(r->notes, w->cap_notes * sizeof *r->notes);
    }
    r->notes[r->n_notes++] = (struct musa_note){kind, line, rule, evidence, xstrdup(text)};
}

void musa_used(struct musa_work *w, const struct musa_text *t, size_t i, const char *from, const char *to,
               char evidence,
               bool one_way)
{
    struct musa_result *r = w->ret;
    size_t k = 0;

    if (one_way)
        musa_note(w, t, i, MUSA_LOSSY, "one-way", evidence,
                  "'%s' becomes '%s', which comes back by another name", from, to);
    while (k < r->n_uses && !(r->uses[k].from == from && r->uses[k].to == to))
        k++;
    if (k < r->n_uses) {
        r->uses[k].n++;
        return;
    }
    if (r->n_uses == w->cap_uses) {
        w->cap_uses = w->cap_uses ? 2 * w->cap_uses : 32;
        r->uses = xrealloc(r->uses, w->cap_uses * sizeof *r->uses);
    }
    r->uses[r->n_uses++] = (struct musa_use){from, to, evidence, 1, musa_work_line_of(w, musa_place(t, i))};
}

/* True if the list has the name. */
static bool musa_work_holds(const struct musa_names *names, const char *s, size_t n)
{
    for (size_t i = 0; names && i < names->n; i++)
        if (strlen(names->v[i]) == n && !memcmp(names->v[i], s, n))
            return true;
    return false;
}

bool musa_owns(const struct musa_work *w, const char *s, size_t n)
{
    return musa_work_holds(&w->own, s, n) || musa_work_holds(w->o->own, s, n);
}

/* Only names that a rule could take for CUDA's or MUSA's are kept: lists stay short. */
void musa_own_add(struct musa_names *names, const char *s, size_t n)
{
    size_t skip;

    if (!musa_prefix_find(s, n, false, &skip) && !musa_prefix_find(s, n, true, &skip) &&
        !musa_lack_find(musa_lacks, s, n))
        return;
    if (musa_work_holds(names, s, n))
        return;
    if (names->n == names->cap) {
        names->cap = names->cap ? 2 * names->cap : 32;
        names->v = xrealloc(names->v, names->cap * sizeof *names->v);
    }
    names->v[names->n++] = xstrndup(s, n);
}

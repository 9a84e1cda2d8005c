/* musa_work.h - private to the MUSA translator: one translation under way. Every pass only adds edits and notes,
 * in the coordinates of the source; musa.c sorts and applies them. */
#ifndef MC_TRANSLATE_MUSA_WORK_H
#define MC_TRANSLATE_MUSA_WORK_H

#include "base/mem.h"
#include "translate/lexer.h"
#include "translate/musa.h"
#include "translate/musa_table.h"

struct musa_edit {
    size_t at, n;     /* bytes of the source that go */
    const char *text; /* what comes; static or in the work's arena */
};

struct musa_work {
    const struct musa_options *o;
    const char *src;
    size_t n;
    struct arena arena;
    struct musa_edit *edits;
    size_t n_edits, cap_edits;
    struct musa_names own; /* names that the source declares itself */
    struct musa_result *ret;
    size_t cap_notes, cap_uses;
};

/* A text to translate: the source, or the value of a string in it. map[i] is where byte i stands in the source (n + 1
 * entries); NULL: at + i. */
struct musa_text {
    const char *s;
    size_t n, at;
    const size_t *map;
};

static inline bool musa_back(const struct musa_work *w)
{
    return w->o->to == TO_CUDA;
}

static inline size_t musa_place(const struct musa_text *t, size_t i)
{
    return t->map ? t->map[i] : t->at + i;
}

/* Replaces bytes [i, i + n) of the text. */
void musa_replace(struct musa_work *w, const struct musa_text *t, size_t i, size_t n, const char *text);
/* A note about byte i of the text. */
void musa_note(struct musa_work *w, const struct musa_text *t, size_t i, enum musa_note_kind kind, const char *rule,
               char evidence, const char *fmt, ...) __attribute__((format(printf, 7, 8)));
/* Counts a use of a row or prefix; notes the loss of one that has no way back. */
void musa_used(struct musa_work *w, const struct musa_text *t, size_t i, const char *from, const char *to,
               char evidence, bool one_way);
void musa_own_add(struct musa_names *names, const char *s, size_t n);
bool musa_owns(const struct musa_work *w, const char *s, size_t n);

/* The passes. Names that a text declares must be known before any text is translated. */
void musa_cxx_names(struct musa_names *names, const struct musa_text *t);
void musa_python_names(struct musa_names *names, const char *src, size_t n);
void musa_cxx(struct musa_work *w, const struct musa_text *t);
void musa_limits(struct musa_work *w, const struct musa_text *t, const struct toks *k);
void musa_python(struct musa_work *w);

/* One identifier of C++ by rows and prefixes; false if neither knows it. member: it stands behind '.' or '->'. */
bool musa_word(struct musa_work *w, const struct musa_text *t, size_t i, size_t n, bool member);
/* "cuda", "cuda:1" as a whole; true if it was one. */
bool musa_device_name(struct musa_work *w, const struct musa_text *t, size_t i, size_t n);

#endif

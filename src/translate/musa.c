/* musa.c - the translation's frame: notes, edits, the program's own names,
    and the output. Reading order: musa_translate
 * at the end, then musa_cxx.c, musa_python.c, musa_limits.c. */
#include "translate/musa.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "translate/musa_work.h"

void musa_names_add(struct musa_names *names, const char *src, size_t n, enum musa_lang lang)
{
    struct musa_text whole = {src, n, 0, NULL};

    if (lang == MUSA_PYTHON)
        musa_python_names(names, src, n);
    else
        musa_cxx_names(names, &whole);
}

void musa_names_free(struct musa_names *names)
{
    names_free(names->v, names->n);
    memset(names, 0, sizeof *names);
}

/* qsort: by place; what is put in stands in front of what is replaced. */
static int musa_by_place(const void *a, const void *b)
{
    const struct musa_edit *x = a, *y = b;

    return x->at != y->at ? (x->at < y->at ? -1 : 1) : (x->n > y->n) - (x->n < y->n); /* what is put in stands in
        front */
}

/* Edits never overlap: each token has one pass that may change it. One that would is dropped. */
static void musa_apply(struct musa_work *w)
{
    size_t at = 0;

    if (w->n_edits)
        qsort(w->edits, w->n_edits, sizeof *w->edits, musa_by_place);
    for (size_t i = 0; i < w->n_edits; i++) {
        const struct musa_edit *e = &w->edits[i];
        if (e->at < at)
            continue;
        buf_add(&w->ret->out, w->src + at, e->at - at);
        buf_adds(&w->ret->out, e->text);
        at = e->at + e->n;
        w->ret->edits++;
    }
    buf_add(&w->ret->out, w->src + at, w->n - at);
}

static int musa_by_line(const void *a, const void *b)
{
    const struct musa_note *x = a, *y = b;

    return x->line != y->line ? (x->line < y->line ? -1 : 1) : strcmp(x->text, y->text);
}

enum musa_lang musa_lang_of(const char *filename)
{
    return path_ends(filename, ".py") ? MUSA_PYTHON : MUSA_CXX;
}

int musa_translate(const char *src, size_t n, const struct musa_options *o, struct musa_result *ret, struct err *e)
{
    struct musa_work w = {.o = o, .src = src, .n = n, .ret = ret};
    struct musa_text whole = {src, n, 0, NULL};

    memset(ret, 0, sizeof *ret);
    buf_init(&ret->out, 2 * (size_t)BUF_MAX_TEXT);
    if (n > BUF_MAX_TEXT)
        return err_set(e, ERR_INPUT, "the source is larger than %u MiB", BUF_MAX_TEXT >> 20);
    if (memchr(src, 0, n))
        return err_set(e, ERR_INPUT, "the source holds a NUL byte; it is no text");
    musa_names_add(&w.own, src, n, o->lang);
    if (o->lang == MUSA_PYTHON)
        musa_python(&w);
    else
        musa_cxx(&w, &whole);
    if (!ret->refused || o->partial)
        musa_apply(&w);
    if (ret->n_notes)
        qsort(ret->notes, ret->n_notes, sizeof *ret->notes, musa_by_line);
    free(w.edits);
    musa_names_free(&w.own);
    arena_free(&w.arena);
    return 0;
}

void musa_result_free(struct musa_result *r)
{
    for (size_t i = 0; i < r->n_notes; i++)
        free(r->notes[i].text);
    free(r->notes);
    free(r->uses);
    buf_free(&r->out);
    memset(r, 0, sizeof *r);
}

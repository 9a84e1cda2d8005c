/* musa_alias.c - the translator's names as a header: what MUSA calls a name of CUDA's, as a macro for it. With such a
 * header MUSA sources compile where only CUDA's headers are: against the emulator, and with nvcc. */
#include <stdlib.h>
#include <string.h>

#include "translate/musa_work.h"

struct alias {
    const char *musa; /* in the arena */
    const char *cuda;
    bool call;        /* '#define NAME(...)': a vendor's function that may not be called, refused by name */
};

struct aliases {
    struct arena arena;
    struct alias *v;
    size_t n, cap;
};

/* MUSA's name of CUDA's name s, in the arena; NULL: it has none. */
static char *musa_alias_name(struct aliases *a, const char *s, size_t n)
{
    const struct musa_row *r = musa_row_find(ROW_NAME, s, n, false);
    const struct musa_prefix *p;
    char *out;
    size_t skip, k;

    if (r)
        return r->one_way ? NULL : arena_strdup(&a->arena, r->musa);
    if (!(p = musa_prefix_find(s, n, false, &skip)))
        return NULL;
    k = strlen(p->musa);
    out = arena_alloc(&a->arena, k + n - skip + 1);
    memcpy(out, p->musa, k);
    memcpy(out + k, s + skip, n - skip);
    return out;
}

/* Adds the alias of a name, if MUSA has another one. */
static void musa_alias_add(struct aliases *a, const char *s, size_t n, bool call)
{
    char *musa = musa_alias_name(a, s, n);

    if (!musa)
        return;
    if (a->n == a->cap) {
        a->cap = a->cap ? 2 * a->cap : 256;
        a->v = xrealloc(a->v, a->cap * sizeof *a->v);
    }
    a->v[a->n++] = (struct alias){musa, arena_strndup(&a->arena, s, n), call};
}

/* qsort: by MUSA's name; calls first. */
static int musa_alias_by_name(const void *x, const void *y)
{
    const struct alias *a = x, *b = y;
    int c = strcmp(a->musa, b->musa);

    return c ? c : b->call - a->call;
}

/* Notes each identifier of the source, and whether it stands in a macro's call. */
static void musa_alias_collect(struct aliases *a, const struct toks *k)
{
    for (size_t i = 0; i < k->n; i++) {
        const struct tok *v = &k->v[i];
        bool call = v->directive && tok_is(k, i + 1, "(") && tok_is(k, i + 2, ".");
        if (v->kind == TOK_IDENT)
            musa_alias_add(a, k->src + v->at, v->n, call);
    }
}

void musa_aliases(const char *text, size_t n, struct buf *out)
{
    struct aliases a = {0};
    struct toks k;

    lex(text, n, &k);
    musa_alias_collect(&a, &k);
    if (a.n)
        qsort(a.v, a.n, sizeof *a.v, musa_alias_by_name);
    for (size_t i = 0; i < a.n; i++) {
        if (i && !strcmp(a.v[i].musa, a.v[i - 1].musa))
            continue;
        if (a.v[i].call)
            buf_addf(out, "#define %s(...) LT_LIBRARY_CALL(cublasStatus_t, \"%s\")\n", a.v[i].musa, a.v[i].musa);
        else
            buf_addf(out, "#define %s %s\n", a.v[i].musa, a.v[i].cuda);
    }
    toks_free(&k);
    free(a.v);
    arena_free(&a.arena);
}

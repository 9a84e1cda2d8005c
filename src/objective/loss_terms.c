/* loss_terms.c - the list of terms, which the Makefile makes of src/objective/terms, and a run's choice of them. */
#include "objective/loss_terms.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"

#define TERM_FILE(name) extern const struct loss_term term_##name;
#include "terms_list.h"
#undef TERM_FILE

#define TERM_FILE(name) &term_##name,
const struct loss_term *const loss_terms_known[] = {
#include "terms_list.h"
    NULL};
#undef TERM_FILE

static const struct loss_term *loss_terms_find(const char *name, size_t n)
{
    for (const struct loss_term *const *t = loss_terms_known; *t; t++)
        if (strlen((*t)->name) == n && !strncmp((*t)->name, name, n))
            return *t;
    return NULL;
}

/* ERR_INPUT that names all terms. Always -1. */
static int loss_terms_unknown(const char *word, struct err *e)
{
    struct buf names;

    buf_init(&names, 4096);
    for (const struct loss_term *const *t = loss_terms_known; *t; t++)
        buf_addf(&names, "%s%s", names.n ? ", " : "", (*t)->name);
    err_set(e, ERR_INPUT, "'%s' is no term of the loss; use NAME=WEIGHT, of %s", word, names.p);
    buf_free(&names);
    return -1;
}

/* Adds a word NAME=WEIGHT. */
static int loss_terms_add(const char *word, struct loss_terms *s, struct err *e)
{
    const char *equals = strchr(word, '=');
    const struct loss_term *term = equals ? loss_terms_find(word, (size_t)(equals - word)) : NULL;
    char *end = NULL;
    double weight = equals ? strtod(equals + 1, &end) : 0;

    if (!term || end == equals + 1 || *end || !isfinite(weight) || s->n == LOSS_TERMS_MAX)
        return loss_terms_unknown(word, e);
    s->term[s->n] = term;
    s->weight[s->n++] = weight;
    return 0;
}

int loss_terms_parse(const char *text, struct loss_terms *ret, struct err *e)
{
    char *copy = xstrdup(text ? text : ""), *save = NULL;
    struct loss_terms s = {.n = 0};
    int rc = 0;

    for (char *word = strtok_r(copy, ", ", &save); word && rc == 0; word = strtok_r(NULL, ", ", &save))
        rc = loss_terms_add(word, &s, e);
    free(copy);
    if (rc == 0)
        *ret = s;
    return rc;
}

struct loss_value loss_terms_sum(const struct loss_terms *s, const struct loss_token *t)
{
    struct loss_value sum = {0, 0};

    for (int i = 0; i < s->n; i++) {
        struct loss_value v = s->term[i]->of(t);
        sum.loss += s->weight[i] * v.loss;
        sum.dlogp += s->weight[i] * v.dlogp;
    }
    return sum;
}

/* stage_extract.c - finds the program in the response. Blames extraction_error. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "eval/build/dialect.h"
#include "eval/stage/stage.h"
#include "eval/verdict/record.h"
#include "task/bundle.h"

static bool stage_extract_blank(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!strchr(" \t\r\n", s[i]) || !s[i])
            return false;
    return true;
}

/* A MUSA program runs where another device plays MUSA's part. */
static char *stage_extract_program_of(struct job *j, const char *code, size_t n)
{
    const char *want = j->opt->dialect ? j->opt->dialect : "any";
    bool musa = dialect_is_musa(code, n);
    char *text = NULL;

    if (strcmp(want, "any") && musa != !strcmp(want, "musa"))
        record_blame(j->rec, "extraction_error", "extract", "%s", musa ?
                     "a CUDA program was asked for, and this one is MUSA's" :
                     "a MUSA program was asked for; import load_inline from torch_musa.utils.musa_extension");
    if (musa) {
        record_set(j->rec, "dialect", json_string("musa"));
        text = dialect_program(code, n);
    }
    return text ? text : xstrndup(code, n);
}

/* The line of byte 'at', from 1. */
static int stage_extract_line_of(const char *code, size_t at)
{
    int line = 1;

    for (size_t i = 0; i < at; i++)
        line += code[i] == '\n';
    return line;
}

/* Python would refuse it, so the judge does. */
static size_t stage_extract_bad_at(const struct eval_candidate *c, const char *code, size_t n)
{
    const char *at = c->mended ? memmem(code, n, "\xEF\xBF\xBD", 3) : NULL;

    return at ? (size_t)(at - code) : utf8_bad_at(code, n);
}

/* What a program without ModelNew defines in its place: the name of its last class that derives from a Module. */
static bool stage_extract_other_class(const char *code, size_t n, char *ret, size_t n_ret)
{
    bool found = false;

    for (const char *p = code, *end = code + n, *next; p < end; p = next) {
        char name[64], base[64];
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        char line[200];

        next = stop ? stop + 1 : end;
        snprintf(line, sizeof line, "%.*s", (int)(next - p), p);
        if (sscanf(line, "class %63[A-Za-z0-9_](%63[A-Za-z0-9_.])", name, base) == 2 && strstr(base, "Module")) {
            snprintf(ret, n_ret, "%s", name);
            found = true;
        }
    }
    return found;
}

/* Blames a program without class ModelNew, by what it has instead. */
static void stage_extract_blame_no_model(struct job *j, const char *code, size_t n)
{
    char name[64];

    if (!j->extraction.closed)
        record_blame(j->rec, "extraction_error", "extract", "the answer was cut off before its class ModelNew: the "
                                                            "code fence never ends");
    else if (stage_extract_other_class(code, n, name, sizeof name))
        record_blame(j->rec, "extraction_error", "extract", "the program defines no class ModelNew; is it the class "
                                                            "'%s'? rename it", name);
    else
        record_blame(j->rec, "extraction_error", "extract", "the program defines no class ModelNew");
}

/* ---- answers of several fences ---- */

/* Puts the files that a response's other fences hold behind its program; where it has none they may be one. */
static void stage_extract_join(struct job *j)
{
    json_t *left_out = json_array(), *said = json_object_get(j->rec, "extraction");
    struct buf all;

    buf_init(&all, BUF_MAX_TEXT);
    if (bundle_of_response(j->cand->text, j->cand->n, &j->extraction, j->code, j->task->code, left_out, &all)) {
        char *before = j->code;
        j->code = before ? xstrndup(all.p, all.n) : stage_extract_program_of(j, all.p, all.n);
        free(before);
    }
    if (json_array_size(left_out))
        json_object_set(said, "left_out", left_out);
    json_decref(left_out);
    buf_free(&all);
}

/* Does a response without a program hold named CUDA sources? */
static bool stage_extract_sources(struct job *j)
{
    if (j->extraction.n_fences > 0)
        stage_extract_join(j);
    return j->code != NULL;
}

/* The stage: finds the program in the response and blames a response without one. */
static int stage_extract_run(struct job *j, struct err *e)
{
    struct extraction *x = &j->extraction;
    const char *code;
    size_t bad;

    (void)e;
    extract_code(j->cand->text, j->cand->n, j->cand->kind, x);
    record_set(j->rec, "extraction", extract_json(x));
    code = j->cand->text + x->offset;
    if (!x->found && x->think_dropped)
        record_blame(j->rec, "extraction_error", "extract", "the response holds no code fence after its thinking");
    else if (!x->found)
        record_blame(j->rec, "extraction_error", "extract", "the response holds no code; answer with one ```python "
                                                            "fence");
    else if (stage_extract_blank(code, x->n))
        record_blame(j->rec, "extraction_error", "extract", "the code fence is empty");
    else if (memchr(code, 0, x->n))
        record_blame(j->rec, "extraction_error", "extract", "the code holds a NUL byte");
    else if ((bad = stage_extract_bad_at(j->cand, code, x->n)) < x->n)
        record_blame(j->rec, "extraction_error", "extract", "the code is not UTF-8 text: see line %d",
                     stage_extract_line_of(code, bad));
    else if (x->defines_modelnew)
        j->code = stage_extract_program_of(j, code, x->n);
    else if (!stage_extract_sources(j))
        stage_extract_blame_no_model(j, code, x->n);
    if (j->code && x->defines_modelnew && x->n_fences > 1)
        stage_extract_join(j);
    return 0;
}

const struct stage stage_extract = {"extract", stage_extract_run, false};

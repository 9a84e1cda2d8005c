/* dialect.c - see dialect.h. */
#include "eval/build/dialect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "translate/musa.h"
#include "translate/musa_table.h"

const struct data_sheet *dialect_profile(void)
{
    return data_sheet_find(getenv("MUSACODER_PROFILE"));
}

static bool dialect_holds(const char *s, size_t n, const char *what)
{
    return memmem(s, n, what, strlen(what)) != NULL;
}

bool dialect_is_musa(const char *program, size_t n)
{
    return dialect_holds(program, n, "torch_musa") || dialect_holds(program, n, "musa_sources");
}

char *dialect_program(const char *program, size_t n)
{
    struct musa_options o = {.to = TO_CUDA, .lang = MUSA_PYTHON, .device_only = true};
    struct musa_result r;
    char *text = NULL;

    if (musa_translate(program, n, &o, &r, NULL) == 0 && !r.refused)
        text = buf_detach(&r.out);
    musa_result_free(&r);
    return text;
}

/* The profile that a MUSA source is for when none is named: the newest, which refuses least. */
static void dialect_target_of(struct musa_target *t)
{
    const struct data_sheet *p = dialect_profile();

    if (!p || !p->musa)
        p = data_sheet_find("s5000");
    *t = (struct musa_target){.name = p->card, .arch = (int)data_sheet_get(p, FACT_ARCH, 310),
                              .shared_bytes = data_sheet_get(p, FACT_SHARED_BLOCK, 0),
                              .const_bytes = data_sheet_get(p, FACT_CONSTANT, 0),
                              .cooperative = data_sheet_get(p, FACT_COOPERATIVE, 0) == 1};
}

/* A source that asks which compiler reads it may name both dialects. */
static bool dialect_portable(const char *s, size_t n)
{
    return dialect_holds(s, n, "__MUSACC__") || dialect_holds(s, n, "__CUDACC__") || dialect_holds(s, n, "__NVCC__");
}

/* Appends an #error that the compiler reports at the user's own line. */
static void dialect_error_at(struct buf *out, uint32_t line, const char *name, const char *what)
{
    buf_addf(out, "#line %u \"%s\"\n#error %s\n", line, name, what);
}

/* Names of CUDA's in the source: on MUSA nothing declares them. */
static void dialect_foreign_names(const struct musa_result *r, const char *name, struct buf *out)
{
    char text[300];

    for (size_t i = 0; i < r->n_uses; i++) {
        const struct musa_use *u = &r->uses[i];
        snprintf(text, sizeof text, "'%s' is a name of CUDA; MUSA's is '%s'", u->from, u->to);
        dialect_error_at(out, u->line, name, text);
    }
}

/* Devices that lack something refuse it whoever wrote the source; names of CUDA's libraries are foreign names. */
static bool dialect_is_limit(const char *rule)
{
    static const char *const rules[] = {"ptx", "atomic-64", "shared-memory", "constant-memory", "cooperative",
                                        "texture"};

    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (!strcmp(rule, rules[i]))
            return true;
    return false;
}

void dialect_preface(const char *source, size_t n, const char *name, struct buf *out)
{
    struct musa_target t;
    struct musa_options o = {.to = TO_MUSA, .lang = MUSA_CXX, .target = &t};
    struct musa_result r;

    dialect_target_of(&t);
    buf_addf(out, "#define LT_MUSA_ARCH %d\n#include \"litetorch/musa.h\"\n", t.arch);
    if (musa_translate(source, n, &o, &r, NULL) == 0) {
        if (!dialect_portable(source, n))
            dialect_foreign_names(&r, name, out);
        for (size_t i = 0; i < r.n_notes; i++)
            if (r.notes[i].kind == MUSA_REFUSED && dialect_is_limit(r.notes[i].rule))
                dialect_error_at(out, r.notes[i].line, name, r.notes[i].text);
            else if (!strcmp(r.notes[i].rule, "ptx")) /* the translator has other code for it, mcc has not */
                dialect_error_at(out, r.notes[i].line, name, "inline PTX: no MUSA compiler reads it");
            else if (!strcmp(r.notes[i].rule, "plain"))
                dialect_error_at(out, r.notes[i].line, name, "a function of CUDA's toolkit that MUSA has not");
    }
    musa_result_free(&r);
}

/* True if a source names one of MUSA's headers of 16-bit floats. */
static bool dialect_uses_half(const json_t *sources)
{
    const json_t *v;
    size_t i;

    json_array_foreach((json_t *)sources, i, v)
        if (strstr(json_string_value(v), "musa_fp16") || strstr(json_string_value(v), "musa_bf16"))
            return true;
    return false;
}

/* mcc's spelling as nvcc's, where there is one. */
static json_t *dialect_translated(const json_t *flags)
{
    json_t *all = json_array();
    const struct musa_row *row;
    const json_t *v;
    size_t i;

    json_array_foreach((json_t *)flags, i, v) {
        const char *s = json_string_value(v);
        row = musa_row_find(ROW_FLAG, s, strlen(s), true);
        if (strncmp(s, "--offload-arch", 14)) /* the architecture is the device's */
            json_array_append_new(all, json_string(row ? row->cuda : s));
    }
    return all;
}

json_t *dialect_flags(const json_t *request, const json_t *flags)
{
    static const char *const undo[] = {"-U__CUDA_NO_HALF_OPERATORS__", "-U__CUDA_NO_HALF_CONVERSIONS__",
                                       "-U__CUDA_NO_HALF2_OPERATORS__", "-U__CUDA_NO_BFLOAT16_CONVERSIONS__"};
    json_t *all;

    if (strcmp(json_str(request, "dialect", "cuda"), "musa"))
        return NULL;
    all = dialect_translated(flags);
    for (size_t i = 0; dialect_uses_half(json_object_get(request, "cuda_sources")) &&
         i < sizeof undo / sizeof *undo; i++)
        json_array_append_new(all, json_string(undo[i]));
    return all;
}

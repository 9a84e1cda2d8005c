/* stage_compile.c - judges the builds that the program asked for. The compiling itself is build.c, on request of the
 * candidate's process through session.c; it is repeated here for builds that forward asked for. */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "eval/stage/stage.h"
#include "eval/verdict/record.h"

/* The record's "compile" of the session's builds. New. */
static json_t *stage_compile_section(const struct session *s)
{
    const char *cache = s->builds == 0 ? NULL : s->builds_cached == s->builds ? "hit" : "miss";

    return json_pack("{s:b,s:o,s:s?,s:i,s:O,s:O,s:O?}", "ok", s->builds_failed == 0, "ms",
                     json_num(round(s->compile_ms * 100) / 100), "cache", cache, "requests", s->builds,
                     "dropped", s->dropped,
                     "diagnostics", s->diagnostics, "log", s->error);
}

/* What a failed build lacks of ours; NULL: its errors are its own. */
static const char *stage_compile_lacking(const struct session *s)
{
    const json_t *f;
    size_t i;

    json_array_foreach(s->findings, i, f)
        if (!strcmp(json_str(f, "kind", ""), "lacking"))
            return json_str(f, "name", "?");
    return NULL;
}

/* A failed build counts unless the program got by without it: then it is only on record. One that only lacks a vendor's
 * library would have been built elsewhere: stage legality names the call. */
void compile_judge(struct job *j)
{
    struct session *s = j->session;
    const json_t *first;

    if (!s)
        return;
    record_set(j->rec, "compile", stage_compile_section(s));
    if (s->builds_failed == s->builds_refused || j->all_passed)
        return;
    first = json_array_get(s->diagnostics, 0);
    if (stage_compile_lacking(s))
        record_blame(j->rec, "unsupported", "compile", "%.200s; a program that does without it can be judged",
                     stage_compile_lacking(s));
    else if (s->build_timed_out)
        record_blame(j->rec, "compile_error", "compile", "the compiler exceeded %g s (--build-timeout)",
                     j->opt->build_timeout_s);
    else if (first)
        record_blame(j->rec, "compile_error", "compile", "%.1000s", json_str(first, "message", ""));
    else
        record_blame(j->rec, "compile_error", "compile", "%.1500s",
                     s->error ? json_string_value(s->error) : "the build failed");
}

/* The stage: blames a program whose builds failed, unless it ran all the same. */
static int stage_compile_run(struct job *j, struct err *e)
{
    (void)e;
    if (j->session && !j->ready)
        compile_judge(j); /* a program that was constructed is judged after it ran */
    return 0;
}

const struct stage stage_compile = {"compile", stage_compile_run, true};

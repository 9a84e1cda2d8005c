/* report_examples.c - programs of the last stage with what the judge said: passed, repaired after feedback, failed. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "report/report_parts.h"
#include "task/extract.h"

static const char *examples_status(const json_t *line)
{
    return json_str(json_object_get(line, "verdict"), "status", "infra");
}

static const char *examples_category(const json_t *line)
{
    return json_str(json_object_get(line, "verdict"), "category", "");
}

/* The answer's text that belongs to the line; NULL: it was not kept. */
static const char *examples_text(const struct report_stage *s, const json_t *line)
{
    char *key = xasprintf("%s/%lld/%lld", json_str(line, "task", ""), (long long)json_i64(line, "sample", 0),
                          (long long)json_i64(line, "turn", 1));
    const char *text = json_string_value(json_object_get(s->samples, key));

    free(key);
    return text;
}

/* The program in a response, or the response where there is none; null without a text. */
static json_t *examples_code(const char *text)
{
    struct extraction x;

    if (!text)
        return json_null();
    extract_code(text, strlen(text), EXTRACT_AUTO, &x);
    return x.found ? json_utf8(text + x.offset, x.n) : json_utf8(text, strlen(text));
}

/* The task's code; null where it cannot be read. New. */
static json_t *examples_task_source(const struct report_stage *s, const char *task)
{
    char *file = xasprintf("%s.py", task), *path = path_join(json_str(s->bench, "suite", ""), file);
    json_t *source = json_null();
    struct buf b;

    buf_init(&b, 1 << 18);
    if (file_exists(path) && file_read(path, &b, NULL) == 0)
        source = json_utf8(b.p, b.n);
    buf_free(&b);
    free(file);
    free(path);
    return source;
}

/* A turn of an example. New. */
static json_t *examples_turn(const struct report_stage *s, const json_t *line)
{
    const json_t *v = json_object_get(line, "verdict"), *c = json_object_get(v, "correctness");

    return json_pack("{s:I,s:s,s:s,s:o,s:O?,s:O?,s:O?,s:O?,s:O?}", "turn", (json_int_t)json_i64(line, "turn", 1),
                     "status", examples_status(line), "category", examples_category(line), "code",
                     examples_code(examples_text(s, line)), "feedback", json_object_get(v, "feedback"), "compile_ms",
                     json_object_get(json_object_get(v, "compile"), "ms"), "trials", json_object_get(c, "trials"),
                     "passed", json_object_get(c, "passed"), "reward", json_object_get(v, "reward"));
}

static bool examples_same_dialogue(const json_t *a, const json_t *b)
{
    return json_i64(a, "sample", -1) == json_i64(b, "sample", -2) &&
           !strcmp(json_str(a, "task", ""), json_str(b, "task", "?"));
}

/* The turns up to this line's, in order. */
static json_t *examples_card(const struct report_stage *s, const json_t *line)
{
    json_t *turns = json_array();
    int64_t last = json_i64(line, "turn", 1);
    const json_t *other;
    size_t i;

    for (int64_t k = 1; k < last; k++)
        json_array_foreach(s->verdicts, i, other)
            if (json_i64(other, "turn", 1) == k && examples_same_dialogue(other, line)) {
                json_array_append_new(turns, examples_turn(s, other));
                break;
            }
    json_array_append_new(turns, examples_turn(s, line));
    return json_pack("{s:s,s:I,s:o,s:o}", "task", json_str(line, "task", ""), "sample",
                     (json_int_t)json_i64(line, "sample", 0), "source",
                     examples_task_source(s, json_str(line, "task", "")), "turns", turns);
}

enum examples_want { EXAMPLES_PASSED, EXAMPLES_REPAIRED, EXAMPLES_FAILED };

/* True where the line is of the wanted kind. */
static bool examples_fits(const json_t *line, enum examples_want w)
{
    bool passed = !strcmp(examples_status(line), "passed");
    int64_t turn = json_i64(line, "turn", 1);

    switch (w) {
    case EXAMPLES_PASSED: return passed && turn == 1;
    case EXAMPLES_REPAIRED: return passed && turn > 1;
    case EXAMPLES_FAILED: return !strcmp(examples_status(line), "failed");
    }
    return false;
}

/* The first ones, at most max, no two of the same family (failures: of the same category). */
static json_t *examples_choose(const struct report_stage *s, enum examples_want w, size_t max)
{
    json_t *seen = json_object(), *list = json_array();
    const json_t *line;
    size_t i;

    json_array_foreach(s->verdicts, i, line) {
        const char *kind = w == EXAMPLES_FAILED ? examples_category(line) : json_str(line, "family", "");
        if (json_array_size(list) == max || !examples_fits(line, w) || !examples_text(s, line) ||
            json_object_get(seen, kind))
            continue;
        json_object_set_new(seen, kind, json_true());
        json_array_append_new(list, examples_card(s, line));
    }
    json_decref(seen);
    return list;
}

json_t *report_examples(const struct report_stage *s)
{
    if (json_array_size(s->verdicts) == 0)
        return json_null();
    return json_pack("{s:s,s:o,s:o,s:o}", "stage", s->name, "passed", examples_choose(s, EXAMPLES_PASSED, 4),
                     "repaired", examples_choose(s, EXAMPLES_REPAIRED, 2), "failed",
                     examples_choose(s, EXAMPLES_FAILED, 4));
}

/* codes.c - picks the row of a verdict or of an error; see codes.h. */
#include "eval/verdict/codes.h"

#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "eval/verdict/record.h"

/* A text of the worst element's object; "" where it lacks. */
static const char *code_worst(const json_t *verdict, const char *key)
{
    return json_str(json_object_get(json_object_get(verdict, "correctness"), "worst"), key, "");
}

static bool code_nan(const json_t *verdict)
{
    return json_i64(json_object_get(json_object_get(verdict, "correctness"), "worst"), "nan", 0) > 0;
}

static long long code_unwritten(const json_t *verdict)
{
    return json_i64(json_object_get(json_object_get(verdict, "correctness"), "worst"), "unwritten", -1);
}

/* Does the deciding reason have what the row asks for? Key "message" asks for a part of the text, "unwritten" and "nan"
 * for such elements among the wrong ones. */
static bool code_says(const struct code *c, const json_t *verdict, const json_t *reason)
{
    if (!*c->key)
        return true;
    if (!strcmp(c->key, "message"))
        return strstr(json_str(reason, "message", ""), c->is) != NULL;
    if (!strcmp(c->key, "unwritten"))
        return code_unwritten(verdict) > 0 || strstr(code_worst(verdict, "pattern"), "never written");
    if (!strcmp(c->key, "nan"))
        return code_nan(verdict) && code_unwritten(verdict) == 0;
    if (!strcmp(c->key, "worst"))
        return !strcmp(code_worst(verdict, "kind"), c->is);
    if (!strcmp(c->key, "finding"))
        return !strcmp(json_str(json_object_get(reason, "finding"), "kind", ""), c->is);
    return !strcmp(json_str(reason, c->key, ""), c->is);
}

const struct code *code_of(const json_t *verdict)
{
    const json_t *reason = record_reason(verdict);
    const char *category = reason ? json_str(reason, "category", "infra") : "passed";

    for (const struct code *c = code_table; c->id; c++)
        if (!strcmp(c->category, category) && code_says(c, verdict, reason))
            return c;
    return code_table;
}

const struct code *code_find(const char *id)
{
    if (!strncasecmp(id, "MC", 2))
        id += 2;
    for (const struct code *c = code_table; c->id; c++)
        if (!strcmp(c->id + 2, id))
            return c;
    return NULL;
}

const struct code *code_of_error(const char *message)
{
    for (const struct code *c = code_table; c->id; c++)
        if (!strcmp(c->category, "error") && strstr(message, c->is))
            return c;
    return NULL;
}

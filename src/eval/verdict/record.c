/* record.c - see record.h. */
#include "eval/verdict/record.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"

static const char *const precedence[] = {"infra", "extraction_error", "compile_error", "cheating", "unsupported",
                                         "timeout", "runtime_error", "correctness_error"};

json_t *record_new(const char *task, const char *task_sha256, const char *candidate, const char *candidate_sha256,
                   const char *backend, const char *protocol)
{
    json_t *r = json_object();
    static const char *const later[] = {"extraction", "compile", "correctness", "legality", "performance", "reward",
                                        "feedback"};

    json_object_set_new(r, "schema", json_string(RECORD_SCHEMA));
    json_object_set_new(r, "task", json_utf8(task, strlen(task)));
    json_object_set_new(r, "task_sha256", json_string(task_sha256));
    json_object_set_new(r, "candidate", json_utf8(candidate, strlen(candidate)));
    json_object_set_new(r, "candidate_sha256", json_string(candidate_sha256));
    json_object_set_new(r, "backend", json_string(backend));
    json_object_set_new(r, "protocol", json_string(protocol));
    json_object_set_new(r, "status", json_string("passed"));
    json_object_set_new(r, "category", json_null());
    json_object_set_new(r, "code", json_null());
    json_object_set_new(r, "place", json_null());
    json_object_set_new(r, "stage", json_string("extract"));
    for (size_t i = 0; i < sizeof later / sizeof *later; i++)
        json_object_set_new(r, later[i], json_null());
    json_object_set_new(r, "reasons", json_array());
    json_object_set_new(r, "stage_ms", json_object());
    json_object_set_new(r, "environment", json_object());
    return r;
}

void record_set(json_t *rec, const char *key, json_t *section)
{
    json_object_set_new(rec, key, section);
}

json_t *record_blame(json_t *rec, const char *category, const char *stage, const char *fmt, ...)
{
    char msg[4096];
    va_list ap;
    json_t *r = json_object();

    va_start(ap, fmt);
    vsnprintf(msg, sizeof msg, fmt, ap);
    va_end(ap);
    json_object_set_new(r, "category", json_string(category));
    json_object_set_new(r, "stage", json_string(stage));
    json_object_set_new(r, "message", json_utf8(msg, strlen(msg)));
    json_array_append_new(json_object_get(rec, "reasons"), r);
    return r;
}

/* The category's rank: a lower one decides over a higher one. */
static size_t record_rank_of(const json_t *reason)
{
    const char *category = json_str(reason, "category", "");
    size_t i = 0, n = sizeof precedence / sizeof *precedence;

    while (i < n && strcmp(precedence[i], category))
        i++;
    return i;
}

const json_t *record_reason(const json_t *rec)
{
    const json_t *best = NULL, *r;
    size_t i;

    json_array_foreach(json_object_get(rec, "reasons"), i, r)
        if (!best || record_rank_of(r) < record_rank_of(best))
            best = r;
    return best;
}

void record_settle(json_t *rec)
{
    const json_t *r = record_reason(rec);
    const char *category = r ? json_str(r, "category", "infra") : "";
    bool own = !strcmp(category, "infra") || !strcmp(category, "unsupported"); /* a status of its own, never scored */

    if (!r)
        return;
    json_object_set_new(rec, "status", json_string(own ? category : "failed"));
    if (!strcmp(category, "infra") && !json_object_get(rec, "at_fault"))
        json_object_set_new(rec, "at_fault", json_string("judge"));
    json_object_set_new(rec, "category", json_string(category));
    json_object_set_new(rec, "stage", json_string(json_str(r, "stage", "")));
}

static void record_add_ms(json_t *all, const char *key, double ms)
{
    json_object_set_new(all, key, json_num(round((json_f64(all, key, 0) + ms) * 100) / 100));
}

void record_stage_ms(json_t *rec, const char *stage, double ms)
{
    record_add_ms(json_object_get(rec, "stage_ms"), stage, ms);
}

void record_waiting(json_t *rec, const char *what, double ms)
{
    if (!json_object_get(rec, "waiting_ms"))
        json_object_set_new(rec, "waiting_ms", json_object());
    record_add_ms(json_object_get(rec, "waiting_ms"), what, ms);
}

bool record_blamed(const json_t *rec)
{
    return json_array_size(json_object_get(rec, "reasons")) > 0;
}

json_t *record_refusal(const char *task, const char *backend, const char *protocol, const char *why)
{
    json_t *rec = record_new(task, "", "", "", backend, protocol);

    record_blame(rec, "infra", "task", "%s", why);
    record_settle(rec);
    record_set(rec, "code", json_string("MC801") /* codes.h: a request that cannot be judged */);
    record_set(rec, "feedback", json_utf8(why, strlen(why)));
    return rec;
}

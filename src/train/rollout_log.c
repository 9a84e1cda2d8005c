/* rollout_log.c - see rollout_log.h. */
#include "train/rollout_log.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"

static json_t *ids_json(const int32_t *v, size_t n)
{
    json_t *a = json_array();

    for (size_t i = 0; i < n; i++)
        json_array_append_new(a, json_integer(v[i]));
    return a;
}

static json_t *logp_json(const float *v, int n)
{
    json_t *a = json_array();

    for (int i = 0; i < n; i++)
        json_array_append_new(a, json_num((double)v[i]));
    return a;
}

static json_t *number_or_null(double x)
{
    return isnan(x) ? json_null() : json_num(x);
}

static json_t *text_json(const char *s)
{
    return json_utf8(s ? s : "", s ? strlen(s) : 0);
}

static json_t *turn_json(const struct rollout_turn *t)
{
    static const char *const names[] = {"failed", "passed", "unsupported", "infra"};
    bool scored = t->kind == OUTCOME_PASSED || t->kind == OUTCOME_FAILED;
    json_t *v = json_object();

    json_object_set_new(v, "added", ids_json(t->added, (size_t)t->n_added));
    json_object_set_new(v, "tokens", ids_json(t->ids, (size_t)t->n));
    json_object_set_new(v, "logp", logp_json(t->logp, t->n));
    json_object_set_new(v, "cut", json_boolean(t->cut));
    json_object_set_new(v, "text", text_json(t->text));
    json_object_set_new(v, "status", json_string(names[t->kind]));
    json_object_set_new(v, "category", text_json(t->category));
    json_object_set_new(v, "score", scored ? json_num(t->score) : json_null());
    json_object_set_new(v, "feedback", text_json(t->feedback));
    json_object_set_new(v, "verdict", json_string(t->key));
    return v;
}

void rollout_log_line(struct buf *out, const struct rollout_note *n, const struct chat *prompt,
                      const struct rollout *r)
{
    json_t *v = json_object(), *turns = json_array();
    char *text;

    for (int k = 0; k < r->turns; k++)
        json_array_append_new(turns, turn_json(&r->turn[k]));
    json_object_set_new(v, "step", json_integer(n->step));
    json_object_set_new(v, "prompt_id", text_json(n->prompt_id));
    json_object_set_new(v, "repair", json_boolean(n->repair));
    json_object_set_new(v, "sample", json_integer(n->sample));
    json_object_set_new(v, "reward", number_or_null(n->reward));
    json_object_set_new(v, "advantage", number_or_null(n->advantage));
    json_object_set_new(v, "minibatch", n->minibatch < 0 ? json_null() : json_integer(n->minibatch));
    json_object_set_new(v, "passed_turn", json_integer(r->passed_turn));
    json_object_set_new(v, "full", json_boolean(r->full));
    if (prompt)
        json_object_set_new(v, "prompt_tokens", ids_json(prompt->ids.v, prompt->ids.n));
    json_object_set_new(v, "turns", turns);
    text = json_dumps(v, JSON_COMPACT | JSON_REAL_PRECISION(9)); // nine digits name a float exactly
    buf_adds(out, text);
    buf_addc(out, '\n');
    free(text);
    json_decref(v);
}

int rollout_log_write(const char *run, int64_t step, const struct buf *lines, struct err *e)
{
    char name[32], *folder = path_join(run, "rollouts"), *path;
    int rc;

    snprintf(name, sizeof name, "%08lld.jsonl", (long long)step);
    path = path_join(folder, name);
    rc = dir_make(folder, e);
    if (rc == 0 && lines->cut)
        rc = err_set(e, ERR_ENV, "the rollouts of step %lld are larger than %zu bytes; give --no-rollouts",
                     (long long)step, lines->max);
    if (rc == 0)
        rc = file_write(path, lines->p, lines->n, e);
    free(folder);
    free(path);
    return rc;
}

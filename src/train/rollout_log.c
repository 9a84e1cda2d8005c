/* rollout_log.c - see rollout_log.h. */
#include "train/rollout_log.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"

/* v without its closing brace, so that more can follow; numbers name their doubles exactly. Steals v. */
static void rollout_log_add_open(struct buf *out, json_t *v)
{
    char *text = json_dumps(v, JSON_COMPACT | JSON_REAL_PRECISION(17));

    buf_add(out, text, strlen(text) - 1);
    free(text);
    json_decref(v);
}

/* Nine digits name a float exactly. */
static void rollout_log_add_floats(struct buf *out, const float *v, int n)
{
    buf_addc(out, '[');
    for (int i = 0; i < n; i++)
        if (isfinite(v[i]))
            buf_addf(out, "%s%.9g", i ? "," : "", (double)v[i]);
        else
            buf_addf(out, "%s\"%s\"", i ? "," : "", isnan(v[i]) ? "nan" : v[i] > 0 ? "inf" : "-inf");
    buf_addc(out, ']');
}

static json_t *rollout_log_number_or_null(double x)
{
    return isnan(x) ? json_null() : json_num(x);
}

static json_t *rollout_log_text_json(const char *s)
{
    return json_utf8(s ? s : "", s ? strlen(s) : 0);
}

static const char *const names[] = {"failed", "passed", "unsupported", "infra"}; /* by enum outcome_kind */

/* Appends a turn as JSON. */
static void rollout_log_add_turn(struct buf *out, const struct rollout_turn *t)
{
    bool scored = t->kind == OUTCOME_PASSED || t->kind == OUTCOME_FAILED;
    json_t *v = json_object();

    json_object_set_new(v, "added", json_ints(t->added, (size_t)t->n_added));
    json_object_set_new(v, "tokens", json_ints(t->ids, (size_t)t->n));
    json_object_set_new(v, "cut", json_boolean(t->cut));
    json_object_set_new(v, "text", rollout_log_text_json(t->text));
    if (t->written)
        json_object_set_new(v, "written", rollout_log_text_json(t->written));
    json_object_set_new(v, "status", json_string(names[t->kind]));
    json_object_set_new(v, "category", rollout_log_text_json(t->category));
    json_object_set_new(v, "score", scored ? json_num(t->score) : json_null());
    json_object_set_new(v, "feedback", rollout_log_text_json(t->feedback));
    json_object_set_new(v, "verdict", json_string(t->key));
    if (t->kept_to) {
        json_object_set_new(v, "kept", json_ints(t->kept, (size_t)t->kept_to[t->n - 1]));
        json_object_set_new(v, "kept_to", json_ints(t->kept_to, (size_t)t->n));
    }
    rollout_log_add_open(out, v);
    buf_adds(out, ",\"logp\":");
    rollout_log_add_floats(out, t->logp, t->n);
    buf_addc(out, '}');
}

void rollout_log_line(struct buf *out, const struct rollout_note *n, const struct chat *prompt,
                      const struct rollout *r)
{
    json_t *v = json_object();

    json_object_set_new(v, "step", json_integer(n->step));
    json_object_set_new(v, "policy", n->policy < 0 ? json_null() : json_integer(n->policy));
    json_object_set_new(v, "prompt_id", rollout_log_text_json(n->prompt_id));
    json_object_set_new(v, "repair", json_boolean(n->repair));
    json_object_set_new(v, "sample", json_integer(n->sample));
    json_object_set_new(v, "reward", rollout_log_number_or_null(n->reward));
    json_object_set_new(v, "advantage", rollout_log_number_or_null(n->advantage));
    json_object_set_new(v, "minibatch", n->minibatch < 0 ? json_null() : json_integer(n->minibatch));
    json_object_set_new(v, "passed_turn", json_integer(r->passed_turn));
    json_object_set_new(v, "full", json_boolean(r->full));
    if (prompt)
        json_object_set_new(v, "prompt_tokens", json_ints(prompt->ids.v, prompt->ids.n));
    rollout_log_add_open(out, v);
    buf_adds(out, ",\"turns\":[");
    for (int k = 0; k < r->turns; k++) {
        buf_adds(out, k ? "," : "");
        rollout_log_add_turn(out, &r->turn[k]);
    }
    buf_adds(out, "]}\n");
}

/* ---- the way back ---- */

/* The list's token ids, of which there are *ret_n; the caller frees. */
static int32_t *rollout_log_take_ids(const json_t *a, int *ret_n)
{
    size_t n = json_array_size(a);
    int32_t *v = xmalloc((n + 1) * sizeof *v);

    for (size_t i = 0; i < n; i++)
        v[i] = (int32_t)json_integer_value(json_array_get(a, i));
    *ret_n = (int)n;
    return v;
}

/* Fills t from a logged turn. */
static int rollout_log_take_turn(const json_t *v, struct tokenizer *tok, struct rollout_turn *t, struct err *e)
{
    const json_t *logp = json_object_get(v, "logp");
    const char *status = json_str(v, "status", "");
    int kind = 0;

    t->added = rollout_log_take_ids(json_object_get(v, "added"), &t->n_added);
    t->ids = rollout_log_take_ids(json_object_get(v, "tokens"), &t->n);
    t->logp = xmalloc((size_t)(t->n + 1) * sizeof *t->logp);
    while (kind < 4 && strcmp(names[kind], status))
        kind++;
    if (kind == 4 || json_array_size(logp) != (size_t)t->n)
        return err_set(e, ERR_INPUT, "no rollout of this program's");
    for (int i = 0; i < t->n; i++)
        t->logp[i] = (float)json_num_value(json_array_get(logp, (size_t)i));
    if (json_object_get(v, "kept_to")) {
        int n;
        t->kept = rollout_log_take_ids(json_object_get(v, "kept"), &n);
        t->kept_to = rollout_log_take_ids(json_object_get(v, "kept_to"), &n);
    }
    t->cut = json_is_true(json_object_get(v, "cut"));
    t->kind = (enum outcome_kind)kind;
    t->score = json_f64(v, "score", 0);
    t->text = tokenizer_text(tok, t->ids, (size_t)t->n, true);
    if (json_str(v, "written", NULL))
        t->written = xstrdup(json_str(v, "written", ""));
    t->feedback = xstrdup(json_str(v, "feedback", ""));
    snprintf(t->category, sizeof t->category, "%s", json_str(v, "category", ""));
    snprintf(t->key, sizeof t->key, "%s", json_str(v, "verdict", ""));
    return 0;
}

int rollout_log_take(const json_t *line, struct tokenizer *tok, struct rollout *r, struct err *e)
{
    const json_t *turns = json_object_get(line, "turns"), *turn;
    size_t k;

    if (json_array_size(turns) > ROLLOUT_MAX_TURNS)
        return err_set(e, ERR_INPUT, "no rollout of this program's");
    json_array_foreach(turns, k, turn) {
        r->turns++;
        if (rollout_log_take_turn(turn, tok, &r->turn[k], e) < 0)
            return -1;
    }
    r->passed_turn = (int)json_i64(line, "passed_turn", 0);
    r->full = json_is_true(json_object_get(line, "full"));
    return 0;
}

char *rollout_log_path(const char *run, int64_t step)
{
    char *name = xasprintf("rollouts/%08lld.jsonl", (long long)step), *path = path_join(run, name);

    free(name);
    return path;
}

int rollout_log_write(const char *run, int64_t step, const struct buf *lines, struct err *e)
{
    char *folder = path_join(run, "rollouts"), *path = rollout_log_path(run, step);
    int rc;

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

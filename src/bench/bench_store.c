/* bench_store.c - the run folder of a benchmark: settings.json says what it measures, samples.jsonl and
 * verdicts.jsonl grow line by line. A process that died leaves at worst half a line at the end, which is cut off
 * before we append. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/folder.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/jsonl.h"
#include "base/log.h"
#include "base/mem.h"
#include "bench/bench_run.h"
#include "remote/openai.h"
#include "bench/speed.h"
#include "store/content.h"
#include "task/bundle.h"

/* ---- settings ---- */

/* Identifies a model by its files' names and all that they hold. */
static int bench_store_fingerprint(const char *dir, char out[65], struct err *e)
{
    char **names, hash[65];
    struct sha256 h;
    size_t n;
    int rc = 0;

    if (dir_list(dir, &names, &n, e) < 0)
        return -1;
    sha256_start(&h);
    for (size_t i = 0; i < n && rc == 0; i++) {
        char *path = path_join(dir, names[i]);

        if (content_is_of_model(names[i]) && (rc = content_hash_file(path, hash, e)) == 0) {
            sha256_adds(&h, names[i]);
            sha256_adds(&h, hash);
        }
        free(path);
    }
    names_free(names, n);
    sha256_end(&h, out);
    return rc;
}

/* A server's model is known by its name alone. */
static int bench_store_fingerprint_of(const struct bench_options *o, char out[65], struct err *e)
{
    char *name;

    if (!openai_is_url(o->model))
        return bench_store_fingerprint(o->model, out, e);
    name = xasprintf("%s %s", o->model, o->model_name ? o->model_name : "");
    sha256_hex(name, strlen(name), out);
    free(name);
    return 0;
}

/* All that decides the run's answers and verdicts, new; NULL with e. */
static json_t *bench_store_settings(const struct bench_run *b, struct err *e)
{
    const struct bench_options *o = &b->o;
    char model[65] = "";
    json_t *v;

    if (o->model && bench_store_fingerprint_of(o, model, e) < 0)
        return NULL;
    v = json_pack("{s:s,s:s,s:s,s:s,s:i,s:i,s:i,s:i,s:f,s:f,s:I,s:s,s:O?}", "schema", "musacoder.bench.settings/1",
                  "suite", b->suite.sha256, "model", model, "samples_dir", o->samples_dir ? o->samples_dir : "",
                  "samples", o->samples, "turns", o->turns, "max_new", o->max_new, "max_context", o->max_context,
                  "temperature", o->temperature, "top_p", o->top_p, "seed", (json_int_t)o->seed, "style",
                  prompt_style_name(o->style), "verdict", (json_t *)o->verdict);
    if (o->suite) /* not in older folders, which have no suite */
        json_object_set_new(v, "shrink_to", json_integer(o->shrink_to));
    if (o->feedback != BENCH_FEEDBACK_OWN) /* nor did they know controls */
        json_object_set_new(v, "feedback", json_string(o->feedback == BENCH_FEEDBACK_NONE ? "none" : "shuffled"));
    if (o->edits)
        json_object_set_new(v, "edits", json_true());
    if (o->profile)
        json_object_set_new(v, "profile", json_string(o->profile));
    if (o->secret)
        json_object_set_new(v, "secret", json_string(o->secret));
    return v;
}

/* ERR_INPUT where the folder was begun with other settings; names the first that differs. */
static int bench_store_check_settings(const struct bench_run *b, struct err *e)
{
    static const char *const made[] = {"samples.jsonl", "verdicts.jsonl", NULL};
    char *path = path_join(b->o.out, "settings.json");
    json_t *mine = bench_store_settings(b, e), *theirs = NULL, *v;
    static const char *const rare[] = {"feedback", "edits", "profile", "secret"}; /* said only where they are set */
    const char *key, *other = NULL;
    int rc = mine ? folder_check_claim(b->o.out, "settings.json", made, e) : -1;

    if (rc == 0 && file_exists(path)) {
        if (!(theirs = json_read(path, e)))
            rc = -1;
        json_object_foreach(mine, key, v)
            if (theirs && !other && !json_equal(v, json_object_get(theirs, key)))
                other = key;
        for (size_t i = 0; i < sizeof rare / sizeof *rare; i++)
            if (theirs && !other && json_object_get(theirs, rare[i]) && !json_object_get(mine, rare[i]))
                other = rare[i];
        if (rc == 0 && other)
            rc = err_set(e, ERR_INPUT, "'%s' holds a benchmark with another '%s'; choose another --out or remove it",
                         b->o.out, other);
    } else if (rc == 0) {
        rc = json_write(path, mine, e);
    }
    json_decref(mine);
    json_decref(theirs);
    free(path);
    return rc;
}

/* Makes or enters the folder and locks it until the benchmark ends. */
static int bench_store_take_folder(struct bench_run *b, struct err *e)
{
    return folder_take(b->o.out, "this benchmark", "musacoder bench", &b->lock, e);
}

/* ---- reading back ---- */

/* The attempt that a stored line is about; NULL: none of this run. */
static struct attempt *bench_store_attempt_of_line(struct bench_run *b, const json_t *v)
{
    int task = suite_find(&b->suite, json_str(v, "task", ""));
    int64_t sample = json_i64(v, "sample", -1), turn = json_i64(v, "turn", 0);

    if (task < 0 || sample < 0 || sample >= b->o.samples || turn < 1 || turn > b->o.turns)
        return NULL;
    return bench_attempt(b, task, (int)sample, (int)turn - 1);
}

/* A callback of jsonl_each: takes a stored answer. */
static int bench_store_read_sample(json_t *v, size_t line, void *ctx, struct err *e)
{
    struct bench_run *b = ctx;
    struct attempt *a = bench_store_attempt_of_line(b, v);
    json_t *ids = json_object_get(v, "ids");

    if (!a)
        return err_set(e, ERR_INPUT, "'%s': line %zu is about no sample of this benchmark", b->samples_path, line);
    if (a->text)
        return 0;
    a->text = xstrdup(json_str(v, "text", ""));
    a->is_response = json_flag(v, "is_response", true);
    a->cut = json_flag(v, "cut", false);
    if (json_str(v, "file", NULL))
        a->file = xstrdup(json_str(v, "file", ""));
    a->n_ids = (int)json_array_size(ids);
    if (a->n_ids)
        a->ids = xcalloc((size_t)a->n_ids, sizeof *a->ids);
    for (int i = 0; i < a->n_ids; i++)
        a->ids[i] = (int32_t)json_integer_value(json_array_get(ids, (size_t)i));
    return 0;
}

/* Of the text as JSON keeps it. */
static const char *bench_store_answer_hash(const struct attempt *a, char ret[65])
{
    json_t *text = json_utf8(a->text, strlen(a->text));

    sha256_hex(json_string_value(text), json_string_length(text), ret);
    json_decref(text);
    return ret;
}

/* A callback of jsonl_each: takes a stored verdict. */
static int bench_store_read_verdict(json_t *v, size_t line, void *ctx, struct err *e)
{
    struct bench_run *b = ctx;
    struct attempt *a = bench_store_attempt_of_line(b, v);
    json_t *verdict = json_object_get(v, "verdict");
    const char *of = json_str(v, "answer_sha256", NULL); /* not in older folders */
    char hex[65];

    if (!a || !json_is_object(verdict))
        return err_set(e, ERR_INPUT, "'%s': line %zu is about no sample of this benchmark", b->verdicts_path, line);
    if (of && a->text && strcmp(of, bench_store_answer_hash(a, hex))) {
        log_warn("'%s': line %zu is about another answer than samples.jsonl holds; it is judged again",
                 b->verdicts_path, line);
        return 0;
    }
    /* other infra is tried again */
    if (!a->verdict && a->text && (!verdict_infra(verdict) || verdict_is_skip(verdict)))
        a->verdict = json_incref(verdict);
    return 0;
}

/* Takes samples and verdicts of an earlier call over. */
static int bench_store_read_back(struct bench_run *b, struct err *e)
{
    if (jsonl_continue(b->samples_path, bench_store_read_sample, b, e) < 0)
        return -1;
    return jsonl_continue(b->verdicts_path, bench_store_read_verdict, b, e);
}

int bench_store_open(struct bench_run *b, struct err *e)
{
    size_t n = (size_t)b->suite.n * (size_t)b->o.samples;

    b->slots = xcalloc(n, sizeof *b->slots);
    b->n_samples = xcalloc((size_t)b->suite.n, sizeof *b->n_samples);
    for (int i = 0; i < b->suite.n; i++)
        b->n_samples[i] = b->o.samples;
    b->samples_path = path_join(b->o.out, "samples.jsonl");
    b->verdicts_path = path_join(b->o.out, "verdicts.jsonl");
    if (bench_store_take_folder(b, e) < 0 || bench_store_check_settings(b, e) < 0)
        return -1;
    return bench_store_read_back(b, e);
}

void bench_store_close(struct bench_run *b)
{
    size_t n = b->slots ? (size_t)b->suite.n * (size_t)b->o.samples : 0;

    for (size_t i = 0; i < n; i++)
        for (int k = 0; k < BENCH_MAX_TURNS; k++) {
            struct attempt *a = &b->slots[i].turn[k];
            free(a->text);
            free(a->written);
            free(a->ids);
            free(a->file);
            json_decref(a->verdict);
        }
    free(b->slots);
    free(b->n_samples);
    foreign_free(&b->foreign);
    free(b->samples_path);
    free(b->verdicts_path);
    if (b->lock >= 0)
        close(b->lock);
    b->slots = NULL;
}

/* ---- writing ---- */

/* The head of a line of samples.jsonl or verdicts.jsonl. New. */
static json_t *bench_store_line_of(const struct bench_run *b, int task, int sample, int turn)
{
    return json_pack("{s:s,s:s,s:i,s:i}", "task", b->suite.tasks[task].name, "family", b->suite.families[task],
                     "sample", sample, "turn", turn + 1);
}

int bench_store_sample(struct bench_run *b, int task, int sample, int turn, struct err *e)
{
    const struct attempt *a = bench_attempt(b, task, sample, turn);
    json_t *v = bench_store_line_of(b, task, sample, turn), *ids = json_array();
    int rc;

    for (int i = 0; i < a->n_ids; i++)
        json_array_append_new(ids, json_integer(a->ids[i]));
    json_object_set_new(v, "is_response", json_boolean(a->is_response));
    json_object_set_new(v, "cut", json_boolean(a->cut));
    if (a->file)
        json_object_set_new(v, "file", json_utf8(a->file, strlen(a->file)));
    json_object_set_new(v, "text", json_utf8(a->text, strlen(a->text)));
    json_object_set_new(v, "ids", ids);
    rc = jsonl_append_sealed(b->samples_path, v, e);
    json_decref(v);
    return rc;
}

int bench_store_verdict(struct bench_run *b, int task, int sample, int turn, struct err *e)
{
    const struct attempt *a = bench_attempt(b, task, sample, turn);
    json_t *v = bench_store_line_of(b, task, sample, turn);
    char hex[65];
    int rc;

    json_object_set_new(v, "answer_sha256", json_string(bench_store_answer_hash(a, hex)));
    json_object_set(v, "verdict", a->verdict);
    rc = jsonl_append_sealed(b->verdicts_path, v, e);
    json_decref(v);
    return rc;
}

/* ---- samples made elsewhere ---- */

/* What was judged is what lies there now, byte for byte as far as JSON keeps bytes. */
static int bench_store_check_same(const struct bench_run *b, const struct attempt *a, const char *text,
                                  const char *file, struct err *e)
{
    json_t *kept = json_utf8(text, strlen(text));
    bool same = !strcmp(json_string_value(kept), a->text) || !strcmp(text, a->text);

    json_decref(kept);
    return same ? 0 : err_set(e, ERR_INPUT, "'%s' is not the sample that '%s' holds; choose another --out or remove it",
                              file, b->o.out);
}

/* Takes a program of another system as a sample of its task. */
static int bench_store_take_item(struct bench_run *b, const struct foreign_item *it, struct err *e)
{
    int k = b->n_samples[it->task];
    struct err why = ERR_INIT;
    struct attempt *a;
    char *text;

    if (k >= b->o.samples)
        return 0; /* more than we want */
    a = bench_attempt(b, it->task, k, 0);
    b->n_samples[it->task]++;
    if (foreign_text(it, b->suite.tasks[it->task].code, &text, &why) < 0) {
        if (why.kind != ERR_INPUT || !bundle_is_one(it->file))
            return err_set(e, why.kind, "%s", why.msg);
        text = xstrdup(why.msg); /* a folder or an archive that is no answer fails alone */
    }
    if (a->text) { /* read back from the run folder */
        int rc = bench_store_check_same(b, a, text, it->file, e);

        free(text);
        return rc;
    }
    a->text = text;
    a->is_response = it->is_response;
    a->file = xstrdup(it->file);
    return bench_store_sample(b, it->task, k, 0, e);
}

int bench_take_foreign(struct bench_run *b, struct err *e)
{
    const char *dir = b->o.samples_dir;
    int few = 0;

    memset(b->n_samples, 0, (size_t)b->suite.n * sizeof *b->n_samples);
    for (int i = 0; i < b->foreign.n; i++)
        if (bench_store_take_item(b, &b->foreign.items[i], e) < 0)
            return -1;
    for (int i = 0; i < b->suite.n; i++) {
        const char *name = b->suite.tasks[i].name;
        if (b->n_samples[i] == 0 && !b->o.suite)
            return err_set(e, ERR_INPUT, "'%s' has no sample for task '%s'; expected %s/FILE, %s_N.py or a "
                                         "samples.jsonl", dir,
                           name, name, name);
        few += b->n_samples[i] < b->o.samples;
    }
    if (few)
        log_warn("%d of %d tasks have fewer than %d samples", few, b->suite.n, b->o.samples);
    if (b->foreign.n_strays)
        log_warn("%d samples belong to no task and are left out, the first is '%s'", b->foreign.n_strays,
                 b->foreign.strays[0]);
    return 0;
}

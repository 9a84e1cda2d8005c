/* diagnose.c - see diagnose.h. Reading order: the families, tracing, rates, what follows from them. The other end of
 * the conversation is runner/diagnose.py. */
#include "synth/diagnose.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/jsonl.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/numbers.h"
#include "base/rng.h"
#include "proc/forkserver.h"
#include "proc/frame.h"
#include "synth/op.h"
#include "task/task.h"

#define MAX_FILE ((size_t)1 << 20)
#define LEAST_WEIGHT 0.25
#define MOST_WEIGHT 4.0

/* ---- families ---- */

/* The rarest first: a task is filed under the first that it calls. A word is an operator's name, or one of its parts
 * between underscores, or, if it has more than three letters, anywhere in it. */
static const struct diagnose_family_state {
    const char *name, *words;
    const char *registry; /* families of op.h that are drawn by its weight */
} families[] = {
    {"convolution", "conv convolution", "convolution"},
    {"pooling", "pool", "pooling"},
    {"normalisation", "batch_norm layer_norm group_norm instance_norm rms_norm", "norm"},
    {"softmax", "softmax logsumexp", "softmax"},
    {"attention", "attention", "attention"},
    {"scan", "cumsum cumprod cummax cummin logcumsumexp", "scan"},
    {"matmul", "mm bmm addmm matmul linear addmv mv dot einsum", "matmul"},
    {"indexing", "index gather scatter embedding take roll flip tril triu", "index movement"},
    {"reduction", "sum mean amax amin argmax argmin prod var std max min vector_norm loss", "reduction loss"},
    {"elementwise", "", "activation math binary"},
    {"plumbing", "", ""},
};
#define N_FAMILIES (sizeof families / sizeof *families)

static const char movement[] =
    " empty empty_strided empty_like as_strided view reshape permute transpose expand slice select unsqueeze squeeze "
    "clone copy_ contiguous to _to_copy detach detach_ alias t resize_ resolve_conj resolve_neg zeros ones full fill_ "
    "zero_ split unbind cat stack _unsafe_view lift_fresh ";

/* True for an operator that computes nothing. */
static bool diagnose_is_movement(const char *op)
{
    char word[80];

    snprintf(word, sizeof word, " %.70s ", op);
    return strstr(movement, word) != NULL;
}

/* True where the word of n letters is a part of the name between underscores. */
static bool diagnose_has_part(const char *op, const char *word, size_t n)
{
    for (const char *p = op; (p = strstr(p, word)); p++)
        if ((p == op || p[-1] == '_') && (p[n] == 0 || p[n] == '_'))
            return true;
    return false;
}

/* True where the operator's name says that it is of the family. */
static bool diagnose_is_of(const char *op, const struct diagnose_family_state *f)
{
    if (!strncmp(op, "clamp", 5)) /* clamp_min is no minimum */
        return false;
    for (const char *p = f->words; *p;) {
        char word[32];
        size_t n = strcspn(p, " ");
        snprintf(word, sizeof word, "%.*s", (int)n, p);
        if (diagnose_has_part(op, word, n) || (n > 3 && strstr(op, word)))
            return true;
        p += n + (p[n] == ' ');
    }
    return false;
}

const char *diagnose_family(const json_t *operators)
{
    bool any = false;
    const char *op;
    json_t *n;

    for (size_t i = 0; i < N_FAMILIES; i++)
        json_object_foreach((json_t *)(uintptr_t)operators, op, n)
            if (!diagnose_is_movement(op)) {
                any = true;
                if (diagnose_is_of(op, &families[i]))
                    return families[i].name;
            }
    return any ? "elementwise" : "plumbing";
}

/* ---- tasks ---- */

/* A callback of jsonl_each: takes a prompt's task. */
static int diagnose_take_prompt(json_t *v, size_t line, void *ctx, struct err *e)
{
    const json_t *more = json_object_get(v, "extra_info");
    const char *name = json_str(more, "name", NULL), *code = json_str(more, "task_code", NULL);

    if (!name || !code)
        return err_set(e, ERR_INPUT, "line %zu has no extra_info with name and task_code; give a prompts.jsonl of "
                       "'musacoder synth'", line);
    json_object_set_new(ctx, name, json_string(code));
    return 0;
}

/* Adds a *.py of the folder to tasks by its stem; other files are passed over. */
static int diagnose_take_file(json_t *tasks, const char *folder, const char *name, struct err *e)
{
    char *path, *stem;
    struct buf text;
    int rc;

    if (!path_ends(name, ".py"))
        return 0;
    path = path_join(folder, name), stem = path_stem(path);
    buf_init(&text, MAX_FILE);
    rc = file_read(path, &text, e);
    if (!rc)
        json_object_set_new(tasks, stem, json_utf8(text.p, text.n));
    buf_free(&text);
    free(path), free(stem);
    return rc;
}

/* Adds the families of all task files of a folder to 'tasks', by file name. */
static int diagnose_take_folder(json_t *tasks, const char *folder, struct err *e)
{
    char **names;
    size_t n;
    int rc = 0;

    if (dir_list(folder, &names, &n, e) < 0)
        return -1;
    for (size_t i = 0; i < n && !rc; i++)
        rc = diagnose_take_file(tasks, folder, names[i], e);
    names_free(names, n);
    return rc;
}

json_t *diagnose_tasks(const char *path, struct err *e)
{
    json_t *tasks = json_object();
    int rc = file_is_dir(path) ? diagnose_take_folder(tasks, path, e) : jsonl_each(path, diagnose_take_prompt,
                                                                                   tasks, e);

    if (!rc && !json_object_size(tasks))
        rc = err_set(e, ERR_INPUT, "'%s' has no tasks; give a folder of .py files, or a prompts.jsonl", path);
    if (!rc)
        return tasks;
    json_decref(tasks);
    return NULL;
}

/* ---- tracing ---- */

struct tracer {
    struct forkserver *fs; /* NULL until a task comes that is not known */
    struct child *child;   /* NULL: to be started */
    bool no_jail;
    json_t *known;       /* hash of a task's text -> reply */
    char *journal;
    double timeout_s;
};

static int diagnose_start_child(struct tracer *t, struct err *e)
{
    struct child_spec spec = {.role = "diagnose", .jail = {.memory_bytes = (size_t)4 << 30, .no_exec = true}};
    struct forkserver_spec server = {.no_jail = t->no_jail};

    if (!t->fs && forkserver_start(&server, &t->fs, e) < 0)
        return -1;
    return t->child ? 0 : forkserver_spawn(t->fs, &spec, &t->child, e);
}

/* A reply is new; a child that is late or dead has refused, and another takes its place. */
static json_t *diagnose_ask(struct tracer *t, const char *code, struct err *e)
{
    json_t *req = json_pack("{s:s, s:s}", "op", "trace", "code", code), *reply = NULL;
    enum frame_fault fault = FRAME_OK;
    struct frame f;
    int rc = diagnose_start_child(t, e);
    double deadline = now_s() + t->timeout_s;

    if (rc == 0 && frame_send(t->child->fd, req, NULL, 0, deadline, &fault, e) == 0 &&
        frame_recv(t->child->fd, 0, 0, deadline, &f, &fault, e) == 0) {
        reply = json_incref(f.head);
        frame_free(&f);
    } else if (fault == FRAME_LATE || fault == FRAME_CLOSED || fault == FRAME_BROKEN) {
        child_free(t->child), t->child = NULL;
        reply = json_pack("{s:s, s:s}", "op", "refused", "detail", "it does not finish, or its process died");
    }
    json_decref(req);
    return reply;
}

static int diagnose_known_line(json_t *line, size_t no, void *ctx, struct err *e)
{
    (void)no, (void)e;
    json_object_set(ctx, json_str(line, "key", ""), json_object_get(line, "reply"));
    return 0;
}

/* Borrowed; from the journal, or asked and written there. */
static const json_t *diagnose_reply_of(struct tracer *t, const char *code, struct err *e)
{
    char key[65];
    json_t *reply, *line;
    int rc;

    sha256_hex(code, strlen(code), key);
    if (json_object_get(t->known, key))
        return json_object_get(t->known, key);
    reply = diagnose_ask(t, code, e);
    if (!reply)
        return NULL;
    line = json_pack("{s:s, s:O}", "key", key, "reply", reply);
    rc = jsonl_append_sealed(t->journal, line, e);
    json_object_set_new(t->known, key, reply);
    json_decref(line);
    return rc ? NULL : reply;
}

/* Finds each task's operators by tracing its reference; what cannot be traced goes to 'broken'. */
static int diagnose_trace_all(struct tracer *t, const json_t *tasks, json_t *found, json_t *broken, struct err *e)
{
    struct progress p;
    const char *name;
    json_t *code;
    size_t at = 0;
    int rc = 0;

    progress_start(&p, "references", 0, json_object_size(tasks));
    json_object_foreach((json_t *)(uintptr_t)tasks, name, code) {
        const json_t *reply = stop_requested() ? NULL : diagnose_reply_of(t, json_string_value(code), e);
        if (!reply) {
            rc = stop_requested() ? err_set(e, ERR_STOP, "stopped; the same command continues") : -1;
            break;
        }
        if (json_object_get(reply, "operators"))
            json_object_set_new(found, name, json_string(diagnose_family(json_object_get(reply, "operators"))));
        else
            json_object_set(broken, name, json_object_get(reply, "detail"));
        progress_at(&p, ++at);
    }
    progress_end(&p);
    return rc;
}

json_t *diagnose_trace(const json_t *tasks, const char *out, double timeout_s, bool no_jail, json_t **ret_broken,
                       struct err *e)
{
    struct tracer t = {.known = json_object(), .journal = path_join(out, "traced.jsonl"), .timeout_s = timeout_s,
                       .no_jail = no_jail};
    json_t *found = json_object(), *broken = json_object();
    int rc = jsonl_continue(t.journal, diagnose_known_line, t.known, e);

    if (!rc)
        rc = diagnose_trace_all(&t, tasks, found, broken, e);
    child_free(t.child);
    forkserver_stop(t.fs);
    json_decref(t.known);
    free(t.journal);
    if (!rc) {
        *ret_broken = broken;
        return found;
    }
    json_decref(found), json_decref(broken);
    return NULL;
}

json_t *diagnose_balanced(const json_t *found, int n)
{
    json_t *picked = json_array();
    const char *name;
    json_t *its;
    bool any = true;

    for (int round = 0; any && (int)json_array_size(picked) < n; round++) {
        any = false;
        for (size_t f = 0; f < N_FAMILIES; f++) {
            int seen = 0;
            json_object_foreach((json_t *)(uintptr_t)found, name, its)
                if (!strcmp(json_string_value(its), families[f].name) && seen++ == round) {
                    any = true;
                    if ((int)json_array_size(picked) < n)
                        json_array_append_new(picked, json_string(name));
                }
        }
    }
    return picked;
}

/* ---- rates ---- */

struct diagnose_tally {
    int samples, compiled, passed, n_speeds;
    double *speeds;
};

struct diagnose_sums {
    const json_t *found, *marks;
    int others; /* verdicts of other tasks of the same names */
    struct diagnose_tally of[N_FAMILIES];
};

/* The index of a family's row; -1: none. */
static int diagnose_family_index(const char *name)
{
    for (size_t i = 0; name && i < N_FAMILIES; i++)
        if (!strcmp(families[i].name, name))
            return (int)i;
    return -1;
}

/* The task as this folder has it, its sidecar included; "" where it is none. */
static void diagnose_mark_with_sidecar(const char *folder, const char *name, char ret[65])
{
    char *path = xasprintf("%s/%s.py", folder, name);
    struct task t = {0};

    snprintf(ret, 65, "%s", task_read(path, &t, NULL) < 0 ? "" : t.sha256);
    task_free(&t);
    free(path);
}

json_t *diagnose_marks(const json_t *tasks, const char *folder)
{
    json_t *marks = json_object(), *code;
    const char *name;

    json_object_foreach((json_t *)(uintptr_t)tasks, name, code) {
        char text[65], both[65] = "";

        sha256_hex(json_string_value(code), strlen(json_string_value(code)), text);
        if (folder)
            diagnose_mark_with_sidecar(folder, name, both);
        json_object_set_new(marks, name, json_sprintf("%s %s", text, both));
    }
    return marks;
}

/* Verdicts of older versions do not say of which text they are. */
static bool diagnose_is_of_another(const struct diagnose_sums *s, const char *name, const json_t *verdict)
{
    const char *hash = json_str(verdict, "task_sha256", ""), *marks = json_str(s->marks, name, "");

    return *hash && *marks && !strstr(marks, hash);
}

/* A callback of jsonl_each: counts a verdict for its task's family. */
static int diagnose_add_verdict(json_t *line, size_t no, void *ctx, struct err *e)
{
    struct diagnose_sums *s = ctx;
    const json_t *v = json_object_get(line, "verdict"), *performance = json_object_get(v, "performance");
    const char *status = json_str(v, "status", ""), *name = path_name(json_str(line, "task", ""));
    int f = diagnose_family_index(json_str(s->found, name, NULL));
    bool passed = !strcmp(status, "passed");
    double speed = json_f64(performance, "speedup_eager", 0);
    struct diagnose_tally *t = &s->of[f < 0 ? 0 : f];

    (void)no, (void)e;
    if (f < 0 || json_i64(line, "turn", 1) != 1 || (!passed && strcmp(status, "failed")))
        return 0;
    if (diagnose_is_of_another(s, name, v))
        return s->others++, 0;
    t->samples++, t->passed += passed, t->compiled += json_flag(json_object_get(v, "compile"), "ok", false);
    if (passed && speed > 0) {
        t->speeds = xrealloc(t->speeds, (size_t)(t->n_speeds + 1) * sizeof *t->speeds);
        t->speeds[t->n_speeds++] = speed;
    }
    return 0;
}

static double diagnose_weakness(const struct diagnose_tally *t)
{
    return 1 - (t->passed + 1.0) / (t->samples + 2.0);
}

/* For each family: samples, shares that compile and pass, and its weight in a next corpus. New. */
static json_t *diagnose_rates_of(struct diagnose_sums *s)
{
    json_t *rates = json_object();
    double sum = 0, mean;
    int n = 0;

    for (size_t f = 0; f < N_FAMILIES; f++)
        if (s->of[f].samples)
            sum += diagnose_weakness(&s->of[f]), n++;
    mean = n ? sum / n : 1;
    for (size_t f = 0; f < N_FAMILIES; f++) {
        struct diagnose_tally *t = &s->of[f];
        double median = numbers_median(t->speeds, (size_t)t->n_speeds);

        if (t->samples)
            json_object_set_new(rates, families[f].name,
                                json_pack("{s:i, s:f, s:f, s:o, s:f}", "samples", t->samples, "compile_rate",
                                          (double)t->compiled / t->samples, "correct", (double)t->passed / t->samples,
                                          "speedup", t->n_speeds ? json_real(median) : json_null(), "weight",
                                          fmin(MOST_WEIGHT, fmax(LEAST_WEIGHT, diagnose_weakness(t) / mean))));
    }
    return rates;
}

json_t *diagnose_rates(const json_t *found, const json_t *marks, const char *run, struct err *e)
{
    struct diagnose_sums s = {.found = found, .marks = marks};
    char *path = path_join(run, "verdicts.jsonl");
    json_t *rates = NULL;

    if (jsonl_each(path, diagnose_add_verdict, &s, e) == 0)
        rates = diagnose_rates_of(&s);
    if (s.others)
        log_warn("%d verdict%s of '%s' %s of other tasks of these names, and left out", s.others,
                 buf_plural(s.others), path, s.others == 1 ? "is" : "are");
    if (rates && !json_object_size(rates)) {
        err_set(e, ERR_INPUT, "'%s' has no verdict of these tasks; give the run of 'musacoder bench' on them", path);
        json_decref(rates), rates = NULL;
    }
    for (size_t f = 0; f < N_FAMILIES; f++)
        free(s.of[f].speeds);
    free(path);
    return rates;
}

/* ---- what follows ---- */

static double diagnose_weight_of(const json_t *rates, const char *family)
{
    return json_f64(json_object_get(rates, family), "weight", 1);
}

json_t *diagnose_weights(const json_t *rates)
{
    json_t *weights = json_object();

    for (size_t f = 0; f < N_FAMILIES; f++)
        for (const char *p = families[f].registry; *p && json_object_get(rates, families[f].name);) {
            char word[32];
            size_t n = strcspn(p, " ");
            snprintf(word, sizeof word, "%.*s", (int)n, p);
            json_object_set_new(weights, word, json_real(diagnose_weight_of(rates, families[f].name)));
            p += n + (p[n] == ' ');
        }
    return weights;
}

static bool diagnose_is_family(const char *name)
{
    int n;
    const struct opdef *const *row = op_rows(&n);

    for (int i = 0; i < n; i++)
        if (!strcmp(row[i]->family, name))
            return true;
    return false;
}

/* ERR_INPUT for an unknown family or a weight that is no positive number. */
static int diagnose_check_weight(const char *path, const char *name, const json_t *w, struct err *e)
{
    double x = json_is_number(w) ? json_number_value(w) : 0;

    if (!diagnose_is_family(name))
        return err_set(e, ERR_INPUT, "'%s': there is no family '%s'; 'musacoder synth --list' names them", path, name);
    return x >= 0.01 && x <= 100
               ? 0
               : err_set(e, ERR_INPUT, "'%s': the weight of '%s' is no number from 0.01 to 100", path, name);
}

json_t *diagnose_weights_read(const char *path, struct err *e)
{
    json_t *weights = json_read(path, e), *w;
    const char *name;
    int rc = weights ? 0 : -1;

    if (weights && !json_is_object(weights))
        rc = err_set(e, ERR_INPUT, "'%s' is no object of family and weight; 'synth diagnose' writes one", path);
    json_object_foreach(weights, name, w)
        rc = rc ? rc : diagnose_check_weight(path, name, w, e);
    if (!rc)
        return weights;
    json_decref(weights);
    return NULL;
}

struct ranked {
    json_t *line;
    double key;
};

struct ranking {
    const json_t *found, *rates;
    struct rng rng;
    struct ranked *v;
    size_t n;
};

/* A callback of jsonl_each: keeps a prompt with its weight. */
static int diagnose_rank_prompt(json_t *line, size_t no, void *ctx, struct err *e)
{
    struct ranking *k = ctx;
    const char *name = json_str(json_object_get(line, "extra_info"), "name", "");
    double w = diagnose_weight_of(k->rates, json_str(k->found, name, "")), u = rng_f64(&k->rng);

    (void)no, (void)e;
    k->v = xrealloc(k->v, (k->n + 1) * sizeof *k->v);
    k->v[k->n++] = (struct ranked){json_incref(line), log(u > 0 ? u : 0x1p-53) / w};
    return 0;
}

static int diagnose_highest_first(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;

    return (x->key < y->key) - (x->key > y->key);
}

int diagnose_prompts(const char *prompts, const json_t *found, const json_t *rates, uint64_t seed, int n,
                     const char *out, struct err *e)
{
    struct ranking k = {.found = found, .rates = rates};
    struct buf b;
    int rc;

    rng_seed(&k.rng, seed, 0);
    buf_init(&b, (size_t)4 << 30);
    rc = jsonl_each(prompts, diagnose_rank_prompt, &k, e);
    if (k.n)
        qsort(k.v, k.n, sizeof *k.v, diagnose_highest_first);
    for (size_t i = 0; i < k.n && !rc && (!n || i < (size_t)n); i++) {
        char *text = json_text(k.v[i].line);
        buf_addf(&b, "%s\n", text);
        free(text);
    }
    if (!rc)
        rc = file_write(out, b.p, b.n, e);
    for (size_t i = 0; i < k.n; i++)
        json_decref(k.v[i].line);
    free(k.v);
    buf_free(&b);
    return rc;
}

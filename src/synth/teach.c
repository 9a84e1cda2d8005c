/* teach.c - see teach.h. Reading order: teach at the end: answers of cache and server, programs, verdicts, records. */
#include "synth/teach.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "answers/answers.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/jsonl.h"
#include "base/listing.h"
#include "base/log.h"
#include "base/mem.h"
#include "task/extract.h"
#include "task/task.h"

struct teach_question {
    int task, sample;
    json_t *messages;
    char key[65];
    const json_t *answer; /* borrowed from the cache; NULL: not there yet */
    char *program;        /* NULL: none that is to be judged */
    const json_t *verdict;
};

struct teacher {
    struct teach_options *o;
    struct task *task;
    struct teach_question *q;
    int n_tasks, n;
    char *model, *answers, *log;
    json_t *cache, *verdicts;
    struct teach_stats s;
    /* of the round that is being asked */
    struct teach_question **round;
    struct progress progress;
};

/* ---- tasks and questions ---- */

/* Appends the task of a file; fails as task_read does. */
static int teach_add_task(struct teacher *t, const char *path, struct err *e)
{
    t->task = xrealloc(t->task, (size_t)(t->n_tasks + 1) * sizeof *t->task);
    if (task_read(path, &t->task[t->n_tasks], e) < 0)
        return -1;
    t->n_tasks++;
    return 0;
}

/* Reads the task file, or the folder's tasks up to the limit. */
static int teach_read_tasks(struct teacher *t, struct err *e)
{
    const char *path = t->o->tasks;
    char **names = NULL;
    size_t n = 0;
    int rc = 0;

    if (!file_is_dir(path))
        return teach_add_task(t, path, e);
    if (dir_list(path, &names, &n, e) < 0)
        return -1;
    for (size_t i = 0; i < n && !rc && (!t->o->limit || t->n_tasks < t->o->limit); i++) {
        size_t k = strlen(names[i]);
        char *file = path_join(path, names[i]);
        if (k > 3 && !strcmp(names[i] + k - 3, ".py"))
            rc = teach_add_task(t, file, e);
        free(file);
    }
    names_free(names, n);
    return rc || t->n_tasks ? rc : err_set(e, ERR_INPUT, "'%s' holds no task files; a task is NAME.py", path);
}

/* Adds a question: its messages, and a key that changes with all that decides the answer. */
static void teach_make_question(struct teacher *t, int task, int sample)
{
    const struct teach_options *o = t->o;
    struct teach_question *q = &t->q[t->n++];
    char *prompt = prompt_task(o->prompt_format.style, t->task[task].code, o->prompt_format.musa ? "musa" : "cuda",
                               NULL), *text;
    struct sha256 h;

    *q = (struct teach_question){.task = task, .sample = sample, .messages = prompt_start(prompt)};
    text = json_text(q->messages);
    free(prompt);
    prompt = xasprintf("%s|%g|%g|%d|%d", t->model, o->temperature, o->top_p, o->max_new, sample);
    sha256_start(&h);
    sha256_adds(&h, text), sha256_adds(&h, prompt);
    sha256_end(&h, q->key);
    free(prompt), free(text);
    q->answer = json_object_get(t->cache, q->key);
    t->s.cached += q->answer != NULL;
}

static int64_t teach_cost_of(const json_t *answer)
{
    return json_i64(answer, "prompt_tokens", 0) + json_i64(answer, "completion_tokens", 0);
}

/* A callback of the reader: enters an answer of an earlier call. */
static int teach_cache_line(json_t *line, size_t no, void *ctx, struct err *e)
{
    struct teacher *t = ctx;

    (void)no, (void)e;
    json_object_set(t->cache, json_str(line, "key", ""), line);
    t->s.tokens += teach_cost_of(line);
    if (!t->model)
        t->model = xstrdup(json_str(line, "model", ""));
    return 0;
}

/* ---- asking ---- */

/* A server that counts no tokens is charged a token for three bytes. */
static int teach_tokens_of(int said, size_t bytes)
{
    return said > 0 ? said : (int)(bytes / 3 + 1);
}

/* A callback of answers: writes an answer to the cache file and gives it to its question. */
static int teach_on_answer(void *ctx, int i, int index, const struct answer *r, struct err *e)
{
    struct teacher *t = ctx;
    struct teach_question *q = t->round[i];
    char *asked = json_text(q->messages);
    const char *said = r ? r->text : ""; /* none: the task leaves no room for an answer */
    json_t *text = json_utf8(said, strlen(said));
    json_t *line = json_pack("{s:s, s:s, s:i, s:s, s:o, s:b, s:i, s:i}", "key", q->key, "task",
                             t->task[q->task].name, "sample", q->sample, "model", t->model, "text", text, "cut",
                             !r || r->cut,
                             "prompt_tokens", teach_tokens_of(r ? r->prompt_tokens : 0, strlen(asked)),
                             "completion_tokens", teach_tokens_of(r ? r->tokens : 0, strlen(said)));
    int rc = jsonl_append_sealed(t->answers, line, e);

    t->s.asked++;
    t->s.tokens += teach_cost_of(line);
    if (json_object_get(t->cache, q->key)) /* the same question stood twice in one round */
        json_decref(line);
    else
        json_object_set_new(t->cache, q->key, line);
    q->answer = json_object_get(t->cache, q->key);
    progress_note(&t->progress, "%lld tokens", (long long)t->s.tokens);
    progress_at(&t->progress, (uint64_t)(t->s.cached + t->s.asked));
    free(asked);
    return rc;
}

/* How many of the questions fit into what is left of the budget, at their worst. */
static int teach_affordable(const struct teacher *t, int n)
{
    int64_t left = t->o->budget - t->s.tokens;
    int k = 0;

    if (!t->o->budget)
        return n;
    for (; k < n; k++) {
        char *asked = json_text(t->round[k]->messages);
        left -= (int64_t)strlen(asked) / 3 + 1 + t->o->max_new;
        free(asked);
        if (left < 0)
            break;
    }
    return k;
}

/* Asks the next n questions. */
static int teach_ask_round(struct teacher *t, struct answers *a, int n, struct err *e)
{
    struct answers_options ao = {.temperature = t->o->temperature, .top_p = t->o->top_p, .max_new = t->o->max_new,
                                 .parallel = t->o->parallel, .on_answer = teach_on_answer, .ctx = t};
    struct answers_request *reqs = xcalloc((size_t)n, sizeof *reqs);
    struct dialogue *d = xcalloc((size_t)n, sizeof *d);
    int rc = 0;

    for (int i = 0; i < n && rc == 0; i++) {
        rc = dialogue_begin(&d[i], answers_tokenizer(a), t->round[i]->messages, e);
        reqs[i] = (struct answers_request){.dialogue = &d[i], .n = 1, .seed = (uint64_t)t->round[i]->sample};
    }
    if (rc == 0)
        rc = answers_draw(a, &ao, reqs, n, e);
    for (int i = 0; i < n; i++)
        dialogue_free(&d[i]);
    free(reqs);
    free(d);
    return rc;
}

/* Rounds of four times what is asked at once: few wait for the slowest, and the budget is looked at between them. */
static int teach_ask_all(struct teacher *t, struct answers *a, struct err *e)
{
    int at = 0, rc = 0, room = 4 * t->o->parallel;

    t->round = xcalloc((size_t)room, sizeof *t->round);
    progress_start(&t->progress, "ask", (uint64_t)t->s.cached, (uint64_t)t->n);
    while (!rc && at < t->n) {
        int n = 0, may;
        int from = at;
        for (; at < t->n && n < room; at++)
            if (!t->q[at].answer)
                t->round[n++] = &t->q[at];
        may = teach_affordable(t, n);
        if (may)
            rc = teach_ask_round(t, a, may, e);
        if (may < n) {
            for (int i = from; i < t->n; i++)
                t->s.unasked += !t->q[i].answer;
            break;
        }
    }
    progress_end(&t->progress);
    free(t->round);
    return rc;
}

/* Takes answers that are cached and asks the teacher for the others. */
/* "smol@1f0c2d3e4a5b" of a folder: the same folder with other weights is another teacher. Owned. */
static char *teach_name_model(const struct teach_options *o, const char *model)
{
    return o->weights && *o->weights ? xasprintf("%s@%.12s", model, o->weights) : xstrdup(model);
}

/* Reads the answers of an earlier call and asks the teacher for others. ERR_INPUT: neither is there. */
static int teach_get_answers(struct teacher *t, struct err *e)
{
    const struct teach_options *o = t->o;
    struct answers_config c = {.model = o->teacher, .model_name = o->model, .retry_s = o->retry_s};
    struct answers *a = NULL;
    int rc = 0;

    if (jsonl_continue(t->answers, teach_cache_line, t, e) < 0)
        return -1;
    if (o->model)
        free(t->model), t->model = xstrdup(o->model);
    if (o->teacher && answers_open(&c, &a, e) < 0)
        return -1;
    if (a)
        free(t->model), t->model = teach_name_model(o, answers_model(a));
    if (!t->model)
        return err_set(e, ERR_INPUT, "'%s' holds no answers to replay; give --teacher URL or a folder", o->out);
    t->q = xcalloc((size_t)t->n_tasks * (size_t)o->samples, sizeof *t->q);
    for (int k = 0; k < o->samples; k++) /* one sample of each task first: a budget that ends early leaves breadth */
        for (int i = 0; i < t->n_tasks; i++)
            teach_make_question(t, i, k);
    if (a)
        rc = teach_ask_all(t, a, e);
    for (int i = 0; i < t->n && !a; i++)
        t->s.unasked += !t->q[i].answer;
    answers_close(a);
    return rc;
}

/* ---- programs and verdicts ---- */

/* True if an earlier answer to the same task has the same program. */
static bool teach_repeated(const struct teacher *t, const struct teach_question *q, const char *program)
{
    for (const struct teach_question *x = t->q; x < q; x++)
        if (x->task == q->task && x->program && !strcmp(x->program, program))
            return true;
    return false;
}

/* Takes the program out of an answer, or counts why there is none. */
static void teach_take_program(struct teacher *t, struct teach_question *q)
{
    const char *text = json_str(q->answer, "text", "");
    struct extraction x;

    extract_code(text, strlen(text), EXTRACT_RESPONSE, &x);
    if (json_flag(q->answer, "cut", false)) {
        t->s.cut++;
    } else if (!x.found || !x.defines_modelnew) {
        t->s.without_program++;
    } else {
        char *program = xstrndup(text + x.offset, x.n);
        if (teach_repeated(t, q, program))
            t->s.repeated++, free(program);
        else
            q->program = program;
    }
}

static struct verify_item teach_item_of(const struct task *t, const char *program)
{
    return (struct verify_item){t->name, t->code, program, t->sidecar};
}

/* Has all programs judged. */
static int teach_get_verdicts(struct teacher *t, struct err *e)
{
    struct verify_item *v = xcalloc((size_t)t->n + 1, sizeof *v);
    int n = 0, rc = 0;

    for (int i = 0; i < t->n; i++) {
        if (t->q[i].answer)
            teach_take_program(t, &t->q[i]);
        if (t->q[i].program)
            v[n++] = teach_item_of(&t->task[t->q[i].task], t->q[i].program);
    }
    t->o->verify.log = t->log;
    if (n)
        rc = t->o->judge(&t->o->verify, v, n, &t->verdicts, e);
    for (int i = 0, k = 0; i < t->n && !rc; i++)
        if (t->q[i].program)
            t->q[i].verdict = json_array_get(t->verdicts, (size_t)k++);
    free(v);
    return rc;
}

/* ---- records ---- */

/* What a reader of the answer sees: the reasoning that stands before it is kept apart. */
static const char *teach_spoken(const char *text, size_t *ret_thought)
{
    const char *end = NULL;

    for (const char *p = text; (p = strstr(p, "</think>")); p += 8)
        end = p + 8;
    *ret_thought = end ? (size_t)(end - text) : 0;
    return end ? end + strspn(end, "\n ") : text;
}

static json_t *teach_provenance(const struct teacher *t, const struct teach_question *q, size_t thought)
{
    return json_pack("{s:s, s:s, s:i, s:s, s:o}", "generator", "teacher", "model", t->model, "sample", q->sample,
                     "answer", q->key, "reasoning",
                     thought ? json_utf8(json_str(q->answer, "text", ""), thought) : json_null());
}

/* A record of a question, new; takes messages. thought: bytes of the thinking. */
static json_t *teach_record(const struct teacher *t, const struct teach_question *q, const char *kind, json_t *messages,
                            size_t thought)
{
    const struct task *task = &t->task[q->task];
    char *id = xasprintf("%s-%s-%.12s", kind, task->name, q->key);
    json_t *v = json_pack("{s:s, s:s, s:o, s:{s:s, s:s, s:s}, s:{s:s, s:s}, s:o, s:o, s:n, s:s}", "id", id, "kind",
                          kind, "messages", messages, "task", "name", task->name, "code", task->code, "sha256",
                          task->sha256,
                          "kernel", "lang", t->o->prompt_format.musa ? "musa" : "cuda", "code", q->program, "verdict",
                          record_brief(q->verdict), "provenance", teach_provenance(t, q, thought), "difficulty",
                          "split", "train");

    free(id);
    return v;
}

/* The record of an answer that passed. New. */
static json_t *teach_passing(const struct teacher *t, const struct teach_question *q)
{
    size_t thought;
    const char *answer = teach_spoken(json_str(q->answer, "text", ""), &thought);
    json_t *m = json_deep_copy(q->messages);

    prompt_say(m, "assistant", answer);
    return teach_record(t, q, "generate", m, thought);
}

/* The record of an answer that failed, with the judge's words. New. */
static json_t *teach_failing(const struct teacher *t, const struct teach_question *q)
{
    char *answer = xasprintf("No. The judge says: %s", json_str(q->verdict, "feedback", ""));
    json_t *v = teach_record(t, q, "review", record_review(t->task[q->task].code, q->program, answer), 0);

    free(answer);
    return v;
}

/* NULL: a verdict that says nothing about the program. */
static json_t *teach_record_of(struct teacher *t, const struct teach_question *q)
{
    static const char *const faults[] = {"compile_error", "runtime_error", "correctness_error", "cheating"};
    const char *category = json_str(q->verdict, "category", "");

    if (!strcmp(json_str(q->verdict, "status", ""), "passed"))
        return t->s.passed++, teach_passing(t, q);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        if (!strcmp(category, faults[i]))
            return t->s.failed++, teach_failing(t, q);
    return t->s.unjudged++, NULL;
}

/* Writes counts of all that was asked and came back. */
static int teach_write_report(const struct teacher *t, struct listing *l, struct err *e)
{
    const struct teach_stats *s = &t->s;
    json_t *v = json_pack("{s:s, s:i, s:i, s:i, s:I, s:i, s:i, s:i, s:i, s:i, s:i}", "model", t->model, "tasks",
                          s->tasks, "answers", s->asked + s->cached, "unasked", s->unasked, "tokens",
                          (json_int_t)s->tokens,
                          "passed", s->passed, "failed", s->failed, "unjudged", s->unjudged, "cut", s->cut,
                          "without_program", s->without_program, "repeated", s->repeated);
    int rc = listing_write_json(l, "report.json", v, e);

    json_decref(v);
    return rc;
}

/* Writes the records of programs that passed, and the report. */
static int teach_write_results(struct teacher *t, struct err *e)
{
    char *data = path_join(t->o->out, "data");
    int rc = dir_make(data, e);
    struct listing *l = NULL;
    struct buf b;

    buf_init(&b, (size_t)1 << 32);
    for (int i = 0; i < t->n && !rc; i++) {
        json_t *v = t->q[i].program ? teach_record_of(t, &t->q[i]) : NULL;
        json_line(&b, v);
        json_decref(v);
    }
    if (!rc)
        rc = listing_begin(t->o->out, NULL, &l, e);
    if (!rc)
        rc = listing_write(l, "data/train-00000.jsonl", b.p, b.n, e) < 0 || teach_write_report(t, l, e) < 0 ||
             listing_end(l, false, NULL, e) < 0 ? -1 : 0;
    listing_free(l);
    buf_free(&b);
    free(data);
    return rc;
}

static void teach_teacher_free(struct teacher *t)
{
    for (int i = 0; i < t->n; i++)
        json_decref(t->q[i].messages), free(t->q[i].program);
    for (int i = 0; i < t->n_tasks; i++)
        task_free(&t->task[i]);
    json_decref(t->cache), json_decref(t->verdicts);
    free(t->q), free(t->task), free(t->model), free(t->answers), free(t->log);
}

/* Asks, judges and writes; see teach.h. */
int teach(struct teach_options *o, struct teach_stats *ret, struct err *e)
{
    struct teacher t = {.o = o, .answers = path_join(o->out, "answers.jsonl"),
                        .log = path_join(o->out, "verdicts.log.jsonl"), .cache = json_object()};
    int lock = -1, rc = folder_take(o->out, "these records", "musacoder synth teach", &lock, e);

    if (!rc)
        rc = teach_read_tasks(&t, e);
    t.s.tasks = t.n_tasks;
    if (!rc && (teach_get_answers(&t, e) < 0 || teach_get_verdicts(&t, e) < 0 || teach_write_results(&t, e) < 0))
        rc = -1;
    *ret = t.s;
    teach_teacher_free(&t);
    if (lock >= 0)
        close(lock);
    return rc;
}

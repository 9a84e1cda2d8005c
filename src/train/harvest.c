/* harvest.c - see harvest.h. A chunk is sampled, judged and written to its own file; the end joins the files. */
#include "train/harvest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/folder.h"
#include "base/json.h"
#include "base/jsonl.h"
#include "base/listing.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rng.h"
#include "task/extract.h"
#include "task/repair_text.h"
#include "train/changed.h"
#include "train/rollout.h"

/* A task and its answers. */
struct harvest_source {
    const char *name, *code; /* borrowed from the records */
    json_t *asked;           /* the dialogue up to the answer */
    json_t *view;            /* the record's task */
    json_t *answers;         /* programs, as text */
};

struct harvest {
    const struct harvest_options *o;
    struct tokenizer *tok;
    struct model *m;
    struct verdicts *verdicts;
    json_t *records;    /* keeps what sources borrow */
    struct harvest_source *src;
    int64_t n, cap, loaded; /* used; of the array; all that the file holds */
    char *chunks;       /* folder */
};

/* ---- tasks ---- */

/* A callback of jsonl_each: takes a record as a task with a right answer. */
static int harvest_add_record(json_t *rec, size_t line, void *ctx, struct err *e)
{
    struct harvest *h = ctx;
    json_t *task = json_object_get(rec, "task"), *kernel = json_object_get(rec, "kernel"), *messages;
    const char *name = json_str(task, "name", NULL), *code = json_str(kernel, "code", NULL);
    struct harvest_source *s = h->n ? &h->src[h->n - 1] : NULL;

    messages = json_object_get(rec, "messages");
    if (!name || !code || json_array_size(messages) < 2)
        return err_set(e, ERR_INPUT, "line %zu is no answered task; give harvest.jsonl of 'musacoder synth'", line);
    json_array_append(h->records, rec);
    if (!s || strcmp(s->name, name)) {
        if (h->n == h->cap)
            h->src = xrealloc(h->src, (size_t)(h->cap = h->cap ? 2 * h->cap : 64) * sizeof *h->src);
        s = &h->src[h->n++];
        *s = (struct harvest_source){name, json_str(task, "code", ""), json_deep_copy(messages), task, json_array()};
        json_array_remove(s->asked, json_array_size(s->asked) - 1);
    }
    json_array_append(s->answers, json_object_get(kernel, "code"));
    return 0;
}

/* ---- one failure ---- */

/* The program of an answer, or all of it where it has none. Owned. */
static char *harvest_program_of(const char *response)
{
    struct extraction x;

    extract_code(response, strlen(response), EXTRACT_RESPONSE, &x);
    return x.found ? xstrndup(response + x.offset, x.n) : xstrdup(response);
}

/* Tokens of the answer that the failure does not hold, as a share. */
static double harvest_distance(const struct harvest *h, const struct ivec *had, const char *answer)
{
    struct ivec ids = {0};
    uint8_t *mask;
    double n = 0;

    if (tokenizer_encode(h->tok, answer, strlen(answer), TOK_PLAIN, &ids, NULL) < 0)
        return 1;
    mask = xcalloc(ids.n + 1, 1);
    changed_tokens(had->v, had->n, ids.v, ids.n, mask);
    for (size_t i = 0; i < ids.n; i++)
        n += mask[i];
    n /= ids.n ? (double)ids.n : 1;
    free(mask);
    ivec_free(&ids);
    return n;
}

/* The right answer that is nearest to the program by tokens; *ret is the distance, 2 without any. */
static const char *harvest_nearest_answer(const struct harvest *h, const struct harvest_source *s, const char *program,
                                          double *ret)
{
    struct ivec had = {0};
    const char *best = NULL;
    const json_t *v;
    size_t i;

    *ret = 2;
    tokenizer_encode(h->tok, program, strlen(program), TOK_PLAIN, &had, NULL);
    json_array_foreach(s->answers, i, v) {
        double d = harvest_distance(h, &had, json_string_value(v));
        if (d < *ret)
            *ret = d, best = json_string_value(v);
    }
    ivec_free(&had);
    return best;
}

/* Why a verdict failed, in words. */
static const char *harvest_why(const char *category)
{
    static const struct {
        const char *category, *words;
    } rows[] = {{"compile_error", "it does not compile"},
                {"runtime_error", "it fails while it runs"},
                {"correctness_error", "its output is wrong"},
                {"extraction_error", "the program is not whole"}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(rows[i].category, category))
            return rows[i].words;
    return NULL;
}

/* The shortest edits that turn the program into one of the task's answers; NULL: all are further off. New. */
static char *harvest_nearest_edits(const struct harvest_source *s, const char *response)
{
    size_t n = json_array_size(s->answers);
    const char **answers = xcalloc(n + 1, sizeof *answers);
    char *edits;

    for (size_t i = 0; i < n; i++)
        answers[i] = json_string_value(json_array_get(s->answers, i));
    edits = mend_nearest(response, answers, n);
    free(answers);
    return edits;
}

/* New; NULL if the failure is one of the answers (a verdict that depends on luck), or too far from all of them. */
static char *harvest_answer_of(const struct harvest *h, const struct harvest_source *s, const struct rollout_turn *t,
                               double *changed)
{
    char *program = harvest_program_of(t->text), *answer = NULL;
    const char *mended = harvest_nearest_answer(h, s, program, changed);

    if (h->o->edits)
        answer = harvest_nearest_edits(s, t->text);
    else if (mended && strcmp(mended, program))
        answer = repair_text_answer(program, mended, harvest_why(t->category), t->feedback);
    free(program);
    return answer;
}

/* New record, or NULL. */
static json_t *harvest_record_of(const struct harvest *h, const struct harvest_source *s, const struct rollout_turn *t,
                                 int sample)
{
    double changed;
    char *answer = harvest_answer_of(h, s, t, &changed), id[128];
    json_t *m;

    if (!answer)
        return NULL;
    m = json_deep_copy(s->asked);
    prompt_turn(m, h->o->style, t->text, t->feedback, h->o->edits ? t->text : NULL);
    prompt_say(m, "assistant", answer);
    free(answer);
    snprintf(id, sizeof id, "own-%.80s-%d", s->name, sample);
    return json_pack("{s:s, s:s, s:o, s:O, s:{s:s, s:s}, s:{s:s, s:I, s:f}, s:s}", "id", id, "kind", "own", "messages",
                     m, "task", s->view, "broken_verdict", "status", "failed", "category", t->category, "provenance",
                     "generator", "musacoder-harvest/1", "seed", (json_int_t)h->o->seed, "changed", changed, "split",
                     "train");
}

/* ---- chunks ---- */

static char *harvest_chunk_path(const struct harvest *h, int64_t c)
{
    return xasprintf("%s/%05lld.json", h->chunks, (long long)c);
}

/* Opens the groups of n tasks from 'from' on. */
static int harvest_open_groups(struct harvest *h, int64_t from, int n, struct rollout_group *g, struct err *e)
{
    struct rng r;

    rng_seed(&r, h->o->seed, 0x300000000u + (uint64_t)from);
    for (int i = 0; i < n; i++) {
        if (rollout_group_init(&g[i], h->tok, h->src[from + i].asked, h->o->samples, e) < 0)
            return -1;
        g[i].task_code = h->src[from + i].code;
        g[i].task_name = h->src[from + i].name;
        g[i].seed = rng_u64(&r);
    }
    return 0;
}

/* {"samples","passed","failed","own":[record..]} */
static json_t *harvest_sum_up(const struct harvest *h, int64_t from, int n, const struct rollout_group *g)
{
    json_t *own = json_array();
    int samples = 0, passed = 0, failed = 0;

    for (int i = 0; i < n; i++)
        for (int k = 0; k < g[i].n; k++) {
            const struct rollout *r = &g[i].r[k];
            json_t *rec = NULL;
            samples++;
            passed += r->passed_turn == 1;
            if (r->turns && r->turn[0].kind == OUTCOME_FAILED)
                failed++, rec = harvest_record_of(h, &h->src[from + i], &r->turn[0], k);
            if (rec)
                json_array_append_new(own, rec);
        }
    return json_pack("{s:i, s:i, s:i, s:o}", "samples", samples, "passed", passed, "failed", failed, "own", own);
}

/* Samples and judges one chunk of tasks; *ret is its new record. */
static int harvest_make_chunk(struct harvest *h, int64_t c, json_t **ret, struct err *e)
{
    struct rollout_options ro = {.turns = 1, .max_new = h->o->max_new, .temperature = h->o->temperature,
                                 .positions = h->m->config.max_positions, .style = h->o->style};
    struct rollout_engine *d = rollout_engine_own(h->m);
    int64_t from = c * h->o->chunk;
    int n = (int)(from + h->o->chunk < h->n ? h->o->chunk : h->n - from), rc;
    struct rollout_group *g = xcalloc((size_t)n, sizeof *g);

    rc = harvest_open_groups(h, from, n, g, e);
    verdicts_step(h->verdicts, c);
    if (!rc)
        rc = rollout_run(d, h->tok, h->verdicts, &ro, g, n, e);
    if (!rc)
        *ret = harvest_sum_up(h, from, n, g);
    for (int i = 0; i < n; i++)
        rollout_group_free(&g[i]);
    free(g);
    rollout_engine_close(d);
    return rc;
}

/* A chunk, new; NULL where there is none, or another one than was written: it is collected again. */
static json_t *harvest_read_chunk(const char *path)
{
    json_t *v = file_exists(path) ? json_read(path, NULL) : NULL;

    if (v && jsonl_seal_fits(v))
        return v;
    if (file_exists(path))
        log_warn("'%s' is not what was written; it is collected again", path);
    json_decref(v);
    return NULL;
}

static int harvest_write_chunk(const char *path, const json_t *v, struct err *e)
{
    json_t *sealed = jsonl_sealed(v);
    int rc = json_write(path, sealed, e);

    json_decref(sealed);
    return rc;
}

/* Makes all chunks that are not there yet. */
static int harvest_do_collect(struct harvest *h, struct err *e)
{
    int64_t chunks = (h->n + h->o->chunk - 1) / h->o->chunk;
    struct progress bar;
    int rc = 0;

    progress_start(&bar, "harvest", 0, (uint64_t)h->n);
    for (int64_t c = 0; c < chunks && !rc; c++) {
        char *path = harvest_chunk_path(h, c);
        json_t *v = harvest_read_chunk(path);

        if (!v) {
            rc = stop_requested() ? err_set(e, ERR_STOP, "stopped; the same command continues")
                                  : harvest_make_chunk(h, c, &v, e);
            if (!rc)
                rc = harvest_write_chunk(path, v, e);
        }
        json_decref(v);
        free(path);
        progress_at(&bar, (uint64_t)((c + 1) * h->o->chunk < h->n ? (c + 1) * h->o->chunk : h->n));
    }
    progress_end(&bar);
    return rc;
}

/* ---- joining ---- */

/* Appends the chunk's records. */
static void harvest_add_lines(const json_t *chunk, struct buf *lines)
{
    const json_t *v;
    size_t i;

    json_array_foreach(json_object_get(chunk, "own"), i, v)
        json_line(lines, v);
}

/* Joins the chunks into own.jsonl and the statistics. */
static int harvest_join(struct harvest *h, struct err *e)
{
    static const char *const keys[] = {"samples", "passed", "failed"};
    struct listing *l = NULL;
    int64_t sum[3] = {0}, own = 0;
    struct buf lines;
    json_t *st;
    int rc = 0;

    buf_init(&lines, (size_t)1 << 40);
    for (int64_t c = 0; c < (h->n + h->o->chunk - 1) / h->o->chunk && !rc; c++) {
        char *path = harvest_chunk_path(h, c);
        json_t *v = harvest_read_chunk(path);
        rc = v ? 0 : err_set(e, ERR_ENV, "'%s' is gone or damaged; run again", path);
        for (int k = 0; k < 3; k++)
            sum[k] += json_i64(v, keys[k], 0);
        own += (int64_t)json_array_size(json_object_get(v, "own"));
        harvest_add_lines(v, &lines);
        json_decref(v);
        free(path);
    }
    st = json_pack("{s:I, s:I, s:I, s:I, s:I}", "tasks", (json_int_t)h->n, "samples", (json_int_t)sum[0], "passed",
                   (json_int_t)sum[1], "failed", (json_int_t)sum[2], "own", (json_int_t)own);
    if (!rc)
        rc = listing_begin(h->o->out, NULL, &l, e) < 0 || listing_write(l, "own.jsonl", lines.p, lines.n, e) < 0 ||
             listing_write_json(l, "harvest_stats.json", st, e) < 0 || listing_end(l, false, NULL, e) < 0 ? -1 : 0;
    listing_free(l);
    if (!rc)
        log_info("harvest: %lld of %lld samples passed; %lld failures became repair dialogues", (long long)sum[1],
                 (long long)sum[0], (long long)own);
    json_decref(st);
    buf_free(&lines);
    return rc;
}

/* Opens tokenizer, data, model and judge. */
static int harvest_open_all(struct harvest *h, struct err *e)
{
    const struct harvest_options *o = h->o;
    char *log = path_join(o->out, "verdicts.jsonl");
    struct verdicts_config vc = {.service = {.workers = o->workers, .jobs = o->jobs}, .log = log,
                                 .options = o->verdict};
    int rc = -1;

    if (!(h->tok = tokenizer_load(o->model, e)) ||
        jsonl_each(o->data, harvest_add_record, h, e) < 0)
        goto out;
    if (!h->n) {
        err_set(e, ERR_INPUT, "'%s' holds no task", o->data);
        goto out;
    }
    h->loaded = h->n;
    if (o->tasks > 0 && o->tasks < h->n)
        h->n = o->tasks;
    if (!(h->m = model_load(o->model, e)) || model_use_tokenizer(h->m, h->tok, e) < 0 ||
        model_to_device(h->m, o->device ? o->device : "cpu", o->dtype, e) < 0)
        goto out;
    rc = verdicts_open(&vc, &h->verdicts, e);
out:
    free(log);
    return rc;
}

int harvest_collect(const struct harvest_options *o, struct err *e)
{
    struct harvest h = {.o = o, .records = json_array(), .chunks = path_join(o->out, "chunks")};
    int rc, lock = -1;

    if (o->samples < 1 || o->chunk < 1 || o->max_new < 1) {
        rc = err_set(e, ERR_INPUT, "samples, chunk and max-new want at least 1");
    } else {
        rc = dir_make(h.chunks, e) < 0 ? -1 : folder_lock(o->out, "musacoder", &lock, e);
        if (!rc)
            rc = harvest_open_all(&h, e);
        if (!rc)
            rc = harvest_do_collect(&h, e);
        if (!rc)
            rc = harvest_join(&h, e);
    }
    verdicts_close(h.verdicts);
    if (h.m)
        model_free(h.m);
    tokenizer_free(h.tok);
    for (int64_t i = 0; i < (h.loaded > h.n ? h.loaded : h.n); i++)
        json_decref(h.src[i].asked), json_decref(h.src[i].answers);
    json_decref(h.records);
    free(h.src);
    free(h.chunks);
    if (lock >= 0)
        close(lock);
    return rc;
}

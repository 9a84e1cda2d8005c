/* bench.c - the flow of a benchmark: for each turn sample what is missing, judge while sampling goes on, wait; then
 * sum up. Reading order: bench_run at the end, bench_play_turn, then sampling and judging. */
#include "bench/bench.h"

#include <stdlib.h>
#include <string.h>

#include "answers/answers.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/listing.h"
#include "base/log.h"
#include "base/mem.h"
#include "bench/passk.h"
#include "bench/bench_run.h"
#include "verdicts/verdicts.h"

struct bench_asked { /* the attempt of a ticket, in turn play.turn */
    int task, sample;
};

struct bench_ask { /* one dialogue */
    int task, sample; /* sample -1: all of the task's */
    struct dialogue dialogue;
};

struct play {
    struct bench_run *b;
    struct answers *source; /* NULL with foreign samples */
    struct verdicts *verdicts;
    struct bench_asked *asked; /* (tickets) */
    int cap_asked, turn;
    struct bench_ask *asks;
    struct answers_request *reqs; /* (n_asks) */
    int n_asks;
    struct progress bar;
};

/* ---- judging ---- */

/* A callback of the judge: stores a verdict. */
static int bench_on_verdict(void *ctx, int ticket, const json_t *verdict, struct err *e)
{
    struct play *p = ctx;
    struct bench_asked a = p->asked[ticket];

    bench_attempt(p->b, a.task, a.sample, p->turn)->verdict = json_incref((json_t *)verdict);
    return bench_store_verdict(p->b, a.task, a.sample, p->turn, e);
}

/* Opens the judge's client for this run. */
static int bench_open_verdicts(struct play *p, struct err *e)
{
    const struct bench_options *o = &p->b->o;
    struct verdicts_config c = {.service = {.workers = o->workers, .jobs = o->jobs, .queue = o->queue,
                                            .worker_argv = o->worker_argv},
                                .options = o->verdict, .arrived = bench_on_verdict, .ctx = p};

    return verdicts_open(&c, &p->verdicts, e);
}

/* Submits an answer's program to the judge and notes the ticket. */
static int bench_submit(struct play *p, int task, int sample, struct err *e)
{
    const struct task *t = &p->b->suite.tasks[task];
    struct verdict_request r = {.task_code = t->code, .task_name = path_name(t->name),
                                .candidate = bench_program(p->b, task, sample, p->turn),
                                .is_response = bench_attempt(p->b, task, sample, p->turn)->is_response,
                                .sidecar = t->sidecar};
    int ticket = verdicts_submit(p->verdicts, &r, e);

    if (ticket < 0)
        return -1;
    if (ticket >= p->cap_asked) {
        p->cap_asked = p->cap_asked ? 2 * p->cap_asked : 256;
        p->asked = xrealloc(p->asked, (size_t)p->cap_asked * sizeof *p->asked);
    }
    p->asked[ticket] = (struct bench_asked){task, sample};
    return 0;
}

/* A callback of verdicts: moves the bar. */
static void bench_on_judged(int done, int n, void *ctx)
{
    progress_at(ctx, (uint64_t)done);
}

/* Waits for all verdicts of the turn. */
static int bench_wait_all(struct play *p, struct err *e)
{
    struct progress bar;
    int rc;

    progress_start(&bar, "judge", 0, (uint64_t)verdicts_programs(p->verdicts));
    rc = verdicts_wait(p->verdicts, 0, bench_on_judged, &bar, e);
    progress_end(&bar);
    return rc;
}

/* What an earlier run sampled but did not judge. */
static int bench_submit_left(struct play *p, struct err *e)
{
    for (int i = 0; i < p->b->suite.n; i++)
        for (int j = 0; j < p->b->n_samples[i]; j++) {
            const struct attempt *a = bench_attempt(p->b, i, j, p->turn);
            if (a->text && !a->verdict && bench_submit(p, i, j, e) < 0)
                return -1;
        }
    return 0;
}

/* ---- sampling ---- */

/* Turn 1's request as messages, new: the same words for a model folder and for a server, in the dialect that is
 * judged. */
static json_t *bench_first_request(const struct bench_run *b, int task)
{
    char *say = prompt_task(b->o.style, b->suite.tasks[task].code, b->o.musa ? "musa" : NULL, NULL);
    json_t *messages = prompt_start(say);

    free(say);
    return messages;
}

/* The dialogue up to the request of turn p->turn; responses enter as they were sampled. */
static int bench_make_dialogue(struct play *p, int task, int sample, struct dialogue *d, struct err *e)
{
    const struct bench_options *o = &p->b->o;
    json_t *first = bench_first_request(p->b, task);
    int rc = dialogue_begin(d, answers_tokenizer(p->source), first, e);

    json_decref(first);
    for (int k = 0; k < p->turn && rc == 0; k++) {
        const struct attempt *a = bench_attempt(p->b, task, sample, k);
        char *say = prompt_feedback(o->style, bench_feedback_shown(p->b, task, sample, k),
                                    o->edits ? bench_program(p->b, task, sample, k) : NULL);
        rc = dialogue_go_on(d, a->ids, (size_t)a->n_ids, a->text, say, e);
        free(say);
    }
    return rc;
}

/* True if this turn's answer is not there and the dialogue goes on to it. */
static bool bench_wants(const struct bench_run *b, int task, int sample, int turn)
{
    return !bench_attempt(b, task, sample, turn)->text && (turn == 0 || bench_goes_on(b, task, sample, turn - 1));
}

/* sample -1: of all of the task's. A server gets 31 bits. */
static uint64_t bench_seed_of(const struct play *p, int task, int sample)
{
    const char *name = p->b->suite.tasks[task].name;
    uint64_t key[3] = {p->b->o.seed, (uint64_t)p->turn, (uint64_t)(sample + 1)},
             seed = hash64(name, strlen(name), hash64(key, sizeof key, 7));

    return answers_tokenizer(p->source) ? seed : seed >> 33;
}

/* Adds a request. sample -1: for all of the task's samples. */
static int bench_add_ask(struct play *p, int task, int sample, struct err *e)
{
    struct bench_ask *a = &p->asks[p->n_asks];

    *a = (struct bench_ask){.task = task, .sample = sample};
    if (bench_make_dialogue(p, task, sample < 0 ? 0 : sample, &a->dialogue, e) < 0) {
        dialogue_free(&a->dialogue);
        return -1;
    }
    p->reqs[p->n_asks++] = (struct answers_request){.dialogue = &a->dialogue, .n = sample < 0 ? p->b->o.samples : 1,
                                                    .seed = bench_seed_of(p, task, sample)};
    return 0;
}

/* Turn 1 of a model here asks once per task (one prefill for all samples); later turns, and a server, once per
 * dialogue. */
static int bench_plan_asks(struct play *p, struct err *e)
{
    const struct bench_run *b = p->b;
    size_t most = (size_t)b->suite.n * (size_t)b->o.samples + 1;
    bool together = p->turn == 0 && answers_tokenizer(p->source);

    p->asks = xcalloc(most, sizeof *p->asks);
    p->reqs = xcalloc(most, sizeof *p->reqs);
    p->n_asks = 0;
    for (int i = 0; i < b->suite.n; i++)
        for (int j = 0; j < b->n_samples[i]; j++) {
            if (!bench_wants(b, i, j, p->turn))
                continue;
            if (bench_add_ask(p, i, together ? -1 : j, e) < 0)
                return -1;
            if (together)
                break;
        }
    return 0;
}

static void bench_free_asks(struct play *p)
{
    for (int i = 0; i < p->n_asks; i++)
        dialogue_free(&p->asks[i].dialogue);
    free(p->asks);
    free(p->reqs);
    p->asks = NULL;
    p->reqs = NULL;
    p->n_asks = 0;
}

/* A prompt that leaves no room for an answer is a failed sample, not an error: the suite goes on. */
static void bench_warn_long(const struct play *p, const struct bench_ask *a)
{
    size_t n = a->dialogue.chat.ids.n; /* 0: a server counted them */
    const char *name = p->b->suite.tasks[a->task].name;

    if (n)
        log_warn("the prompt of '%s' has %zu tokens and leaves no room for an answer", name, n);
    else
        log_warn("the server takes no dialogue of '%s': too long, or refused as it says above", name);
}

/* A callback of answers: stores an answer and submits it. */
static int bench_on_answer(void *ctx, int request, int index, const struct answer *s, struct err *e)
{
    struct play *p = ctx;
    const struct bench_ask *ask = &p->asks[request];
    int sample = ask->sample < 0 ? index : ask->sample;
    struct attempt *a = bench_attempt(p->b, ask->task, sample, p->turn);

    if (!s && index == 0)
        bench_warn_long(p, ask);
    if (a->text || sample >= p->b->n_samples[ask->task])
        return 0; /* its siblings were missing; the same seed drew the same again */
    a->text = xstrdup(s ? s->text : "");
    a->is_response = true;
    a->cut = !s || s->cut;
    a->n_ids = s ? s->n : 0;
    if (a->n_ids) {
        a->ids = xmalloc((size_t)s->n * sizeof *a->ids);
        memcpy(a->ids, s->ids, (size_t)s->n * sizeof *a->ids);
    }
    return bench_store_sample(p->b, ask->task, sample, p->turn, e) < 0 ? -1 : bench_submit(p, ask->task, sample, e);
}

/* A callback of the source of answers: moves the bar, with the count of judged answers and the tokens a second. */
static void bench_on_progress(void *ctx, uint64_t tokens, int done, int total)
{
    struct play *p = ctx;
    double t = now_s() - p->bar.start;

    progress_note(&p->bar, "judged %d, %.0f tokens/s", verdicts_ready(p->verdicts), t > 0 ? (double)tokens / t : 0);
    progress_at(&p->bar, (uint64_t)done);
}

/* Draws the answers of this turn that are not stored yet. */
static int bench_sample_missing(struct play *p, struct err *e)
{
    const struct bench_options *o = &p->b->o;
    struct answers_options ao = {.temperature = o->temperature, .top_p = o->top_p, .max_new = o->max_new,
                                 .max_context = o->max_context, .max_batch = o->max_batch, .parallel = o->parallel,
                                 .on_answer = bench_on_answer, .on_progress = bench_on_progress, .ctx = p};
    uint64_t total = 0;
    int rc = bench_plan_asks(p, e);

    for (int i = 0; i < p->n_asks; i++)
        total += (uint64_t)p->reqs[i].n;
    if (rc == 0 && total) {
        progress_start(&p->bar, p->turn ? "sample again" : "sample", 0, total);
        rc = answers_draw(p->source, &ao, p->reqs, p->n_asks, e);
        progress_end(&p->bar);
    }
    bench_free_asks(p);
    return rc;
}

/* ---- the whole ---- */

/* Submits, samples and judges one turn of all dialogues. */
static int bench_play_turn(struct play *p, struct err *e)
{
    int rc = bench_submit_left(p, e);

    if (rc == 0 && p->source)
        rc = bench_sample_missing(p, e);
    if (rc == 0)
        rc = bench_wait_all(p, e);
    verdicts_forget(p->verdicts);
    return rc;
}

/* Opens what answers; nothing where answers are read from files. */
static int bench_open_source(struct play *p, struct err *e)
{
    const struct bench_options *o = &p->b->o;
    struct answers_config c = {.model = o->model, .model_name = o->model_name, .device = o->device,
                               .dtype = o->dtype};

    return o->model ? answers_open(&c, &p->source, e) : 0;
}

/* True where every sample has all of its verdicts. */
static bool bench_all_there(const struct bench_run *b)
{
    for (int i = 0; i < b->suite.n; i++)
        for (int j = 0; j < b->n_samples[i]; j++)
            for (int k = 0; k < b->o.turns; k++) {
                if (!bench_attempt(b, i, j, k)->verdict)
                    return false;
                if (!bench_goes_on(b, i, j, k))
                    break;
            }
    return true;
}

/* Plays all turns, unless everything is stored. */
static int bench_play(struct bench_run *b, struct err *e)
{
    struct play p = {.b = b};
    int rc = bench_prepare(b, e);

    if (rc == 0 && !bench_all_there(b))
        rc = bench_open_source(&p, e) < 0 || bench_open_verdicts(&p, e) < 0 ? -1 : 0;
    for (p.turn = 0; rc == 0 && !bench_all_there(b) && p.turn < b->o.turns; p.turn++)
        rc = bench_play_turn(&p, e);
    verdicts_close(p.verdicts);
    answers_close(p.source);
    free(p.asked);
    return rc;
}

int bench_check_source(const struct bench_options *o, struct err *e)
{
    if (!o->model == !o->samples_dir)
        return err_set(e, ERR_INPUT, "a benchmark needs either a model or a folder of samples; give one of the two");
    if (!o->tasks == !o->suite)
        return err_set(e, ERR_INPUT, "a benchmark needs either a folder of tasks or a suite; give one of the two");
    if (o->samples_dir && o->turns > 1)
        return err_set(e, ERR_INPUT, "samples made elsewhere have one turn; drop --turns or give a model");
    if (!o->suite && (o->levels || o->shrink_to || o->missing_fail))
        return err_set(e, ERR_INPUT, "levels, shrink-to and missing are about a suite; say --suite kernelbench:DIR");
    if (o->shrink_to < 0 || (o->shrink_to && !o->shrink))
        return err_set(e, ERR_INPUT, "a largest tensor of %lld elements is not possible", (long long)o->shrink_to);
    return 0;
}

/* samples: 0 with a folder of samples means as many as there are, known once the folder is read. */
static int bench_check_options(struct bench_options *o, struct err *e)
{
    const char *slash = strrchr(o->out, '/');
    bool as_many = o->samples_dir != NULL;

    o->samples = o->samples || as_many ? o->samples : 8;
    o->turns = o->turns ? o->turns : 1;
    o->max_new = o->max_new ? o->max_new : 1024;
    o->faster_than = o->faster_than > 0 ? o->faster_than : FASTER_MIN;
    if (bench_check_source(o, e) < 0)
        return -1;
    if (o->samples < !as_many || o->samples > BENCH_MAX_SAMPLES)
        return err_set(e, ERR_INPUT, "%d samples per task are not possible; 1 to %d are", o->samples,
                       BENCH_MAX_SAMPLES);
    if (o->turns < 1 || o->turns > BENCH_MAX_TURNS)
        return err_set(e, ERR_INPUT, "%d turns are not possible; 1 to %d are", o->turns, BENCH_MAX_TURNS);
    if (!(o->temperature >= 0) || !(o->top_p >= 0 && o->top_p <= 1))
        return err_set(e, ERR_INPUT, "temperature %g with top-p %g is not possible; T >= 0 and 0 < top-p <= 1 are",
                       o->temperature, o->top_p);
    if (!o->name)
        o->name = slash && slash[1] ? slash + 1 : o->out;
    return 0;
}

/* Loads the tasks. ERR_INPUT: there are none. */
static int bench_load_suite(struct bench_run *b, struct err *e)
{
    const struct bench_options *o = &b->o;

    int rc = o->suite ? suite_load_spec(o->suite, o->levels, o->limit, &b->suite, e)
                      : suite_load(o->tasks, o->limit, &b->suite, e);

    if (rc == 0 && o->precision && strcmp(o->precision, "own"))
        rc = suite_set_precision(&b->suite, o->precision, e);
    return rc;
}

/* What the folder of samples holds decides how many there are per task. */
static int bench_scan_samples(struct bench_run *b, struct err *e)
{
    struct bench_options *o = &b->o;

    if (!o->samples_dir)
        return 0;
    if (foreign_scan(o->samples_dir, &b->suite, &b->foreign, e) < 0)
        return -1;
    if (o->suite && b->foreign.most == 0)
        return err_set(e, ERR_INPUT, "'%s' has no sample of a task of the suite; expected "
                                     "level_L_problem_P_sample_S_kernel.py",
                       o->samples_dir);
    if (!o->samples)
        o->samples = b->foreign.most < BENCH_MAX_SAMPLES ? b->foreign.most : BENCH_MAX_SAMPLES;
    o->samples += !o->samples; /* a folder that holds none is refused by the task that lacks one */
    return 0;
}

/* Of a finished run that has nothing left to do; a continued one counts from its own start. */
static double bench_earlier_seconds(const char *path)
{
    json_t *old = file_exists(path) ? json_read(path, NULL) : NULL;
    double s = json_f64(old, "seconds", 0);

    json_decref(old);
    return s;
}

/* The journals count as results: a row that goes changes the table. */
static int bench_list_journals(const struct bench_run *b, struct listing *l, struct err *e)
{
    return (file_exists(b->samples_path) && listing_add(l, "samples.jsonl", e) < 0) ||
           (file_exists(b->verdicts_path) && listing_add(l, "verdicts.jsonl", e) < 0) ? -1 : 0;
}

/* Writes the summary and the tables; *ret is new. */
static int bench_write_result(const struct bench_run *b, double seconds, json_t **ret, struct err *e)
{
    json_t *v = bench_summary(b, seconds);
    struct listing *l;
    int rc = listing_begin(b->o.out, NULL, &l, e);

    if (rc == 0)
        rc = bench_list_journals(b, l, e) < 0 || listing_write_json(l, "bench.json", v, e) < 0 ||
             (b->suite.levels && bench_write_csv(b, l, v, e) < 0) || listing_end(l, false, NULL, e) < 0 ? -1 : 0;
    listing_free(l);
    if (rc < 0)
        json_decref(v);
    else
        *ret = v;
    return rc;
}

int bench_run(const struct bench_options *o, json_t **ret, struct err *e)
{
    struct bench_run b = {.o = *o, .start = now_s(), .lock = -1};
    char *path = path_join(b.o.out, "bench.json");
    bool was_done = false;
    int rc = bench_check_options(&b.o, e);

    if (rc == 0)
        rc = bench_load_suite(&b, e);
    if (rc == 0)
        rc = bench_scan_samples(&b, e);
    if (rc == 0)
        rc = bench_store_open(&b, e);
    if (rc == 0 && b.o.samples_dir)
        rc = bench_take_foreign(&b, e);
    if (rc == 0) {
        was_done = file_exists(path) && bench_all_there(&b);
        rc = bench_play(&b, e);
    }
    if (rc == 0)
        rc = bench_write_result(&b, was_done ? bench_earlier_seconds(path) : now_s() - b.start, ret, e);
    bench_store_close(&b);
    suite_free(&b.suite);
    free(path);
    return rc;
}

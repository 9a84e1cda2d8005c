/* stage_correct.c - makes the parameters equal, runs forward on every draw and compares the bytes that come back. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "eval/check/compare_parts.h"
#include "eval/candidate/recording_streamed.h"
#include "eval/stage/later_life.h"
#include "eval/stage/repro.h"
#include "eval/stage/stage.h"
#include "eval/verdict/record.h"

/* ---- comparing one reply with one draw ---- */

/* ---- running ---- */

/* draws of each regime that such a candidate gets: one, and the same with a few elements changed */
#define SLOW_TRIALS 2
#define CRAWL_S 1.0   /* of run time for each call: one draw of each regime, and if its answer is wrong no other one */

struct stage_correct_tally {
    int ran, trials, passed; /* trials: draws that decide, or went wrong */
    int deciding;            /* draws that could tell a right answer from zeros */
    /* bits: outputs that some draw compares; in others it finds nothing wrong, whatever they are */
    uint64_t looked_at;
    int secret;              /* wrong ones behind the published ones: then those show nothing */
    int raced;               /* wrong ones, in replays that play streams in another order */
    bool by_order;           /* the first wrong ones are right where blocks run in their order */
    bool fell;               /* a replay ended in an error that the program is blamed for */
    const char *stopped; /* before the last draw, for this; NULL: it was not */
    double fastest_s;    /* call, of run time; 0: none yet */
    bool slow;           /* every call took more than SLOW_S: only SLOW_TRIALS of each regime, or one (CRAWL_S) */
    bool fewer;          /* so it was for some variant: other variants' calls may be faster */
    double max_abs, max_rel;
    json_t *worst, *regimes;
};

/* "normal", or "odd/normal" for a variant. */
static void stage_correct_regime_key(const struct job *j, const char *regime, char *out, size_t n)
{
    const char *variant = task_variant_name(j->task, j->variant);

    snprintf(out, n, "%s%s%s", variant ? variant : "", variant ? "/" : "", regime);
}

static bool stage_correct_draw_decides(const struct job *j, const struct ref_draw *d)
{
    return ref_decides(d, j->protocol, task_setting(j->task, j->variant, "tolerance"));
}

/* Outputs of floating numbers that rounding does not move as much as they are large; the first 64. */
static uint64_t stage_correct_looked_at(const struct job *j, const struct ref_draw *d)
{
    const json_t *own = task_setting(j->task, j->variant, "tolerance");
    uint64_t bits = 0;

    for (size_t i = 0; i < json_array_size(d->noise) && i < 64; i++)
        bits |= (uint64_t)ref_tolerance(d, i, j->protocol, own).usable << i;
    return bits;
}

/* What passes a draw that would have passed zeros too has shown nothing: it is no trial. */
static void stage_correct_count(struct job *j, struct stage_correct_tally *t, const struct ref_draw *d, bool ok)
{
    bool decides = stage_correct_draw_decides(j, d);
    char key[96];
    json_t *r;

    t->ran++;
    t->deciding += decides;
    t->looked_at |= stage_correct_looked_at(j, d);

    stage_correct_regime_key(j, d->regime, key, sizeof key);
    if (!(r = json_object_get(t->regimes, key))) {
        r = json_pack("{s:i,s:i}", "trials", 0, "passed", 0);
        json_object_set_new(t->regimes, key, r);
    }
    if (ok && !decides) {
        json_count(r, "undecided", 1);
        return;
    }
    json_count(r, "trials", 1);
    json_count(r, "passed", ok);
    if (!strcmp(d->regime, REGIME_SECRET)) {
        if (ok)
            return; /* trials are the published ones */
        t->secret++;
    }
    t->trials++;
    t->passed += ok;
}

/* Notes input distributions that the reference left out, with the reason. */
static void stage_correct_count_skipped(struct job *j, struct stage_correct_tally *t)
{
    const char *regime;
    char key[96];
    json_t *why;

    json_object_foreach((json_t *)j->held.ref->skipped, regime, why) {
        stage_correct_regime_key(j, regime, key, sizeof key);
        if (!json_object_get(t->regimes, key))
            json_object_set_new(t->regimes, key, json_pack("{s:O}", "skipped", why));
    }
}

/* True where the list has an equal value. */
static bool stage_correct_is_among(const json_t *list, const json_t *x)
{
    const json_t *v;
    size_t i;

    json_array_foreach((json_t *)list, i, v)
        if (json_equal(v, x))
            return true;
    return false;
}

static json_t *stage_correct_side_effect(const struct ref_draw *d, const char *kind, const char *detail)
{
    return json_pack("{s:s,s:i,s:s,s:s,s:s}", "regime", d->regime, "trial", d->trial, "output", "", "kind", kind,
                     "detail", detail);
}

/* Where the task's sidecar says that what is left in inputs or buffers counts. */
static bool stage_correct_effects_there(const struct ref_draw *d, const struct frame *f, json_t **ret_worst)
{
    const json_t *inputs = json_object_get(f->head, "missed"), *buffers = json_object_get(f->head, "buffers_missed");
    char text[160];

    if (json_array_size(inputs)) {
        snprintf(text, sizeof text, "forward leaves input %lld as it was; the reference changes it",
                 (long long)json_integer_value(json_array_get(inputs, 0)));
        *ret_worst = stage_correct_side_effect(d, "input_left", text);
    } else if (json_array_size(buffers)) {
        snprintf(text, sizeof text, "forward leaves other values in the buffer %.80s than the reference does",
                 json_string_value(json_array_get(buffers, 0)));
        *ret_worst = stage_correct_side_effect(d, "buffer_left", text);
    }
    return !*ret_worst;
}

/* An input that the reference leaves alone must come back unchanged; one that it changes as it was, or as the reference
 * leaves it. */
static bool stage_correct_inputs_kept(const struct ref_draw *d, const struct frame *f, json_t **ret_worst)
{
    const json_t *i;
    size_t k;

    json_array_foreach(json_object_get(f->head, "changed"), k, i) {
        bool expected = stage_correct_is_among(d->mutates, i),
            garbled = stage_correct_is_among(json_object_get(f->head, "garbled"), i);

        if (expected && !garbled)
            continue;
        *ret_worst = stage_correct_side_effect(d, "input_modified", garbled
                                               ? "forward leaves other values in its input than the reference does"
                                               : "forward changes its input in place; the reference does not");
        return false;
    }
    return stage_correct_effects_there(d, f, ret_worst);
}

/* Says in a reason or in 'worst' which variant it is about; nothing for the task as written. */
static void stage_correct_name_variant(const struct job *j, json_t *x)
{
    const char *changed = j->held.ref->changed;
    char text[400];
    size_t n;

    if (j->variant == 0)
        return;
    task_variant_text(j->task, j->variant, text, sizeof text);
    n = strlen(text);
    if (changed)
        snprintf(text + n, sizeof text - n, ": %s", changed);
    json_object_set_new(x, "variant", json_string(task_variant_name(j->task, j->variant)));
    json_object_set_new(x, "variant_is", json_utf8(text, strlen(text)));
}

/* What forward left on draw d; frees the frame. Returns 1 passed, 0 failed, 2 blamed (stop), -1 infra. */
static int stage_correct_judge_reply(struct job *j, const struct ref_draw *d, struct stage_correct_tally *t,
                                     struct frame *f, struct err *e)
{
    json_t *worst = NULL;
    int ok = 2;

    if (job_unfit(j, f->head, e)) {
        ok = -1;
    } else if (strcmp(json_str(f->head, "op", ""), "result")) {
        job_blame_error(j, f->head, "correctness");
    } else {
        j->ran = true;
        job_blame_error(j, NULL, "correctness"); /* what the emulator found although forward returned */
        if (!job_blamed(j)) {
            ok = correct_compare(j, d, f, &worst, &t->max_abs, &t->max_rel, e);
            if (ok == 1 && !j->protocol->published) /* published code does not look at what is left in inputs */
                ok = stage_correct_inputs_kept(d, f, &worst);
        }
    }
    if (worst && !t->worst) {
        t->worst = json_incref(worst);
        stage_correct_name_variant(j, worst);
    }
    if (ok == 0 || ok == 2)
        repro_write(j, d, ok == 0 ? f : NULL);
    json_decref(worst);
    frame_free(f);
    return ok;
}

/* Blames the call that failed on draw d. */
static int stage_correct_blame_call(struct job *j, enum call_fault fault, const struct ref_draw *d, struct err *e)
{
    char during[96];

    repro_write(j, d, NULL);
    snprintf(during, sizeof during, "in forward (inputs: %s, draw %d)", d->regime, d->trial);
    return job_blame_call(j, fault, "correctness", during, e);
}

/* One draw as it is lived, returns as stage_correct_judge_reply. */
static int stage_correct_run_draw(struct job *j, const struct ref_draw *d, struct stage_correct_tally *t, struct err *e)
{
    struct frame f;
    enum call_fault fault = recording_call(j, d, &f, e);

    if (fault != CALL_OK)
        return stage_correct_blame_call(j, fault, d, e) < 0 ? -1 : 2;
    return stage_correct_judge_reply(j, d, t, &f, e);
}

/* What became of the sidecar: null without one. */
static json_t *stage_correct_sidecar_json(const struct job *j)
{
    json_t *names;

    if (!j->task->sidecar)
        return json_null();
    names = json_array();
    for (int i = 1; i <= task_variants(j->task); i++)
        json_array_append_new(names, json_string(task_variant_name(j->task, i)));
    return json_pack("{s:b,s:s?,s:o,s:O?,s:s?}", "applied", j->protocol->sidecar, "format",
                     json_str(j->task->sidecar, "format", NULL), "variants", names, "tolerance",
                     task_setting(j->task, 0, "tolerance"), "why",
                     j->protocol->sidecar ? NULL : "the published protocol knows one shape, dtype, layout and "
                                                   "tolerance");
}

/* The record's "correctness" of a tally; takes what the tally owns. New. */
static json_t *correct_section(struct job *j, struct stage_correct_tally *t, const char *params)
{
    json_t *c = json_pack("{s:i,s:i,s:o,s:o,s:o,s:o?,s:s,s:s,s:o,s:o}", "trials", t->trials, "passed", t->passed, "q",
                          json_num(t->trials ? (double)t->passed / t->trials : 0), "max_abs_err", json_num(t->max_abs),
                          "max_rel_err", json_num(t->max_rel), "worst", t->worst, "params", params, "mode",
                          j->held.ref->mode, "regimes", t->regimes, "sidecar", stage_correct_sidecar_json(j));

    if (t->stopped)
        json_object_set_new(c, "stopped", json_string(t->stopped));
    if (t->slow || t->fewer)
        json_object_set_new(c, "slow", json_true());
    if (json_is_array(j->held.ref->defects))
        json_object_set(c, "known_defects", (json_t *)j->held.ref->defects);
    if (json_is_object(j->held.ref->tf32))
        json_object_set(c, "tf32", (json_t *)j->held.ref->tf32);
    return c;
}

/* On a device that others wait for: does even the fastest call take so long that all trials are not worth it? A
 * program that is slow now and fast when it is timed has gained nothing: stage_perf.c. */
static bool stage_correct_is_slow(const struct job *j, double call_s)
{
    return call_s > SLOW_S && j->server->backend->timed && j->protocol->stops_early;
}

/* Of each regime. */
static int stage_correct_trials_if_slow(const struct stage_correct_tally *t)
{
    return t->fastest_s > CRAWL_S ? 1 : SLOW_TRIALS;
}

/* What is known to be cheating stays so, whatever other draws give: that comes before all that they could show. An
 * output of another kind or shape than expected will be one again. And what is slow and has been wrong every time is
 * not worth the others' waiting. The published protocol counts all of its trials. */
static const char *stage_correct_enough(const struct job *j, const struct stage_correct_tally *t)
{
    const char *kind = json_str(t->worst, "kind", "values");

    if (!j->protocol->stops_early)
        return NULL;
    if (legality_convicts(j))
        return "legality";
    if (stage_correct_is_slow(j, t->fastest_s) && t->trials >= stage_correct_trials_if_slow(t) && !t->passed)
        return "slow";
    return t->trials && !t->passed && strcmp(kind, "values") && strcmp(kind, "input_modified") ? kind : NULL;
}

/* As reference_draw. Between two draws whoever wants the device alone gets it. */
static int stage_correct_next_draw(struct job *j, size_t i, const struct ref_draw **ret, struct err *e)
{
    session_give_way(j->session);
    return reference_draw(&j->held, i, ret, e);
}

/* It runs, is compared and counted. -1: infra, or the end of the draws. */
static int stage_correct_judge_draw(struct job *j, const struct ref_draw *d, struct stage_correct_tally *t, bool first,
                                    struct err *e)
{
    double used = j->session->used_s;
    int ok;

    ok = stage_correct_run_draw(j, d, t, e);
    used = j->session->used_s - used;
    t->fastest_s = t->fastest_s == 0 || used < t->fastest_s ? used : t->fastest_s;
    t->slow = !first && stage_correct_is_slow(j, t->fastest_s);
    if (ok == 0 || ok == 1)
        stage_correct_count(j, t, d, ok == 1);
    return ok;
}

/* True for a draw that a slow candidate need not run. */
static bool stage_correct_left_out(const struct stage_correct_tally *t, const struct ref_draw *d)
{
    return t->slow && d->trial >= stage_correct_trials_if_slow(t);
}

/* ---- judging by replays (recording.h) ---- */

struct replayed {
    struct job *j;
    struct stage_correct_tally *t;
    bool again; /* the draws have been judged: only what is wrong now counts */
};

/* A callback of the replay: judges one call's outputs. */
static int stage_correct_judge_call(void *ctx, const struct ref_draw *d, struct frame *f, struct err *e)
{
    struct replayed *r = ctx;
    int ok = stage_correct_judge_reply(r->j, d, r->t, f, e);

    r->t->raced += ok == 0 && r->j->recording->shuffled;
    r->t->fell |= ok == 2;
    if (ok == 0 || (ok == 1 && !r->again))
        stage_correct_count(r->j, r->t, d, ok == 1);
    return ok == 0 || ok == 1 ? 0 : -1;
}

/* A client lives once: another one, and another executor, for other arguments. */
static int stage_correct_live_again(struct job *j, struct err *e)
{
    session_close(j->session);
    j->session = NULL;
    if (session_open(j->server, j->opt, j->alone, &j->session, e) < 0 || recording_open(j, e) < 0)
        return -1;
    return job_construct(j, e);
}

/* A program that looks at values in a later call alone lives once more, and all its launches are played. 'before': what
 * had been found when its first life began. */
static int stage_correct_live_played(struct job *j, const struct ref_draw *d, json_t *before, struct frame *f,
                                     bool *ended, enum call_fault *fault, struct err *e)
{
    json_decref(j->findings);
    j->findings = json_copy(before);
    if (stage_correct_live_again(j, e) < 0)
        return -1;
    job_blame_error(j, NULL, "load");
    if (job_blamed(j))
        return 0;
    if (correct_parameters(j, e) < 0)
        return -1;
    if (!job_blamed(j))
        *fault = recording_direct(j, d, f, ended, e);
    return 0;
}

/* The direct run, thrifty where the task's values are not streamed; 0 as recording_direct, or -1: infra. */
static int stage_correct_record(struct job *j, const struct ref_draw *d, struct frame *f, bool *ended,
                                enum call_fault *fault, struct err *e)
{
    json_t *before = json_copy(j->findings);
    int rc = 0;

    j->recording->thrifty = !j->held.ref->streamed;
    *fault = recording_direct(j, d, f, ended, e);
    if (*fault == CALL_OK && *ended && j->recording->dry) {
        frame_free(f);
        *ended = false;
        rc = stage_correct_live_played(j, d, before, f, ended, fault, e);
    }
    json_decref(before);
    return rc;
}

/* The recording itself, on a draw's inputs. What is wrong with it is blamed. 0, or -1: infra. */
static int stage_correct_live(struct job *j, const struct ref_draw *d, struct stage_correct_tally *t, struct err *e)
{
    enum call_fault fault;
    struct frame f;
    bool ended;
    int rc = stage_correct_record(j, d, &f, &ended, &fault, e);

    if (rc < 0 || job_blamed(j))
        return rc;
    if (fault != CALL_OK)
        rc = stage_correct_blame_call(j, fault, d, e);
    else if (ended)
        rc = stage_correct_judge_reply(j, d, t, &f, e) < 0 ? -1 : 0;
    return rc;
}

/* Replays draws of one recording and judges them. */
static int stage_correct_replay_group(struct replayed *r, const struct ref_draw *const *draws, int n, struct err *e)
{
    struct job *j = r->j;
    double used = j->session->used_s;
    enum call_fault fault;

    fault = recording_replay(j, draws, n, stage_correct_judge_call, r, e);
    if (fault != CALL_OK)
        return stage_correct_blame_call(j, fault, draws[0], e);
    used = (j->session->used_s - used) / j->recording->n_calls;
    r->t->fastest_s = r->t->fastest_s == 0 || used < r->t->fastest_s ? used : r->t->fastest_s;
    r->t->slow = stage_correct_is_slow(j, r->t->fastest_s);
    return e->kind == ERR_NONE ? 0 : -1;
}

/* Up to a recording's calls of draws from *i on, with one set of parameters, and how many. -1: they cannot be made.
 * Where none is left 'draws' stays as it was. */
static int stage_correct_gather(struct job *j, struct stage_correct_tally *t, size_t *i, const struct ref_draw **draws,
                                struct err *e)
{
    const struct ref_draw *d;
    int n = 0, ok = 1;

    while (n < (int)j->recording->n_calls && (ok = stage_correct_next_draw(j, *i, &d, e)) == 1) {
        if (n && d->parameters != draws[0]->parameters)
            break;
        ++*i;
        if (!job_recordings(j, d))
            continue;
        if (stage_correct_left_out(t, d))
            t->fewer = true;
        else
            draws[n++] = d;
    }
    return ok < 0 ? -1 : n;
}

/* *ret is the first draw that this job has. 1: it is there; 0: none; -1 with e. */
static int stage_correct_first_draw(struct job *j, const struct ref_draw **ret, struct err *e)
{
    size_t i = 0;
    int ok;

    while ((ok = stage_correct_next_draw(j, i++, ret, e)) == 1 && !job_recordings(j, *ret))
        ;
    return ok;
}

enum { LATER_CALLS = 64 };

/* A program whose state on the device changes from call to call (a counter, a cache) must be right later, too. */
static int stage_correct_follow_state(struct replayed *r, const struct ref_draw *d, struct err *e)
{
    double until = now_s() + r->j->opt->timeout_s;
    enum call_fault fault;
    bool moved = true;
    int rc = 0;

    r->again = true;
    for (int i = 0; i < LATER_CALLS && moved && rc == 0 && !job_blamed(r->j) && r->t->passed == r->t->trials &&
         now_s() < until; i++) {
        fault = recording_goes_on(r->j, d, stage_correct_judge_call, r, &moved, e);
        rc = fault == CALL_OK ? 0 : stage_correct_blame_call(r->j, fault, d, e);
        if (r->t->passed < r->t->trials && r->t->worst) {
            json_object_set_new(r->t->worst, "later_calls", json_integer(i + 1));
            r->t->passed = 0; /* right at first alone has shown nothing */
        }
    }
    return rc;
}

/* Every second replay plays blocks in another order. Where it is the first that finds something wrong: is that right
 * in the usual order, which is the next one's? */
static int stage_correct_ask_order(struct replayed *r, const struct ref_draw *const *draws, int n, int replay,
                                   struct err *e)
{
    struct stage_correct_tally usual = {.regimes = json_object()};
    struct replayed again = {.j = r->j, .t = &usual, .again = true};
    int rc = 0;

    if (replay % 2 && r->j->recording->replays % 2 == 0 && !r->j->server->backend->on_device && !job_blamed(r->j)) {
        rc = stage_correct_replay_group(&again, draws, n, e);
        r->t->by_order = rc == 0 && !job_blamed(r->j) && !usual.trials;
        if (r->t->by_order && r->t->worst)
            json_object_set_new(r->t->worst, "order_of_blocks", json_true());
    }
    json_decref(usual.regimes);
    json_decref(usual.worst);
    return rc;
}

/* All draws, as many in a replay as the recording has calls; at least two replays, whose memory is filled differently.
 * */
static int stage_correct_run_replays(struct job *j, struct stage_correct_tally *t, struct err *e)
{
    const struct ref_draw *draws[RECORDING_CALLS];
    struct replayed r = {.j = j, .t = t};
    bool was_right;
    size_t i = 0;
    int n, last = 0, rc = 0;

    if ((rc = stage_correct_first_draw(j, &draws[0], e)) == 1)
        rc = stage_correct_live(j, draws[0], t, e);
    if (j->recording->log_full)
        t->stopped = "log";
    while (rc == 0 && !job_blamed(j) && !t->stopped && !(t->stopped = stage_correct_enough(j, t))) {
        if ((n = stage_correct_gather(j, t, &i, draws, e)) <= 0) {
            rc = n;
            break;
        }
        was_right = t->passed == t->trials;
        rc = stage_correct_replay_group(&r, draws, last = n, e);
        if (rc == 0 && was_right && t->passed < t->trials)
            rc = stage_correct_ask_order(&r, draws, n, j->recording->replays - 1, e);
    }
    if (rc == 0 && last && j->recording->replays == 1 && !job_blamed(j) && t->passed == t->trials) {
        r.again = true;
        rc = stage_correct_replay_group(&r, draws, last, e);
    }
    if (rc == 0 && last && !job_blamed(j) && t->passed == t->trials)
        rc = stage_correct_follow_state(&r, draws[last - 1], e);
    stage_correct_count_skipped(j, t);
    return rc;
}

/* Parameters and all draws of the current variant; the candidate is constructed for it. Who is slow only until few
 * draws are left gets the others then. 0, or -1: infra. */
static int stage_correct_run_draws(struct job *j, struct stage_correct_tally *t, struct err *e)
{
    const struct ref_draw *d;
    size_t *later = NULL, n = 0;
    int ok = 1;

    if (job_own_reference(j, e) < 0 || correct_parameters(j, e) < 0)
        return -1;
    if (!j->recording->live)
        return job_blamed(j) ? 0 : stage_correct_run_replays(j, t, e);
    for (size_t i = 0; !job_blamed(j) && !(t->stopped = stage_correct_enough(j, t)) &&
         (ok = stage_correct_next_draw(j, i, &d, e)) == 1; i++) {
        if (!job_recordings(j, d) || d->parameters) /* a recording has one set */
            continue;
        if (stage_correct_left_out(t, d)) {
            later = xrealloc(later, (n + 1) * sizeof *later);
            later[n++] = i;
        } else if ((ok = stage_correct_judge_draw(j, d, t, !t->ran, e)) < 0) {
            break;
        }
    }
    for (size_t k = 0; ok >= 0 && k < n && !job_blamed(j) && !(t->stopped = stage_correct_enough(j, t)); k++) {
        if ((ok = stage_correct_next_draw(j, later[k], &d, e)) == 1 && stage_correct_left_out(t, d))
            t->fewer = true;
        else if (ok == 1)
            ok = stage_correct_judge_draw(j, d, t, false, e);
    }
    free(later);
    stage_correct_count_skipped(j, t);
    return ok < 0 ? -1 : 0;
}

/* ModelNew with the arguments of another variant. */
static int stage_correct_change_variant(struct job *j, int variant, struct err *e)
{
    j->variant = variant;
    if (job_reference(j, "random", e) < 0 || stage_correct_live_again(j, e) < 0)
        return -1;
    job_blame_error(j, NULL, "load");
    return 0;
}

/* Before another recording takes its place: is this one convicted, though its answers are right? Then it stays, and the
 * stages behind see it. 1, 0, or -1: infra. */
static int stage_correct_convicted(struct job *j, const struct stage_correct_tally *t, struct err *e)
{
    j->all_passed = t->trials > 0 && t->passed == t->trials;
    return j->all_passed && !job_blamed(j) ? legality_judges(j, e) : 0;
}

/* Where no draw could have found a wrong answer the task is at fault, and no candidate. */
static int stage_correct_undecided(const struct stage_correct_tally *t, struct err *e)
{
    return err_set(e, ERR_INPUT, "the task cannot be judged: none of its %d draws tells a right answer from zeros (the "
                                 "outputs are 0, rounding moves them as much as they are large, or PyTorch's own "
                                 "answer "
                                 "is off as far); 'musacoder lint' shows which", t->ran);
}

/* What a program that does as the task does gives in its second call is no draw's answer. */
static int counting_task(struct err *e)
{
    return err_set(e, ERR_INPUT, "the task cannot be judged: Model keeps something in Python from one call to the next "
                                 "(a counter, a position), and each draw expects the answer of a first call; keep it "
                                 "in a registered buffer, or take it as an argument of forward");
}

/* The first output that no draw compares; -1: each is compared by one. */
static int stage_correct_never_looked_at(const struct job *j, const struct stage_correct_tally *t)
{
    size_t n = json_array_size(j->held.ref->draws[0].noise);

    for (size_t i = 0; i < n && i < 64; i++)
        if (!(t->looked_at >> i & 1))
            return (int)i;
    return -1;
}

static int stage_correct_lost_output(int at, struct err *e)
{
    return err_set(e, ERR_INPUT, "the task cannot be judged: rounding moves its output %d as much as it is large in "
                                 "every "
                                 "draw, so that anything could stand there; 'musacoder lint' shows which", at);
}

/* Is the first draw's answer right for this one? Values that were never fetched are not known to be alike. */
static bool stage_correct_answers(struct job *j, const struct section *first, const struct ref_draw *d, struct err *e)
{
    struct frame f = {.n_blob = first->n, .blob = (void *)(uintptr_t)first->bytes};
    double max_abs = 0, max_rel = 0;
    json_t *worst = NULL;
    bool ok;

    if (!first->bytes || !d->eager.bytes || first->n != d->eager.n)
        return false;
    if (j->protocol->published) /* its tolerance lets zeros pass, and is published */
        return !memcmp(first->bytes, d->eager.bytes, first->n) && json_equal(first->tree, d->eager.tree);
    f.head = json_pack("{s:O}", "output", first->tree);
    ok = correct_compare(j, d, &f, &worst, &max_abs, &max_rel, e) == 1;
    json_decref(f.head);
    json_decref(worst);
    return ok;
}

/* What is right for one draw is right for all: a program could bring the answer along. */
static bool stage_correct_one_answer(struct job *j, struct err *e)
{
    const struct reference *r = j->held.ref;

    for (size_t i = 1; i < r->n_draws; i++)
        if (!stage_correct_answers(j, &r->draws[0].eager, &r->draws[i], e))
            return false;
    return r->n_draws > 1;
}

static int stage_correct_constant_task(struct err *e)
{
    return err_set(e, ERR_INPUT, "the task cannot be judged: its answer is the same for all inputs, so that a program "
                                 "could bring it along; 'musacoder lint' shows why");
}

#define NUMBER_BYTES 128 /* a number that the host returns: it may read so many / 16 for it */

/* Bytes of the smallest output. */
static int stage_correct_smallest_leaf(const json_t *leaf, const char *path, void *ctx, struct err *e)
{
    uint64_t n = tree_is_tensor(leaf) ? (uint64_t)json_i64(leaf, "nbytes", 0) : NUMBER_BYTES, *least = ctx;

    (void)path, (void)e;
    *least = n < *least ? n : *least;
    return 0;
}

/* Bytes of the draw's smallest output. */
static uint64_t stage_correct_smallest_output(const struct ref_draw *d)
{
    uint64_t n = UINT64_MAX;

    tree_each(d->eager.tree, stage_correct_smallest_leaf, &n, NULL);
    return n;
}

/* Puts by's counts in t's place; the old regimes go to by, the old worst one is freed. */
static void stage_correct_replace_tally(struct stage_correct_tally *t, struct stage_correct_tally *by)
{
    json_t *regimes = t->regimes;

    t->regimes = by->regimes;
    by->regimes = regimes;
    json_decref(t->worst);
    t->worst = NULL;
    t->trials = by->trials;
    t->passed = by->passed;
    t->stopped = by->stopped;
    t->max_abs = by->max_abs;
    t->max_rel = by->max_rel;
}

/* Did it ask for more than a log holds, as where torch's operators work on the host? The published rules ask for
 * answers alone: the draws are lived. */
static bool stage_correct_outgrew_log(const struct job *j, const struct stage_correct_tally *t)
{
    return j->protocol->published && t->stopped && !strcmp(t->stopped, "log");
}

/* What a replay finds wrong may be right as the program lives it: its host reads the device. A few values a call may
 * steer it, and then every draw is lived (rules.h). */
static int stage_correct_run_live(struct job *j, struct stage_correct_tally *t, struct err *e)
{
    struct stage_correct_tally recorded_run = {.regimes = json_object()};
    int rc = stage_correct_live_again(j, e);

    if (rc == 0 && j->ready && !job_blamed(j)) {
        j->recording->live = true;
        j->recording->smallest = stage_correct_smallest_output(&j->held.ref->draws[0]);
        rc = stage_correct_run_draws(j, &recorded_run, e);
    }
    j->recording->live_right = rc == 0 && !job_blamed(j) && recorded_run.ran > 0 &&
        recorded_run.passed == recorded_run.trials;
    if (rc == 0 && j->recording->live)
        rc = recording_finish(j, e);
    /* Which draws count? */
    if (rc == 0 && (legality_live(j) || stage_correct_outgrew_log(j, t) || (t->fell && !j->recording->live_right)))
        stage_correct_replace_tally(t, &recorded_run);
    json_decref(recorded_run.regimes);
    json_decref(recorded_run.worst);
    return rc;
}

/* True if the program reads back values, and a run on real inputs may still decide. */
static bool stage_correct_may_be_live(const struct job *j, const struct stage_correct_tally *t)
{
    if (!job_blamed(j) && stage_correct_outgrew_log(j, t))
        return true;
    return recording_reads(j->recording) && (job_blamed(j) ? t->fell : t->trials > t->passed);
}

/* Sizes that the host read belong to the draw that it read: a fault of other draws' replays is no fault of the program,
 * but a wrong draw. What is wrong as the program lives it is said then. */
static void stage_correct_forgive_fall(struct job *j, struct stage_correct_tally *t)
{
    if (!t->fell)
        return;
    json_array_clear(json_object_get(j->rec, "reasons"));
    json_array_clear(j->findings);
    j->reproduced = false;
    t->trials++;
}

/* One recording, on its draws. */
static int stage_correct_run_recording(struct job *j, struct stage_correct_tally *t, struct err *e)
{
    int rc = stage_correct_run_draws(j, t, e);

    if (rc < 0 || !stage_correct_may_be_live(j, t))
        return rc;
    stage_correct_forgive_fall(j, t);
    return stage_correct_run_live(j, t, e);
}

/* Adds more's counts to t. */
static void stage_correct_add_tally(struct stage_correct_tally *t, struct stage_correct_tally *more)
{
    json_object_update(t->regimes, more->regimes);
    if (!t->worst)
        t->worst = json_incref(more->worst);
    t->ran += more->ran, t->trials += more->trials, t->passed += more->passed, t->secret += more->secret;
    t->deciding += more->deciding, t->raced += more->raced, t->by_order |= more->by_order;
    t->looked_at |= more->looked_at;
    t->max_abs = fmax(t->max_abs, more->max_abs), t->max_rel = fmax(t->max_rel, more->max_rel);
    t->slow |= more->slow, t->fewer |= more->fewer;
}

/* Has forward itself refused other numbers than the task's, by an exception? That is honest of it. */
static bool stage_correct_refuses_numbers(const struct job *j)
{
    const json_t *r = record_reason(j->rec);

    return j->variant == TASK_NUMBERS && r && !strcmp(json_str(r, "category", ""), "runtime_error") &&
           !json_object_get(r, "finding") && j->session && !j->session->ended;
}

/* The task as it is written takes the place of other numbers again: the stages behind see its life. */
static int stage_correct_forget_numbers(struct job *j, struct stage_correct_tally *own, struct err *e)
{
    struct stage_correct_tally again = {.regimes = json_object(), .fastest_s = own->fastest_s, .slow = own->slow};
    const char *why = json_str(record_reason(j->rec), "message", "");
    int rc;

    json_object_set_new(again.regimes, "other numbers", json_pack("{s:o}", "skipped", json_utf8(why, strlen(why))));
    stage_correct_forgive_fall(j, &(struct stage_correct_tally){.fell = true});
    rc = stage_correct_change_variant(j, 0, e);
    if (rc == 0 && j->ready && !job_blamed(j))
        rc = stage_correct_run_recording(j, &again, e);
    json_decref(own->regimes);
    json_decref(own->worst);
    *own = again;
    return rc;
}

/* A recording of its own: what its host reads may make it live, too. */
/* A recording of its own: what its host reads may make it live, too. */
static int stage_correct_run_variant(struct job *j, int variant, struct stage_correct_tally *t, struct err *e)
{
    struct stage_correct_tally own = {.regimes = json_object(), .fastest_s = t->fastest_s, .slow = t->slow};
    json_t *reasons = json_object_get(j->rec, "reasons");
    int rc = stage_correct_change_variant(j, variant, e);

    if (rc == 0 && j->ready && !job_blamed(j))
        rc = stage_correct_run_recording(j, &own, e);
    if (rc == 0 && stage_correct_refuses_numbers(j))
        rc = stage_correct_forget_numbers(j, &own, e);
    for (size_t i = 0; rc == 0 && i < json_array_size(reasons); i++)
        stage_correct_name_variant(j, json_array_get(reasons, i));
    stage_correct_add_tally(t, &own);
    t->fastest_s = own.fastest_s;
    t->stopped = own.stopped;
    json_decref(own.regimes);
    json_decref(own.worst);
    return rc;
}

/* Behind many calls, and beside another instance. Large tasks, and programs whose host reads, have only the calls of
 * their draws. 0, or -1: infra. */
static int stage_correct_run_later(struct job *j, struct stage_correct_tally *t, struct err *e)
{
    int rc;

    if (job_blamed(j) || j->variant || j->recording->live || j->held.ref->streamed || t->slow || !t->trials ||
        t->passed < t->trials)
        return 0;
    if ((rc = stage_correct_convicted(j, t, e)) != 0 || (rc = later_life_judge(j, t->fastest_s, &t->worst, e)) != 0)
        return rc < 0 ? -1 : 0;
    t->passed = 0; /* right at first alone has shown nothing */
    return 0;
}

/* All variants of the sidecar; and the task with other numbers, of a program that is right so far. */
static int stage_correct_run_variants(struct job *j, struct stage_correct_tally *t, struct err *e)
{
    const char *params = j->params;
    int rc = stage_correct_run_later(j, t, e), n = task_variants(j->task), all = n + j->held.ref->numbers;

    for (int i = 1; i <= all && rc == 0 && !job_blamed(j) && !t->stopped; i++)
        if ((rc = stage_correct_convicted(j, t, e)) == 0 && (i <= n || t->passed == t->trials))
            rc = stage_correct_run_variant(j, i <= n ? i : TASK_NUMBERS, t, e);
    j->params = params;
    return rc < 0 ? -1 : 0;
}

/* Protocol kernelbench: what passed its published draws is constructed anew, as is the reference, by a secret seed. The
 * rest of the stages sees this recording; what the first one convicts is left to them as it is. */
static int stage_correct_run_second(struct job *j, struct stage_correct_tally *t, struct err *e)
{
    struct stage_correct_tally second = {.regimes = json_object()};
    int rc = j->held.ref->has_second && !job_blamed(j) ? stage_correct_convicted(j, t, e) : 1;

    if (rc == 1 || !j->all_passed) {
        json_decref(second.regimes);
        return 0;
    }
    j->second = true;
    if (rc == 0 && (rc = stage_correct_live_again(j, e)) == 0) {
        job_blame_error(j, NULL, "load");
        rc = j->ready && !job_blamed(j) ? stage_correct_run_recording(j, &second, e) : 0;
    }
    stage_correct_add_tally(t, &second);
    json_decref(second.regimes);
    json_decref(second.worst);
    return rc;
}

/* Where what is wrong is so in another order than the usual one: whose. */
static const char *stage_correct_order_text(const struct stage_correct_tally *t)
{
    if (t->raced && t->raced == t->trials - t->passed)
        return ", those in which streams ran in another order that the program allows: one stream reads what another "
               "one still writes; let it wait for an event";
    if (t->by_order)
        return ", those in which blocks ran in another order, as a device may run them: a block trusts that others "
               "came before it; let it wait for them by a flag, or launch a second kernel";
    return "";
}

/* The stage: runs all draws, variants and second reference, blames the worst one, and records the section. */
static int stage_correct_run(struct job *j, struct err *e)
{
    struct stage_correct_tally t = {.regimes = json_object()};
    int rc;

    if (!j->ready) {
        json_decref(t.regimes);
        return 0;
    }
    job_blame_error(j, NULL, "load");
    rc = stage_correct_run_recording(j, &t, e);
    if (rc == 0)
        rc = j->protocol->sidecar ? stage_correct_run_variants(j, &t, e) : stage_correct_run_second(j, &t, e);
    if (t.secret && t.passed == t.trials - t.secret) /* an answer book */
        t.passed = 0;
    if (rc == 0 && !job_blamed(j) && j->held.ref->counts && t.passed < t.trials)
        rc = counting_task(e);
    if (rc == 0 && !job_blamed(j) && t.ran && !t.deciding)
        rc = stage_correct_undecided(&t, e);
    if (rc == 0 && !job_blamed(j) && t.ran && t.passed == t.trials && stage_correct_never_looked_at(j, &t) >= 0)
        rc = stage_correct_lost_output(stage_correct_never_looked_at(j, &t), e);
    if (rc == 0 && !job_blamed(j) && t.ran > 1 && stage_correct_one_answer(j, e))
        rc = stage_correct_constant_task(e);
    if (rc < 0) {
        json_decref(t.regimes);
        json_decref(t.worst);
        return -1;
    }
    j->all_passed = !job_blamed(j) && t.trials > 0 && t.passed == t.trials;
    if (!job_blamed(j) && !j->all_passed && recording_blame_launch(j))
        job_blame_error(j, NULL, "correctness");
    if (!job_blamed(j) && !j->all_passed && (t.trials || !t.stopped))
        record_blame(j->rec, "correctness_error", "correctness", "%d of %d trials are wrong%s", t.trials - t.passed,
                     t.trials, stage_correct_order_text(&t));
    record_set(j->rec, "correctness", correct_section(j, &t, j->params));
    j->slow = t.slow || t.fewer;
    j->call_s = t.fastest_s;
    compile_judge(j);
    return 0;
}

const struct stage stage_correct = {"correctness", stage_correct_run, false};

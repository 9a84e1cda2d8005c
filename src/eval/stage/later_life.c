/* later_life.c - see later_life.h. */
#include "eval/stage/later_life.h"

#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/rng.h"
#include "eval/candidate/recording.h"

#define COMPARED 3 /* calls, and draws */
#define LEAST_EARLIER 2
#define HELD_MOST ((size_t)1 << 20) /* bytes of an answer, of which several are held */

/* What the job has while another recording is made. */
struct later_life_aside {
    struct session *session;
    struct recording *recording;
    json_t *state, *findings;
    const char *params;
    bool ready, ran;
};

struct later_life {
    struct job *j;
    uint32_t earlier;
    bool other;    /* there is another instance */
    bool dry;      /* the log alone is wanted of the direct run: recording.h */
    bool again;    /* not so: the program's host looked at values, or the calls did not come to their end */
    bool known;    /* all calls have been compared */
    bool wrong;
    json_t *worst; /* owned */
    bool overwritten; /* an answer that is held, so many calls later; its path among the answer's tensors */
    uint32_t after;
    char path[64];
};

/* Moves what the candidate's first process left in j into a, so that another one can be judged in j. */
static void later_life_put_aside(struct job *j, struct later_life_aside *a)
{
    *a = (struct later_life_aside){j->session, j->recording, j->state, j->findings, j->params, j->ready, j->ran};
    session_rest(j->session);
    j->session = NULL;
    j->recording = NULL;
    j->state = NULL;
    j->findings = json_array();
}

/* Ends the other process and puts what was set aside back into j. */
static void later_life_take_back(struct job *j, const struct later_life_aside *a)
{
    session_close(j->session);
    recording_close(j->recording);
    json_decref(j->state);
    json_decref(j->findings);
    j->session = a->session;
    j->recording = a->recording;
    j->state = a->state;
    j->findings = a->findings;
    j->params = a->params;
    j->ready = a->ready;
    j->ran = a->ran;
    session_wake(j->session);
}

/* More than 64 where that is cheap; a secret says how many. */
static uint32_t later_life_earlier(const struct job *j, double call_s)
{
    double most = LATER_LIFE_S * fmin(j->opt->trials, LATER_LIFE_TRIALS) / fmax(call_s, 1e-4);
    struct rng r;

    rng_seed(&r, (uint64_t)j->seed, 80);
    return (uint32_t)fmax(LEAST_EARLIER, fmin(most, (double)(RECORDING_EARLIER - rng_below(&r, 24))));
}

/* A callback of the replay: compares one result with the draw; l says whether it was wrong, and where most. */
static int later_life_look(void *ctx, const struct ref_draw *d, struct frame *f, struct err *e)
{
    struct later_life *l = ctx;
    double max_abs = 0, max_rel = 0;
    json_t *worst = NULL;
    int ok = -1;

    if (!strcmp(json_str(f->head, "op", ""), "result")) {
        ok = correct_compare(l->j, d, f, &worst, &max_abs, &max_rel, e);
        l->wrong |= ok == 0;
        l->known = ok >= 0;
    }
    if (!l->worst)
        l->worst = json_incref(worst);
    json_decref(worst);
    frame_free(f);
    return ok < 0 ? -1 : 0;
}

/* The first draws with the task's own parameters and no extreme values; how many, or -1 with e. */
static int later_life_draws(struct job *j, const struct ref_draw **draws, struct err *e)
{
    const struct ref_draw *d;
    int n = 0, ok = 1;

    for (size_t i = 0; n < COMPARED && (ok = reference_draw(&j->held, i, &d, e)) == 1; i++)
        if (!d->parameters && !d->extreme)
            draws[n++] = d;
    return ok < 0 ? -1 : n;
}

/* Are answers held? A graph gives its answer in the same memory, as torch.compile's do. */
static bool later_life_holds(const struct job *j, const struct ref_draw *d)
{
    return d->eager.n <= HELD_MOST && !j->held.ref->keeps && !strcasestr(j->code, "graph");
}

/* The calls, and their replay. Whatever does not come to its end leaves the recording unknown. */
static int later_life_play(struct later_life *l, struct err *e)
{
    const struct ref_draw *draws[COMPARED];
    struct job *j = l->j;
    int n = later_life_draws(j, draws, e);
    enum call_fault fault;
    struct frame f;
    bool ended = true, whole;

    if (n <= 0 || correct_parameters(j, e) < 0)
        return n < 0 ? -1 : e->kind == ERR_NONE ? 0 : -1;
    j->recording->other = l->other;
    j->recording->dry = l->dry;
    j->recording->holds = later_life_holds(j, draws[0]);
    j->recording->earlier = l->earlier;
    j->recording->n_calls = l->earlier + (uint32_t)n;
    if (job_blamed(j) || (fault = recording_direct(j, draws[0], &f, &ended, e)) == CALL_INFRA)
        return job_blamed(j) ? 0 : -1;
    if (fault == CALL_OK && ended)
        frame_free(&f);
    whole = fault == CALL_OK && !ended && !j->recording->last.unanswered;
    l->again = l->dry && !whole;
    if (whole && j->recording->holds)
        l->overwritten = recording_overwrites(j, draws[0], &l->after, l->path, sizeof l->path);
    if (l->overwritten)
        return 0;
    if (!whole || j->recording->log_full)
        return 0;
    return recording_replay(j, draws, n, later_life_look, l, e) == CALL_INFRA && e->kind != ERR_NONE ? -1 : 0;
}

/* Starts another process in j, constructs the model, and plays it; 0, or -1 with e. */
static int later_life_lead(struct later_life *l, struct err *e)
{
    struct job *j = l->j;

    if (session_open(j->server, j->opt, j->alone, &j->session, e) < 0 || recording_open(j, e) < 0)
        return -1;
    if ((l->other ? job_construct_beside(j, e) : job_construct(j, e)) < 0)
        return -1;
    return j->ready && !job_blamed(j) ? later_life_play(l, e) : 0;
}

/* Judges another process, with the first one's state set aside meanwhile; 0, or -1 with e. */
static int later_life_live(struct later_life *l, struct err *e)
{
    struct later_life_aside aside;
    int rc;

    l->again = false;
    later_life_put_aside(l->j, &aside);
    rc = later_life_lead(l, e);
    later_life_take_back(l->j, &aside);
    return rc;
}

/* Dry where that will do: what computes is the replay, and of calls that are alike it plays one. Which buffers a call
 * changes, so that they are bound again before the next one, only a run that plays launches can tell. */
static int later_life_try(struct later_life *l, struct err *e)
{
    int rc;

    l->dry = !recording_changes_buffers(l->j->recording);
    rc = later_life_live(l, e);
    if (rc < 0 || !l->again)
        return rc;
    l->dry = false;
    return later_life_live(l, e);
}

/* What is wrong with a program whose answers are overwritten by later calls; new. */
static json_t *later_life_say_overwritten(const struct later_life *l)
{
    char detail[200];

    snprintf(detail, sizeof detail, "it lies in the same memory as that of %u call%s before, which the caller still "
             "holds: give each answer memory of its own (torch::empty_like)", l->after, l->after == 1 ? "" : "s");
    return json_pack("{s:s,s:i,s:s,s:s,s:s,s:i}", "regime", "normal", "trial", 0, "output", l->path, "kind",
                     "overwritten", "detail", detail, "earlier_calls", (int)l->after);
}

int later_life_judge(struct job *j, double call_s, json_t **ret_worst, struct err *e)
{
    struct later_life l = {.j = j, .earlier = later_life_earlier(j, call_s), .other = true}, alone = l;
    int rc = later_life_try(&l, e);

    if (rc == 0 && l.overwritten) {
        *ret_worst = later_life_say_overwritten(&l);
        return 0;
    }
    if (rc < 0 || !l.known || !l.wrong) {
        json_decref(l.worst);
        return rc < 0 ? -1 : 1;
    }
    alone.other = false;
    if (later_life_try(&alone, e) < 0) {
        json_decref(l.worst);
        return -1;
    }
    json_object_set_new(l.worst, "earlier_calls", json_integer(l.earlier));
    if (alone.known && !alone.wrong)
        json_object_set_new(l.worst, "other_instance", json_true());
    json_decref(alone.worst);
    *ret_worst = l.worst;
    return 0;
}

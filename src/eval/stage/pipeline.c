/* pipeline.c - walks the stage table without turning back; see pipeline.h and job.h. */
#include "eval/stage/pipeline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/trace.h"
#include "eval/build/dialect.h"
#include "eval/candidate/recording.h"
#include "eval/schedule/retry.h"
#include "eval/schedule/schedule.h"
#include "eval/stage/stage.h"
#include "eval/verdict/place.h"
#include "eval/verdict/record.h"

static const struct stage *const stages[] = {&stage_extract, &stage_load, &stage_compile, &stage_correct,
                                             &stage_legality, &stage_perf, &stage_reward, &stage_feedback};

/* What a stage waited for is not its own time: compiling is the compile stage's, and slots are nobody's. */
static double pipeline_built_s(const struct job *j)
{
    return j->session ? j->session->build_s : 0;
}

static double pipeline_waited_s(const struct job *j)
{
    return j->session ? j->session->wait_s : 0;
}

/* Runs one stage, unless somebody is blamed already, and records its time without builds and waits. */
static int pipeline_run_stage(struct job *j, const struct stage *s, struct err *e)
{
    double t0 = now_s(), built = pipeline_built_s(j), waited = pipeline_waited_s(j), made = j->held.seconds;
    int rc;

    if (!s->always && job_blamed(j))
        return 0;
    if (!s->always)
        record_set(j->rec, "stage", json_string(s->name));
    rc = s->run(j, e);
    built = pipeline_built_s(j) - built;
    waited = pipeline_waited_s(j) - waited;
    made = j->held.seconds - made;
    trace_span(t0, "stage", "%s", s->name);
    record_stage_ms(j->rec, s->name, (now_s() - t0 - built - waited - made) * 1e3);
    if (built > 0)
        record_stage_ms(j->rec, "compile", built * 1e3);
    if (waited > 1e-3)
        record_stage_ms(j->rec, "waiting", waited * 1e3);
    if (made > 1e-3)
        record_stage_ms(j->rec, "reference", made * 1e3);
    return rc;
}

/* Which inputs were drawn: equal names, equal draws. The seed itself would let the next program draw them too. */
static json_t *pipeline_seed_name(const struct job *j)
{
    char text[64], hex[65];

    snprintf(text, sizeof text, "draws of %lld", (long long)j->seed);
    sha256_hex(text, strlen(text), hex);
    hex[16] = 0;
    return json_string(hex);
}

/* The record's "environment": versions, seeds, limits and the judge's own hash. New. */
static json_t *pipeline_environment(const struct job *j)
{
    const json_t *info = j->server->info;

    json_t *env = json_pack("{s:s,s:s,s:s,s:O?,s:I,s:o,s:i,s:f,s:f,s:s}", "compiler", j->server->compiler, "torch",
                     json_str(info, "torch", "?"), "python", json_str(info, "python", "?"), "jail",
                     json_object_get(info, "jail"), "seed", (json_int_t)j->opt->seed,
                     "inputs_id", pipeline_seed_name(j), "trials", j->opt->trials, "timeout_s",
                     j->opt->timeout_s, "build_timeout_s", j->opt->build_timeout_s, "judge", j->server->runner_sha);

    if (dialect_profile())
        json_object_set_new(env, "emulated", json_string(dialect_profile()->card));
    if (*j->server->device)
        json_object_set_new(env, "device", json_utf8(j->server->device, strlen(j->server->device)));
    return env;
}

/* Is what went wrong the candidate's doing? Where others share a device or its machine they may have taken all
 * memory, or the device itself is gone. -1 with what it was. */
static int pipeline_look_for_others(struct job *j, struct err *e)
{
    const json_t *r = record_reason(j->rec);
    const char *category = r ? json_str(r, "category", "") : "", *kind;
    bool runtime = !strcmp(category, "runtime_error");
    struct try_error x;
    enum err_lack lack;

    if (!j->server->backend->on_device || !r)
        return 0;
    kind = json_str(json_object_get(r, "finding"), "kind", "");
    x = (struct try_error){.alone = j->alone, .finding = kind,
                           .killed_outside = j->session && j->session->ended && j->session->end.outside,
                           .large = job_was_large(j)};
    if (runtime && (lack = retry_others(&x)) != LACK_NONE) {
        err_set(e, ERR_ENV, lack == LACK_DEVICE ? "the device's memory was used up while others had part of it"
                : x.alone ? "the candidate's process, which was small, was killed because the machine's memory was "
                            "used "
                          "up, by something else than the judge"
                        : "the candidate's process was killed from outside; was the machine's memory used up?");
        return err_lack(e, lack);
    }
    if (strcmp(category, "timeout") && !(runtime && !strcmp(kind, "device_error")))
        return 0;
    return server_check(j->server, e);
}

#define PRINTED 2000 /* bytes of print that a record holds; of kernels' printf as many */

/* What print wrote stands before what kernels did: the order between the two is not known. */
static void pipeline_take_printed(struct job *j)
{
    struct buf b;

    if (!j->session)
        return;
    buf_init(&b, 2 * PRINTED + 1);
    place_printed(session_output(j->session), PRINTED, &b);
    buf_adds(&b, json_str(j->rec, "printed", ""));
    if (b.n)
        json_object_set_new(j->rec, "printed", json_utf8(b.p, b.n));
    buf_free(&b);
}

/* Frees what the stages left in j. */
static void pipeline_job_end(struct job *j)
{
    reference_release(&j->held);
    session_close(j->session);
    recording_close(j->recording);
    free(j->code);
    json_decref(j->findings);
    json_decref(j->state);
}

int pipeline_run(struct judge_server *sv, const struct task *task, const struct eval_candidate *c,
                 const struct eval_options *o, enum retry_step how, struct reservation *reservation, json_t **ret,
                 struct err *ret_void, struct err *e)
{
    int64_t seed = reference_seed(sv->all->secret, o->seed);
    struct job j = {.alone = how >= RETRY_ALONE, .server = sv, .task = task, .cand = c, .opt = o,
                    .protocol = protocol_find(o->protocol), .params = "none", .findings = json_array(), .seed = seed,
                    .held.want = {.sv = sv, .t = task, .o = o, .seed = seed, .reservation = reservation,
                                  .yields = how == RETRY_AGAIN}};
    struct err why = ERR_INIT;
    char sha[65];
    int rc = 0;

    sha256_hex(c->text, c->n, sha);
    j.rec = record_new(task->name, task->sha256, c->name, sha, o->backend, o->protocol);
    for (size_t i = 0; i < sizeof stages / sizeof *stages && rc == 0; i++)
        rc = pipeline_run_stage(&j, stages[i], &why);
    if (rc == 0)
        rc = pipeline_look_for_others(&j, &why);
    if (rc < 0 && (why.kind == ERR_INPUT || why.kind == ERR_STOP)) {
        if (e)
            *e = why;
        json_decref(j.rec);
        pipeline_job_end(&j);
        return -1;
    }
    if (rc < 0) { /* not the candidate's fault: everything else that was seen is void */
        record_blame(j.rec, "infra", json_str(j.rec, "stage", ""), "%s", why.msg);
        *ret_void = why;
        stage_reward.run(&j, &why);
        stage_feedback.run(&j, &why);
    }
    if (j.session && j.session->wait_s > 1e-3) {
        record_waiting(j.rec, "slot", (j.session->wait_s - j.session->wait_device_s) * 1e3);
        record_waiting(j.rec, "device", j.session->wait_device_s * 1e3);
    }
    pipeline_take_printed(&j);
    record_set(j.rec, "environment", pipeline_environment(&j));
    *ret = j.rec;
    pipeline_job_end(&j);
    return 0;
}

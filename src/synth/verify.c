/* verify.c - programs to verdicts in one pass, and a second one for what was the machine's fault. While verdicts are
 * waited for, others are already submitted, so workers never idle. */
#include "synth/verify.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "verdicts/verdicts.h"

#define MOST_OPEN 96 /* programs without a verdict; no more are submitted until half of them have one */

struct verify_run {
    const struct verify_item *items;
    json_t **verdict; /* per item, own references; NULL while unknown */
    int *todo, n_todo, n;
    struct verdicts *verdicts;
    int n_before; /* verdicts there when the pass began */
    bool again;   /* the second pass */
    struct progress progress;
};

static bool verify_is_infra(const json_t *verdict)
{
    return !strcmp(json_str(verdict, "status", "infra"), "infra");
}

/* A task that nobody can judge, said twice: what belongs to it is left out. Under load a reference may be late once. */
static bool verify_is_unfit(const json_t *verdict)
{
    return verify_is_infra(verdict) && !strcmp(json_str(verdict, "at_fault", ""), "request");
}

/* Infra may be luck, but for a task that was unfit in both passes. */
static bool verify_is_final(const struct verify_run *v, const json_t *verdict)
{
    return !verify_is_infra(verdict) || (v->again && verify_is_unfit(verdict));
}

static bool verify_lasts(void *ctx, const json_t *verdict)
{
    return verify_is_final(ctx, verdict) && strcmp(json_str(verdict, "category", ""), "timeout");
}

static void verify_on_progress(int done, int n, void *ctx)
{
    struct verify_run *v = ctx;

    progress_at(&v->progress, (uint64_t)(v->n_before + done));
}

/* Asks for the verdict of each item that has none. */
static int verify_submit_all(struct verify_run *v, struct err *e)
{
    for (int k = 0; k < v->n_todo; k++) {
        const struct verify_item *it = &v->items[v->todo[k]];
        struct verdict_request r = {.task_code = it->task, .task_name = it->name, .candidate = it->program,
                                    .sidecar = it->sidecar};
        if (verdicts_submit(v->verdicts, &r, e) < 0)
            return -1;
        if (verdicts_open_programs(v->verdicts) >= MOST_OPEN &&
            verdicts_wait(v->verdicts, MOST_OPEN / 2, verify_on_progress, v, e) < 0)
            return -1;
    }
    return verdicts_wait(v->verdicts, 0, verify_on_progress, v, e);
}

/* Everything in todo; what is left in it afterwards is to be tried again. What the log knew was tried twice. */
static int verify_pass(struct verify_run *v, struct err *e)
{
    int rc = verify_submit_all(v, e), left = 0;

    for (int k = 0; k < v->n_todo && rc == 0; k++) {
        json_t *got = json_incref((json_t *)verdicts_get(v->verdicts, k));
        json_decref(v->verdict[v->todo[k]]);
        v->verdict[v->todo[k]] = got;
        if (!verdicts_known(v->verdicts, k) && !verify_is_final(v, got))
            v->todo[left++] = v->todo[k];
    }
    v->n_before += v->n_todo - left;
    v->n_todo = left;
    verdicts_forget(v->verdicts);
    return rc;
}

/* A few unfit tasks are left out; where most are, something else is wrong. */
static int verify_check_unfit(const struct verify_run *v, struct err *e)
{
    int n = 0, first = 0;

    for (int i = v->n; i-- > 0;)
        if (verify_is_unfit(v->verdict[i]))
            first = i, n++;
    if (n > v->n / 2)
        return err_set(e, ERR_ENV, "%d of %d programs cannot be judged; '%s': %s", n, v->n, v->items[first].name,
                       json_str(v->verdict[first], "feedback", "no reason given"));
    if (n)
        log_warn("%d of %d programs belong to tasks that cannot be judged, and are left out; '%s': %s", n, v->n,
                 v->items[first].name, json_str(v->verdict[first], "feedback", "no reason given"));
    return 0;
}

/* Gets a verdict for every item; infrastructure's failures are tried once more. */
static int verify_run_all(struct verify_run *v, struct err *e)
{
    int rc;

    progress_start(&v->progress, "verify", 0, (uint64_t)v->n);
    rc = verify_pass(v, e);
    if (rc == 0 && v->n_todo) {
        v->again = true;
        log_warn("%d verdicts are infra; trying once more", v->n_todo);
        rc = verify_pass(v, e);
    }
    if (rc == 0 && v->n_todo)
        rc = err_set(e, ERR_ENV, "the verifier failed on '%s': %s; repair that (see 'musacoder doctor') and rerun, it "
                     "continues", v->items[v->todo[0]].name,
                     json_str(v->verdict[v->todo[0]], "feedback", "no reason given"));
    progress_end(&v->progress);
    return rc < 0 ? -1 : verify_check_unfit(v, e);
}

int verify_all(const struct verify_options *o, const struct verify_item *items, int n, json_t **ret, struct err *e)
{
    struct verify_run v = {.items = items, .n = n, .n_todo = n, .verdict = xcalloc((size_t)n + 1, sizeof *v.verdict),
                           .todo = xcalloc((size_t)n + 1, sizeof *v.todo)};
    json_t *options = json_pack("{s:s, s:s, s:i}", "backend", o->backend ? o->backend : "sim", "protocol", "strict",
                                "trials", o->trials);
    struct verdicts_config c = {.service = {.workers = 1, .jobs = o->jobs}, .log = o->log, .options = options,
                                .lasts = verify_lasts, .ctx = &v};
    int rc = verdicts_open(&c, &v.verdicts, e);

    for (int i = 0; i < n; i++)
        v.todo[i] = i;
    if (rc == 0)
        rc = verify_run_all(&v, e);
    if (rc == 0)
        *ret = json_array();
    for (int i = 0; i < n; i++) {
        if (rc == 0)
            json_array_append(*ret, v.verdict[i]);
        json_decref(v.verdict[i]);
    }
    verdicts_close(v.verdicts);
    json_decref(options);
    free(v.verdict), free(v.todo);
    return rc;
}

/* verify.c - see verify.h. While one piece is waited for, the next one is already submitted, so workers never idle. */
#include "synth/verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "queue/verdict.h"

#define PIECE 48

struct verify_run {
    const struct verify_options *o;
    const struct verify_item *items;
    char (*key)[65];
    json_t **verdict; /* per item; NULL while unknown */
    int *todo, n_todo, n;
    json_t *options, *journal;
    int n_before; /* verdicts there when the current piece began */
    bool again;   /* the second try */
    struct progress progress;
};

struct verify_piece {
    struct verdict_batch *batch;
    int from, n; /* of todo */
};

static void verify_make_key(const struct verify_run *v, int i)
{
    char *options = json_text(v->options);
    struct sha256 h;

    sha256_start(&h);
    sha256_adds(&h, v->items[i].task);
    sha256_adds(&h, v->items[i].program);
    sha256_adds(&h, options);
    sha256_end(&h, v->key[i]);
    free(options);
}

static int verify_journal_line(json_t *line, size_t no, void *ctx, struct err *e)
{
    json_t *verdict = json_object_get(line, "verdict");

    (void)no, (void)e;
    if (json_is_object(verdict))
        json_object_set(ctx, json_str(line, "key", ""), verdict);
    return 0;
}

static bool verify_is_infra(const json_t *verdict)
{
    return !strcmp(json_str(verdict, "status", "infra"), "infra");
}

/* A task that nobody can judge, said twice: what belongs to it is left out. Under load a reference may be late once. */
static bool verify_is_unfit(const json_t *verdict)
{
    return verify_is_infra(verdict) && !strcmp(json_str(verdict, "at_fault", ""), "request");
}

/* Infra may be luck, but for a task that was unfit in both tries. */
static bool verify_is_final(const struct verify_run *v, const json_t *verdict)
{
    return !verify_is_infra(verdict) || (v->again && verify_is_unfit(verdict));
}

static int verify_note(struct verify_run *v, int i, json_t *verdict, struct err *e)
{
    json_t *line;
    int rc;

    json_decref(v->verdict[i]);
    v->verdict[i] = json_incref(verdict);
    if (!verify_is_final(v, verdict) || !strcmp(json_str(verdict, "category", ""), "timeout"))
        return 0;
    line = json_pack("{s:s, s:s, s:O}", "key", v->key[i], "name", v->items[i].name, "verdict", verdict);
    rc = jsonl_append(v->o->journal, line, e);
    json_decref(line);
    return rc;
}

static int verify_submit(struct verify_run *v, struct verdict_service *s, int from, struct verify_piece *p,
                         struct err *e)
{
    struct verdict_request req[PIECE];

    p->from = from;
    p->n = v->n_todo - from < PIECE ? v->n_todo - from : PIECE;
    for (int k = 0; k < p->n; k++) {
        const struct verify_item *it = &v->items[v->todo[from + k]];
        req[k] = (struct verdict_request){.task_code = it->task, .task_name = it->name, .candidate = it->program,
            .options = v->options};
    }
    return p->n > 0 ? verdict_batch_submit(s, req, p->n, &p->batch, e) : 0;
}

static void verify_on_progress(int done, int n, void *ctx)
{
    struct verify_run *v = ctx;

    (void)n;
    progress_at(&v->progress, (uint64_t)(v->n_before + done));
}

static int verify_collect(struct verify_run *v, struct verdict_service *s, struct verify_piece *p, struct err *e)
{
    json_t *got = NULL;
    int rc = 0;

    if (verdict_batch_wait(s, p->batch, verify_on_progress, v, &got, e) < 0)
        return -1;
    for (int k = 0; k < p->n && !rc; k++)
        rc = verify_note(v, v->todo[p->from + k], json_array_get(got, (size_t)k), e);
    v->n_before += p->n;
    json_decref(got);
    return rc;
}

/* Everything in todo, two pieces in flight. */
static int verify_run_todo(struct verify_run *v, struct verdict_service *s, struct err *e)
{
    struct verify_piece now, next;
    int from = 0;

    if (verify_submit(v, s, 0, &now, e) < 0)
        return -1;
    while (now.n > 0) {
        from = now.from + now.n;
        if (verify_submit(v, s, from, &next, e) < 0)
            return -1;
        if (verify_collect(v, s, &now, e) < 0) {
            if (next.n > 0)
                verdict_batch_cancel(s, next.batch);
            return -1;
        }
        now = next;
    }
    return 0;
}

static void verify_list_todo(struct verify_run *v)
{
    v->n_todo = 0;
    for (int i = 0; i < v->n; i++)
        if (!v->verdict[i] || !verify_is_final(v, v->verdict[i]))
            v->todo[v->n_todo++] = i;
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

static int verify_run_all(struct verify_run *v, struct err *e)
{
    struct verdict_config c = {.workers = 1, .jobs = v->o->jobs};
    struct verdict_service *s = NULL;
    int rc;

    if (verdict_service_start(&c, &s, e) < 0)
        return -1;
    v->n_before = v->n - v->n_todo;
    progress_start(&v->progress, "verify", (uint64_t)v->n_before, (uint64_t)v->n);
    rc = verify_run_todo(v, s, e);
    verify_list_todo(v);
    if (!rc && v->n_todo) {
        v->again = true;
        log_warn("%d verdicts are infra; trying once more", v->n_todo);
        v->n_before = v->n - v->n_todo;
        rc = verify_run_todo(v, s, e);
        verify_list_todo(v);
        if (!rc && v->n_todo)
            rc = err_set(e, ERR_ENV, "the verifier failed on '%s': %s; repair that (see 'musacoder doctor') and rerun, "
                         "it continues", v->items[v->todo[0]].name,
                         json_str(v->verdict[v->todo[0]], "feedback", "no reason given"));
    }
    progress_end(&v->progress);
    verdict_service_stop(s);
    return rc;
}

static int verify_load_journal(struct verify_run *v, struct err *e)
{
    if (jsonl_continue(v->o->journal, verify_journal_line, v->journal, e) < 0)
        return -1;
    for (int i = 0; i < v->n; i++)
        v->verdict[i] = json_incref(json_object_get(v->journal, v->key[i]));
    return 0;
}

int verify_all(const struct verify_options *o, const struct verify_item *items, int n, json_t **ret, struct err *e)
{
    struct verify_run v = {.o = o, .items = items, .n = n, .journal = json_object()};
    int rc;

    v.options = json_pack("{s:s, s:s, s:i}", "backend", o->backend ? o->backend : "sim", "protocol", "strict", "trials",
                          o->trials);
    v.key = xcalloc((size_t)n + 1, sizeof *v.key);
    v.verdict = xcalloc((size_t)n + 1, sizeof *v.verdict);
    v.todo = xcalloc((size_t)n + 1, sizeof *v.todo);
    for (int i = 0; i < n; i++)
        verify_make_key(&v, i);
    rc = verify_load_journal(&v, e);
    v.again = true; // what the journal holds was asked twice
    verify_list_todo(&v);
    v.again = false;
    if (!rc && v.n_todo)
        rc = verify_run_all(&v, e);
    if (!rc)
        rc = verify_check_unfit(&v, e);
    if (!rc)
        *ret = json_array();
    for (int i = 0; i < n; i++) {
        if (!rc)
            json_array_append(*ret, v.verdict[i]);
        json_decref(v.verdict[i]);
    }
    json_decref(v.options), json_decref(v.journal);
    free(v.key), free(v.verdict), free(v.todo);
    return rc;
}

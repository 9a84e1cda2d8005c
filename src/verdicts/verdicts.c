/* verdicts.c - the client: tickets point at programs, equal programs share one, and each is judged or found in the
 * log. */
#include "verdicts/verdicts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "verdicts/verdict_log.h"

#define SWEEP_FEW 128 /* programs that are looked at whenever the queue changes; more of them once a second */

struct verdicts_program {
    char key[65];
    char *task_name;
    struct verdict_batch *batch; /* in flight, or NULL */
    json_t *verdict;             /* own reference, or NULL while in flight */
    bool known;                  /* from the log */
};

struct verdicts_ticket {
    int program;
    bool told; /* to config.arrived */
};

struct verdicts {
    struct verdicts_config c;
    char *options_text;
    struct verdict_log *log; /* NULL: none. By key, or key@step for what does not last */
    json_t *in_flight;       /* key -> index of program */
    struct verdict_service *service;
    int64_t step;            /* -1: none */
    struct verdicts_program *programs;
    int n_programs, cap_programs, n_done;
    struct verdicts_ticket *tickets;
    int n_tickets, cap_tickets;
    double swept; /* when all programs were looked at last */
    struct verdicts_counts counts;
};

/* Opens the client and its log; the service starts with the first submit. */
int verdicts_open(const struct verdicts_config *c, struct verdicts **ret, struct err *e)
{
    struct verdicts *v = xcalloc(1, sizeof *v);

    v->c = *c;
    v->step = -1;
    v->options_text = c->options ? json_text(c->options) : xstrdup("{}");
    v->in_flight = json_object();
    if (c->log && verdict_log_open(c->log, &v->log, e) < 0) {
        verdicts_close(v);
        return -1;
    }
    *ret = v;
    return 0;
}

void verdicts_forget(struct verdicts *v)
{
    for (int i = 0; i < v->n_programs; i++) {
        if (v->programs[i].batch)
            verdict_batch_cancel(v->service, v->programs[i].batch);
        json_decref(v->programs[i].verdict);
        free(v->programs[i].task_name);
    }
    json_object_clear(v->in_flight);
    v->n_programs = v->n_tickets = v->n_done = 0;
}

void verdicts_close(struct verdicts *v)
{
    if (!v)
        return;
    verdicts_forget(v);
    verdict_service_stop(v->service);
    verdict_log_close(v->log);
    json_decref(v->in_flight);
    free(v->programs);
    free(v->tickets);
    free(v->options_text);
    free(v);
}

void verdicts_step(struct verdicts *v, int64_t step)
{
    v->step = step;
}

/* ---- submitting ---- */

/* Hex SHA-256 of options, task, program and sidecar: equal ones get one verdict. */
static void verdicts_key_of(const struct verdicts *v, const struct verdict_request *r, char key[65])
{
    char *sidecar = r->sidecar ? json_text(r->sidecar) : NULL;
    struct sha256 h;

    sha256_start(&h);
    sha256_adds(&h, v->options_text);
    sha256_adds(&h, r->task_code);
    sha256_adds(&h, r->candidate);
    if (!r->is_response)
        sha256_adds(&h, "file");
    if (sidecar)
        sha256_adds(&h, sidecar);
    sha256_end(&h, key);
    free(sidecar);
}

/* 1 with a new reference, 0, -1: as verdict_log_find. */
static int verdicts_look_up(const struct verdicts *v, const char *key, json_t **ret, struct err *e)
{
    char at_step[96];
    int found = 0;

    if (!v->log)
        return 0;
    snprintf(at_step, sizeof at_step, "%s@%lld", key, (long long)v->step);
    if (v->step >= 0)
        found = verdict_log_find(v->log, at_step, ret, e);
    return found ? found : verdict_log_find(v->log, key, ret, e);
}

/* Submits a program to the service, which is started at the first one. */
static int verdicts_send(struct verdicts *v, const struct verdict_request *r, struct verdicts_program *p,
                         struct err *e)
{
    struct verdict_request asked = *r;

    asked.options = v->c.options;
    if (!v->service && verdict_service_start(&v->c.service, &v->service, e) < 0)
        return -1;
    return verdict_batch_submit(v->service, &asked, 1, &p->batch, e);
}

/* A new ticket for the program; its number. */
static int verdicts_add_ticket(struct verdicts *v, int program)
{
    if (v->n_tickets == v->cap_tickets)
        v->tickets = xrealloc(v->tickets, (size_t)(v->cap_tickets = v->cap_tickets ? 2 * v->cap_tickets : 64) *
                                              sizeof *v->tickets);
    v->tickets[v->n_tickets] = (struct verdicts_ticket){.program = program};
    return v->n_tickets++;
}

/* A new program; its number. */
static int verdicts_add_program(struct verdicts *v, const struct verdicts_program *p)
{
    if (v->n_programs == v->cap_programs)
        v->programs = xrealloc(v->programs, (size_t)(v->cap_programs = v->cap_programs ? 2 * v->cap_programs : 64) *
                                                sizeof *v->programs);
    v->programs[v->n_programs] = *p;
    v->n_done += p->verdict != NULL;
    json_object_set_new(v->in_flight, p->key, json_integer(v->n_programs));
    return v->n_programs++;
}

int verdicts_submit(struct verdicts *v, const struct verdict_request *r, struct err *e)
{
    struct verdicts_program p = {0};
    json_t *earlier;
    int found;

    v->counts.submitted++;
    verdicts_key_of(v, r, p.key);
    if ((earlier = json_object_get(v->in_flight, p.key))) {
        v->counts.replayed++;
        return verdicts_add_ticket(v, (int)json_integer_value(earlier));
    }
    if ((found = verdicts_look_up(v, p.key, &p.verdict, e)) < 0)
        return -1;
    p.known = found;
    v->counts.replayed += found;
    if (!found && verdicts_send(v, r, &p, e) < 0)
        return -1;
    p.task_name = xstrdup(r->task_name);
    return verdicts_add_ticket(v, verdicts_add_program(v, &p));
}

/* ---- waiting ---- */

/* True if the verdict is remembered: not one about the machine. */
static bool verdicts_lasts(const struct verdicts *v, const json_t *verdict)
{
    const char *status = json_str(verdict, "status", "infra");

    return v->c.lasts ? v->c.lasts(v->c.ctx, verdict) : !strcmp(status, "passed") || !strcmp(status, "failed");
}

/* Writes the verdict to the log. One that may change is kept under a key of its own. */
static int verdicts_remember(struct verdicts *v, const struct verdicts_program *p, struct err *e)
{
    char key[96];

    if (!v->log)
        return 0;
    if (verdicts_lasts(v, p->verdict))
        snprintf(key, sizeof key, "%s", p->key);
    else if (v->step >= 0)
        snprintf(key, sizeof key, "%s@%lld", p->key, (long long)v->step);
    else
        return 0;
    return verdict_log_add(v->log, key, p->task_name, p->verdict, e);
}

/* Waits for a program's verdict and remembers it. */
static int verdicts_collect(struct verdicts *v, struct verdicts_program *p, struct err *e)
{
    json_t *got = NULL;
    int rc = verdict_batch_wait(v->service, p->batch, NULL, NULL, &got, e);

    p->batch = NULL;
    if (rc < 0)
        return -1;
    p->verdict = json_incref(json_array_get(got, 0));
    json_decref(got);
    if (!p->verdict)
        return err_set(e, ERR_BUG, "the verdict service answered without a verdict");
    v->n_done++;
    return verdicts_remember(v, p, e);
}

/* Tells the caller of tickets whose verdicts have come, each once. */
static int verdicts_tell(struct verdicts *v, struct err *e)
{
    for (int i = 0; v->c.arrived && i < v->n_tickets; i++) {
        struct verdicts_ticket *t = &v->tickets[i];
        if (t->told || !v->programs[t->program].verdict)
            continue;
        t->told = true;
        if (v->c.arrived(v->c.ctx, i, v->programs[t->program].verdict, e) < 0)
            return -1;
    }
    return 0;
}

/* Takes what is there, in whatever order it came: a stopped run loses nothing that was finished. */
static int verdicts_sweep(struct verdicts *v, struct err *e)
{
    int rc = 0;

    v->swept = now_s();
    for (int i = 0; i < v->n_programs && rc == 0; i++)
        if (v->programs[i].batch && (rc = verdict_batch_done(v->service, v->programs[i].batch, e)) > 0)
            rc = verdicts_collect(v, &v->programs[i], e);
    return rc < 0 ? (verdicts_tell(v, NULL), -1) : verdicts_tell(v, e);
}

int verdicts_programs(const struct verdicts *v)
{
    return v->n_programs;
}

int verdicts_open_programs(const struct verdicts *v)
{
    return v->n_programs - v->n_done;
}

int verdicts_wait(struct verdicts *v, int left, void (*progress)(int done, int n, void *), void *ctx, struct err *e)
{
    int before = -1, rc = verdicts_sweep(v, e);

    for (;;) {
        if (rc == 0 && progress && v->n_done != before)
            progress(before = v->n_done, v->n_programs, ctx);
        if (rc < 0 || verdicts_open_programs(v) <= left)
            return rc;
        if (verdict_service_wait(v->service, e) < 0) {
            verdicts_sweep(v, NULL);
            return -1;
        }
        if (verdicts_open_programs(v) <= SWEEP_FEW || now_s() - v->swept > 1)
            rc = verdicts_sweep(v, e);
    }
}

int verdicts_ready(struct verdicts *v)
{
    int n = 0;

    for (int i = 0; i < v->n_tickets; i++) {
        const struct verdicts_program *p = &v->programs[v->tickets[i].program];

        n += p->verdict || (p->batch && verdict_batch_done(v->service, p->batch, NULL) > 0);
    }
    return n;
}

const json_t *verdicts_get(const struct verdicts *v, int ticket)
{
    return v->programs[v->tickets[ticket].program].verdict;
}

const char *verdicts_key(const struct verdicts *v, int ticket)
{
    return v->programs[v->tickets[ticket].program].key;
}

bool verdicts_known(const struct verdicts *v, int ticket)
{
    return v->programs[v->tickets[ticket].program].known;
}

struct verdicts_counts verdicts_counts(const struct verdicts *v)
{
    return v->counts;
}

json_t *verdicts_options_of(const struct opts *o)
{
    static const char *const names[] = {"backend", "dialect", "protocol", "trials", "timeout"};
    json_t *v = json_object();

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (json_object_get(o->values, names[i]))
            json_object_set(v, names[i], json_object_get(o->values, names[i]));
    return v;
}

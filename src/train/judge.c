/* judge.c - see judge.h. Tickets point at entries; equal responses share one entry. */
#include "train/judge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "train/verdict_log.h"

struct judge_entry {
    char key[65];
    char *task_name;
    struct verdict_batch *batch; /* in flight, or NULL */
    json_t *verdict;             /* own reference, or NULL while in flight */
};

struct judge {
    struct judge_config c;
    char *options_text;
    struct verdict_log *known; /* by key, or key@step for what is not scored */
    json_t *in_flight;  /* key -> index of entry */
    struct verdict_service *service;
    int64_t step;
    struct judge_entry *entries;
    int n_entries, cap_entries;
    int *tickets;       /* -> entries */
    int n_tickets, cap_tickets;
    struct judge_counts counts;
};

int judge_open(const struct judge_config *c, struct judge **ret, struct err *e)
{
    struct judge *j = xcalloc(1, sizeof *j);

    j->c = *c;
    j->options_text = c->options ? json_text(c->options) : xstrdup("{}");
    j->in_flight = json_object();
    if (verdict_log_open(c->log, &j->known, e) < 0) {
        judge_close(j);
        return -1;
    }
    *ret = j;
    return 0;
}

void judge_forget(struct judge *j)
{
    for (int i = 0; i < j->n_entries; i++) {
        if (j->entries[i].batch)
            verdict_batch_cancel(j->service, j->entries[i].batch);
        json_decref(j->entries[i].verdict);
        free(j->entries[i].task_name);
    }
    json_object_clear(j->in_flight);
    j->n_entries = j->n_tickets = 0;
}

void judge_close(struct judge *j)
{
    if (!j)
        return;
    judge_forget(j);
    verdict_service_stop(j->service);
    verdict_log_close(j->known);
    json_decref(j->in_flight);
    free(j->entries);
    free(j->tickets);
    free(j->options_text);
    free(j);
}

void judge_step(struct judge *j, int64_t step)
{
    j->step = step;
}

static void judge_key_of(const struct judge *j, const char *task_code, const char *response, char key[65])
{
    struct sha256 h;

    sha256_start(&h);
    sha256_adds(&h, j->options_text);
    sha256_adds(&h, task_code);
    sha256_adds(&h, response);
    sha256_end(&h, key);
}

/* 1 with a new reference, 0, -1: as verdict_log_find. */
static int judge_look_up(const struct judge *j, const char *key, json_t **ret, struct err *e)
{
    char at_step[96];
    int found;

    snprintf(at_step, sizeof at_step, "%s@%lld", key, (long long)j->step);
    found = verdict_log_find(j->known, at_step, ret, e);
    return found ? found : verdict_log_find(j->known, key, ret, e);
}

static int judge_send(struct judge *j, struct judge_entry *en, const char *task_code, const char *response,
                      struct err *e)
{
    struct verdict_request r = {.task_code = task_code, .task_name = en->task_name, .candidate = response,
                                .is_response = true, .options = j->c.options};
    struct verdict_config vc = {.workers = j->c.workers, .jobs = j->c.jobs};

    if (!j->service && verdict_service_start(&vc, &j->service, e) < 0)
        return -1;
    return verdict_batch_submit(j->service, &r, 1, &en->batch, e);
}

static int judge_add_ticket(struct judge *j, int entry)
{
    if (j->n_tickets == j->cap_tickets)
        j->tickets = xrealloc(j->tickets, (size_t)(j->cap_tickets = j->cap_tickets ? 2 * j->cap_tickets : 64) *
                                              sizeof *j->tickets);
    j->tickets[j->n_tickets] = entry;
    return j->n_tickets++;
}

int judge_submit(struct judge *j, const char *task_code, const char *task_name, const char *response, struct err *e)
{
    struct judge_entry en = {0};
    json_t *v;
    int found;

    j->counts.submitted++;
    judge_key_of(j, task_code, response, en.key);
    if ((v = json_object_get(j->in_flight, en.key))) {
        j->counts.replayed++;
        return judge_add_ticket(j, (int)json_integer_value(v));
    }
    if ((found = judge_look_up(j, en.key, &en.verdict, e)) < 0)
        return -1;
    en.task_name = xstrdup(task_name);
    if (found) {
        j->counts.replayed++;
    } else if (judge_send(j, &en, task_code, response, e) < 0) {
        free(en.task_name);
        return -1;
    }
    if (j->n_entries == j->cap_entries)
        j->entries = xrealloc(j->entries, (size_t)(j->cap_entries = j->cap_entries ? 2 * j->cap_entries : 64) *
                                              sizeof *j->entries);
    j->entries[j->n_entries] = en;
    json_object_set_new(j->in_flight, en.key, json_integer(j->n_entries));
    return judge_add_ticket(j, j->n_entries++);
}

static int judge_remember(struct judge *j, const struct judge_entry *en, struct err *e)
{
    const char *status = json_str(en->verdict, "status", "infra");
    char key[96];

    if (strcmp(status, "passed") && strcmp(status, "failed"))
        snprintf(key, sizeof key, "%s@%lld", en->key, (long long)j->step);
    else
        snprintf(key, sizeof key, "%s", en->key);
    return verdict_log_add(j->known, key, en->task_name, en->verdict, e);
}

static int judge_wait_one(struct judge *j, struct judge_entry *en, struct err *e)
{
    json_t *got = NULL;
    int rc = verdict_batch_wait(j->service, en->batch, NULL, NULL, &got, e);

    en->batch = NULL;
    if (rc < 0)
        return -1;
    en->verdict = json_incref(json_array_get(got, 0));
    json_decref(got);
    if (!en->verdict)
        return err_set(e, ERR_BUG, "the verdict service answered without a verdict");
    return judge_remember(j, en, e);
}

int judge_wait(struct judge *j, void (*progress)(int done, int n, void *), void *ctx, struct err *e)
{
    int done = 0;

    for (int i = 0; i < j->n_entries; i++, done++) {
        if (progress)
            progress(done, j->n_entries, ctx);
        if (j->entries[i].batch && judge_wait_one(j, &j->entries[i], e) < 0)
            return -1;
    }
    return 0;
}

int judge_ready(struct judge *j)
{
    int n = 0;

    for (int i = 0; i < j->n_tickets; i++) {
        const struct judge_entry *en = &j->entries[j->tickets[i]];

        n += en->verdict || (en->batch && verdict_batch_done(j->service, en->batch) > 0);
    }
    return n;
}

const json_t *judge_verdict(const struct judge *j, int ticket)
{
    return j->entries[j->tickets[ticket]].verdict;
}

const char *judge_key(const struct judge *j, int ticket)
{
    return j->entries[j->tickets[ticket]].key;
}

static enum outcome_kind judge_kind_of(const char *status, const json_t *reward)
{
    if (!strcmp(status, "unsupported"))
        return OUTCOME_UNSUPPORTED;
    if (!json_is_number(reward))
        return OUTCOME_INFRA;
    return !strcmp(status, "passed") ? OUTCOME_PASSED : !strcmp(status, "failed") ? OUTCOME_FAILED : OUTCOME_INFRA;
}

struct outcome judge_outcome(const struct judge *j, int ticket)
{
    const json_t *v = judge_verdict(j, ticket), *reward = json_object_get(v, "reward");
    struct outcome o = {.category = json_str(v, "category", ""), .feedback = json_str(v, "feedback", "")};

    o.kind = judge_kind_of(json_str(v, "status", "infra"), reward);
    if (o.kind != OUTCOME_PASSED && o.kind != OUTCOME_FAILED)
        return o;
    o.score = json_number_value(reward);
    if (j->c.reward)
        reward_of(v, *j->c.reward, &o.score);
    return o;
}

json_t *judge_options_of(const struct opts *o)
{
    static const char *const names[] = {"backend", "dialect", "protocol", "trials", "timeout"};
    json_t *v = json_object();

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (json_object_get(o->values, names[i]))
            json_object_set(v, names[i], json_object_get(o->values, names[i]));
    return v;
}

struct judge_counts judge_counts(const struct judge *j)
{
    return j->counts;
}

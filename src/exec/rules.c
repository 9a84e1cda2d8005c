/* rules.c - see rules.h: a table of rules, the first one that holds decides. */
#include "exec/rules.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef const struct rules_facts facts;
typedef struct rules_finding finding;

static bool say(finding *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static bool say(finding *r, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(r->text, sizeof r->text, fmt, ap);
    va_end(ap);
    return true;
}

uint64_t rules_allowance(uint64_t input_bytes)
{
    return input_bytes / 16 < RULES_LIVE_BYTES ? input_bytes / 16 : RULES_LIVE_BYTES;
}

static bool within_allowance(facts *f)
{
    return f->last.bytes_down <= rules_allowance(f->input_bytes) && f->last.reads <= RULES_LIVE_READS;
}

/* ---- cheating ---- */

static bool torch_computes(facts *f, finding *r)
{
    return f->torch_op && say(r, "forward asks PyTorch for %s; the arithmetic must be done by kernels of its own",
                              f->torch_op);
}

static bool no_kernel(facts *f, finding *r)
{
    return f->live_right && !f->last.error && !f->last.launches &&
           say(r, "forward launches no kernel of its own, and its answer is right");
}

static bool kernels_decide_nothing(facts *f, finding *r)
{
    return f->live_right && f->plumbing_right &&
           say(r, "without its %" PRIu64 " launches the program gives the same answer: its kernels decide nothing",
               f->counts.launches);
}

static bool casts_compute(facts *f, finding *r)
{
    return f->live_right && f->last.casts_changed &&
           say(r, "a cast by PyTorch changes the value of %" PRIu64 " elements: that is arithmetic",
               f->last.casts_changed);
}

static bool host_computes(facts *f, finding *r)
{
    return f->live_right && !f->replay_right && f->last.bytes_down > rules_allowance(f->input_bytes) &&
           say(r, "the host reads %" PRIu64 " bytes from the device in one call, and the same launches on other data "
               "give a wrong answer: the host does part of the work", f->last.bytes_down);
}

/* ---- the rest ---- */

static bool task_is_plumbing(facts *f, finding *r)
{
    return f->task_is_plumbing && say(r, "the task is solved by copies and fills alone: no kernel is needed");
}

static bool device_failed(facts *f, finding *r)
{
    return f->last.error && say(r, "%s", f->last.why[0] ? f->last.why : "the device reports an error");
}

static bool refused(facts *f, finding *r)
{
    return f->last.refused && say(r, "%s", f->last.why);
}

static bool live_wrong(facts *f, finding *r)
{
    return !f->live_right && say(r, "the outputs are wrong");
}

static bool unordered(facts *f, finding *r)
{
    return !f->ordered && say(r, "%s", f->order_why ? f->order_why : "work is left on a stream that nobody waits for");
}

static bool host_table(facts *f, finding *r)
{
    uint64_t up = f->counts.bytes_up, n = up - (f->constants_known < up ? f->constants_known : up);

    return n > RULES_CONSTANTS &&
           say(r, "the program uploads %" PRIu64 " bytes of tables of its own; at most %" PRIu64 " are possible",
               n, RULES_CONSTANTS);
}

static bool log_full(facts *f, finding *r)
{
    return f->log_full && say(r, "the program asks for more than a log can hold; it cannot be replayed");
}

static bool host_control_flow(facts *f, finding *r)
{
    return !f->replay_right && f->last.reads > RULES_LIVE_READS &&
           say(r, "the host looks at the device %u times in one call and decides by what it sees; at most %u looks are "
               "possible", f->last.reads, RULES_LIVE_READS);
}

/* Right live and within the allowance, but the log alone is not: a host that reads a few values. */
static bool live_only(facts *f, finding *r)
{
    r->live = !f->replay_right && f->last.reads > 0 && f->last.bytes_down > 0 && within_allowance(f);
    return r->live;
}

static bool not_replayable(facts *f, finding *r)
{
    return !f->replay_right &&
           say(r, "right while the program runs, but its launches replayed on other data give a wrong answer%s%s",
               f->replay_error && f->replay_why ? ": " : "", f->replay_error && f->replay_why ? f->replay_why : "");
}

/* In the order of the record: cheating, run-time errors, wrong answers, what cannot be judged here. */
static const struct {
    bool (*holds)(facts *f, finding *r);
    enum rules_category category;
    const char *code;
} rules[] = {
    {task_is_plumbing, RULES_TASK, "plumbing_task"},
    {torch_computes, RULES_CHEATING, "torch_computes"},
    {no_kernel, RULES_CHEATING, "no_kernel"},
    {kernels_decide_nothing, RULES_CHEATING, "kernels_decide_nothing"},
    {casts_compute, RULES_CHEATING, "casts_compute"},
    {host_computes, RULES_CHEATING, "host_computes"},
    {device_failed, RULES_RUNTIME, "device_error"},
    {refused, RULES_RUNTIME, "refused"},
    {live_wrong, RULES_CORRECTNESS, "wrong"},
    {unordered, RULES_CORRECTNESS, "unjoined_stream"},
    {log_full, RULES_UNSUPPORTED, "log_full"},
    {host_table, RULES_UNSUPPORTED, "host_table"},
    {host_control_flow, RULES_UNSUPPORTED, "host_control_flow"},
    {live_only, RULES_PASSED, NULL},
    {not_replayable, RULES_UNSUPPORTED, "not_replayable"},
};

void rules_decide(const struct rules_facts *f, struct rules_finding *ret)
{
    *ret = (struct rules_finding){.category = RULES_PASSED};
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (rules[i].holds(f, ret)) {
            ret->category = rules[i].category;
            ret->code = rules[i].code;
            return;
        }
}

const char *rules_category_name(enum rules_category c)
{
    static const char *const names[] = {"", "cheating", "runtime_error", "correctness_error", "unsupported", "task"};

    return names[c];
}

/* shown.c - what a failed program is told: its own feedback, or for a control another one's, or nothing. */
#include <string.h>

#include "base/json.h"
#include "bench/bench_run.h"

int bench_feedback_parse(const char *name, enum bench_feedback *ret, struct err *e)
{
    static const char *const names[] = {"own", "shuffled", "none"};

    for (int i = 0; i < 3; i++)
        if (!strcmp(name, names[i])) {
            *ret = (enum bench_feedback)i;
            return 0;
        }
    return err_set(e, ERR_INPUT, "no feedback '%s'; use own, shuffled or none", name);
}

/* The feedback on this answer itself. */
static const char *shown_own(const struct bench_run *b, int slot, int turn)
{
    return json_str(b->slots[slot].turn[turn].verdict, "feedback", "");
}

/* True if the slot holds a sample whose dialogue goes on behind this turn. */
static bool shown_failed(const struct bench_run *b, int slot, int turn)
{
    return slot % b->o.samples < b->n_samples[slot / b->o.samples] &&
           bench_goes_on(b, slot / b->o.samples, slot % b->o.samples, turn);
}

/* The category of this answer's verdict. */
static const char *category(const struct bench_run *b, int slot, int turn)
{
    return json_str(b->slots[slot].turn[turn].verdict, "category", "");
}

/* The next failure of the same turn, half the suite away, that was told something else: another task's as a rule.
 * like: only one of the same category. -1: there is none. */
static int next_failure(const struct bench_run *b, int slot, int turn, bool like)
{
    int n = b->suite.n * b->o.samples;

    for (int i = 0; i < n; i++) {
        int other = (slot + n / 2 + i) % n;

        if (other != slot && shown_failed(b, other, turn) &&
            strcmp(shown_own(b, other, turn), shown_own(b, slot, turn)) &&
            (!like || !strcmp(category(b, other, turn), category(b, slot, turn))))
            return other;
    }
    return -1;
}

/* Words of the same category where there are some, so that what is lost is what they say of this program, not what
 * kind of failure it was; its own when all were told the same. A function of the verdicts alone, which are all there
 * before the next turn begins. */
static const char *shown_of_another(const struct bench_run *b, int slot, int turn)
{
    int other = next_failure(b, slot, turn, true);

    if (other < 0)
        other = next_failure(b, slot, turn, false);
    return shown_own(b, other < 0 ? slot : other, turn);
}

const char *bench_feedback_shown(const struct bench_run *b, int task, int sample, int turn)
{
    int slot = task * b->o.samples + sample;

    switch (b->o.feedback) {
    case BENCH_FEEDBACK_SHUFFLED: return shown_of_another(b, slot, turn);
    case BENCH_FEEDBACK_NONE: return "";
    case BENCH_FEEDBACK_OWN: break;
    }
    return shown_own(b, slot, turn);
}

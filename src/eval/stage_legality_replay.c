/* stage_legality_replay.c - legality where a candidate has no device (life.h): what is right by replay was computed
 * by its own kernels, so little is left to ask. Did it ask torch, or a library, for arithmetic? Do its launches do
 * the work, or does the plumbing around them? And is what went wrong its own, or something that this judge lacks? */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "eval/job.h"
#include "eval/legality.h"
#include "eval/record.h"
#include "exec/rules.h"

static bool is_kind(const json_t *note, const char *kind)
{
    return !strcmp(json_str(note, "kind", ""), kind);
}

static json_t *violation(const char *rule, const char *op, const char *message)
{
    return json_pack("{s:s,s:s,s:s}", "rule", rule, "op", op, "message", message);
}

/* Operators on the device's tensors that a forward asked torch for, each with the line that may have caused it. */
static void operators(const struct job *j, json_t *violations)
{
    const json_t *n;
    char text[200];
    size_t i;
    int line;

    json_array_foreach(j->life->notes, i, n) {
        json_t *v;

        if (!is_kind(n, "operator") || !json_flag(n, "forward", false))
            continue;
        v = violation("operator", json_str(n, "name", "?"), json_str(n, "message", ""));
        json_object_set_new(v, "phase", json_string("forward"));
        json_object_set_new(v, "count", json_integer(json_i64(n, "count", 1)));
        line = legality_find_line(j->code, json_str(n, "name", "?"), text, sizeof text);
        json_object_set_new(v, "line", line > 0 ? json_integer(line) : json_null());
        json_object_set_new(v, "text", line > 0 ? json_utf8(text, strlen(text)) : json_null());
        json_array_append_new(violations, v);
    }
}

/* Libraries that compute: what the host code refers to, and what it called. */
static void libraries(const json_t *list, json_t *violations)
{
    const json_t *f;
    size_t i;

    json_array_foreach((json_t *)list, i, f)
        if (is_kind(f, "library_call"))
            json_array_append_new(violations, violation("library_call", json_str(f, "name", "?"),
                                                        "the extension calls a vendor's library"));
}

static void host(const struct job *j, json_t *violations)
{
    const json_t *n;
    size_t i;

    json_array_foreach(j->life->notes, i, n)
        if (is_kind(n, "host_computes"))
            json_array_append_new(violations, json_pack("{s:s,s:s}", "rule", "host_computes", "message",
                                                        json_str(n, "message", "")));
}

void legality_replay_evidence(const struct job *j, json_t *violations)
{
    operators(j, violations);
    host(j, violations);
    libraries(j->session->findings, violations);
    libraries(j->life->notes, violations);
}

/* The draw whose expected values are farthest from trivial: the first one whose outputs are not all zero. */
static const struct ref_draw *telling_draw(const struct reference *r)
{
    for (size_t i = 0; i < r->n_draws; i++)
        for (size_t k = 0; k < json_array_size(r->draws[i].noise); k++)
            if (json_num_value(json_object_get(json_array_get(r->draws[i].noise, k), "max_abs")) > 0)
                return &r->draws[i];
    return &r->draws[0];
}

/* The log without its launches must give a wrong answer. 1: it gives the right one, 0, -1: infra. */
static int plumbing_suffices(struct job *j, struct err *e)
{
    const struct ref_draw *d = telling_draw(j->ref);
    double max_abs = 0, max_rel = 0;
    json_t *worst = NULL;
    struct frame f;
    int ok;

    if (reference_hold(j->ref, d, e) < 0)
        return -1;
    ok = life_plumbing(j, d, &f, e);
    if (ok == 1) {
        ok = correct_compare(j, d, &f, &worst, &max_abs, &max_rel, e);
        json_decref(worst);
        frame_free(&f);
    }
    reference_let_go(j->ref, d);
    return ok;
}

/* What this judge lacks is nobody's fault; what was seen to be cheating stays so. */
static void blame_lack(struct job *j, const char *name, const char *message)
{
    json_t *r = record_blame(j->rec, "unsupported", "legality", "%.200s: %.400s", name, message);

    json_object_set_new(r, "name", json_utf8(name, strlen(name)));
}

/* Of a process that died before it could say so in a reply: the name on its output (front_note). */
static bool died_of_lack(struct job *j)
{
    static const char mark[] = "musacoder-unsupported: ";
    const char *at = j->session->ended ? strstr(session_output(j->session), mark) : NULL;
    char name[80];

    if (!at)
        return false;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(at + strlen(mark), "\n"), at + strlen(mark));
    blame_lack(j, name, "the program ended after it asked for this");
    return true;
}

static void unsupported(struct job *j)
{
    const json_t *lists[] = {j->life->notes, j->session->findings}, *f;
    size_t i;

    if (j->all_passed)
        return;
    if (job_blamed(j) && died_of_lack(j))
        return;
    if (j->life->refused)
        blame_lack(j, "not_replayable", j->life->why);
    for (int k = 0; k < 2; k++)
        json_array_foreach((json_t *)lists[k], i, f)
            if (is_kind(f, "unsupported")) {
                blame_lack(j, json_str(f, "name", "?"), json_str(f, "message", "an executor has no such thing"));
                return;
            }
}

static void blame_first(struct job *j, const json_t *violations)
{
    const json_t *first = json_array_get(violations, 0);
    const char *rule = json_str(first, "rule", "");
    json_t *r;

    if (!first)
        return;
    if (!strcmp(rule, "operator"))
        r = record_blame(j->rec, "cheating", "legality", "forward asks PyTorch for %s; the arithmetic must be done by "
                         "the program's own kernels", json_str(first, "op", "?"));
    else
        r = record_blame(j->rec, "cheating", "legality", "%s", json_str(first, "message", ""));
    json_object_set_new(r, "rule", json_string(rule));
}

/* All of the last call's work is waited for, and what the program brings along is small. */
static void order_and_tables(struct job *j)
{
    const uint64_t most = RULES_CONSTANTS, up = j->life->counts.bytes_up;
    char text[160];

    if (!j->all_passed)
        return;
    if (!j->life->order.ordered) {
        json_t *r = record_blame(j->rec, "correctness_error", "legality", "%s", j->life->order.why);

        json_object_set_new(r, "rule", json_string("unjoined_stream"));
    } else if (up > most) {
        snprintf(text, sizeof text, "the program brings %llu bytes of tables along; at most %llu are possible",
                 (unsigned long long)up, (unsigned long long)most);
        blame_lack(j, "host_table", text);
    }
}

static int record_capsule(struct job *j, struct err *e)
{
    const struct ref_draw *d = telling_draw(j->ref);
    int rc;

    if (!j->opt->capsule || !j->all_passed || j->life->live || job_blamed(j))
        return 0;
    if (reference_hold(j->ref, d, e) < 0)
        return -1;
    rc = life_record(j, d, e);
    reference_let_go(j->ref, d);
    return rc;
}

int legality_replay(struct job *j, struct err *e)
{
    json_t *violations = json_array();
    int still = 0;

    legality_replay_evidence(j, violations);
    if (j->ran && j->life->last.launches == 0 && !json_array_size(violations))
        json_array_append_new(violations, json_pack("{s:s,s:s}", "rule", "no_kernel", "message",
                                                    "forward launches no kernel of its own"));
    if (j->all_passed && !json_array_size(violations) && (still = plumbing_suffices(j, e)) == 1)
        json_array_append_new(violations, json_pack("{s:s,s:s}", "rule", "decoy_kernels", "message",
                                                    "the answer stays right when all kernel launches are removed"));
    if (still >= 0) {
        record_set(j->rec, "replay", life_json(j->life));
        record_set(j->rec, "legality", json_pack("{s:b,s:O,s:O}", "ok", json_array_size(violations) == 0, "violations",
                                                 violations, "notes", j->life->notes));
        blame_first(j, violations);
        if (!json_array_size(violations)) {
            unsupported(j);
            order_and_tables(j);
        }
    }
    json_decref(violations);
    return still < 0 || record_capsule(j, e) < 0 ? -1 : 0;
}

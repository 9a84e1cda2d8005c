/* stage_legality.c - was the arithmetic done by the candidate's own kernels? It has no device (life.h), and what is
 * right by replay was computed by them, so little is left to ask. Did it ask torch, or a library, for arithmetic? Do
 * its launches do the work, or does the plumbing around them? And is what went wrong its own, or does this judge lack
 * it? */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "eval/life/life.h"
#include "eval/stage/stage.h"
#include "eval/verdict/place.h"
#include "eval/verdict/record.h"
#include "exec/rules.h"

static bool is_kind(const json_t *note, const char *kind)
{
    return !strcmp(json_str(note, "kind", ""), kind);
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
        v = json_pack("{s:s,s:s,s:s}", "rule", "forbidden_op", "op", json_str(n, "name", "?"), "message",
                      json_str(n, "message", ""));
        json_object_set_new(v, "phase", json_string("forward"));
        json_object_set_new(v, "count", json_integer(json_i64(n, "count", 1)));
        line = place_operator(j->code, json_str(n, "name", "?"), text, sizeof text);
        json_object_set_new(v, "line", line > 0 ? json_integer(line) : json_null());
        json_object_set_new(v, "text", line > 0 ? json_utf8(text, strlen(text)) : json_null());
        json_array_append_new(violations, v);
    }
}

/* The first one of a kind in a list, or NULL. */
static const json_t *first_of(const json_t *list, const char *kind, bool in_forward)
{
    const json_t *n;
    size_t i;

    json_array_foreach((json_t *)list, i, n)
        if (is_kind(n, kind) && (!in_forward || json_flag(n, "forward", false)))
            return n;
    return NULL;
}

static const char *name_of(const json_t *note)
{
    return note ? json_str(note, "name", "?") : NULL;
}

/* What convicts without a run: the front's own word, and what the built libraries refer to. */
static void take_words(const struct job *j, struct rules_facts *f)
{
    const json_t *lack = first_of(j->session->findings, "unsupported", false);

    f->torch_op = name_of(first_of(j->life->notes, "operator", true));
    f->library = name_of(first_of(j->session->findings, "library_call", false));
    if (!f->library)
        f->library = name_of(first_of(j->life->notes, "library_call", false));
    f->judge = name_of(first_of(j->session->findings, "judge_call", false));
    f->lacks_name = name_of(first_of(j->life->notes, "lacking", false));
    f->lack = name_of(lack);
    f->lack_why = lack ? json_str(lack, "message", NULL) : NULL;
}

static bool failed(const struct job *j)
{
    const json_t *r = record_reason(j->rec);

    return r && strcmp(json_str(r, "category", ""), "correctness_error");
}

struct fixed {
    const struct reference *ref;
    uint64_t bytes;
};

/* Of a streamed task no draw has bytes: then nothing is known to be fixed. */
static bool same_bytes(const struct section *a, const struct section *b, size_t at, size_t n)
{
    return a->bytes && b->bytes && at <= a->n && n <= a->n - at && a->n == b->n &&
           !memcmp(a->bytes + at, b->bytes + at, n);
}

static int fixed_leaf(const json_t *leaf, const char *path, void *ctx, struct err *e)
{
    struct fixed *f = ctx;
    const struct ref_draw *d = f->ref->draws;
    size_t at = (size_t)json_i64(leaf, "offset", 0), n = (size_t)json_i64(leaf, "nbytes", 0), i = 1;

    (void)path, (void)e;
    while (tree_is_tensor(leaf) && i < f->ref->n_draws && same_bytes(&d[0].inputs, &d[i].inputs, at, n))
        i++;
    f->bytes += i > 1 && i == f->ref->n_draws ? n : 0;
    return 0;
}

/* Bytes of input tensors that all draws have alike: get_inputs has a generator of its own, or they are no data. */
static uint64_t fixed_bytes(const struct reference *ref)
{
    struct fixed f = {.ref = ref};

    tree_each(ref->draws[0].inputs.tree, fixed_leaf, &f, NULL);
    return f.bytes;
}

/* The published protocol lays no parameters: both models draw them from one seed, so their bytes are no secret
 * table. */
static uint64_t drawn_by_seed(const struct job *j)
{
    uint64_t up = j->life->counts.bytes_up, n = j->ref->state_values.n;

    return j->protocol->lays_params ? 0 : n < up ? n : up;
}

static void take_facts(const struct job *j, struct rules_facts *f)
{
    const struct life *l = j->life;

    *f = (struct rules_facts){.ran = j->ran, .failed = failed(j), .live_right = l->live_right, .last = l->last,
                              .launches = l->launches,
                              .most = l->most, .counts = l->counts, .input_bytes = j->ref->draws[0].inputs.n,
                              .fixed_bytes = fixed_bytes(j->ref), .table_bytes = j->ref->tables,
                              .output_bytes = l->smallest, .log_full = l->log_full,
                              .refused = l->refused, .replay_why = l->why,
                              .altered = *l->altered ? l->altered : NULL,
                              .ordered = l->order.ordered, .order_why = l->order.why};
    f->counts.bytes_up -= drawn_by_seed(j);
    f->replay_right = !l->live && j->all_passed;
    take_words(j, f);
}

bool legality_live(const struct job *j)
{
    struct rules_facts f;

    take_facts(j, &f);
    return rules_live(&f);
}

bool legality_convicts(const struct job *j)
{
    struct rules_facts f = {.ordered = true};

    take_words(j, &f);
    return f.torch_op || f.library || f.judge;
}

/* The draw whose expected values are farthest from trivial: the first one whose outputs are not all zero. */
static const struct ref_draw *telling_draw(const struct job *j)
{
    const struct reference *r = j->ref;
    size_t first = 0;

    for (size_t i = 0; i < r->n_draws; i++)
        for (size_t k = 0; job_lives(j, &r->draws[i]) && k < json_array_size(r->draws[i].noise); k++)
            if (json_num_value(json_object_get(json_array_get(r->draws[i].noise, k), "max_abs")) > 0)
                return &r->draws[i];
    while (first + 1 < r->n_draws && !job_lives(j, &r->draws[first]))
        first++;
    return &r->draws[first];
}

enum plumbing { PLUMBING_LACKS, PLUMBING_MOST, PLUMBING_ALL };

/* Where the task itself only moves values, one element of the program's own decides next to nothing: most of the answer
 * must be. */
static bool mostly_there(const struct job *j, const json_t *worst)
{
    return j->ref->copies && !strcmp(json_str(worst, "kind", ""), "values") && json_f64(worst, "share", 1) < 0.5;
}

/* How much of this draw's answer does the log give without its launches? -1: infra. */
static int plumbing_gives(struct job *j, const struct ref_draw *d, struct err *e)
{
    double max_abs = 0, max_rel = 0;
    json_t *worst = NULL;
    struct frame f;
    int ok;

    ok = life_plumbing(j, d, &f, e);
    if (ok == 1) {
        ok = correct_compare(j, d, &f, &worst, &max_abs, &max_rel, e);
        ok = ok == 1 ? PLUMBING_ALL : ok == 0 && mostly_there(j, worst) ? PLUMBING_MOST : ok;
        json_decref(worst);
        frame_free(&f);
    }
    return ok;
}

/* The least that it gives of any draw: what kernels do may show in few of them (a bound that most values keep). */
static int plumbing_suffices(struct job *j, struct err *e)
{
    const struct reference *r = j->ref;
    size_t first = (size_t)(telling_draw(j) - r->draws);
    int least = PLUMBING_ALL;

    for (size_t i = 0; i < r->n_draws && least > 0; i++) {
        const struct ref_draw *d = &r->draws[(first + i) % r->n_draws];
        int gives = job_lives(j, d) ? plumbing_gives(j, d, e) : least;

        least = gives < least ? gives : least;
    }
    return least;
}

static int record_capsule(struct job *j, struct err *e)
{
    const struct ref_draw *d = telling_draw(j);

    return !j->opt->capsule || !j->all_passed || j->life->live || job_blamed(j) ? 0 : life_record(j, d, e);
}

static void blame(struct job *j, const struct rules_finding *r, json_t *violations)
{
    json_t *reason, *v;

    if (r->category == RULES_PASSED || r->category == RULES_BLAMED)
        return;
    reason = record_blame(j->rec, rules_category_name(r->category), "legality", "%s", r->text);
    json_object_set_new(reason, r->category == RULES_UNSUPPORTED ? "name" : "rule", json_string(r->code));
    if (r->category != RULES_CHEATING || !strcmp(r->code, "operator"))
        return;
    v = json_pack("{s:s,s:s}", "rule", r->code, "message", r->text);
    json_array_append_new(violations, v);
}

/* 0, or -1: infra. */
static int decide(struct job *j, struct rules_finding *ret, struct err *e)
{
    struct rules_facts f;
    int still = PLUMBING_LACKS;

    take_facts(j, &f);
    if (executor_lacks(j->life->x, &f.lacks, e) < 0)
        *e = (struct err)ERR_INIT; /* it ended: that is blamed already */
    if (j->all_passed && !job_blamed(j) && (still = plumbing_suffices(j, e)) < 0)
        return -1;
    f.plumbing_right = still == PLUMBING_ALL;
    f.plumbing_most = still == PLUMBING_MOST;
    rules_decide(&f, ret);
    return 0;
}

int legality_judges(struct job *j, struct err *e)
{
    struct rules_finding r;

    return decide(j, &r, e) < 0 ? -1 : r.category != RULES_PASSED;
}

static int legality_run(struct job *j, struct err *e)
{
    json_t *violations;
    struct rules_finding r;

    if (!j->life)
        return 0;
    if (decide(j, &r, e) < 0)
        return -1;
    violations = json_array();
    operators(j, violations);
    blame(j, &r, violations);
    record_set(j->rec, "replay", life_json(j->life));
    record_set(j->rec, "legality", json_pack("{s:b,s:o,s:O}", "ok", r.category != RULES_CHEATING, "violations",
                                             violations, "notes", j->life->notes));
    return record_capsule(j, e);
}

const struct stage stage_legality = {"legality", legality_run, true};

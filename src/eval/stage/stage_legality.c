/* stage_legality.c - was the arithmetic done by the candidate's own kernels? It has no device (recording.h), and what
 * is right by replay was computed by them, so little is left to ask. Did it ask torch, or a library, for arithmetic?
 * Do its launches do the work, or does the plumbing around them? And is what went wrong its own, or does this judge
 * lack it? */
#include <string.h>

#include "base/json.h"
#include "eval/candidate/recording.h"
#include "eval/stage/stage.h"
#include "eval/verdict/place.h"
#include "eval/verdict/record.h"
#include "exec/rules.h"
#include "task/bundle.h"

static bool stage_legality_is_kind(const json_t *note, const char *kind)
{
    return !strcmp(json_str(note, "kind", ""), kind);
}

/* The same operator of another call: one violation, which is counted. */
static bool stage_legality_counted(json_t *violations, const json_t *note)
{
    json_t *v;
    size_t i;

    json_array_foreach(violations, i, v)
        if (!strcmp(json_str(v, "op", ""), json_str(note, "name", "?"))) {
            json_count(v, "count", json_i64(note, "count", 1));
            return true;
        }
    return false;
}

/* Operators on the device's tensors that a forward asked torch for, each with the line that may have caused it. */
static void stage_legality_operators(const struct job *j, json_t *violations)
{
    const json_t *n;
    char text[200];
    size_t i;
    int line;

    json_array_foreach(j->recording->notes, i, n) {
        json_t *v;

        if (!stage_legality_is_kind(n, "operator") || !json_flag(n, "forward", false) ||
            stage_legality_counted(violations, n))
            continue;
        v = json_pack("{s:s,s:s,s:s}", "rule", "forbidden_op", "op", json_str(n, "name", "?"), "message",
                      json_str(n, "message", ""));
        json_object_set_new(v, "phase", json_string("forward"));
        json_object_set_new(v, "count", json_integer(json_i64(n, "count", 1)));
        line = (int)json_i64(n, "line", 0);
        if (bundle_is_loaded(j->code))
            line = -1; /* the program is the judge's own words */
        else if (line < 1 || !place_line(j->code, line, text, sizeof text))
            line = place_operator(j->code, json_str(n, "name", "?"), text, sizeof text);
        if (json_object_get(n, "handling"))
            json_object_set(v, "handling", json_object_get(n, "handling"));
        json_object_set_new(v, "line", line > 0 ? json_integer(line) : json_null());
        json_object_set_new(v, "text", line > 0 ? json_utf8(text, strlen(text)) : json_null());
        json_array_append_new(violations, v);
    }
}

/* The first one of a kind in a list, or NULL. */
static const json_t *stage_legality_first_of(const json_t *list, const char *kind, bool in_forward)
{
    const json_t *n;
    size_t i;

    json_array_foreach((json_t *)list, i, n)
        if (stage_legality_is_kind(n, kind) && (!in_forward || json_flag(n, "forward", false)))
            return n;
    return NULL;
}

static const char *stage_legality_name_of(const json_t *note)
{
    return note ? json_str(note, "name", "?") : NULL;
}

/* What convicts without a run: the client's own word, and what the built libraries refer to. */
static void stage_legality_take_words(const struct job *j, struct rules_facts *f)
{
    const json_t *lack = stage_legality_first_of(j->session->findings, "unsupported", false);

    f->torch_op = stage_legality_name_of(stage_legality_first_of(j->recording->notes, "operator", true));
    f->library = stage_legality_name_of(stage_legality_first_of(j->session->findings, "library_call", false));
    if (!f->library)
        f->library = stage_legality_name_of(stage_legality_first_of(j->recording->notes, "library_call", false));
    f->judge = stage_legality_name_of(stage_legality_first_of(j->session->findings, "judge_call", false));
    f->lacks_name = stage_legality_name_of(stage_legality_first_of(j->recording->notes, "lacking", false));
    f->lack = stage_legality_name_of(lack);
    f->lack_why = lack ? json_str(lack, "message", NULL) : NULL;
}

/* True if something other than its values failed the candidate before. */
static bool stage_legality_failed(const struct job *j)
{
    const json_t *r = record_reason(j->rec);

    return r && strcmp(json_str(r, "category", ""), "correctness_error");
}

struct fixed {
    const struct reference *ref;
    uint64_t bytes;
};

/* Of a streamed task no draw has bytes: then nothing is known to be fixed. */
static bool stage_legality_same_bytes(const struct section *a, const struct section *b, size_t at, size_t n)
{
    return a->bytes && b->bytes && at <= a->n && n <= a->n - at && a->n == b->n &&
           !memcmp(a->bytes + at, b->bytes + at, n);
}

/* A callback of tree_each: counts the bytes of an input that is the same in all draws. */
static int stage_legality_fixed_leaf(const json_t *leaf, const char *path, void *ctx, struct err *e)
{
    struct fixed *f = ctx;
    const struct ref_draw *d = f->ref->draws;
    size_t at = (size_t)json_i64(leaf, "offset", 0), n = (size_t)json_i64(leaf, "nbytes", 0), i = 1;

    (void)path, (void)e;
    while (tree_is_tensor(leaf) && i < f->ref->n_draws && stage_legality_same_bytes(&d[0].inputs, &d[i].inputs, at, n))
        i++;
    f->bytes += i > 1 && i == f->ref->n_draws ? n : 0;
    return 0;
}

/* Bytes of input tensors that all draws have alike: get_inputs has a generator of its own, or they are no data. */
static uint64_t stage_legality_fixed_bytes(const struct reference *ref)
{
    struct fixed f = {.ref = ref};

    tree_each(ref->draws[0].inputs.tree, stage_legality_fixed_leaf, &f, NULL);
    return f.bytes;
}

/* The published protocol binds no parameters: both models draw them from one seed, so their bytes are no secret
 * table. */
static uint64_t stage_legality_drawn_by_seed(const struct job *j)
{
    uint64_t up = j->recording->counts.bytes_up, n = j->held.ref->state_values.n;

    return j->protocol->binds_params ? 0 : n < up ? n : up;
}

/* A callback of tree_each: *ctx becomes true for a type of two bytes. */
static int stage_legality_look_at_width(const json_t *leaf, const char *path, void *ctx, struct err *e)
{
    static const char *const types[] = {"float16", "bfloat16", "int16"};

    (void)path, (void)e;
    for (size_t i = 0; tree_is_tensor(leaf) && i < sizeof types / sizeof *types; i++)
        *(bool *)ctx |= !strcmp(json_str(leaf, "dtype", ""), types[i]);
    return 0;
}

/* Does an input's element have two bytes? Then a table of 65,536 entries may hold every answer. */
static bool stage_legality_fits_a_table(const struct reference *ref)
{
    bool found = false;

    tree_each(ref->draws[0].inputs.tree, stage_legality_look_at_width, &found, NULL);
    return found;
}

/* Tables that a program makes of its constructor's arguments know no secret: those of the size of the task's own data
 * are program text. Where the seed is published they could be made of the weights. */
static uint64_t own_bytes(const struct job *j)
{
    if (!j->protocol->binds_params || j->held.ref->folds || stage_legality_fits_a_table(j->held.ref))
        return 0;
    return j->held.ref->draws[0].inputs.n + j->held.ref->state_values.n;
}

/* Gathers the recording's facts that rules_decide needs. */
static int stage_legality_add_leaf(const json_t *leaf, const char *path, void *ctx, struct err *e)
{
    (void)path, (void)e;
    *(int64_t *)ctx += tree_is_tensor(leaf) ? json_i64(leaf, "nbytes", 0) : 0;
    return 0;
}

/* Are outputs as long as the inputs' values say? */
static bool stage_legality_sizes_vary(const struct reference *ref)
{
    int64_t first = -1;

    for (size_t i = 0; i < ref->n_draws; i++) {
        int64_t bytes = 0;

        tree_each(ref->draws[i].eager.tree, stage_legality_add_leaf, &bytes, NULL);
        if (first >= 0 && bytes != first)
            return true;
        first = bytes;
    }
    return false;
}

/* Gathers what rules_decide wants to know from the job's recording. */
static void stage_legality_take_facts(const struct job *j, struct rules_facts *f)
{
    const struct recording *l = j->recording;

    *f = (struct rules_facts){.ran = j->ran, .failed = stage_legality_failed(j), .live_right = l->live_right,
                              .last = l->last,
                              .launches = l->launches,
                              .most = l->most, .counts = l->counts, .input_bytes = j->held.ref->draws[0].inputs.n,
                              .own_bytes = own_bytes(j), .fixed_bytes = stage_legality_fixed_bytes(j->held.ref),
                              .sizes_vary = stage_legality_sizes_vary(j->held.ref),
                              .table_bytes = j->held.ref->tables,
                              .output_bytes = l->smallest,
                              .log_full = l->log_full && !(l->live && j->protocol->published),
                              .refused = l->refused, .replay_why = l->why,
                              .altered = *l->altered ? l->altered : NULL,
                              .ordered = l->order.ordered, .order_why = l->order.why};
    f->counts.bytes_up -= stage_legality_drawn_by_seed(j);
    f->some_right = json_i64(json_object_get(j->rec, "correctness"), "passed", 0) > 0;
    f->replay_right = !l->live && j->all_passed;
    stage_legality_take_words(j, f);
}

/* The published rules judge the answers alone. */
static bool stage_legality_is_published(const struct job *j)
{
    return j->protocol->operators && !j->protocol->sidecar;
}

bool legality_live(const struct job *j)
{
    struct rules_facts f;

    stage_legality_take_facts(j, &f);
    return rules_live(&f) || (j->protocol->operators && f.live_right);
}

bool legality_convicts(const struct job *j)
{
    struct rules_facts f = {.ordered = true};

    stage_legality_take_words(j, &f);
    return (f.judge && !stage_legality_is_published(j)) || (!j->protocol->operators && (f.torch_op || f.library));
}

/* The draw whose expected values are farthest from trivial: the first one whose outputs are not all zero. */
static const struct ref_draw *stage_legality_telling_draw(const struct job *j)
{
    const struct reference *r = j->held.ref;
    size_t first = 0;

    for (size_t i = 0; i < r->n_draws; i++)
        for (size_t k = 0; job_recordings(j, &r->draws[i]) && k < json_array_size(r->draws[i].noise); k++)
            if (json_num_value(json_object_get(json_array_get(r->draws[i].noise, k), "max_abs")) > 0)
                return &r->draws[i];
    while (first + 1 < r->n_draws && !job_recordings(j, &r->draws[first]))
        first++;
    return &r->draws[first];
}

enum movement { MOVEMENT_LACKS, MOVEMENT_MOST, MOVEMENT_ALL };

/* Where the task itself only moves values, one element of the program's own decides next to nothing: most of the answer
 * must be. */
static bool stage_legality_mostly_there(const struct job *j, const json_t *worst)
{
    return j->held.ref->copies && !strcmp(json_str(worst, "kind", ""), "values") && json_f64(worst, "share", 1) < 0.5;
}

/* How much of this draw's answer does the log give without its launches? -1: infra. */
static int stage_legality_movement_gives(struct job *j, const struct ref_draw *d, struct err *e)
{
    double max_abs = 0, max_rel = 0;
    json_t *worst = NULL;
    struct frame f;
    int ok;

    ok = recording_movement(j, d, &f, e);
    if (ok == 1) {
        ok = correct_compare(j, d, &f, &worst, &max_abs, &max_rel, e);
        ok = ok == 1 ? MOVEMENT_ALL : ok == 0 && stage_legality_mostly_there(j, worst) ? MOVEMENT_MOST : ok;
        json_decref(worst);
        frame_free(&f);
    }
    return ok;
}

/* The least that it gives of any draw: what kernels do may show in few of them (a bound that most values keep). */
static int stage_legality_movement_suffices(struct job *j, struct err *e)
{
    const struct reference *r = j->held.ref;
    size_t first = (size_t)(stage_legality_telling_draw(j) - r->draws);
    int least = MOVEMENT_ALL;

    for (size_t i = 0; i < r->n_draws && least > 0; i++) {
        const struct ref_draw *d = &r->draws[(first + i) % r->n_draws];
        int gives = job_recordings(j, d) ? stage_legality_movement_gives(j, d, e) : least;

        least = gives < least ? gives : least;
    }
    return least;
}

/* Writes the capsule, where one is asked for and all passed. */
static int stage_legality_record_capsule(struct job *j, struct err *e)
{
    const struct ref_draw *d = stage_legality_telling_draw(j);

    return !j->opt->capsule || !j->all_passed || j->recording->live || job_blamed(j) ? 0 : recording_section(j, d, e);
}

/* Is the verdict left alone, where torch's operators may stay? What is wrong stays wrong, and so does what has nothing
 * to do with them: a call of the judge's functions, a program without a kernel. */
static bool stands_beside(const struct job *j, const struct rules_finding *r)
{
    if (!stage_legality_is_published(j) &&
        (r->category == RULES_CORRECTNESS || !strcmp(r->code, "judge_call") || !strcmp(r->code, "no_kernel")))
        return false;
    return j->protocol->operators && (r->category != RULES_UNSUPPORTED || j->all_passed);
}

/* Appends a finding to the record's violations. */
static void violate(json_t *violations, const struct rules_finding *r)
{
    json_array_append_new(violations, json_pack("{s:s,s:s}", "rule", r->code, "message", r->text));
}

/* Protocols kernelbench and strict-torch: what the rules say stands beside the verdict. What the judge could not run
 * for such a reason (a vendor's library) has none. */
static void stage_legality_tell(struct job *j, const struct rules_finding *r, json_t *violations)
{
    json_t *reason;

    violate(violations, r);
    if (j->all_passed || (job_blamed(j) && strcmp(r->code, "library_call")))
        return;
    reason = record_blame(j->rec, "unsupported", "legality", "%s; this protocol allows it, this judge cannot run it",
                          r->text);
    json_object_set_new(reason, "name", json_string(r->code));
}

/* Writes a rule's finding into the record, as reason, violation or note. */
static void stage_legality_blame(struct job *j, const struct rules_finding *r, json_t *violations)
{
    json_t *reason;

    if (r->category == RULES_PASSED || r->category == RULES_BLAMED)
        return;
    if (stands_beside(j, r)) {
        stage_legality_tell(j, r, violations);
        return;
    }
    reason = record_blame(j->rec, rules_category_name(r->category), "legality", "%s", r->text);
    json_object_set_new(reason, r->category == RULES_UNSUPPORTED ? "name" : "rule", json_string(r->code));
    if (r->category == RULES_CHEATING && strcmp(r->code, "operator"))
        violate(violations, r);
}

/* Of a program that failed under the published rules: does what is behind torch's operators excuse it? */
static bool stage_legality_excuses(const struct rules_finding *r)
{
    return r->category == RULES_UNSUPPORTED || (r->code && !strcmp(r->code, "library_call"));
}

/* An operator that may stay hides no finding that may not, nor what this judge lacks. */
static void stage_legality_look_behind(const struct job *j, struct rules_facts *f, struct rules_finding *ret)
{
    bool published = stage_legality_is_published(j);
    struct rules_finding behind;

    if (!j->protocol->operators || !(f->torch_op || f->library) || (published ? !job_blamed(j) : !j->all_passed))
        return;
    f->torch_op = NULL;
    if (!published)
        f->library = NULL;
    rules_decide(f, &behind);
    if (published ? stage_legality_excuses(&behind)
                  : behind.category != RULES_PASSED && behind.category != RULES_BLAMED && !stands_beside(j, &behind))
        *ret = behind;
}

/* 0, or -1: infra. */
static int stage_legality_decide(struct job *j, struct rules_finding *ret, struct err *e)
{
    struct rules_facts f;
    int still = MOVEMENT_LACKS;

    stage_legality_take_facts(j, &f);
    if (executor_lacks(j->recording->x, &f.lacks, e) < 0)
        *e = (struct err)ERR_INIT; /* it ended: that is blamed already */
    if (j->all_passed && !job_blamed(j) && !j->recording->log_full &&
        (still = stage_legality_movement_suffices(j, e)) < 0)
        return -1;
    f.movement_right = still == MOVEMENT_ALL;
    f.movement_most = still == MOVEMENT_MOST;
    rules_decide(&f, ret);
    stage_legality_look_behind(j, &f, ret);
    return 0;
}

int legality_judges(struct job *j, struct err *e)
{
    struct rules_finding r;

    return stage_legality_decide(j, &r, e) < 0 ? -1 : r.category != RULES_PASSED && !stands_beside(j, &r);
}

/* The stage: decides whether the recorded work is allowed, and records "replay" and "legality". */
static int legality_run(struct job *j, struct err *e)
{
    json_t *violations;
    struct rules_finding r;

    if (!j->recording)
        return 0;
    if (stage_legality_decide(j, &r, e) < 0)
        return -1;
    violations = json_array();
    stage_legality_operators(j, violations);
    stage_legality_blame(j, &r, violations);
    record_set(j->rec, "replay", recording_json(j->recording));
    record_set(j->rec, "legality", json_pack("{s:b,s:o,s:O}", "ok", r.category != RULES_CHEATING &&
                                             !json_array_size(violations), "violations", violations, "notes",
                                             j->recording->notes));
    return stage_legality_record_capsule(j, e);
}

const struct stage stage_legality = {"legality", legality_run, true};

/* lint.c - the conversation with runner/lint.py and the null battery over its draws; see lint.h. */
#include "lint/lint.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "eval/check/compare.h"
#include "eval/reference/reference.h"
#include "lint/lint_state.h"
#include "proc/forkserver.h"

struct linter {
    struct lint_options o;
    struct forkserver *fs; /* NULL until there is a task */
};

/* ---- one draw ---- */

struct leaf_list {
    const json_t **v;
    size_t n;
};

/* A callback of tree_each: collects tensors. */
static int lint_add_leaf(const json_t *node, const char *path, void *ctx, struct err *e)
{
    struct leaf_list *l = ctx;

    (void)path, (void)e;
    if (!tree_is_tensor(node))
        return 0;
    l->v = xrealloc(l->v, (l->n + 1) * sizeof *l->v);
    l->v[l->n++] = node;
    return 0;
}

/* The tensors of a section; they point into the frame. *ret is owned. */
static int lint_tensors_of(const struct section *s, struct tensor **ret, size_t *ret_n, struct err *e)
{
    struct leaf_list l = {0};
    struct tensor *v;
    int rc = tree_each(s->tree, lint_add_leaf, &l, e);

    v = xcalloc(l.n + 1, sizeof *v);
    for (size_t i = 0; i < l.n && rc == 0; i++)
        rc = tensor_parse(l.v[i], (const uint8_t *)s->bytes, s->n, &v[i], e);
    free(l.v);
    if (rc < 0) {
        free(v);
        return -1;
    }
    *ret = v;
    *ret_n = l.n;
    return 0;
}

/* The tensor's values as doubles; the caller frees. */
static double *lint_doubles_of(const struct tensor *t)
{
    double *v = xcalloc((size_t)t->n + 1, sizeof *v);

    for (int64_t i = 0; i < t->n; i++)
        v[i] = tensor_at(t, i);
    return v;
}

struct draw {
    struct tensor *in, *eager, *oracle;
    size_t n_in, n_out;
};

/* The tolerance of an output at that level of strictness. */
static struct tolerance lint_tolerance_at(const struct lint_state *s, int level, const struct ref_draw *d,
                                          size_t output)
{
    if (level == LEVEL_STRICT)
        return ref_tolerance(d, output, protocol_find("strict"), task_setting(s->task, s->variant, "tolerance"));
    return tolerance_kernelbench(level == LEVEL_HALF ? DT_F16 : DT_F32);
}

/* As correct_compare does: an ill-conditioned output decides nothing, so everything passes it. */
static bool lint_taken(const struct tensor *eager, const struct tensor *oracle, const struct tensor *got,
                       const struct tolerance *tol, double *max_err)
{
    struct comparison c;

    compare_tensors(eager, oracle, got, tol, &c);
    *max_err = c.max_abs;
    return compare_passes(&c, tol);
}

struct lint_judge_state {
    struct lint_state *s;
    int level;
    const struct tensor *eager, *oracle;
    struct tolerance tol;
    uint8_t *bytes;
};

/* A callback of trivial answers: whether v would pass. */
static bool lint_judge_answer(enum trivial k, const double *v, void *ctx)
{
    struct lint_judge_state *j = ctx;
    struct tensor got = *j->eager;
    double err;

    for (int64_t i = 0; i < got.n; i++)
        tensor_put(got.dtype, j->bytes, i, v[i]);
    got.data = j->bytes;
    if (!lint_taken(j->eager, j->oracle, &got, &j->tol, &err))
        return false;
    j->s->trivial_err[j->level][k] = fmax(j->s->trivial_err[j->level][k], err);
    return true;
}

/* Does a draw say how well an output is conditioned? Not where inputs are far from the task's own, nor where the error
 * of ordinary inputs was lent to small ones. */
static bool lint_is_typical(const struct ref_draw *d, size_t i)
{
    return !d->extreme && !json_flag(json_array_get(d->noise, i), "lent", false);
}

/* Notes an output's largest value and whether it is constant, over draws. */
static void lint_note_output(struct lint_group *g, const struct ref_draw *d, size_t i, const double *want, size_t n,
                             double *top, bool *constant)
{
    const json_t *row = json_array_get(d->noise, i);
    double mine = 0;

    for (size_t q = 0; q < n; q++) {
        if (isfinite(want[q]))
            mine = fmax(mine, fabs(want[q]));
        *constant = *constant && want[q] == want[0];
    }
    *top = fmax(*top, mine);
    if (!lint_is_typical(d, i))
        return;
    g->outputs++;
    if (mine > 0) {
        g->worst_own = fmax(g->worst_own, json_num_value(json_object_get(row, "n1")) / mine);
        g->worst_moved = fmax(g->worst_moved, json_num_value(json_object_get(row, "n2")) / mine);
    }
}

/* Keeps the answer for the next draw. Takes over v. */
static void lint_keep_last(struct lint_group *g, size_t i, double *v, size_t n)
{
    if (i >= g->n_last) {
        g->last = xrealloc(g->last, (i + 1) * sizeof *g->last);
        g->last_n = xrealloc(g->last_n, (i + 1) * sizeof *g->last_n);
        for (size_t k = g->n_last; k <= i; k++)
            g->last[k] = NULL, g->last_n[k] = 0;
        g->n_last = i + 1;
    }
    free(g->last[i]);
    g->last[i] = v;
    g->last_n[i] = n;
}

/* The first input with as many elements as out, as doubles; the caller frees. NULL: none. */
static double *lint_matching_input(const struct draw *d, const struct tensor *out)
{
    for (size_t i = 0; i < d->n_in; i++)
        if (d->in[i].n == out->n)
            return lint_doubles_of(&d->in[i]);
    return NULL;
}

/* Tries whether trivial answers pass for output i of a draw. */
static void lint_try_output(struct lint_state *s, int group, const struct ref_draw *r, const struct draw *d, size_t i,
                            double *top, bool *constant)
{
    struct lint_group *g = &s->group[group];
    const struct tensor *eager = &d->eager[i], *oracle = &d->oracle[i];
    size_t n = (size_t)eager->n;
    double *want = lint_doubles_of(oracle), *input = lint_matching_input(d, eager);
    struct trivial_case c = {want, n, input, i < g->n_last && g->last_n[i] == n ? g->last[i] : NULL};
    uint8_t *bytes = xcalloc(n + 1, 16);

    lint_note_output(g, r, i, want, n, top, constant);
    for (int k = 0; k < N_LEVELS; k++) {
        struct lint_judge_state j = {s, k, eager, oracle, lint_tolerance_at(s, k, r, i), bytes};

        if (lint_levels[k].group != group)
            continue;
        g->unusable += !j.tol.usable && lint_is_typical(r, i);
        s->allowed[k] = fmax(s->allowed[k], j.tol.abs);
        battery_run(&s->battery[k], &c, lint_judge_answer, &j);
    }
    free(bytes);
    free(input);
    lint_keep_last(g, i, want, n);
}

/* The row of a part that is left out, made at the first draw; NULL: there is none. */
static struct lint_drop *lint_drop_row(struct lint_group *g, const json_t *x)
{
    int64_t call = json_i64(x, "call", -1);

    for (size_t i = 0; i < g->n_drop; i++)
        if (g->drop[i].call == call)
            return &g->drop[i];
    if (g->draws > 0)
        return NULL; /* it was not there in the first draw: it cannot pass all of them */
    g->drop = xrealloc(g->drop, (g->n_drop + 1) * sizeof *g->drop);
    g->drop[g->n_drop] = (struct lint_drop){.call = call, .line = json_i64(x, "line", 0)};
    snprintf(g->drop[g->n_drop].name, sizeof g->drop->name, "%s", json_str(x, "name", "?"));
    return &g->drop[g->n_drop++];
}

/* Counts for each level of tolerance whether a model without one of its parts would pass. */
static int lint_try_drop(struct lint_state *s, int group, const struct frame *f, const json_t *x,
                         const struct ref_draw *r, const struct draw *d, struct err *e)
{
    struct lint_drop *row = lint_drop_row(&s->group[group], x);
    struct section out;
    struct tensor *got;
    size_t n;

    if (ref_section_parse(f, json_object_get(x, "out"), &out, e) < 0 || lint_tensors_of(&out, &got, &n, e) < 0)
        return -1;
    for (int k = 0; k < N_LEVELS && row && n == d->n_out; k++) {
        bool ok = lint_levels[k].group == group;
        double err = 0, worst = 0;

        for (size_t i = 0; i < n && ok; i++) {
            struct tolerance tol = lint_tolerance_at(s, k, r, i);
            ok = lint_taken(&d->eager[i], &d->oracle[i], &got[i], &tol, &err);
            worst = fmax(worst, err);
        }
        row->passed[k] += ok;
        row->max_err = ok ? fmax(row->max_err, worst) : row->max_err;
    }
    free(got);
    return 0;
}

/* Takes one draw of the reference's process into the group's facts. */
static int lint_take_draw(struct lint_state *s, const struct frame *f, struct err *e)
{
    int group = !strcmp(json_str(f->head, "group", ""), "strict") ? GROUP_STRICT : GROUP_KERNELBENCH, rc = -1;
    struct lint_group *g = &s->group[group];
    struct ref_draw r;
    struct draw d = {0};
    size_t n_oracle = 0, i;
    bool constant = true;
    double top = 0;
    const json_t *x;

    if (ref_draw_parse(f, f->head, &r, e) < 0)
        return -1;
    if (lint_tensors_of(&r.inputs, &d.in, &d.n_in, e) == 0 && lint_tensors_of(&r.eager, &d.eager, &d.n_out, e) == 0 &&
        lint_tensors_of(&r.oracle, &d.oracle, &n_oracle, e) == 0)
        rc = n_oracle == d.n_out ? 0 : err_set(e, ERR_BUG, "the reference side sent an oracle of another structure");
    for (i = 0; i < d.n_out && rc == 0; i++)
        lint_try_output(s, group, &r, &d, i, &top, &constant);
    json_array_foreach(json_object_get(f->head, "dropped"), i, x)
        if (rc == 0)
            rc = lint_try_drop(s, group, f, x, &r, &d, e);
    g->max_expected = fmax(g->max_expected, top);
    g->min_top = g->draws ? fmin(g->min_top, top) : top;
    g->constant += d.n_out > 0 && constant;
    g->zero += d.n_out > 0 && constant && top == 0;
    g->draws++;
    free(d.in);
    free(d.eager);
    free(d.oracle);
    return rc;
}

/* ---- the conversation ---- */

/* The request to the reference's process. New. */
static json_t *lint_request_of(const struct lint_state *s)
{
    const struct lint_options *o = s->o;
    const json_t *variant = task_variant(s->task, s->variant), *regimes = task_setting(s->task, s->variant, "regimes");
    json_t *req = json_pack("{s:s,s:s,s:i,s:I,s:I}", "op", "lint", "source", s->task->code, "trials", o->trials, "seed",
                            (json_int_t)o->seed, "max_elements", (json_int_t)o->max_elements);

    if (req && variant)
        json_object_set_new(req, "variant", json_deep_copy(variant));
    if (req && regimes)
        json_object_set_new(req, "regimes", json_deep_copy(regimes));
    return req;
}

/* Adds a finding for a task that raises or is refused. head: the reference process's last words. */
static void lint_broken(const struct lint_state *s, const json_t *head, json_t *findings)
{
    const char *type = json_str(head, "type", "");
    int64_t line = json_i64(head, "line", 0);
    json_t *evidence = json_pack("{s:s,s:s}", "type", type, "text", json_str(head, "message", ""));

    if (line > 0)
        json_object_set_new(evidence, "line", json_integer(line));
    if (!strcmp(type, "too_large"))
        lint_add(s, findings, "not_judged", evidence, "%.600s", json_str(head, "message", ""));
    else if (!strcmp(type, "refused"))
        lint_add(s, findings, "broken", evidence, "%.600s", json_str(head, "message", ""));
    else
        lint_add(s, findings, "broken", evidence, "it raises %s: %.500s", type, json_str(head, "message", ""));
}

/* Draws until the facts come. 0 also when the task turned out to be broken: then it is among the findings. */
static int lint_talk(struct lint_state *s, struct child *c, json_t *findings, struct err *e)
{
    double deadline = now_s() + s->o->timeout_s;
    enum frame_fault fault = FRAME_OK;
    json_t *req = lint_request_of(s);
    struct frame f;
    int rc;

    if (!req) {
        lint_add(s, findings, "broken", NULL, "it is not UTF-8 text");
        return 0;
    }
    rc = frame_send(c->fd, req, NULL, 0, deadline, &fault, e);
    json_decref(req);
    while (rc == 0 && (rc = frame_recv(c->fd, 0, 0, deadline, &f, &fault, e)) == 0) {
        const char *op = json_str(f.head, "op", "");
        bool more = !strcmp(op, "draw");

        if (more)
            rc = lint_take_draw(s, &f, e);
        else if (!strcmp(op, "done"))
            s->facts = json_incref(json_object_get(f.head, "facts"));
        else
            lint_broken(s, f.head, findings);
        frame_free(&f);
        if (!more)
            return rc;
    }
    if (fault == FRAME_LATE || fault == FRAME_CLOSED) {
        lint_add(s, findings, "not_judged", NULL, fault == FRAME_LATE ? "it does not finish in %.0f s with "
                                                                        "--max-elements %lld"
                 : "its process died within %.0f s with --max-elements %lld (out of memory?)", s->o->timeout_s,
                 (long long)s->o->max_elements);
        return 0;
    }
    return -1;
}

/* Frees what the draws of all groups left. */
static void lint_state_free(struct lint_state *s)
{
    for (int i = 0; i < N_GROUPS; i++) {
        for (size_t k = 0; k < s->group[i].n_last; k++)
            free(s->group[i].last[k]);
        free(s->group[i].last);
        free(s->group[i].last_n);
        free(s->group[i].drop);
    }
    json_decref(s->facts);
}

/* One variant of the task (0: as written). Facts of the task as written go into the report. */
static int lint_variant(struct linter *l, const struct task *t, int variant, json_t *report, struct err *e)
{
    struct child_spec spec = {.role = "lint", .jail = {.memory_bytes = (size_t)8 << 30}};
    struct forkserver_spec server = {.no_jail = l->o.no_jail};
    struct lint_state s = {.o = &l->o, .task = t, .variant = variant};
    json_t *findings = json_object_get(report, "findings");
    struct child *c;
    int rc;

    if (!l->fs && forkserver_start(&server, &l->fs, e) < 0)
        return -1;
    if (forkserver_spawn(l->fs, &spec, &c, e) < 0)
        return -1;
    rc = lint_talk(&s, c, findings, e);
    child_free(c);
    if (rc == 0 && s.facts)
        lint_judge(&s, findings);
    if (rc == 0 && s.facts && variant == 0) {
        json_object_set(report, "judged_at", json_object_get(s.facts, "changes"));
        json_object_set(report, "facts", s.facts);
    }
    lint_state_free(&s);
    return rc;
}

int lint_task(struct linter *l, const struct task *t, json_t **ret_report, struct err *e)
{
    json_t *r = json_pack("{s:s,s:o,s:s,s:I,s:[],s:[],s:n}", "schema", LINT_SCHEMA, "task",
                          json_utf8(t->name, strlen(t->name)), "task_sha256", t->sha256, "max_elements",
                          (json_int_t)l->o.max_elements, "judged_at", "findings", "facts");
    int rc = 0;

    for (int i = 0; i <= task_variants(t) && rc == 0; i++)
        rc = lint_variant(l, t, i, r, e);
    if (rc < 0)
        json_decref(r);
    else
        *ret_report = r;
    return rc;
}

int lint_open(const struct lint_options *o, struct linter **ret, struct err *e)
{
    struct linter *l;

    if (o->max_elements < 1 || o->trials < 1 || o->trials > 100 || !(o->timeout_s > 0) || !(o->device_gib > 0))
        return err_set(e, ERR_INPUT, "max-elements, trials (1 to 100), timeout and device-gib must be positive");
    l = xcalloc(1, sizeof *l);
    l->o = *o;
    *ret = l;
    return 0;
}

void lint_close(struct linter *l)
{
    if (l)
        forkserver_stop(l->fs);
    free(l);
}

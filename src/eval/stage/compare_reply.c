/* compare_reply.c - one reply of a candidate beside one draw: structure, kinds, then values. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "eval/check/compare_parts.h"
#include "eval/check/hypothesis.h"
#include "eval/check/ties.h"
#include "eval/candidate/recording_streamed.h"
#include "eval/stage/stage.h"

struct leaf {
    const json_t *node;
    char path[128];
};

struct compare_reply_leaves {
    struct leaf *v;
    size_t n;
};

/* A callback of tree_each: collects an output's leaves with their paths. */
static int compare_reply_leaf_add(const json_t *node, const char *path, void *ctx, struct err *e)
{
    struct compare_reply_leaves *l = ctx;

    if (l->n >= 4096)
        return err_set(e, ERR_INPUT, "more than 4096 outputs");
    l->v = xrealloc(l->v, (l->n + 1) * sizeof *l->v);
    l->v[l->n].node = node;
    snprintf(l->v[l->n++].path, sizeof l->v->path, "%s", path);
    return 0;
}

/* What the value is, for a message. */
static const char *compare_reply_kind_text(const json_t *tree)
{
    const char *t = json_str(tree, "t", "");

    return tree_is_tensor(tree) ? "a tensor" : !strcmp(t, "list") || !strcmp(t, "tuple") ? "a sequence"
         : !strcmp(t, "dict") ? "a dict" : json_is_null(tree) ? "None" : "a number";
}

/* True where both have the same paths, and tensors at the same ones. */
static bool compare_reply_same_structure(const struct compare_reply_leaves *a, const struct compare_reply_leaves *b)
{
    if (a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n; i++)
        if (strcmp(a->v[i].path, b->v[i].path) || tree_is_tensor(a->v[i].node) != tree_is_tensor(b->v[i].node))
            return false;
    return true;
}

/* A wrong element for the record. New. */
static json_t *compare_reply_spot(const char *at, double expected, double got)
{
    return json_pack("{s:s,s:o,s:o}", "index", at, "expected", json_num(expected), "got", json_num(got));
}

/* The tolerance as JSON. New. */
static json_t *compare_reply_tolerance(const struct tolerance *t)
{
    json_t *v = json_pack("{s:o,s:o}", "abs", json_num(t->abs), "rel", json_num(t->rel));

    if (t->matched > 0)
        json_object_set_new(v, "matched", json_num(t->matched));
    if (t->most > 0)
        json_object_set_new(v, "most", json_num(t->most));
    return v;
}

json_t *correct_worst(const struct ref_draw *d, const char *path, const struct comparison *c, const struct tolerance *t)
{
    static const char *const kinds[] = {"same", "structure", "dtype", "shape", "values"};
    json_t *w = json_pack("{s:s,s:i,s:s,s:s}", "regime", d->regime, "trial", d->trial, "output", path, "kind",
                          kinds[c->kind]);

    if (c->kind != CMP_VALUES) {
        json_object_set_new(w, "detail", json_utf8(c->detail, strlen(c->detail)));
        return w;
    }
    json_object_set_new(w, "elements", json_integer(c->n));
    json_object_set_new(w, "wrong", json_integer(c->n_bad));
    json_object_set_new(w, "nan", json_integer(c->n_nan));
    if (c->n_nan && c->n_unwritten >= 0)
        json_object_set_new(w, "unwritten", json_integer(c->n_unwritten));
    json_object_set_new(w, "share", json_num((double)c->n_bad / (double)c->n));
    json_object_set_new(w, "pattern", json_string(c->pattern));
    if (*c->hypothesis)
        json_object_set_new(w, "hypothesis", json_utf8(c->hypothesis, strlen(c->hypothesis)));
    if (c->typical > 0)
        json_object_set_new(w, "typical_abs_err", json_num(c->typical));
    json_object_set_new(w, "first", compare_reply_spot(c->first_at, c->first_expected, c->first_got));
    json_object_set_new(w, "worst", compare_reply_spot(c->worst_at, c->worst_expected, c->worst_got));
    json_object_set_new(w, "tolerance", compare_reply_tolerance(t));
    return w;
}

/* Makes an output that cannot be read a wrong one. Always false; e is cleared. */
static bool compare_reply_unreadable(struct comparison *c, struct err *e)
{
    *c = (struct comparison){.kind = CMP_STRUCTURE};
    snprintf(c->detail, sizeof c->detail, "the output cannot be read: %.100s", e->msg);
    *e = (struct err)ERR_INIT;
    return false;
}

static bool compare_reply_judged(int rc, const struct tolerance *tol, struct comparison *c)
{
    return rc == 0 && compare_passes(c, tol);
}

struct nth_tensor {
    size_t want, i;
    const json_t *node;
};

/* A callback of tree_each: finds the wanted tensor by its number. */
static int nth_tensor(const json_t *leaf, const char *path, void *ctx, struct err *e)
{
    struct nth_tensor *n = ctx;

    (void)path, (void)e;
    if (tree_is_tensor(leaf) && n->i++ == n->want)
        n->node = leaf;
    return 0;
}

/* As compare_tensors, of whole numbers that name places in an input: any place of an equal value is right. */
static int compare_places(const struct ref_draw *d, const json_t *spec, const struct tensor *eager,
                          const struct tensor *oracle, const struct tensor *mine, const struct tolerance *tol,
                          struct comparison *c, struct err *e)
{
    struct nth_tensor n = {.want = (size_t)json_i64(spec, "input", 0)};
    struct ties p = {.dim = (int)json_i64(spec, "dim", -1), .unique = json_flag(spec, "unique", false)};
    struct tensor got = *mine;
    uint8_t *resolved = NULL;

    tree_each(d->inputs.tree, nth_tensor, &n, NULL);
    if (!n.node || tensor_parse(n.node, (const uint8_t *)d->inputs.bytes, d->inputs.n, &p.values, e) < 0)
        return err_set(e, ERR_BUG, "the reference side names an input that it did not send");
    if (mine->dtype == eager->dtype && (resolved = ties_resolved(&p, eager, mine)))
        got.data = resolved;
    compare_tensors(eager, oracle, &got, tol, c);
    free(resolved);
    return 0;
}

enum { INPUTS_TRIED = 8 };

struct compare_reply_inputs {
    const struct section *of;
    struct tensor v[INPUTS_TRIED];
    int n;
};

/* A callback of tree_each: collects up to INPUTS_TRIED inputs. */
static int compare_reply_input(const json_t *leaf, const char *path, void *ctx, struct err *e)
{
    struct compare_reply_inputs *in = ctx;

    (void)path;
    if (tree_is_tensor(leaf) && in->n < INPUTS_TRIED &&
        tensor_parse(leaf, (const uint8_t *)in->of->bytes, in->of->n, &in->v[in->n], e) == 0)
        in->n++;
    return 0;
}

/* A program that was written for eval mode, where the task's module is in train mode. */
static bool compare_reply_reads_averages(const struct job *j)
{
    const char *task = j->task->code;

    return !strcmp(j->held.ref->mode, "train") && task && (strstr(task, "BatchNorm") || strstr(task, "batch_norm")) &&
           (strstr(j->code, "running_mean") || strstr(j->code, "running_var"));
}

/* Adds a guess at what went wrong to the comparison. */
static void compare_reply_explain(const struct job *j, const struct ref_draw *d, const struct tensor *want,
                                  const struct tensor *got, const struct tolerance *tol, struct comparison *c)
{
    struct compare_reply_inputs in = {.of = &d->inputs};
    struct hypothesis_case h = {.want = want, .got = got, .tol = tol, .source = j->task->code};

    tree_each(d->inputs.tree, compare_reply_input, &in, NULL);
    h.inputs = in.v, h.n_inputs = in.n;
    hypothesis_find(&h, c->hypothesis, sizeof c->hypothesis);
    if (!*c->hypothesis && compare_reply_reads_averages(j))
        snprintf(c->hypothesis, sizeof c->hypothesis, "the task's module is in train mode, where batch norm takes the "
                 "batch's own mean and variance, and not running_mean and running_var");
    c->typical = hypothesis_typical_error(&h);
}

/* Compares leaf i. Returns false and fills c if it differs. */
static bool compare_reply_leaf_ok(struct job *j, const struct ref_draw *d, const struct compare_reply_leaves l[3],
                                  size_t i, size_t tensor_index, const struct frame *got, struct comparison *c,
                                  struct tolerance *tol, struct err *e)
{
    struct tensor eager, oracle, mine;
    const json_t *places;
    int rc = 0;

    if (!tree_is_tensor(l[0].v[i].node))
        return compare_number(l[0].v[i].node, l[2].v[i].node, c);
    *tol = ref_tolerance(d, tensor_index, j->protocol, task_setting(j->task, j->variant, "tolerance"));
    if (j->held.ref->streamed) {
        rc = tensor_kind(l[0].v[i].node, &eager, e);
        if (rc == 0 && eager.n)
            rc = recording_streamed_compare(j, tensor_index, l[2].v[i].node, &eager, tol, c, e);
        return compare_reply_judged(rc, tol, c);
    }
    if (tensor_parse(l[0].v[i].node, (const uint8_t *)d->eager.bytes, d->eager.n, &eager, e) < 0 ||
        tensor_parse(l[1].v[i].node, (const uint8_t *)d->oracle.bytes, d->oracle.n, &oracle, e) < 0)
        return false;
    if (tensor_parse(l[2].v[i].node, (const uint8_t *)got->blob, got->n_blob, &mine, e) < 0)
        return compare_reply_unreadable(c, e);
    places = json_object_get(json_array_get(d->noise, tensor_index), "places");
    if (places)
        rc = compare_places(d, places, &eager, &oracle, &mine, tol, c, e);
    else
        compare_tensors(&eager, &oracle, &mine, tol, c);
    if (rc == 0 && c->kind == CMP_VALUES && c->n_nan == 0)
        compare_reply_explain(j, d, &oracle, &mine, tol, c);
    return compare_reply_judged(rc, tol, c);
}

/* Types and shapes of all outputs, before any value is looked at: outputs of another kind have not been fetched. */
static int compare_reply_kinds_ok(const struct compare_reply_leaves l[3], struct comparison *c, size_t *ret_at)
{
    struct tensor want, mine;

    for (size_t i = 0; i < l[0].n; i++) {
        *ret_at = i;
        if (tree_is_tensor(l[0].v[i].node) && tensor_kind(l[0].v[i].node, &want, NULL) == 0 &&
            tensor_kind(l[2].v[i].node, &mine, NULL) == 0 && !compare_kinds(&want, &mine, c))
            return 0;
    }
    return 1;
}

int correct_compare(struct job *j, const struct ref_draw *d, const struct frame *got, json_t **ret_worst,
                    double *max_abs, double *max_rel, struct err *e)
{
    const json_t *out = json_object_get(got->head, "output"), *host = json_object_get(got->head, "on_host");
    struct compare_reply_leaves l[3] = {0};
    struct comparison c = {.kind = CMP_SAME};
    struct tolerance tol = {0};
    size_t tensors = 0, at = 0;
    bool streamed = j->held.ref->streamed != NULL; /* then other inputs than the draw's say nothing: inputs_kept does */
    bool changed = json_array_size(json_object_get(got->head, "changed")) > 0;
    int ok = 1;

    if (tree_each(d->eager.tree, compare_reply_leaf_add, &l[0], e) < 0 ||
        tree_each(d->oracle.tree, compare_reply_leaf_add, &l[1], e) < 0) {
        ok = -1;
    } else if (tree_each(out, compare_reply_leaf_add, &l[2], NULL) < 0 || !compare_reply_same_structure(&l[0], &l[2])) {
        c.kind = CMP_STRUCTURE;
        snprintf(c.detail, sizeof c.detail, "forward returned %s (%zu values), expected %s (%zu values)",
                 compare_reply_kind_text(out), l[2].n, compare_reply_kind_text(d->eager.tree), l[0].n);
        ok = 0;
        *ret_worst = correct_worst(d, "", &c, &tol);
    } else if (json_array_size(host)) {
        c.kind = CMP_STRUCTURE;
        snprintf(c.detail, sizeof c.detail, "output %lld is on the CPU, expected cuda:0",
                 (long long)json_integer_value(json_array_get(host, 0)));
        ok = 0;
        *ret_worst = correct_worst(d, "", &c, &tol);
    }
    if (ok == 1 && (ok = compare_reply_kinds_ok(l, &c, &at)) == 0)
        *ret_worst = correct_worst(d, l[0].v[at].path, &c, &tol);
    if (ok == 1 && streamed && !changed)
        ok = streamed_expect(j->held.ref->streamed, false, e) < 0 ? -1 : 1;
    for (size_t i = 0; ok == 1 && !(streamed && changed) && i < l[0].n; i++) {
        bool good = compare_reply_leaf_ok(j, d, l, i, tensors, got, &c, &tol, e);

        *max_abs = fmax(*max_abs, c.max_abs);
        *max_rel = fmax(*max_rel, c.max_rel);
        tensors += tree_is_tensor(l[0].v[i].node);
        if (good)
            continue;
        ok = e->kind == ERR_NONE ? 0 : -1;
        if (ok == 0)
            *ret_worst = correct_worst(d, l[0].v[i].path, &c, &tol);
    }
    if (streamed && !changed && streamed_drop(j->held.ref->streamed, e) < 0)
        ok = -1;
    for (int k = 0; k < 3; k++)
        free(l[k].v);
    return ok;
}

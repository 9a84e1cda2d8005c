/* capsule_run.c - a capsule in an executor: adopted, replayed, its outputs compared. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "exec/capsule.h"
#include "exec/exec_element.h"

struct capsule_run_running {
    const struct capsule *c;
    struct executor *x;
    size_t value, first; /* the next one; the first of the last call */
    uint32_t last;       /* the log's last call */
    struct capsule_result *out;
};

/* A callback of the replay: gives the capsule's next values. */
static int capsule_run_lay(void *ctx, uint32_t tag, uint64_t addr, uint64_t at, void *data, uint64_t n, struct err *e)
{
    struct capsule_run_running *r = ctx;
    const json_t *v = json_array_get(json_object_get(r->c->head, "values"), r->value++);
    size_t have = 0;
    const void *p = v ? capsule_bytes(r->c, v, &have) : NULL;

    (void)tag, (void)addr, (void)at;
    if (!p || have != n)
        return err_set(e, ERR_INPUT, "the capsule lacks values that its log lays");
    memcpy(data, p, n);
    return 0;
}

/* ---- outputs ---- */

/* Reads a list of at most WIRE_DIMS integers. False: it is none. */
static bool capsule_run_dims_of(const json_t *o, const char *name, int64_t v[WIRE_DIMS], uint32_t *ret_n)
{
    const json_t *a = json_object_get(o, name), *x;
    size_t i;

    if (!json_is_array(a) || json_array_size(a) > WIRE_DIMS)
        return false;
    json_array_foreach((json_t *)a, i, x)
        v[i] = json_integer_value(x);
    *ret_n = (uint32_t)json_array_size(a);
    return true;
}

/* Reads an output's description. False: it is broken. */
static bool capsule_run_output_of(const json_t *v, struct capsule_output *o)
{
    uint32_t strides = 0;

    *o = (struct capsule_output){.name = json_str(v, "name", "output"), .addr = (uint64_t)json_i64(v, "addr", 0),
                                 .dtype = (uint32_t)json_i64(v, "dtype", -1), .atol = json_f64(v, "atol", 0),
                                 .rtol = json_f64(v, "rtol", 0)};
    return capsule_run_dims_of(v, "size", o->size, &o->dims) && capsule_run_dims_of(v, "stride", o->stride, &strides) &&
           strides == o->dims;
}

/* Counts a wrong element; the first one is described. */
static void capsule_run_wrong_element(struct capsule_result *r, const struct capsule_output *o, uint64_t i, double got,
                                      double want)
{
    if (r->wrong++ == 0)
        snprintf(r->text, sizeof r->text, "%s: element %llu is %g, expected %g", o->name, (unsigned long long)i, got,
                 want);
}

/* Counts in r the elements of got that differ from want by more than the output's tolerance, and the largest excess.
 * */
static void capsule_run_compare(struct capsule_result *r, const struct capsule_output *o, const uint8_t *got,
                                const uint8_t *want, uint64_t n)
{
    int w = px_bytes(o->dtype), parts = px_is_complex(o->dtype) ? 2 : 1;

    for (uint64_t i = 0; i < n; i++)
        for (int k = 0; k < parts; k++) {
            double a = el_value(got + px_offset(i, o->dims, o->size, o->stride) * w, (int)o->dtype, k);
            double b = el_value(want + i * (uint64_t)w, (int)o->dtype, k), over = fabs(a - b) - o->rtol * fabs(b);

            if (a == b || (isnan(a) && isnan(b)))
                continue;
            if (!(over <= r->worst))
                r->worst = over;
            if (!(over <= o->atol))
                capsule_run_wrong_element(r, o, i, a, b);
        }
    r->elements += n;
}

/* Fetches one output of the last call and compares it with the capsule's values. */
static int capsule_run_look_at(struct capsule_run_running *r, const json_t *v, struct err *e)
{
    struct capsule_output o;
    size_t n_want = 0;
    const uint8_t *want = capsule_bytes(r->c, v, &n_want);
    uint64_t span = 0, n;
    uint8_t *got;
    int rc;

    if (!want || !capsule_run_output_of(v, &o) || !wire_view_span(o.dtype, o.dims, o.size, o.stride, &span) ||
        (n = px_count(o.dims, o.size)) * (uint64_t)px_bytes(o.dtype) != n_want)
        return err_set(e, ERR_INPUT, "the capsule's outputs do not fit its bytes");
    got = malloc(span ? span : 1);
    if (!got)
        return err_set(e, ERR_ENV, "no memory for an output of %llu bytes", (unsigned long long)span);
    rc = span ? executor_peek(r->x, o.addr, got, span, e) : 0;
    if (rc == 0)
        capsule_run_compare(r->out, &o, got, want, n);
    free(got);
    return rc;
}

/* A callback of the replay: compares the last call's outputs. */
static int capsule_run_call_end(void *ctx, uint32_t call, struct err *e)
{
    struct capsule_run_running *r = ctx;
    const json_t *v;
    size_t i;

    if (call != r->last)
        return 0;
    json_array_foreach(json_object_get(r->c->head, "outputs"), i, v)
        if (capsule_run_look_at(r, v, e) < 0)
            return -1;
    return 0;
}

/* ---- running ---- */

/* Gives images and log to the executor; *ret_last is the last call's number. */
static int capsule_run_hand_over(const struct capsule *c, struct executor *x, uint32_t *ret_last, struct err *e)
{
    struct exec_log log;
    const json_t *v;
    char hash[65];
    size_t i, n;
    int rc = 0;

    json_array_foreach(json_object_get(c->head, "images"), i, v) {
        const void *p = capsule_bytes(c, v, &n);

        if (!p)
            return err_set(e, ERR_INPUT, "the capsule's images do not fit its bytes");
        if (executor_image(x, p, n, hash, e) < 0)
            return -1;
    }
    if (capsule_log(c, &log, e) < 0)
        return -1;
    *ret_last = exec_log_last_call(&log);
    rc = executor_adopt(x, &log, e);
    exec_log_free(&log);
    return rc;
}

int capsule_run(const struct capsule *c, struct executor *x, uint8_t poison, struct capsule_result *ret, struct err *e)
{
    struct capsule_result out = {0};
    struct capsule_run_running r = {.c = c, .x = x, .out = &out};
    struct executor_replay p = {.poison = poison, .binding = capsule_run_lay, .call_end = capsule_run_call_end,
                                .ctx = &r};

    if (capsule_run_hand_over(c, x, &r.last, e) < 0 || executor_replay(x, &p, e) < 0)
        return -1;
    out.error = p.ret_error;
    snprintf(out.why, sizeof out.why, "%s", p.ret_why);
    out.right = !out.error && out.elements && !out.wrong;
    *ret = out;
    return 0;
}

/* How many values are bound up to the end of the call before the last one. */
static size_t capsule_run_values_before(const struct exec_log *l, uint32_t last)
{
    size_t n = 0, before = 0;
    struct log_entry en;

    for (size_t at = 0; exec_log_next(l, &at, &en) > 0;) {
        const struct log_binding *m = en.body;

        if (en.head.op == LOG_BIND)
            n += (size_t)((m->n + (EXECUTOR_PART - 1)) / EXECUTOR_PART);
        else if (en.head.op == LOG_CALL_END && ((const struct log_call *)en.body)->index + 1 == last)
            before = n;
    }
    return before;
}

/* A callback of the replay: each call reads the values from where it did when recorded. */
static void capsule_run_rewind_values(void *ctx, uint32_t call, bool last)
{
    struct capsule_run_running *r = ctx;

    r->value = last ? r->first : call ? r->value : 0;
}

int capsule_time(const struct capsule *c, struct executor *x, uint32_t n, double *ret_ms, struct executor_timing *ret,
                 struct err *e)
{
    struct capsule_run_running r = {.c = c, .x = x};
    struct executor_timing t = {.n = n, .ret_ms = ret_ms, .binding = capsule_run_lay,
                                .before = capsule_run_rewind_values, .ctx = &r};
    struct exec_log log;

    if (capsule_log(c, &log, e) < 0)
        return -1;
    r.first = capsule_run_values_before(&log, exec_log_last_call(&log));
    exec_log_free(&log);
    if (executor_time(x, &t, e) < 0)
        return -1;
    *ret = t;
    return 0;
}

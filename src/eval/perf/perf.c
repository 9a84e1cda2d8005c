/* perf.c - see perf.h. */
#include "eval/perf/perf.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/numbers.h"

double perf_median(const double *x, int n)
{
    double *copy = xcalloc((size_t)n + 1, sizeof *copy), m;

    if (n)
        memcpy(copy, x, (size_t)n * sizeof *x);
    m = numbers_median(copy, (size_t)n);
    free(copy);
    return m;
}

double perf_mad(const double *x, int n, double center)
{
    double *d = xcalloc((size_t)n + 1, sizeof *d), m;

    for (int i = 0; i < n; i++)
        d[i] = fabs(x[i] - center);
    m = 1.4826 * numbers_median(d, (size_t)n);
    free(d);
    return m;
}

int perf_outliers(const double *x, int n, bool *ret_out)
{
    double m = perf_median(x, n), limit = fmax(m + 10 * perf_mad(x, n, m), 1.05 * m);
    int count = 0, worst;

    memset(ret_out, 0, (size_t)n * sizeof *ret_out);
    for (; count < n / 10; count++) {
        worst = -1;
        for (int i = 0; i < n; i++)
            if (!ret_out[i] && x[i] > limit && (worst < 0 || x[i] > x[worst]))
                worst = i;
        if (worst < 0)
            break;
        ret_out[worst] = true;
    }
    return count;
}

/* ---- bootstrap ---- */

/* The times of one set of calls, grouped by round. */
struct groups {
    double *x;         /* all that are kept, round after round */
    int *start;        /* n_rounds + 1 */
    int n_rounds, n, outliers;
};

/* Times in ms without outliers, grouped by round; start has one entry more than there are groups. */
static struct groups perf_group(const struct perf_calls *c)
{
    struct groups g = {.x = xcalloc((size_t)c->n + 1, sizeof(double)), .start = xcalloc((size_t)c->n + 2, sizeof(int))};
    bool *out = xcalloc((size_t)c->n + 1, sizeof *out);
    int last = -1;

    g.outliers = perf_outliers(c->event_ms, c->n, out);
    for (int i = 0; i < c->n; i++)
        last = c->round[i] > last ? c->round[i] : last;
    for (int r = 0; r <= last; r++) {
        for (int i = 0; i < c->n; i++)
            if (c->round[i] == r && !out[i])
                g.x[g.n++] = c->event_ms[i];
        if (g.n > g.start[g.n_rounds])
            g.start[++g.n_rounds] = g.n;
    }
    free(out);
    return g;
}

static void perf_groups_free(struct groups *g)
{
    free(g->x);
    free(g->start);
}

/* Median of a resample: rounds pick[0..n_pick), calls within each drawn with replacement. scratch holds the largest. */
static double perf_resample(const struct groups *g, const int *pick, int n_pick, struct rng *rng, double *scratch)
{
    int n = 0;

    for (int k = 0; k < n_pick; k++) {
        int r = pick[k] % g->n_rounds, from = g->start[r], size = g->start[r + 1] - from;

        for (int i = 0; i < size; i++)
            scratch[n++] = g->x[from + (int)rng_below(rng, (uint64_t)size)];
    }
    return numbers_median(scratch, (size_t)n);
}

/* Calls in the largest round. */
static int perf_largest(const struct groups *g)
{
    int m = 0;

    for (int r = 0; r < g->n_rounds; r++)
        m = g->start[r + 1] - g->start[r] > m ? g->start[r + 1] - g->start[r] : m;
    return m;
}

/* Widens an interval about value, in the logarithm: by sqrt 2 and, in quadrature, by the error between processes. */
static struct perf_estimate perf_widen(double value, double lo, double hi, double sd)
{
    double repeat = 1.96 * M_SQRT2 * sd, down = M_SQRT2 * fmax(log(value / lo), 0),
           up = M_SQRT2 * fmax(log(hi / value), 0);

    return (struct perf_estimate){value, value * exp(-hypot(down, repeat)), value * exp(hypot(up, repeat))};
}

/* Deviation of the logarithm of a process's median from another process's. */
static double perf_of_process(const struct groups *g)
{
    return hypot(PERF_REPEAT, PERF_REPEAT_MS / perf_median(g->x, g->n));
}

/* den may be NULL: the median of num itself. */
static struct perf_estimate perf_do_estimate(const struct groups *num, const struct groups *den, uint64_t seed)
{
    int rounds = den && den->n_rounds > num->n_rounds ? den->n_rounds : num->n_rounds;
    int *pick = xcalloc((size_t)rounds + 1, sizeof *pick);
    double *ratio = xcalloc(PERF_RESAMPLES, sizeof *ratio), value, sd;
    double *scratch = xcalloc((size_t)rounds * (size_t)(perf_largest(num) + (den ? perf_largest(den) : 0)) + 1,
                              sizeof *scratch);
    struct rng rng;
    struct perf_estimate est;

    rng_seed(&rng, seed, 0x7065726600);
    for (int b = 0; b < PERF_RESAMPLES; b++) {
        for (int k = 0; k < rounds; k++)
            pick[k] = (int)rng_below(&rng, (uint64_t)rounds);
        ratio[b] = perf_resample(num, pick, rounds, &rng, scratch);
        if (den)
            ratio[b] /= perf_resample(den, pick, rounds, &rng, scratch);
    }
    value = perf_median(num->x, num->n) / (den ? perf_median(den->x, den->n) : 1);
    numbers_sort(ratio, PERF_RESAMPLES);
    sd = perf_of_process(num);
    if (den)
        sd = hypot(sd, perf_of_process(den));
    est = perf_widen(value, ratio[(int)(0.025 * PERF_RESAMPLES)], ratio[(int)(0.975 * PERF_RESAMPLES) - 1], sd);
    free(pick);
    free(ratio);
    free(scratch);
    return est;
}

static const struct perf_estimate unknown = {NAN, NAN, NAN};

struct perf_estimate perf_time(const struct perf_calls *c, uint64_t seed)
{
    struct groups g = perf_group(c);
    struct perf_estimate est = g.n ? perf_do_estimate(&g, NULL, seed) : unknown;

    perf_groups_free(&g);
    return est;
}

struct perf_estimate perf_ratio(const struct perf_calls *num, const struct perf_calls *den, uint64_t seed)
{
    struct groups a = perf_group(num), b = perf_group(den);
    struct perf_estimate est = a.n && b.n ? perf_do_estimate(&a, &b, seed) : unknown;

    perf_groups_free(&a);
    perf_groups_free(&b);
    return est;
}

struct perf_estimate perf_product(struct perf_estimate a, struct perf_estimate b)
{
    double value = a.value * b.value;

    return (struct perf_estimate){value, value * exp(-hypot(log(a.value / a.lo), log(b.value / b.lo))),
                                  value * exp(hypot(log(a.hi / a.value), log(b.hi / b.value)))};
}

/* ---- two clocks ---- */

/* Mean of x without its lowest and highest fifth, and that mean's standard error. Sorts x. NaN when n is 0. */
static double perf_trimmed_mean(double *x, int n, double *ret_se)
{
    int cut = n / 5;
    double sum = 0, mean, all = 0, squares = 0;

    numbers_sort(x, (size_t)n);
    for (int i = cut; i < n - cut; i++)
        sum += x[i];
    mean = sum / (n - 2 * cut);
    for (int i = 0; i < n; i++) {
        double w = x[i < cut ? cut : i >= n - cut ? n - cut - 1 : i] - mean;

        all += w;
        squares += w * w;
    }
    *ret_se = sqrt((squares - all * all / n) / (n > 1 ? n - 1 : 1) / n) / (1 - 2.0 * cut / n);
    return mean;
}

struct perf_overhead perf_calibrate(const struct perf_calls *empty)
{
    struct perf_overhead o = {.n = empty->n, .ms = NAN, .se_ms = NAN};
    double *d = xcalloc((size_t)o.n + 1, sizeof *d);

    for (int i = 0; i < o.n; i++)
        d[i] = empty->span_ms[i] - empty->event_ms[i];
    if (o.n)
        o.ms = perf_trimmed_mean(d, o.n, &o.se_ms);
    o.noise_ms = perf_mad(d, o.n, o.ms);
    free(d);
    return o;
}

/* The lowest fifth's upper end of span - event, of calls that claim to be no slower than 'event'; NaN: none. */
static double perf_low_gap(const struct perf_calls *c, double event, int *ret_n)
{
    double *d = xcalloc((size_t)c->n + 1, sizeof *d), low = NAN;
    int n = 0;

    for (int i = 0; i < c->n; i++)
        if (c->event_ms[i] <= event)
            d[n++] = c->span_ms[i] - c->event_ms[i];
    numbers_sort(d, (size_t)n);
    if (n)
        low = d[n / 5];
    free(d);
    *ret_n = n;
    return low;
}

/* Standard error of the difference of two such quantiles, from the empty calls' spread. */
static double perf_low_error(double noise, int a, int b)
{
    return a && b ? 1.75 * noise * sqrt(1.0 / a + 1.0 / b) : INFINITY;
}

struct perf_agreement perf_agree(const struct perf_calls *c, const struct perf_calls *empty)
{
    struct perf_agreement a = {0};
    double event = perf_median(c->event_ms, c->n), noise = perf_calibrate(empty).noise_ms, fast;
    int n, n_fast, n_empty;
    double nothing = perf_low_gap(empty, INFINITY, &n_empty);

    a.gap_ms = perf_low_gap(c, INFINITY, &n) - nothing;
    a.fast_gap_ms = perf_low_gap(c, event, &n_fast) - nothing;
    a.margin_ms = PERF_MARGIN_MS + 6 * perf_low_error(noise, n, n_empty) + 0.02 * event;
    fast = PERF_MARGIN_MS + 6 * perf_low_error(noise, n_fast, n_empty) + 0.02 * event;
    a.judge_ms = event + a.gap_ms;
    a.agree = a.gap_ms <= a.margin_ms && a.fast_gap_ms <= fast; /* false for NaN */
    return a;
}

/* ---- roofline ---- */

static double perf_rate(double amount, double per_second)
{
    return amount > 0 && per_second > 0 ? amount / per_second * 1e3 : 0;
}

struct perf_roofline perf_roofline(const struct perf_work *w, const struct perf_device *d, double eager_ms)
{
    double memory = perf_rate(w->bytes_read + w->bytes_written, d->bandwidth),
        compute = perf_rate(w->flops, d->peak_flops);
    double floor = perf_rate(w->bytes_read + fmax(w->bytes_written - d->l2_bytes, 0), d->bandwidth);
    struct perf_roofline r = {.ms = fmax(memory, compute), .memory_bound = memory >= compute};

    if (w->one_library_call)
        floor = fmax(floor, perf_rate(w->flops / 2.25, d->peak_any_flops));
    r.floor_ms = PERF_FLOOR * floor;
    if (!(eager_ms >= r.floor_ms))
        r.floor_ms = 0;
    if (r.ms <= 0)
        r.ms = NAN;
    return r;
}

/* ---- the section ---- */

/* Four significant digits are more than a timer gives; null instead of NaN: nothing was measured. */
static json_t *perf_do_number(double x)
{
    char text[32];

    if (!isfinite(x))
        return json_null();
    snprintf(text, sizeof text, "%.5g", x);
    return json_num(strtod(text, NULL));
}

static json_t *perf_interval(struct perf_estimate x)
{
    if (!isfinite(x.lo) || !isfinite(x.hi))
        return json_null();
    return json_pack("[o,o]", perf_do_number(x.lo), perf_do_number(x.hi));
}

static void perf_set(json_t *o, const char *key, json_t *v)
{
    json_object_set_new(o, key, v);
}

/* Adds candidate's, eager's and compile's times in ms and the speedups, with 95 % intervals, to o. */
static void perf_add_times(json_t *o, const struct perf_facts *f, struct perf_estimate mine, double eager)
{
    struct perf_estimate up = perf_ratio(&f->eager_cold, &f->cold, f->seed);
    bool compiled = isfinite(f->compile_of_eager.value) && f->compile_of_eager.value > 0;
    struct perf_estimate up_compile = compiled ? perf_product(up, f->compile_of_eager) : unknown;

    perf_set(o, "candidate_ms", perf_do_number(mine.value));
    perf_set(o, "candidate_ci", perf_interval(mine));
    perf_set(o, "eager_ms", perf_do_number(eager));
    perf_set(o, "compile_ms", compiled ? perf_do_number(eager * f->compile_of_eager.value) : json_null());
    perf_set(o, "compile_error", f->compile_error ? json_utf8(f->compile_error, strlen(f->compile_error))
             : json_null());
    perf_set(o, "speedup_eager", perf_do_number(up.value));
    perf_set(o, "speedup_eager_ci", perf_interval(up));
    perf_set(o, "speedup_compile", perf_do_number(up_compile.value));
    perf_set(o, "speedup_compile_ci", perf_interval(up_compile));
}

/* A vendor's library on the same data, where one call of it does the task. */
static void perf_add_library(json_t *o, const struct perf_facts *f, const struct perf_roofline *r, double eager)
{
    bool known = isfinite(f->library_of_eager.value) && f->library_of_eager.value > 0;
    double ms = known ? eager * f->library_of_eager.value : NAN;
    struct perf_estimate up = perf_ratio(&f->eager_cold, &f->cold, f->seed);

    if (known)
        up = perf_product(up, f->library_of_eager);
    perf_set(o, "library_ms", perf_do_number(ms));
    perf_set(o, "library_call", known && f->library_call ? json_utf8(f->library_call, strlen(f->library_call))
        : json_null());
    perf_set(o, "library_share", perf_do_number(r->ms / ms));
    perf_set(o, "speedup_library", known ? perf_do_number(up.value) : json_null());
    perf_set(o, "speedup_library_ci", known ? perf_interval(up) : json_null());
}

/* Adds the least possible time in ms and which limit it is of. */
static void perf_add_roofline(json_t *o, const struct perf_facts *f, const struct perf_roofline *r, double mine)
{
    double bytes = f->work.bytes_read + f->work.bytes_written;

    perf_set(o, "roofline_ms", perf_do_number(r->ms));
    perf_set(o, "roofline_share", perf_do_number(r->ms / mine));
    perf_set(o, "bound", isfinite(r->ms) ? json_string(r->memory_bound ? "memory" : "compute") : json_null());
    perf_set(o, "floor_ms", perf_do_number(r->floor_ms));
    perf_set(o, "bytes", json_num(bytes));
    perf_set(o, "flops", json_num(f->work.flops));
    perf_set(o, "bandwidth", perf_do_number(bytes / mine * 1e3));
    perf_set(o, "bandwidth_peak", perf_do_number(f->device.bandwidth));
    perf_set(o, "flops_peak", perf_do_number(f->device.peak_flops));
}

/* The section about the two clocks' agreement. New. */
static json_t *perf_clocks(const struct perf_agreement *a, const struct perf_facts *f)
{
    struct perf_overhead o = perf_calibrate(&f->empty);

    return json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "judge_ms", perf_do_number(a->judge_ms), "gap_ms",
                     perf_do_number(a->gap_ms), "fast_gap_ms", perf_do_number(a->fast_gap_ms), "margin_ms",
                     perf_do_number(a->margin_ms), "overhead_ms", perf_do_number(o.ms), "noise_ms",
                     perf_do_number(o.noise_ms), "se_ms", perf_do_number(o.se_ms), "empty_ms",
                     perf_do_number(perf_median(f->empty.event_ms, f->empty.n)));
}

/* How many of the calls are outliers. */
static int perf_do_outliers(const struct perf_calls *c)
{
    bool *out = xcalloc((size_t)c->n + 1, sizeof *out);
    int n = perf_outliers(c->event_ms, c->n, out);

    free(out);
    return n;
}

/* Names of the reasons why a time is not trusted; empty: it is. New. */
static json_t *perf_reasons_of(const struct perf_facts *f, bool agree, double floor_ms, double mine)
{
    const struct {
        const char *name;
        bool holds;
    } rows[] = {
        {"clock_disagree", !agree}, {"below_roofline", !(mine >= floor_ms)}, {"throttled", f->throttled},
        {"device_busy", f->device_busy}, {"output_wrong", f->output_wrong || f->checked == 0},
        {"inputs_repeat", f->inputs_repeat},
    };
    json_t *list = json_array();

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].holds)
            json_array_append_new(list, json_string(rows[i].name));
    return list;
}

json_t *perf_section(const struct perf_facts *f)
{
    struct perf_estimate mine = perf_time(&f->cold, f->seed);
    double eager = perf_time(&f->eager_cold, f->seed).value;
    struct perf_roofline r = perf_roofline(&f->work, &f->device, eager);
    struct perf_agreement cold = perf_agree(&f->cold, &f->empty);
    json_t *o = json_object(), *reasons;

    perf_add_times(o, f, mine, eager);
    perf_add_roofline(o, f, &r, mine.value);
    perf_add_library(o, f, &r, eager);
    perf_set(o, "clocks", perf_clocks(&cold, f));
    perf_set(o, "calls", json_pack("{s:i,s:i,s:i,s:i}", "cold", f->cold.n, "eager", f->eager_cold.n, "checked",
                                   f->checked, "outliers", perf_do_outliers(&f->cold)));
    reasons = perf_reasons_of(f, cold.agree, r.floor_ms, mine.value);
    perf_set(o, "trusted", json_boolean(json_array_size(reasons) == 0));
    perf_set(o, "reasons", reasons);
    return o;
}

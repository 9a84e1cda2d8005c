/* test_perf.c - the performance stage's arithmetic: made-up measurements whose truth is known. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/rng.h"
#include "eval/perf/perf.h"

#define N 60
#define ROUNDS 5

struct made {
    double event[N], span[N];
    int round[N];
    struct perf_calls c;
};

/* N calls of true_ms with noise, drift shared within a round (drift[r]), and a span that holds 'over' more. */
static void make(struct made *m, struct rng *rng, double true_ms, double noise, const double *drift, double over)
{
    for (int i = 0; i < N; i++) {
        m->round[i] = i / (N / ROUNDS);
        m->event[i] = true_ms * exp(noise * rng_normal(rng) + (drift ? drift[m->round[i]] : 0));
        m->span[i] = m->event[i] + over + 0.002 * rng_normal(rng);
    }
    m->c = (struct perf_calls){m->event, m->span, m->round, N};
}

static void test_median_and_outliers(void **state)
{
    double odd[] = {3, 1, 2}, even[] = {4, 1, 3, 2}, x[40];
    bool out[40];

    (void)state;
    assert_true(perf_median(odd, 3) == 2 && odd[0] == 3);
    assert_true(perf_median(even, 4) == 2.5);
    assert_true(isnan(perf_median(odd, 0)));
    assert_true(fabs(perf_mad((double[]){1, 2, 3, 4, 100}, 5, 3) - 1.4826) < 1e-12);
    for (int i = 0; i < 40; i++)
        x[i] = 1 + 0.001 * (i % 7);
    x[3] = 2;    /* disturbed */
    x[9] = 0.01; /* too fast is no outlier: it must stay visible */
    assert_int_equal(perf_outliers(x, 40, out), 1);
    assert_true(out[3] && !out[9]);
    for (int i = 0; i < 40; i += 2)
        x[i] = 5; /* two speeds are not outliers: at most a tenth goes */
    assert_true(perf_outliers(x, 40, out) <= 4);
}

/* The promise of the interval: another run of the same measurement lies in it, at least 95 of 100 times. */
static void test_interval_covers_a_repeat(void **state)
{
    enum { TRIES = 200 };
    struct rng rng;
    struct made a, b, a2, b2;
    double drift[ROUNDS], drift2[ROUNDS];
    int ratio_in = 0, time_in = 0, one_in = 0;
    /* of both sides, and what the calls add */
    double process = hypot(PERF_REPEAT, PERF_REPEAT_MS / 0.05), most = 2 * (1.96 * M_SQRT2 * M_SQRT2 * process + 0.025);

    (void)state;
    rng_seed(&rng, 7, 0);
    for (int t = 0; t < TRIES; t++) {
        struct perf_estimate r, r2, m, same;

        for (int k = 0; k < ROUNDS; k++) {
            drift[k] = 0.01 * rng_normal(&rng);
            drift2[k] = 0.01 * rng_normal(&rng);
        }
        make(&a, &rng, 0.050, 0.02, drift, 0.2);
        make(&b, &rng, 0.065, 0.02, drift, 0.2);
        make(&a2, &rng, 0.050, 0.02, drift2, 0.2);
        make(&b2, &rng, 0.065, 0.02, drift2, 0.2);
        r = perf_ratio(&b.c, &a.c, 1);
        r2 = perf_ratio(&b2.c, &a2.c, 2);
        ratio_in += r.lo <= r2.value && r2.value <= r.hi;
        m = perf_time(&a.c, 1);
        time_in += m.lo <= perf_median(a2.event, N) && perf_median(a2.event, N) <= m.hi;
        /* drift is not shared here: this interval must be wide enough for that too */
        same = perf_ratio(&a2.c, &a.c, 3);
        one_in += same.lo <= 1 && 1 <= same.hi;
        assert_true(r.lo < r.value && r.value < r.hi);
        assert_true(log(r.hi / r.lo) < most); /* and it is not wide for nothing */
    }
    if (ratio_in < 0.95 * TRIES || time_in < 0.95 * TRIES || one_in < 0.95 * TRIES)
        fail_msg("of %d: ratio %d, time %d, same kernel %d", TRIES, ratio_in, time_in, one_in);
}

static void test_bootstrap_is_deterministic(void **state)
{
    struct rng rng;
    struct made a, b;
    struct perf_estimate x, y;

    (void)state;
    rng_seed(&rng, 3, 0);
    make(&a, &rng, 1, 0.05, NULL, 0);
    make(&b, &rng, 2, 0.05, NULL, 0);
    x = perf_ratio(&b.c, &a.c, 9);
    y = perf_ratio(&b.c, &a.c, 9);
    assert_true(!memcmp(&x, &y, sizeof x));
    b.c.n = 0;
    assert_true(isnan(perf_ratio(&b.c, &a.c, 9).value) && isnan(perf_time(&b.c, 9).hi));
    x = perf_product((struct perf_estimate){2, 1.8, 2.2}, (struct perf_estimate){1.5, 1.5, 1.5});
    assert_true(fabs(x.value - 3) < 1e-12 && fabs(x.lo - 2.7) < 1e-9 && fabs(x.hi - 3.3) < 1e-9);
}

static void test_what_a_span_holds_besides(void **state)
{
    struct rng rng;
    struct made empty;
    struct perf_overhead o;

    (void)state;
    rng_seed(&rng, 5, 0);
    make(&empty, &rng, 0.100, 0.02, NULL, 0.230);
    o = perf_calibrate(&empty.c);
    assert_true(fabs(o.ms - 0.230) < 0.001 && o.noise_ms > 0.001 && o.noise_ms < 0.003);
    assert_true(o.se_ms > 0 && o.se_ms < 0.001);
}

static void test_roofline(void **state)
{
    struct perf_device h200 = {.bandwidth = 4.8e12, .peak_flops = 67e12, .peak_any_flops = 494e12, .l2_bytes = 60e6};
    struct perf_work relu = {.bytes_read = 256e6, .bytes_written = 256e6};
    struct perf_work mm = {.bytes_read = 2 * 64e6, .bytes_written = 64e6, .flops = 2.0 * 4096 * 4096 * 4096,
                           .one_library_call = true};
    struct perf_roofline r = perf_roofline(&relu, &h200, 0.2);

    (void)state;
    assert_true(fabs(r.ms - 512e6 / 4.8e12 * 1e3) < 1e-9 && r.memory_bound);
    /* 60 MB of the writes may stay in L2 */
    assert_true(fabs(r.floor_ms - 0.9 * (256e6 + 196e6) / 4.8e12 * 1e3) < 1e-9);
    r = perf_roofline(&mm, &h200, 3);
    assert_true(fabs(r.ms - mm.flops / 67e12 * 1e3) < 1e-9 && !r.memory_bound);
    assert_true(fabs(r.floor_ms - 0.9 * mm.flops / 2.25 / 494e12 * 1e3) < 1e-9);
    mm.one_library_call = false; /* sum(A @ B) needs no matrix product: flops do not bind */
    r = perf_roofline(&mm, &h200, 3);
    assert_true(fabs(r.floor_ms - 0.9 * (128e6 + 4e6) / 4.8e12 * 1e3) < 1e-9);
    assert_true(perf_roofline(&relu, &h200, 0.01).floor_ms == 0); /* the reference itself is faster: no floor */
    r = perf_roofline(&relu, &(struct perf_device){0}, 0.2);
    assert_true(isnan(r.ms) && r.floor_ms == 0);
}

static void test_section(void **state)
{
    struct rng rng;
    struct made mine, eager, empty;
    struct perf_facts f = {.compile_of_eager = {0.8, 0.79, 0.81}, .checked = 3, .seed = 1,
                           .work = {.bytes_read = 64e6, .bytes_written = 64e6},
                           .device = {.bandwidth = 4.8e12, .l2_bytes = 60e6}};
    json_t *s;
    const json_t *ci;

    (void)state;
    rng_seed(&rng, 11, 0);
    make(&mine, &rng, 0.040, 0.01, NULL, 0.2);
    make(&eager, &rng, 0.060, 0.01, NULL, 0.2);
    make(&empty, &rng, 0.002, 0.01, NULL, 0.2);
    f.cold = mine.c, f.eager_cold = eager.c, f.empty = empty.c;
    s = perf_section(&f);
    assert_true(json_flag(s, "trusted", false) && json_array_size(json_object_get(s, "reasons")) == 0);
    assert_true(fabs(json_f64(s, "speedup_eager", 0) - 1.5) < 0.03);
    assert_true(fabs(json_f64(s, "speedup_compile", 0) - 1.2) < 0.03);
    assert_true(fabs(json_f64(s, "compile_ms", 0) - 0.048) < 0.001);
    assert_true(fabs(json_f64(s, "roofline_share", 0) - 128e6 / 4.8e12 * 1e3 / 0.040) < 0.01);
    assert_string_equal(json_str(s, "bound", ""), "memory");
    ci = json_object_get(s, "speedup_eager_ci");
    assert_int_equal(json_array_size(ci), 2);
    assert_true(json_num_value(json_array_get(ci, 0)) < 1.5 && json_num_value(json_array_get(ci, 1)) > 1.5);
    assert_true(json_is_null(json_object_get(s, "library_ms")) && json_is_null(json_object_get(s, "compile_error")));
    json_decref(s);

    f.work.one_library_call = true;
    f.library_of_eager = (struct perf_estimate){0.5, 0.49, 0.51};
    f.library_call = "mm";
    f.compile_of_eager.value = NAN;
    f.compile_error = "Unsupported";
    f.throttled = true;
    f.checked = 0; /* nothing was looked at: that is no check */
    for (int i = 0; i < N; i++)
        mine.event[i] = 0.005, mine.span[i] = 0.205; /* both clocks agree, physics does not */
    s = perf_section(&f);
    assert_false(json_flag(s, "trusted", true));
    assert_true(json_is_null(json_object_get(s, "speedup_compile")) &&
                json_is_null(json_object_get(s, "speedup_compile_ci")));
    assert_true(fabs(json_f64(s, "library_ms", 0) - 0.030) < 0.001);
    assert_true(fabs(json_f64(s, "library_share", 0) - 128e6 / 4.8e12 * 1e3 / 0.030) < 0.02);
    assert_true(fabs(json_f64(s, "speedup_library", 0) - 0.5 * json_f64(s, "speedup_eager", 0)) < 1e-3);
    assert_string_equal(json_str(s, "library_call", ""), "mm");
    assert_string_equal(json_str(s, "compile_error", ""), "Unsupported");
    {
        char *text = json_text(json_object_get(s, "reasons"));

        assert_string_equal(text, "[\"below_roofline\",\"throttled\",\"output_wrong\"]");
        free(text);
    }
    json_decref(s);
}

/* Where both clocks are the judge's: n spans hold 'over' more than true_ms, give or take 'noise', never less than
 * over / 2. Calls below 'lies' claim 5 us in place of true_ms. */
static struct perf_calls alone(struct made *m, struct rng *rng, int n, double true_ms, double over, double noise,
                               int lies)
{
    for (int i = 0; i < n; i++) {
        m->event[i] = i < lies ? 0.005 : true_ms * exp(0.01 * rng_normal(rng));
        m->span[i] = (i < lies ? true_ms : m->event[i]) + fmax(over + noise * rng_normal(rng), over / 2);
        m->round[i] = i % ROUNDS;
    }
    return (struct perf_calls){m->event, m->span, m->round, n};
}

static int agreed(struct rng *rng, double true_ms, double over, double noise, int lies)
{
    struct made cold, empty;
    int n = 0;

    for (int i = 0; i < 200; i++) {
        struct perf_calls c = alone(&cold, rng, N, true_ms, over, noise, lies);
        struct perf_calls e = alone(&empty, rng, 25, 0.002, over, noise, 0);

        n += perf_agree(&c, &e).agree;
    }
    return n;
}

/* Overheads and spreads as they were measured on an H100, with idle and with busy cores. */
static void test_clocks_of_one_owner(void **state)
{
    struct rng rng;

    (void)state;
    rng_seed(&rng, 3, 0);
    assert_true(agreed(&rng, 0.0038, 0.012, 0.001, 0) >= 199);
    assert_true(agreed(&rng, 0.0038, 0.0131, 0.0022, 0) >= 199);
    assert_true(agreed(&rng, 0.0226, 2.52, 0.496, 0) >= 199);
    assert_true(agreed(&rng, 0.0038, 3.55, 1.69, 0) >= 199);
    assert_true(agreed(&rng, 25, 3.55, 1.69, 0) >= 199);
    assert_int_equal(agreed(&rng, 0.060, 0.012, 0.001, N), 0);     /* all calls claim less */
    assert_int_equal(agreed(&rng, 0.060, 0.012, 0.001, N / 2), 0); /* half of them, so that the median is low */
    assert_int_equal(agreed(&rng, 25, 3.55, 1.69, N), 0);          /* on a busy host, too, where it would pay */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_median_and_outliers), cmocka_unit_test(test_interval_covers_a_repeat),
        cmocka_unit_test(test_bootstrap_is_deterministic), cmocka_unit_test(test_what_a_span_holds_besides),
        cmocka_unit_test(test_roofline), cmocka_unit_test(test_section),
        cmocka_unit_test(test_clocks_of_one_owner),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

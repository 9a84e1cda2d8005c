/* test_pure.c - reward, tolerance, comparison, places, precedence and feedback against independent statements. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "eval/check/compare.h"
#include "eval/check/hypothesis.h"
#include "eval/check/ties.h"
#include "eval/candidate/arrange.h"
#include "eval/eval.h"
#include "eval/build/judge_backend.h"
#include "eval/verdict/feedback.h"
#include "eval/verdict/place.h"
#include "eval/verdict/record.h"
#include "objective/reward.h"

/* ---- reward: by hand from the formula of objective/reward.h ---- */

static double reward(const char *text)
{
    struct err e = ERR_INIT;
    json_t *v = json_parse(text, strlen(text), "test", &e);
    double r = -99;

    if (!v)
        fail_msg("%s", e.msg);
    if (!reward_of(v, REWARD_DEFAULT, &r))
        r = NAN;
    json_decref(v);
    return r;
}

static void test_reward(void **state)
{
    static const struct {
        const char *text;
        double want;
    } rows[] = {
        {"{\"status\":\"failed\",\"category\":\"extraction_error\"}", -1},
        {"{\"status\":\"failed\",\"category\":\"compile_error\",\"correctness\":null}", -1},
        {"{\"status\":\"failed\",\"category\":\"timeout\"}", -1},
        {"{\"status\":\"failed\",\"category\":\"runtime_error\",\"correctness\":{\"q\":0.9}}", -1},
        {"{\"status\":\"failed\",\"category\":\"cheating\",\"correctness\":{\"q\":1.0}}", -1},
        {"{\"status\":\"failed\",\"category\":\"correctness_error\",\"correctness\":{\"q\":0}}", -1},
        {"{\"status\":\"failed\",\"category\":\"correctness_error\",\"correctness\":{\"q\":0.25}}", -0.375},
        {"{\"status\":\"failed\",\"category\":\"correctness_error\",\"correctness\":{\"q\":0.96}}", -0.02},
        {"{\"status\":\"passed\",\"category\":null,\"correctness\":{\"q\":1},\"performance\":null}", 1},
        {"{\"status\":\"passed\",\"category\":null,\"performance\":{\"speedup_eager\":1.62,\"trusted\":true}}", 1.31},
        {"{\"status\":\"passed\",\"category\":null,\"performance\":{\"speedup_eager\":0.5,\"trusted\":true}}", 1},
        {"{\"status\":\"passed\",\"category\":null,\"performance\":{\"speedup_eager\":50,\"trusted\":true}}", 3},
        {"{\"status\":\"passed\",\"category\":null,\"performance\":{\"speedup_eager\":50,\"trusted\":false}}", 1},
        {"{\"status\":\"passed\",\"category\":null,\"performance\":{\"speedup_eager\":\"nan\",\"trusted\":true}}", 1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (fabs(reward(rows[i].text) - rows[i].want) > 1e-12)
            fail_msg("row %zu: %g, expected %g", i, reward(rows[i].text), rows[i].want);
    assert_true(isnan(reward("{\"status\":\"infra\",\"category\":\"infra\"}")));
    assert_true(isnan(reward("{\"status\":\"unsupported\",\"category\":\"unsupported\"}")));
}

/* Faster Rate looks at the lower bound of a trusted speedup of a verdict that passed, and at nothing else. */
/* The emulator's limit is the emulator's alone: a GPU has none but its memory. */
static void test_element_limit(void **state)
{
    struct eval_options o = EVAL_OPTIONS_DEFAULT;

    (void)state;
    assert_int_equal(eval_max_elements(&o), 1 << 22);
    o.backend = "cuda";
    assert_true(eval_max_elements(&o) == INT64_MAX);
    o.max_elements = 1000;
    assert_int_equal(eval_max_elements(&o), 1000);
}

static void test_faster(void **state)
{
    static const struct {
        const char *text;
        bool eager, compile;
    } rows[] = {
        {"{'status':'passed','performance':{'trusted':true,'speedup_eager':1.2,'speedup_eager_ci':[1.11,1.3],"
         "'speedup_compile':1.2,'speedup_compile_ci':[1.09,1.31]}}", true, false},
        {"{'status':'passed','performance':{'trusted':false,'speedup_eager':9,'speedup_eager_ci':[8,10]}}", false,
         false},
        {"{'status':'failed','performance':{'trusted':true,'speedup_eager':9,'speedup_eager_ci':[8,10]}}", false,
         false},
        {"{'status':'passed','performance':{'trusted':true,'speedup_eager':1.2,'speedup_compile':1.1}}", true, false},
        {"{'status':'passed','performance':{'trusted':true,'speedup_eager':'inf','speedup_eager_ci':null,"
         "'speedup_compile':null,'speedup_compile_ci':null}}", false, false},
        {"{'status':'passed','performance':null}", false, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct err e = ERR_INIT;
        char *text = strdup(rows[i].text);
        json_t *v;

        for (char *p = text; *p; p++)
            *p = *p == '\'' ? '"' : *p;
        v = json_parse(text, strlen(text), "test", &e);
        assert_non_null(v);
        if (reward_is_faster(v, "eager", 1.1) != rows[i].eager ||
            reward_is_faster(v, "compile", 1.1) != rows[i].compile)
            fail_msg("row %zu: %g %g", i, reward_speedup_lower(v, "eager"), reward_speedup_lower(v, "compile"));
        json_decref(v);
        free(text);
    }
}

/* ---- tolerance ---- */

static struct tolerance strict(double n1, double n2, double max_abs, double m)
{
    struct noise n = {n1, n2, max_abs, m};

    return tolerance_strict(DT_F32, DT_F32, &n);
}

/* fp32 sums in two honest orders pass; tanh-GELU for erf-GELU, biased for unbiased variance, and zeros do not. */
static void test_tolerance_separates(void **state)
{
    enum { N = 4096 };
    double sum = 0, mean, var = 0, serial_err, tree_err, pert = 0, x, erf_g, tanh_g, worst = 0, n1 = 0;
    float serial = 0, lane[32] = {0}, tree = 0, v[N];
    struct tolerance t;

    (void)state;
    srand(7);
    for (int i = 0; i < N; i++) {
        v[i] = (float)(rand() / (double)RAND_MAX * 2 - 0.9);
        sum += v[i];
        serial += v[i];
        lane[i % 32] += v[i];
        pert += (rand() & 1 ? 1 : -1) * v[i] * 0x1p-24;
    }
    for (int i = 0; i < 32; i++)
        tree += lane[i];
    serial_err = fabs(serial - sum), tree_err = fabs(tree - sum);
    t = strict(tree_err, fabs(pert), fabs(sum), N);
    assert_true(t.usable);
    assert_true(serial_err <= t.abs + t.rel * fabs(sum));
    assert_true(fabs(sum) > t.abs + t.rel * fabs(sum)); /* zero */

    mean = sum / N;
    for (int i = 0; i < N; i++)
        var += (v[i] - mean) * (v[i] - mean);
    t = strict(1e-7 * var / N, 1e-7 * var / N, var / (N - 1), N);
    assert_true(fabs(var / N - var / (N - 1)) > t.abs + t.rel * var / (N - 1));

    for (int i = 0; i < 2000; i++) {
        x = -4 + i * 0.004;
        erf_g = 0.5 * x * (1 + erf(x * M_SQRT1_2));
        n1 = fmax(n1, fabs((double)(0.5f * (float)x * (1 + erff((float)x * (float)M_SQRT1_2))) - erf_g));
    }
    t = strict(n1, 4 * 0x1p-24, 4, 1);
    for (int i = 0; i < 2000; i++) {
        x = -4 + i * 0.004;
        erf_g = 0.5 * x * (1 + erf(x * M_SQRT1_2));
        tanh_g = 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
        worst = fmax(worst, fabs(tanh_g - erf_g) - t.abs - t.rel * fabs(erf_g));
    }
    assert_true(worst > 0);
}

static void test_tolerance_cap(void **state)
{
    struct noise ints = {1, 1, 1, 1};
    struct tolerance t = strict(1e-3, 0, 1e-6, 1); /* noise above the signal */

    (void)state;
    assert_false(t.usable);
    t = strict(1e-9, 1e-9, 1e-6, 1e12); /* tiny outputs, as of softmax over many */
    assert_true(t.abs < 1e-6 / 100);
    t = tolerance_strict(DT_I64, DT_I64, &ints);
    assert_true(t.usable && t.abs == 0 && t.rel == 0);
    t = strict(NAN, 0, 1, 1);
    assert_false(t.usable && t.abs > 0);
}

/* ---- comparison ---- */

static struct tensor tensor_f32(const float *v, int64_t rows, int64_t cols)
{
    return (struct tensor){.dtype = DT_F32, .ndim = 2, .shape = {rows, cols}, .n = rows * cols,
                           .data = (const uint8_t *)v};
}

/* ---- hypotheses: the mistake is made by hand, and must be named ---- */

enum { ROWS = 6, COLUMNS = 8, ALL = ROWS * COLUMNS };

/* An input of ROWS x COLUMNS, and want of it: each test makes got of want. */
struct mistake {
    float x[ALL], want[ALL], got[ALL];
    int rows, columns; /* of want and got */
};

static struct mistake mistake_start(void)
{
    struct mistake m = {.rows = ROWS, .columns = COLUMNS};

    for (int i = 0; i < ALL; i++) {
        m.x[i] = (float)((i * 37 + 11) % 23) / 7 - 1.3f;
        m.want[i] = m.x[i] * m.x[i] + 0.3f * m.x[i] + 0.1f;
    }
    return m;
}

static void mistake_is(const struct mistake *m, const char *source, const char *says)
{
    struct tensor want = tensor_f32((float *)m->want, m->rows, m->columns), got = want,
                  x = tensor_f32((float *)m->x, ROWS, COLUMNS);
    struct tolerance t = {.abs = 1e-6, .rel = 1e-5, .usable = true};
    struct hypothesis_case c = {.want = &want, .got = &got, .tol = &t, .inputs = &x, .n_inputs = 1, .source = source};
    char text[200];

    got.data = (const uint8_t *)m->got;
    hypothesis_find(&c, text, sizeof text);
    assert_string_equal(text, says);
}

#define EACH(m, i, value) \
    for (int i = 0; i < (m).rows * (m).columns; i++) \
        (m).got[i] = (value)

static void test_factors(void **state)
{
    struct mistake m = mistake_start();

    (void)state;
    EACH(m, i, m.want[i] / 3);
    mistake_is(&m, "y = x ** 2 * 3.0 + z", "your result is the reference's without `* 3.0`");
    mistake_is(&m, "y = x ** 2 * 2.0 + z", "");
    EACH(m, i, m.want[i] * 2.5f);
    mistake_is(&m, "return y / 2.5", "your result is the reference's without `/ 2.5`");
    EACH(m, i, m.want[i] * COLUMNS);
    mistake_is(&m, NULL, "your result is the reference's times 8, the length of axis 1 of input 0: is a sum taken for "
               "a mean?");
    EACH(m, i, m.want[i] / ROWS);
    mistake_is(&m, NULL, "your result is the reference's divided by 6, the length of axis 0 of input 0: is a mean "
               "taken for a sum?");
}

static void test_wrong_places(void **state)
{
    struct mistake m = mistake_start();

    (void)state;
    EACH(m, i, m.want[i % ROWS * COLUMNS + i / ROWS]);
    mistake_is(&m, NULL, "your result is the reference's with its last two axes exchanged");
    EACH(m, i, m.want[i / COLUMNS * COLUMNS + COLUMNS - 1 - i % COLUMNS]);
    mistake_is(&m, NULL, "your result is the reference's with its last axis reversed");
    EACH(m, i, i < ALL - 1 ? m.want[i + 1] : 99);
    mistake_is(&m, NULL, "your result is the reference's, one element too early");
    EACH(m, i, i >= COLUMNS ? m.want[i - COLUMNS] : 99);
    mistake_is(&m, NULL, "your result is the reference's, one row too late");
    EACH(m, i, m.x[i]);
    mistake_is(&m, NULL, "your result is input 0 as it came");
}

static void test_missing_terms(void **state)
{
    struct mistake m = mistake_start();

    (void)state;
    for (int i = 0; i < ALL; i++)
        m.got[i] = m.want[i], m.want[i] = tanhf(m.got[i]);
    mistake_is(&m, NULL, "the reference's value is tanh of yours: is it missing?");
    m = mistake_start();
    EACH(m, i, fmaxf(m.want[i] - 1, 0));
    for (int i = 0; i < ALL; i++)
        m.want[i] -= 1;
    mistake_is(&m, NULL, "your value is relu of the reference's: is it there once too often?");
    m = mistake_start();
    EACH(m, i, m.want[i] - (float)(i % COLUMNS) * 0.3f);
    mistake_is(&m, NULL, "each place along axis 1 is wrong by a number of its own that is added: is a bias missing, or "
               "there twice?");
    EACH(m, i, m.want[i] * (1 + (float)(i / COLUMNS)));
    mistake_is(&m, NULL, "each place along axis 0 is wrong by a factor of its own: is a scale missing, or an eps in "
               "it?");
    EACH(m, i, m.want[i] + (float)((i * 13) % 7) * 0.1f);
    mistake_is(&m, NULL, "");
}

static void test_other_reductions(void **state)
{
    struct mistake m = mistake_start();

    (void)state;
    m.rows = 1, m.columns = ROWS;
    for (int r = 0; r < ROWS; r++) {
        m.want[r] = m.got[r] = m.x[r * COLUMNS];
        for (int c = 1; c < COLUMNS; c++)
            m.want[r] += m.x[r * COLUMNS + c], m.got[r] = fmaxf(m.got[r], m.x[r * COLUMNS + c]);
    }
    mistake_is(&m, NULL, "your result is the maximum over axis 1, the reference's the sum over axis 1");
}

/* An input of nothing, whatever its shape, is no reduction's. */
static void test_mistake_without_elements(void **state)
{
    struct mistake m = mistake_start();
    struct tensor want = tensor_f32(m.want, ROWS, COLUMNS), got = tensor_f32(m.got, ROWS, COLUMNS), x = want;
    struct tolerance t = {.abs = 1e-6, .rel = 1e-5, .usable = true};
    struct hypothesis_case c = {.want = &want, .got = &got, .tol = &t, .inputs = &x, .n_inputs = 1};
    char text[200];

    (void)state;
    x.n = 0, x.ndim = 2, x.shape[0] = 0, x.shape[1] = 0;
    EACH(m, i, m.want[i] * m.want[i] + (float)(i % 7));
    hypothesis_find(&c, text, sizeof text);
}

static void test_typical_error(void **state)
{
    struct mistake m = mistake_start();
    struct tensor want = tensor_f32(m.want, ROWS, COLUMNS), got = tensor_f32(m.got, ROWS, COLUMNS);
    struct tolerance t = {.abs = 1e-3, .usable = true};
    struct hypothesis_case c = {.want = &want, .got = &got, .tol = &t};

    (void)state;
    EACH(m, i, m.want[i] + (i % 4 == 0 ? 0 : i == 5 ? 100 : 0.25f));
    assert_true(fabs(hypothesis_typical_error(&c) - 0.25) < 1e-4);
    EACH(m, i, m.want[i]);
    assert_true(isnan(hypothesis_typical_error(&c)));
}

static void test_compare_values(void **state)
{
    float want[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, got[12];
    struct tensor w = tensor_f32(want, 4, 3), g = tensor_f32(got, 4, 3);
    struct tolerance t = {.abs = 1e-6, .rel = 1e-5, .usable = true};
    struct comparison c;

    (void)state;
    memcpy(got, want, sizeof got);
    compare_tensors(&w, &w, &g, &t, &c);
    assert_int_equal(c.kind, CMP_SAME);
    got[7] = 8.5f;
    got[4] = NAN;
    compare_tensors(&w, &w, &g, &t, &c);
    assert_int_equal(c.kind, CMP_VALUES);
    assert_int_equal(c.n_bad, 2);
    assert_int_equal(c.n_nan, 1);
    assert_int_equal(c.n_unwritten, 0);
    assert_string_equal(c.pattern, "");
    memset(&got[4], 0xff, sizeof got[4]); /* as the judge fills memory */
    got[7] = got[4];
    compare_tensors(&w, &w, &g, &t, &c);
    assert_true(c.n_nan == 2 && c.n_unwritten == 2 && strstr(c.pattern, "all of them nan (never written)"));
    got[4] = got[7] = NAN;
    compare_tensors(&w, &w, &g, &t, &c);
    assert_true(c.n_unwritten == 0 && strstr(c.pattern, "all of them nan (computed"));
    got[7] = 8.5f;
    compare_tensors(&w, &w, &g, &t, &c);
    assert_string_equal(c.first_at, "[1, 1]");
    assert_string_equal(c.worst_at, "[1, 1]"); /* NaN is the worst there is */
    assert_true(c.first_expected == 5 && isnan(c.first_got));
    g = tensor_f32(got, 3, 4);
    compare_tensors(&w, &w, &g, &t, &c);
    assert_int_equal(c.kind, CMP_SHAPE);
    assert_string_equal(c.detail, "shape: expected (4, 3), got (3, 4)");
    g = w;
    g.dtype = DT_I32;
    compare_tensors(&w, &w, &g, &t, &c);
    assert_int_equal(c.kind, CMP_DTYPE);
}

/* Tile by tile the same is found as at once. */
static void test_compare_tiles(void **state)
{
    enum { ROWS = 12, COLS = 5, N = ROWS * COLS };
    float want[N], got[N];
    struct tensor w = tensor_f32(want, ROWS, COLS), g = tensor_f32(got, ROWS, COLS);
    struct tolerance t = {.abs = 1e-6, .rel = 1e-5, .usable = true};

    (void)state;
    for (int seed = 0; seed < 50; seed++) {
        struct comparison once, all = {.first = -1, .worst = -1};

        srand((unsigned)seed);
        for (int i = 0; i < N; i++) {
            want[i] = (float)(i + 1);
            got[i] = want[i] + (rand() % 20 == 0 ? (float)(rand() % 7) : 0);
        }
        got[rand() % N] = seed % 3 ? 0 : NAN;
        compare_tensors(&w, &w, &g, &t, &once);
        for (int from = 0; from < ROWS; from += 5) {
            int rows = ROWS - from < 5 ? ROWS - from : 5;
            struct tensor a = tensor_f32(want + from * COLS, rows, COLS), b = tensor_f32(got + from * COLS, rows, COLS);
            struct comparison tile;

            compare_tensors(&a, &a, &b, &t, &tile);
            compare_add_tile(&all, &g, from * COLS, &tile);
        }
        assert_int_equal(all.kind, once.kind);
        assert_true(all.n == once.n && all.n_bad == once.n_bad && all.n_nan == once.n_nan && all.first == once.first);
        assert_true(all.worst == once.worst && all.max_abs == once.max_abs && all.max_rel == once.max_rel);
        assert_string_equal(all.first_at, once.first_at);
        assert_string_equal(all.worst_at, once.worst_at);
    }
}

/* Numbers that are no tensors: an index is right or wrong, a loss has a rounding. */
static void test_compare_number(void **state)
{
    static const struct {
        const char *want, *got;
        bool same;
    } rows[] = {{"1000000", "1000000", true}, {"1000000", "1000001", false}, {"1000000", "1000000.0", false},
                {"0.5", "0.500001", true}, {"0.5", "0.51", false}, {"2.0", "2", true}, {"true", "1", false},
                {"true", "true", true}, {"null", "null", true}, {"\"a\"", "\"b\"", false}, {"0", "false", false}};
    struct comparison c;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        json_t *a = json_loads(rows[i].want, JSON_DECODE_ANY, NULL);
        json_t *b = json_loads(rows[i].got, JSON_DECODE_ANY, NULL);

        if (compare_number(a, b, &c) != rows[i].same || c.kind != (rows[i].same ? CMP_SAME : CMP_VALUES))
            fail_msg("%s and %s", rows[i].want, rows[i].got);
        json_decref(a);
        json_decref(b);
    }
}

static void test_compare_special(void **state)
{
    float want[4] = {INFINITY, -INFINITY, NAN, 1}, bad[4] = {INFINITY, INFINITY, 0, 1};
    struct tensor w = tensor_f32(want, 2, 2), g = tensor_f32(want, 2, 2), b = tensor_f32(bad, 2, 2);
    struct tolerance t = {.abs = 1, .rel = 1, .usable = true}, kb = tolerance_kernelbench(DT_F32);
    struct comparison c;

    (void)state;
    compare_tensors(&w, &w, &g, &t, &c);
    assert_int_equal(c.kind, CMP_SAME);
    compare_tensors(&w, &w, &b, &t, &c);
    assert_int_equal(c.n_bad, 2);
    compare_tensors(&w, &w, &g, &kb, &c);
    assert_int_equal(c.n_bad, 1); /* allclose: NaN never equals NaN */
}

/* Among equal values of a line any place is right, once; a place of another value is not. */
static void test_places(void **state)
{
    float values[8] = {3, 7, 7, 1, 5, 5, 5, 2};
    int64_t want[4] = {1, 2, 0, 1}, swapped[4] = {2, 1, 2, 0}, twice[4] = {1, 1, 0, 1}, other[4] = {1, 3, 0, 9};
    struct tensor e = {.dtype = DT_I64, .ndim = 2, .shape = {2, 2}, .n = 4, .data = (const uint8_t *)want}, g = e;
    struct ties p = {.values = tensor_f32(values, 2, 4), .dim = 1, .unique = true};
    int64_t *got;

    (void)state;
    g.data = (const uint8_t *)swapped;
    got = (int64_t *)(void *)ties_resolved(&p, &e, &g);
    assert_memory_equal(got, want, sizeof want);
    free(got);
    g.data = (const uint8_t *)twice;
    got = (int64_t *)(void *)ties_resolved(&p, &e, &g);
    assert_true(got[0] == 1 && got[1] == -1 && got[2] == 0 && got[3] == 1);
    free(got);
    g.data = (const uint8_t *)other;
    got = (int64_t *)(void *)ties_resolved(&p, &e, &g);
    assert_true(got[0] == 1 && got[1] == 3 && got[3] == 9);
    free(got);
    p.dim = 0;
    assert_null(ties_resolved(&(struct ties){.values = p.values, .dim = 5}, &e, &g));
}

/* Weights that a construction transposed, padded and cast are read off; a table is none. */
static void test_pack(void **state)
{
    float w[6] = {0.5f, 1.25f, -3, 7, 0.75f, 1.25f}, b[2] = {9, 11};
    float turned[8] = {0.5f, 7, 0, 1.25f, 0.75f, 0, -3, 1.25f};
    float table[8] = {0.5f, 7, 0, 1.25f, 0.7f, 0, -3, 1.25f}, ones[3] = {1, 1, 1};
    struct tensor rows[2] = {tensor_f32(w, 2, 3), tensor_f32(b, 1, 2)}, t = tensor_f32(turned, 1, 8);
    static const int64_t want[7] = {0, 3, ARRANGE_ZERO, -9, 4, ARRANGE_ZERO, 2};
    int64_t *of;

    (void)state;
    of = arrange_read(rows, 2, &t);
    assert_null(of); /* here it does not */
    turned[7] = 9, turned[3] = 11;
    of = arrange_read(rows, 2, &t);
    assert_non_null(of);
    for (int i = 0; i < 7; i++)
        assert_int_equal(of[i], i == 3 ? 7 : want[i]);
    assert_true(of[7] == 6 && arrange_value(rows, 2, 6) == 9 && arrange_value(rows, 2, 4) == 0.75);
    free(of);
    of = arrange_read(rows, 2, &rows[0]); /* one of its values stands twice, between neighbours in order */
    assert_non_null(of);
    for (int i = 0; i < 6; i++)
        assert_int_equal(of[i], i);
    free(of);
    t.data = (const uint8_t *)table;
    assert_null(arrange_read(rows, 2, &t));
    t = tensor_f32(ones, 1, 3);
    assert_null(arrange_read(&t, 1, &t));
}

/* What a range stands for: any number of it, and no other. */
static void test_compare_range(void **state)
{
    int64_t eager[2] = {5, 9}, got[2];
    int64_t code[2] = {-((int64_t)1 << 62) + (((int64_t)4 + ((int64_t)1 << 40)) << 20) + 2, 9}; /* 4 to 6 */
    struct tensor e = {.dtype = DT_I64, .ndim = 1, .shape = {2}, .n = 2, .data = (const uint8_t *)eager}, o = e, g = e;
    struct tolerance t = {.usable = true};
    struct comparison c;

    (void)state;
    o.data = (const uint8_t *)code, g.data = (const uint8_t *)got;
    for (int64_t v = 2; v < 9; v++) {
        got[0] = v, got[1] = 9;
        compare_tensors(&e, &o, &g, &t, &c);
        assert_int_equal(c.kind, v >= 4 && v <= 6 ? CMP_SAME : CMP_VALUES);
    }
    got[0] = 5, got[1] = 10;
    compare_tensors(&e, &o, &g, &t, &c);
    assert_int_equal(c.n_bad, 1);
}

/* allclose scales by the candidate: |1 - x| <= t + t |x| differs from t + t |1| at the edge. */
static void test_compare_allclose_side(void **state)
{
    float one = 1.0f, low = 1.0f - 1.99995e-4f, high = 1.0f + 2.00015e-4f;
    struct tensor w = tensor_f32(&one, 1, 1), l = tensor_f32(&low, 1, 1), h = tensor_f32(&high, 1, 1);
    struct tolerance kb = tolerance_kernelbench(DT_F32);
    struct comparison c;

    (void)state;
    compare_tensors(&w, &w, &l, &kb, &c);
    assert_int_equal(c.kind, fabs(1 - (double)low) <= 1e-4 + 1e-4 * low ? CMP_SAME : CMP_VALUES);
    compare_tensors(&w, &w, &h, &kb, &c);
    assert_int_equal(c.kind, fabs(1 - (double)high) <= 1e-4 + 1e-4 * high ? CMP_SAME : CMP_VALUES);
}

static void pattern(const char *want, int64_t rows, int64_t cols, bool (*bad)(int64_t r, int64_t c, int64_t i))
{
    int64_t shape[2] = {rows, cols};
    uint8_t *b = calloc((size_t)(rows * cols), 1);
    char out[160];

    for (int64_t i = 0; i < rows * cols; i++)
        b[i] = bad(i / cols, i % cols, i);
    compare_pattern(b, shape, 2, out, sizeof out);
    free(b);
    assert_string_equal(out, want);
}

static bool last5(int64_t r, int64_t c, int64_t i) { (void)c, (void)i; return r >= 32; }
static bool every4(int64_t r, int64_t c, int64_t i) { (void)r, (void)i; return c % 4 == 1; }
static bool from256(int64_t r, int64_t c, int64_t i) { (void)r, (void)c; return i >= 256; }
static bool all(int64_t r, int64_t c, int64_t i) { (void)r, (void)c, (void)i; return true; }
static bool none(int64_t r, int64_t c, int64_t i) { (void)r, (void)c, (void)i; return false; }
static bool row3(int64_t r, int64_t c, int64_t i) { (void)c, (void)i; return r == 3; }
static bool oddrow(int64_t r, int64_t c, int64_t i) { (void)c, (void)i; return r % 2 == 1; }
static bool lastcols(int64_t r, int64_t c, int64_t i) { (void)r, (void)i; return c >= 34; }
static bool scattered(int64_t r, int64_t c, int64_t i) { return (r * 7 + c * 13 + i * i) % 11 == 3; }

static void test_patterns(void **state)
{
    (void)state;
    pattern("last 5 of 37 rows (from row 32 on)", 37, 64, last5);
    pattern("every 4th column, starting at 1", 8, 32, every4);
    pattern("all elements from flat index 256 on, a multiple of 256", 9, 37, from256);
    pattern("all elements", 4, 4, all);
    pattern("", 4, 4, none);
    pattern("only row 3 of 8", 8, 5, row3);
    pattern("every 2nd row, starting at 1", 12, 5, oddrow);
    pattern("last 3 of 37 columns (from column 34 on)", 8, 37, lastcols);
    pattern("", 16, 37, scattered);
}

static void test_half_values(void **state)
{
    uint16_t h[5] = {0x3c00, 0xc000, 0x7c00, 0x0001, 0x3555}, b[2] = {0x3f80, 0xc0a0};
    struct tensor t = {.dtype = DT_F16, .ndim = 1, .shape = {5}, .n = 5, .data = (uint8_t *)h};

    (void)state;
    assert_true(tensor_at(&t, 0) == 1 && tensor_at(&t, 1) == -2 && isinf(tensor_at(&t, 2)));
    assert_true(tensor_at(&t, 3) == ldexp(1, -24) && fabs(tensor_at(&t, 4) - 1.0 / 3) < 1e-4);
    t = (struct tensor){.dtype = DT_BF16, .ndim = 1, .shape = {2}, .n = 2, .data = (uint8_t *)b};
    assert_true(tensor_at(&t, 0) == 1 && tensor_at(&t, 1) == -5);
}

/* Every half and bfloat16 survives the way to a double and back; values between go to the nearer, ties to even. */
static void test_tensor_put(void **state)
{
    static const enum dtype kinds[] = {DT_F16, DT_BF16};
    uint8_t bytes[16];

    (void)state;
    for (int k = 0; k < 2; k++)
        for (uint32_t h = 0; h < 65536; h++) {
            uint16_t in = (uint16_t)h, out;
            struct tensor t = {.dtype = kinds[k], .n = 1, .data = (const uint8_t *)&in};
            double v = tensor_at(&t, 0);

            tensor_put(kinds[k], (uint8_t *)&out, 0, v);
            if (isnan(v) ? (t.data = (const uint8_t *)&out, !isnan(tensor_at(&t, 0))) : in != out)
                fail_msg("%s %04x became %04x", dt_name(kinds[k]), in, out);
        }
    struct {
        enum dtype dtype;
        double v, want;
    } rows[] = {{DT_F16, 1 + 0x1p-11, 1},          {DT_F16, 1 + 3 * 0x1p-11, 1 + 0x1p-9}, {DT_F16, 65519, 65504},
                {DT_F16, 65520, INFINITY},         {DT_F16, 0x1p-26, 0},                  {DT_F16, 2047.7, 2048},
                {DT_BF16, 1 + 0x1p-8, 1},          {DT_BF16, 1 + 3 * 0x1p-8, 1 + 0x1p-6}, {DT_I8, 300, 127},
                {DT_I8, -300, -128},               {DT_U8, -3, 0},                        {DT_BOOL, 0.6, 1},
                {DT_I32, 2.5, 2},                  {DT_I64, -7, -7},                      {DT_F32, 0.1, 0.1f}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct tensor t = {.dtype = rows[i].dtype, .n = 1, .data = bytes};
        tensor_put(rows[i].dtype, bytes, 0, rows[i].v);
        if (tensor_at(&t, 0) != rows[i].want)
            fail_msg("%s %.17g became %.17g", dt_name(rows[i].dtype), rows[i].v, tensor_at(&t, 0));
    }
}

static void test_tensor_parse_hostile(void **state)
{
    static const char *const bad[] = {
        "{\"t\":\"tensor\",\"dtype\":\"float32\",\"shape\":[2],\"offset\":0,\"nbytes\":4}",
        "{\"t\":\"tensor\",\"dtype\":\"float32\",\"shape\":[4],\"offset\":8,\"nbytes\":16}",
        "{\"t\":\"tensor\",\"dtype\":\"float32\",\"shape\":[-1],\"offset\":0,\"nbytes\":0}",
        "{\"t\":\"tensor\",\"dtype\":\"float32\",\"shape\":[4611686018427387904,4],\"offset\":0,\"nbytes\":0}",
        "{\"t\":\"tensor\",\"dtype\":\"float99\",\"shape\":[1],\"offset\":0,\"nbytes\":4}",
        "{\"t\":\"tensor\",\"dtype\":\"float32\",\"shape\":[1.5],\"offset\":0,\"nbytes\":4}",
        "{\"t\":\"tensor\",\"dtype\":\"float32\",\"shape\":[1],\"offset\":-4,\"nbytes\":4}", "{}", "3"};
    uint8_t blob[16] = {0};
    struct tensor t;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        json_t *v = json_loads(bad[i], JSON_DECODE_ANY, NULL);

        assert_non_null(v);
        if (tensor_parse(v, blob, sizeof blob, &t, NULL) == 0)
            fail_msg("accepted: %s", bad[i]);
        json_decref(v);
    }
}

static void test_operator_line(void **state)
{
    static const char src[] = "import torch\n# relu here is a comment\nclass ModelNew:\n    def __init__(self):\n"
                              "        self.relu = 1\n    def forward(self, x):\n        return torch.relu(x)\n";
    char text[80];

    (void)state;
    assert_int_equal(place_operator(src, "aten::relu", text, sizeof text), 7);
    assert_string_equal(text, "return torch.relu(x)");
    assert_int_equal(place_operator(src, "aten::bmm", text, sizeof text), -1);
}

/* ---- precedence and feedback ---- */

static void test_precedence(void **state)
{
    static const char *const order[] = {"infra", "extraction_error", "compile_error", "cheating", "timeout",
                                        "runtime_error", "correctness_error"};

    (void)state;
    for (size_t a = 0; a < 7; a++)
        for (size_t b = 0; b < 7; b++) {
            json_t *r = record_new("t", "", "c", "", "sim", "strict");

            record_blame(r, order[a], "x", "a");
            record_blame(r, order[b], "y", "b");
            record_settle(r);
            assert_string_equal(json_str(r, "category", ""), order[a < b ? a : b]);
            assert_string_equal(json_str(r, "status", ""), a == 0 || b == 0 ? "infra" : "failed");
            json_decref(r);
        }
}

static void test_feedback_is_bounded(void **state)
{
    char *big = malloc(20001);
    json_t *r = record_new("t", "", "c", "", "sim", "strict");
    struct buf b;

    (void)state;
    memset(big, 'x', 20000);
    big[20000] = 0;
    json_t *reason = record_blame(r, "runtime_error", "correctness", "%s", big);
    json_object_set_new(reason, "line", json_integer(3));
    json_object_set_new(reason, "text", json_string(big));
    record_settle(r);
    buf_init(&b, FEEDBACK_MAX);
    feedback_text(r, &b);
    assert_true(b.n > 100 && b.n < FEEDBACK_MAX && !b.cut);
    buf_free(&b);
    json_decref(r);
    free(big);
}

static void test_feedback_says(void **state)
{
    static const char text[] =
        "{\"status\":\"failed\",\"category\":\"correctness_error\",\"stage\":\"correctness\",\"reasons\":[{"
        "\"category\":"
        "\"correctness_error\",\"stage\":\"correctness\",\"message\":\"2 of 5 trials are wrong\"}],\"correctness\":{"
        "\"trials\":5,"
        "\"passed\":3,\"worst\":{\"regime\":\"normal\",\"trial\":0,\"output\":\"[1]\",\"kind\":\"values\","
        "\"elements\":100,"
        "\"wrong\":25,\"nan\":3,\"share\":0.25,\"pattern\":\"last 5 of 20 rows\",\"first\":{\"index\":\"[15, 0]\","
        "\"expected\":"
        "1.5,\"got\":\"nan\"},\"worst\":{\"index\":\"[16, 0]\",\"expected\":2,\"got\":2.00012345},"
        "\"tolerance\":{\"abs\":1e-5,\"rel\":1e-5}}}}";
    static const char *const must[] = {"3 of 5", "[1]", "25 of 100", "25 %", "last 5 of 20 rows", "[15, 0]",
                                       "expected 1.5", "got nan", "[16, 0]", "never written",
                                       "expected 2, got 2.00012345 (off by 0.000123, allowed 3e-05)"};
    json_t *v = json_loads(text, 0, NULL);
    struct buf b;

    (void)state;
    assert_non_null(v);
    buf_init(&b, FEEDBACK_MAX);
    feedback_text(v, &b);
    for (size_t i = 0; i < sizeof must / sizeof *must; i++)
        if (!strstr(b.p, must[i]))
            fail_msg("no '%s' in: %s", must[i], b.p);
    buf_free(&b);
    json_decref(v);
}

/* What is forbidden is named, with its line. */
static void test_feedback_steers_no_terminal(void **state)
{
    json_t *v = record_new("t", "", "c", "", "sim", "strict");
    struct buf text, line;

    (void)state;
    record_blame(v, "runtime_error", "load", "%s", "boo \x1b]0;PWNED\x07 \x1b[2J");
    record_settle(v);
    buf_init(&text, FEEDBACK_MAX), buf_init(&line, 400);
    feedback_text(v, &text), feedback_line(v, &line);
    assert_non_null(strstr(text.p, "PWNED"));
    assert_non_null(strstr(line.p, "PWNED"));
    assert_true(!strpbrk(text.p, "\x1b\x07") && !strpbrk(line.p, "\x1b\x07"));
    buf_free(&text), buf_free(&line);
    json_decref(v);
}

static void test_feedback_names_the_operator(void **state)
{
    static const char text[] =
        "{\"status\":\"failed\",\"category\":\"cheating\",\"stage\":\"legality\",\"reasons\":["
        "{\"category\":\"cheating\",\"stage\":\"legality\",\"message\":\"m\"}],\"legality\":{\"ok\":false,"
        "\"violations\":[{\"rule\":"
        "\"forbidden_op\",\"op\":\"aten::softmax\",\"count\":3,\"line\":12,\"text\":\"y = x.softmax(-1)\"}]}}";
    static const char *const must[] = {"aten::softmax", "3 calls", "line 12", "y = x.softmax(-1)", "own CUDA kernels"};
    json_t *v = json_loads(text, 0, NULL);
    struct buf b;

    (void)state;
    assert_non_null(v);
    buf_init(&b, FEEDBACK_MAX);
    feedback_text(v, &b);
    for (size_t i = 0; i < sizeof must / sizeof *must; i++)
        if (!strstr(b.p, must[i]))
            fail_msg("no '%s' in: %s", must[i], b.p);
    buf_free(&b);
    json_decref(v);
}

/* Draws that decide nothing are no trials, and a passed verdict says how many there were. */
static void test_feedback_undecided(void **state)
{
    json_t *v = record_new("t", "", "c", "", "sim", "strict");
    struct buf b;

    (void)state;
    record_set(v, "correctness", json_pack("{s:i,s:i,s:{s:{s:i},s:{s:i,s:i}}}", "trials", 9, "passed", 9, "regimes",
                                           "normal", "trials", 9, "half/large", "trials", 0, "undecided", 5));
    buf_init(&b, FEEDBACK_MAX);
    feedback_text(v, &b);
    assert_non_null(strstr(b.p, "9 of 9 trials match"));
    assert_non_null(strstr(b.p, "5 more draws (half/large) decided nothing; 'musacoder lint' says why."));
    buf_free(&b);
    json_decref(v);
}

/* What a passed verdict says about its speed. */
static void test_feedback_speed(void **state)
{
    static const struct {
        const char *perf;
        const char *want[4];
        const char *not;
    } rows[] = {
        {"{'trusted':true,'candidate_ms':0.121,'speedup_eager':1.312,'speedup_eager_ci':[1.27,1.34],"
         "'speedup_compile':0.82,"
         "'speedup_compile_ci':[0.8,0.84],'roofline_share':0.44,'bound':'memory','bandwidth':2.1e12,"
         "'bandwidth_peak':4.8e12,"
         "'reasons':[]}",
         {"0.121 ms", "1.31x of eager (95 % CI 1.27-1.34)", "0.82x of torch.compile",
          "44 % of the roofline: memory-bound, 2.11 of "
          "4.8 TB/s"}, "not accepted"},
        {"{'trusted':true,'candidate_ms':2,'speedup_eager':1,'speedup_eager_ci':null,'speedup_compile':null,"
         "'roofline_share':null,"
         "'bound':null,'compile_error':'Unsupported','reasons':[]}",
         {"2 ms", "1x of eager", "torch.compile fails on this task (Unsupported)"}, "roofline"},
        {"{'trusted':true,'candidate_ms':2,'speedup_eager':1,'library_ms':1.25,'library_call':'mm','library_share':0.8,"
         "'reasons':[]}",
         {"the library's mm takes 1.25 ms, 80 % of the roofline."}, "compile"},
        {"{'trusted':false,'candidate_ms':0.004,'speedup_eager':20,'roofline_share':4,'bound':'memory',"
         "'bandwidth':9e13,"
         "'bandwidth_peak':4.8e12,'floor_ms':0.02,'clocks':{'gap_ms':0.08,'margin_ms':0.006},"
         "'reasons':['clock_disagree','below_roofline']}",
         {"not accepted", "0.08 ms", "0.02 ms"}, "20x"},
        {"{'trusted':false,'reasons':['not_measured'],'error':'no baseline'}", {"Speed: not measured (no baseline)"},
         "nan"},
    };
    char text[1024];

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct err e = ERR_INIT;
        struct buf b;
        json_t *v;

        snprintf(text, sizeof text, "{'status':'passed','category':null,'correctness':{'trials':5,'passed':5},"
                                    "'performance':%s}",
                 rows[i].perf);
        for (char *p = text; *p; p++)
            *p = *p == '\'' ? '"' : *p;
        v = json_parse(text, strlen(text), "test", &e);
        assert_non_null(v);
        buf_init(&b, FEEDBACK_MAX);
        feedback_text(v, &b);
        for (int k = 0; k < 4 && rows[i].want[k]; k++)
            if (!strstr(b.p, rows[i].want[k]))
                fail_msg("row %zu: no '%s' in: %s", i, rows[i].want[k], b.p);
        if (strstr(b.p, rows[i].not) || b.cut)
            fail_msg("row %zu: '%s' in: %s", i, rows[i].not, b.p);
        buf_free(&b);
        json_decref(v);
    }
}

/* Weights of the reward are options of a judgement, and go where its other options go; the judge's own are not said. */
static void test_reward_options(void **state)
{
    json_t *given = json_pack("{s:f,s:i}", "speed-weight", 0.25, "speed-cap", 2), *said, *flat, *bad;
    struct eval_options o = EVAL_OPTIONS_DEFAULT, got = EVAL_OPTIONS_DEFAULT;
    struct err e = ERR_INIT;

    said = eval_options_json(&o);
    assert_null(json_object_get(said, "speed-weight"));
    assert_int_equal(eval_options_parse(said, &got, &e), 0);
    assert_true(reward_is_default(got.reward));
    json_decref(said);
    assert_int_equal(eval_options_parse(given, &o, &e), 0);
    assert_true(o.reward.lambda == 0.25 && o.reward.nu_max == 2);
    said = eval_options_json(&o);
    assert_int_equal(eval_options_parse(said, &got, &e), 0);
    assert_true(got.reward.lambda == 0.25 && got.reward.nu_max == 2);
    flat = json_pack("{s:i,s:i}", "speed-weight", 0, "speed-cap", 0); // no speed term: not 'not said'
    assert_int_equal(eval_options_parse(flat, &got, &e), 0);
    assert_false(reward_is_default(got.reward));
    bad = json_pack("{s:f}", "speed-weight", -1.0);
    assert_int_equal(eval_options_parse(bad, &got, &e), -1);
    assert_non_null(strstr(e.msg, "speed-weight"));
    json_decref(said), json_decref(flat), json_decref(bad), json_decref(given);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reward), cmocka_unit_test(test_reward_options),
        cmocka_unit_test(test_element_limit), cmocka_unit_test(test_faster),
        cmocka_unit_test(test_tolerance_separates),
        cmocka_unit_test(test_tolerance_cap),
        cmocka_unit_test(test_factors), cmocka_unit_test(test_wrong_places),
        cmocka_unit_test(test_missing_terms), cmocka_unit_test(test_other_reductions),
        cmocka_unit_test(test_mistake_without_elements),
        cmocka_unit_test(test_typical_error), cmocka_unit_test(test_compare_values),
        cmocka_unit_test(test_compare_special),
        cmocka_unit_test(test_places), cmocka_unit_test(test_pack), cmocka_unit_test(test_compare_range),
        cmocka_unit_test(test_compare_number), cmocka_unit_test(test_compare_tiles),
        cmocka_unit_test(test_compare_allclose_side), cmocka_unit_test(test_patterns),
        cmocka_unit_test(test_half_values), cmocka_unit_test(test_tensor_put),
        cmocka_unit_test(test_tensor_parse_hostile), cmocka_unit_test(test_operator_line),
        cmocka_unit_test(test_precedence), cmocka_unit_test(test_feedback_is_bounded),
        cmocka_unit_test(test_feedback_says), cmocka_unit_test(test_feedback_steers_no_terminal),
        cmocka_unit_test(test_feedback_names_the_operator),
        cmocka_unit_test(test_feedback_undecided),
        cmocka_unit_test(test_feedback_speed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

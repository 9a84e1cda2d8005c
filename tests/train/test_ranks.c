/* test_ranks.c - SFT as two ranks that meet in shared memory, each on an emulated device: the losses of one rank,
 * AdamW's moments whole or in parts to the same bits, a run in parts that is continued. The launcher starts this very
 * program as its ranks. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/json.h"
#include "base/log.h"
#include "../lib/tiny.h"
#include "train/ranks.h"
#include "train/sft.h"

static struct sft_options options(const char *data, const char *model, const char *out, int steps, int zero)
{
    return (struct sft_options){.model = model, .data = data, .out = out, .stage = "sft", .steps = steps,
                                .val_share = 0.1, .val_max = 8, .batch_tokens = 160, .micro_tokens = 110,
                                .max_length = 100,
                                .val_every = 100,
                                .save_every = 2, .schedule = {SCHED_CONSTANT, 1e-2, 0, 1, 0}, .grad_clip = 1,
                                .weight_decay = 0.1, .seed = 5, .zero = zero, .device = "sim", .dtype = "fp32"};
}

/* A rank: PROGRAM data model out steps zero */
static int be_rank(char **argv)
{
    struct sft_options o = options(argv[1], argv[2], argv[3], atoi(argv[4]), atoi(argv[5]));
    struct err e = ERR_INIT;

    omp_set_num_threads(1);
    log_set_level(LOG_ERROR);
    if (sft_run(&o, &e) == 0)
        return 0;
    fprintf(stderr, "rank: %s\n", e.msg);
    return 1;
}

static char *train(int ranks, const char *out, int steps, int zero)
{
    char *data = tiny_path("data.jsonl"), *init = tiny_path("init"), *to = tiny_path(out), n[2][8];
    char *args[] = {data, init, to, n[0], n[1]};
    struct err e = ERR_INIT;
    int code = 0;

    snprintf(n[0], sizeof n[0], "%d", steps);
    snprintf(n[1], sizeof n[1], "%d", zero);
    tiny_must(ranks_launch(ranks, "sim", args, 5, &code, &e), &e);
    assert_int_equal(code, 0);
    free(data), free(init);
    return to;
}

static int read_loss(json_t *v, size_t line, void *ctx, struct err *e)
{
    ((double *)ctx)[line - 1] = json_f64(v, "loss", NAN);
    return 0;
}

static void read_losses(const char *out, double *ret)
{
    char *m = path_join(out, "metrics.jsonl");
    struct err e = ERR_INIT;

    tiny_must(jsonl_each(m, read_loss, ret, &e), &e);
    free(m);
}

static bool same_models(const char *a, const char *b)
{
    char *x = path_join(a, "model"), *y = path_join(b, "model");
    bool same = tiny_same_model(x, y);

    free(x), free(y);
    return same;
}

static void two_as_one(void **state)
{
    (void)state;
    double one[3] = {0}, two[3] = {0};
    char *a = train(1, "one", 3, 0), *b = train(2, "two", 3, 0), *c = train(2, "parts", 3, 1);

    read_losses(a, one);
    read_losses(b, two);
    for (int i = 0; i < 3; i++)
        if (!(fabs(one[i] - two[i]) <= 1e-6 * one[i]))
            fail_msg("step %d: %.9g on one rank, %.9g on two", i + 1, one[i], two[i]);
    assert_true(one[2] < one[0]);
    assert_true(same_models(b, c));
    free(a), free(b), free(c);
}

/* Stopped at step 2 and continued; the rest of the run has the bits of one that never stopped. */
static void continued(void **state)
{
    (void)state;
    char *straight = tiny_path("parts"), *a = train(2, "again", 2, 1);

    free(a);
    a = train(2, "again", 3, 1);
    assert_true(same_models(a, straight));
    free(a), free(straight);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(two_as_one), cmocka_unit_test(continued)};
    int rc;

    if (argc == 6)
        return be_rank(argv);
    log_set_level(LOG_ERROR);
    tiny_make();
    rc = cmocka_run_group_tests(tests, NULL, NULL);
    tiny_remove();
    return rc;
}

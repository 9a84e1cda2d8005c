/* test_rl_dev.c - the RL stage as a whole on a device, in fp32 and bf16: rollouts of two turns, strict log-probs, a
 * reference model, checkpoints and their continuation. On the CPU emulator, or on $NN_TEST_DEVICE ("cuda"); under the
 * sanitizers it looks for reads and writes beyond the engine's tables. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/log.h"
#include "../lib/fake_letters.h"
#include "../lib/tiny.h"
#include "train/rl.h"

static struct rl_options options(const char *out, const char *dtype)
{
    const char *device = getenv("NN_TEST_DEVICE");

    return (struct rl_options){
        .model = tiny_path("init"), .data = tiny_path("prompts.jsonl"), .out = tiny_path(out), .stage = "rl",
            .steps = 1,
        .save_every = 2, .prompts = 2, .group = 3, .turns = 2, .max_new = 6, .max_prompt = 200, .micro_tokens = 256,
        .minibatches = 2, .epochs = 1, .temperature = 0.9, .schedule = {SCHED_CONSTANT, 1e-2, 0, 1, 0}, .grad_clip = 1,
        .negative_weight = 1,
        .advantage = ADV_GRPO, .advantage_eps = 1e-6,
        .policy = {.clip = PPO_CLIP_DEFAULT, .aggregate = AGG_TOKEN_MEAN, .kl = KL_K3, .kl_coef = 0.01,
                   .mirrorpop = true,
                   .delta = 0.1},
        .primeecho = true, .echo = PRIMEECHO_DEFAULT, .rollouts = true, .bdr_size = 8, .bdr_probability = 0.4,
        .style = PROMPT_PLAIN, .seed = 3, .strict = true, .device = device ? device : "sim", .dtype = dtype};
}

struct seen {
    int lines;
    double worst, norm, kl;
};

static int read_line(json_t *v, size_t line, void *ctx, struct err *e)
{
    struct seen *s = ctx;

    s->lines++;
    s->worst = fmax(s->worst, json_f64(v, "logprob_mismatch_worst", INFINITY));
    s->norm = fmax(s->norm, json_f64(v, "grad_norm", 0));
    s->kl = fmax(s->kl, json_f64(v, "kl", 0));
    return 0;
}

static void whole_run(const char *dtype, double mismatch)
{
    struct rl_options o = options(dtype, dtype);
    struct err e = ERR_INIT;
    struct seen s = {0};
    char *metrics = path_join(o.out, "metrics.jsonl"), *model = path_join(o.out, "model");

    tiny_must(rl_run(&o, &e), &e);
    o.steps = 2; // goes on from the checkpoint of step 1
    tiny_must(rl_run(&o, &e), &e);
    tiny_must(jsonl_each(metrics, read_line, &s, &e), &e);
    assert_int_equal(s.lines, 2);
    assert_true(s.worst < mismatch);
    assert_true(s.norm > 0 && s.kl > 0);
    assert_true(tiny_whole_model(model));
    free(metrics), free(model);
    free((char *)o.model), free((char *)o.data), free((char *)o.out);
}

static void in_fp32(void **state)
{
    (void)state;
    whole_run("fp32", 1e-4);
}

static void in_bf16(void **state)
{
    (void)state;
    if (!getenv("NN_TEST_DEVICE")) // the emulator takes ten seconds for it, and test_model_dev's steps are the same
        skip();
    whole_run("bf16", 0.1);
}

static int lag_line(json_t *v, size_t line, void *ctx, struct err *e)
{
    double *lag = ctx;

    lag[(int)json_i64(v, "step", 0) - 1] = json_f64(v, "staleness", NAN);
    return 0;
}

/* A thread draws on the device while this one learns on it: twice the same weights, and the lag that was asked for. */
static void draws_ahead(void **state)
{
    (void)state;
    if (!getenv("NN_TEST_DEVICE")) // 20 s on the emulator; test_rl has it on the host
        skip();
    struct rl_options o = options("ahead", "bf16"), twin = options("twin", "bf16");
    char *metrics = path_join(o.out, "metrics.jsonl");
    char *a = path_join(o.out, "model"), *b = path_join(twin.out, "model");
    struct err e = ERR_INIT;
    double lag[4] = {NAN, NAN, NAN, NAN};

    o.strict = twin.strict = false;
    o.steps = twin.steps = 4, o.staleness = twin.staleness = 1;
    tiny_must(rl_run(&o, &e), &e);
    tiny_must(rl_run(&twin, &e), &e);
    tiny_must(jsonl_each(metrics, lag_line, lag, &e), &e);
    for (int i = 0; i < 4; i++)
        assert_true(lag[i] == (i > 0));
    assert_true(tiny_same_model(a, b));
    free(metrics), free(a), free(b);
    free((char *)o.model), free((char *)o.data), free((char *)o.out), free((char *)twin.out);
    free((char *)twin.model), free((char *)twin.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(in_fp32), cmocka_unit_test(in_bf16),
                                       cmocka_unit_test(draws_ahead)};
    int rc;

    log_set_level(LOG_ERROR);
    tiny_make();
    rc = cmocka_run_group_tests(tests, NULL, NULL);
    tiny_remove();
    return rc;
}

/* test_rl_dev.c - the RL stage as a whole on a device, in fp32 and bf16: rollouts of two turns, strict log-probs, a reference
 * model, checkpoints and their continuation. On the CPU emulator, or on $NN_TEST_DEVICE ("cuda"); under the sanitizers it
 * looks for reads and writes beyond the engine's tables. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/log.h"
#include "fake_verdict.h"
#include "tiny.h"
#include "train/rl.h"

static struct rl_options options(const char *out, const char *dtype)
{
    const char *device = getenv("NN_TEST_DEVICE");

    return (struct rl_options){
        .model = tiny_path("init"), .data = tiny_path("prompts.jsonl"), .out = tiny_path(out), .stage = "rl", .steps = 1,
        .save_every = 2, .prompts = 2, .group = 3, .turns = 2, .max_new = 6, .max_prompt = 200, .micro_tokens = 256,
        .minibatches = 2, .epochs = 1, .temperature = 0.9, .schedule = {SCHED_CONSTANT, 1e-2, 0, 1, 0}, .grad_clip = 1,
        .advantage = ADV_GRPO, .advantage_eps = 1e-6,
        .policy = {.clip = PPO_CLIP_DEFAULT, .aggregate = AGG_TOKEN_MEAN, .kl = KL_K3, .kl_coef = 0.01, .mirrorpop = true,
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(in_fp32), cmocka_unit_test(in_bf16)};
    int rc;

    log_set_level(LOG_ERROR);
    tiny_make();
    rc = cmocka_run_group_tests(tests, NULL, NULL);
    tiny_remove();
    return rc;
}

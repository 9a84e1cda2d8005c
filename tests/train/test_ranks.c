/* test_ranks.c - SFT as two ranks that meet in shared memory, each on an emulated device: the losses of one rank,
 * AdamW's moments whole or in parts to the same bits, weights and gradients in parts too, runs in parts that are
 * continued. The launcher starts this very program as its ranks. */
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

static struct sft_options options(const char *data, const char *model, const char *out, int steps, int zero,
                                  const char *dtype)
{
    return (struct sft_options){.model = model, .data = data, .out = out, .stage = "sft", .steps = steps,
                                .val_share = 0.1, .val_max = 8, .batch_tokens = 230, .micro_tokens = 110,
                                .max_length = 100,
                                .val_every = 100,
                                .save_every = 2, .schedule = {SCHED_CONSTANT, 1e-2, 0, 1, 0}, .grad_clip = 1,
                                .weight_decay = 0.1, .seed = 5, .zero = zero, .device = "sim", .dtype = dtype};
}

/* A rank: PROGRAM data model out steps zero dtype */
static int be_rank(char **argv)
{
    struct sft_options o = options(argv[1], argv[2], argv[3], atoi(argv[4]), atoi(argv[5]), argv[6]);
    struct err e = ERR_INIT;

    omp_set_num_threads(1);
    log_set_level(LOG_ERROR);
    if (sft_run(&o, &e) == 0)
        return 0;
    fprintf(stderr, "rank: %s\n", e.msg);
    return 1;
}

static char *train_from(const char *model, const char *dtype, int ranks, const char *out, int steps, int zero)
{
    char *data = tiny_path("data.jsonl"), *init = tiny_path(model), *to = tiny_path(out), n[2][8];
    char *args[] = {data, init, to, n[0], n[1], (char *)dtype};
    struct err e = ERR_INIT;
    int code = 0;

    snprintf(n[0], sizeof n[0], "%d", steps);
    snprintf(n[1], sizeof n[1], "%d", zero);
    tiny_must(ranks_launch(ranks, "sim", args, 6, &code, &e), &e);
    assert_int_equal(code, 0);
    free(data), free(init);
    return to;
}

static char *train(int ranks, const char *out, int steps, int zero)
{
    return train_from("init", "fp32", ranks, out, steps, zero);
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
    free(a);
    a = train(2, "again", 3, 1); /* nothing is left to do, for no rank */
    assert_true(same_models(a, straight));
    free(a), free(straight);
}

static void assert_near(const char *what, const double *a, const double *b, double tolerance)
{
    for (int i = 0; i < 3; i++)
        if (!(fabs(a[i] - b[i]) <= tolerance * a[i]))
            fail_msg("%s, step %d: loss %.9g whole, %.9g in parts", what, i + 1, a[i], b[i]);
    assert_true(a[2] < a[0]);
}

/* Weights and gradients in parts; ranks have different numbers of micro-batches. Sums have another order, no more. */
static void divided(void **state)
{
    (void)state;
    double whole[3] = {0}, parts[3] = {0};
    char *a = train_from("init", "bf16", 2, "two_bf16", 3, 0), *b = train_from("init", "bf16", 2, "divided", 3, 2), *c;

    read_losses(a, whole);
    read_losses(b, parts);
    assert_near("bf16", whole, parts, 1e-4);
    free(train_from("init", "bf16", 2, "divided_again", 2, 2));
    c = train_from("init", "bf16", 2, "divided_again", 3, 2);
    assert_true(same_models(b, c));
    free(a), free(b), free(c);
}

/* A model of Qwen3.5: layers of delta rules, whose rates operators read in fp32, and a head of its own. */
static void make_delta_model(void)
{
    static const char text[] =
        "{\"model_type\": \"qwen3_5_text\", \"vocab_size\": 300, \"hidden_size\": 32,"
        "\"intermediate_size\": 64,"
        "\"num_hidden_layers\": 4, \"num_attention_heads\": 2, \"num_key_value_heads\": 1, \"head_dim\": 16,"
        "\"linear_num_key_heads\": 1, \"linear_num_value_heads\": 2, \"linear_key_head_dim\": 16,"
        "\"linear_value_head_dim\": 16, \"linear_conv_kernel_dim\": 4, \"full_attention_interval\": 4,"
        "\"max_position_embeddings\": 256, \"hidden_act\": \"silu\", \"rms_norm_eps\": 1e-6, \"rope_parameters\":"
        "{\"rope_type\": \"default\", \"rope_theta\": 10000, \"partial_rotary_factor\": 0.25},"
        "\"initializer_range\": 0.02, \"tie_word_embeddings\": false, \"attention_bias\": false}";
    char *from = tiny_path("init/tokenizer.json"), *dir = tiny_path("delta"), *to = path_join(dir, "tokenizer.json");
    json_t *js = json_parse(text, sizeof text - 1, "config", NULL);
    struct err e = ERR_INIT;
    struct model_config c;
    struct model *m;

    tiny_must(model_config_parse(js, &c, &e), &e);
    m = model_init(&c, 3, &e);
    tiny_must(m ? model_save(m, dir, &e) : -1, &e);
    tiny_must(file_copy(from, to, &e), &e);
    model_free(m), model_config_free(&c), json_decref(js);
    free(from), free(dir), free(to);
}

static void divided_delta_layers(void **state)
{
    (void)state;
    double whole[3] = {0}, parts[3] = {0};

    make_delta_model();
    char *a = train_from("delta", "fp32", 2, "delta_whole", 3, 0);
    char *b = train_from("delta", "fp32", 2, "delta_parts", 3, 2);
    read_losses(a, whole);
    read_losses(b, parts);
    assert_near("delta layers", whole, parts, 1e-6);
    free(a), free(b);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(two_as_one), cmocka_unit_test(continued),
                                       cmocka_unit_test(divided), cmocka_unit_test(divided_delta_layers)};
    int rc;

    if (argc == 7)
        return be_rank(argv);
    log_set_level(LOG_ERROR);
    tiny_make();
    rc = cmocka_run_group_tests(tests, NULL, NULL);
    tiny_remove();
    return rc;
}

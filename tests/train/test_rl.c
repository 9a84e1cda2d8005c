/* test_rl.c - the RL stage as a whole with a judge that wants the letter 'a': it learns, keeps its books, and continues
 * bit for bit after kill -9, from the verdict log. Also RFT's selection. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "../lib/fake_letters.h"
#include "../lib/tiny.h"
#include "train/rft.h"
#include "train/rl.h"

static struct rl_options options(const char *out, int turns)
{
    return (struct rl_options){
        .model = tiny_path("init"), .data = tiny_path("prompts.jsonl"), .out = tiny_path(out), .stage = "rl",
            .steps = 12,
        .save_every = 2, .prompts = 4, .group = 8, .turns = turns, .max_new = 12, .max_prompt = 200,
        .micro_tokens = 256, .minibatches = 2, .epochs = 1, .temperature = 1,
            .schedule = {SCHED_CONSTANT, 1e-2, 0, 1, 0},
        .weight_decay = 0, .grad_clip = 1, .negative_weight = 1, .advantage = ADV_GRPO, .advantage_eps = 1e-6,
        .policy = {.clip = PPO_CLIP_DEFAULT, .aggregate = AGG_TOKEN_MEAN, .kl = KL_NONE, .mirrorpop = true,
                   .delta = 0.1},
        .primeecho = true, .echo = PRIMEECHO_DEFAULT, .bdr_size = 8, .bdr_probability = 0.4, .style = PROMPT_PLAIN,
        .seed = 3};
}

static void done(struct rl_options *o)
{
    free((char *)o->model);
    free((char *)o->data);
    free((char *)o->out);
}

static int work(const void *o)
{
    struct err e = ERR_INIT;

    return rl_run(o, &e);
}

/* The judge here answers infra now and then, by call count: a rerun asks less often and would get other answers, were
 * they not replayed from the log. */
static void killed_with(const char *one, const char *other, int staleness)
{
    struct rl_options a = options(one, 3), b = options(other, 3);
    struct err e = ERR_INIT;
    char *ma = path_join(a.out, "model"), *mb = path_join(b.out, "model");
    char *log_a = path_join(a.out, "verdicts.jsonl"), *log_b = path_join(b.out, "verdicts.jsonl");
    int kills = 0;

    a.staleness = b.staleness = staleness;
    a.rollouts = b.rollouts = staleness > 0;
    a.top_p = b.top_p = staleness ? 0.9 : 1; // their kept sets are read again too
    fake_infra_every = 37;
    for (unsigned i = 0; i < 4; i++)
        kills += tiny_killed(work, &a, a.out, i * 1700);
    tiny_must(rl_run(&a, &e), &e);
    tiny_must(dir_make(b.out, &e), &e);
    tiny_must(file_copy(log_a, log_b, &e), &e);
    tiny_must(rl_run(&b, &e), &e);
    fake_infra_every = 0;
    assert_true(kills > 0);
    assert_true(tiny_same_model(ma, mb));
    assert_true(tiny_whole_model(ma));
    free(ma);
    free(mb);
    free(log_a);
    free(log_b);
    done(&a);
    done(&b);
}

static void killed_and_continued(void **state)
{
    (void)state;
    killed_with("killed", "straight", 0);
}

static int stale_line(json_t *v, size_t line, void *ctx, struct err *e)
{
    double lag = json_f64(v, "staleness", NAN), mirror = json_f64(v, "off_policy_mirror", NAN);
    int step = (int)json_i64(v, "step", 0) - 1, *n = ctx;

    ++*n;
    assert_true(lag == (step < 2 ? step : 2));
    if (step > 0) // its weights have moved since they drew
        assert_true(mirror > 1e-6);
    return 0;
}

static int lag_line(json_t *v, size_t line, void *ctx, struct err *e)
{
    double *lag = ctx;

    lag[(int)json_i64(v, "step", 0) - 1] = json_f64(v, "staleness", NAN);
    return 0;
}

/* A run that had ended and goes on has nothing ahead: its next batches are drawn by the weights that it ended with. */
static void goes_on_with_more(void **state)
{
    (void)state;
    static const double want[] = {0, 1, 2, 2, 0, 1, 2, 2};
    struct rl_options o = options("more", 1);
    char *m = path_join(o.out, "metrics.jsonl");
    struct err e = ERR_INIT;
    double lag[8];

    o.steps = 4, o.staleness = 2, o.rollouts = true;
    tiny_must(rl_run(&o, &e), &e);
    o.steps = 8;
    tiny_must(rl_run(&o, &e), &e);
    tiny_must(jsonl_each(m, lag_line, lag, &e), &e);
    for (int i = 0; i < 8; i++)
        assert_true(lag[i] == want[i]);
    free(m);
    done(&o);
}

/* Two batches ahead: the same run whether killed or not, and what is learned from is two steps old. */
static void killed_while_ahead(void **state)
{
    (void)state;
    struct rl_options o = options("stale", 3);
    char *m = path_join(o.out, "metrics.jsonl");
    struct err e = ERR_INIT;
    int n = 0;

    killed_with("stale", "stale-straight", 2);
    tiny_must(jsonl_each(m, stale_line, &n, &e), &e);
    assert_int_equal(n, 12);
    o.staleness = 1;
    assert_int_equal(rl_run(&o, &e), -1); // no rollouts to continue from
    o.rollouts = o.strict = true;
    assert_int_equal(rl_run(&o, &e), -1);
    free(m);
    done(&o);
}

struct curve {
    double first[4], last[4]; /* reward of the first and last four steps */
    int n;
    bool sums, repaired, turns;
};

static int read_line(json_t *v, size_t line, void *ctx, struct err *e)
{
    struct curve *c = ctx;
    double r = json_f64(v, "reward", NAN), p1 = json_f64(v, "passed_turn_1", NAN), p2 = json_f64(v, "passed_turn_2", 0),
           p3 = json_f64(v, "passed_turn_3", 0);

    assert_int_equal(json_i64(v, "step", 0), c->n + 1);
    if (c->n < 4)
        c->first[c->n] = r;
    memmove(c->last, c->last + 1, 3 * sizeof(double));
    c->last[3] = r;
    c->n++;
    c->sums &= fabs(p1 + p2 + p3 - json_f64(v, "best_pass_rate", NAN)) < 1e-9 &&
               fabs(p1 - json_f64(v, "pass_rate", NAN)) < 1e-9 &&
               json_f64(v, "best_score", NAN) >= json_f64(v, "score", NAN) - 1e-9;
    c->repaired |= json_f64(v, "repair_groups", 0) > 0;
    c->turns |= json_f64(v, "turns_mean", 0) > 1;
    return 0;
}

static struct curve curve_of(const struct rl_options *o)
{
    struct curve c = {.sums = true};
    struct err e = ERR_INIT;
    char *m = path_join(o->out, "metrics.jsonl");

    tiny_must(jsonl_each(m, read_line, &c, &e), &e);
    free(m);
    return c;
}

static double mean4(const double *v)
{
    return (v[0] + v[1] + v[2] + v[3]) / 4;
}

static void learns(void **state)
{
    (void)state;
    struct rl_options o = options("learn", 1);
    struct err e = ERR_INIT;
    struct curve c;

    o.steps = 40;
    tiny_must(rl_run(&o, &e), &e);
    c = curve_of(&o);
    assert_int_equal(c.n, 40);
    if (mean4(c.last) < mean4(c.first) + 0.3)
        fail_msg("reward went from %g to %g", mean4(c.first), mean4(c.last));
    done(&o);
}

/* All that is to hold back noise, at once, does not hold back learning. */
static void learns_with_all_switches(void **state)
{
    (void)state;
    struct rl_options o = options("switches", 1);
    struct err e = ERR_INIT;
    struct curve c;

    o.steps = 40, o.top_p = 0.95, o.eps = 1e-6, o.warmup_updates = 4, o.average = 0.5, o.negative_weight = 0.5;
    o.oversample = 1.5, o.sleep = true;
    tiny_must(rl_run(&o, &e), &e);
    c = curve_of(&o);
    if (mean4(c.last) < mean4(c.first) + 0.3)
        fail_msg("reward went from %g to %g", mean4(c.first), mean4(c.last));
    done(&o);
}

/* It learns from what is a step old. */
static void learns_behind(void **state)
{
    (void)state;
    struct rl_options o = options("behind", 1);
    struct err e = ERR_INIT;
    struct curve c;

    o.steps = 40, o.staleness = 1, o.rollouts = true;
    tiny_must(rl_run(&o, &e), &e);
    c = curve_of(&o);
    assert_int_equal(c.n, 40);
    if (mean4(c.last) < mean4(c.first) + 0.3)
        fail_msg("reward went from %g to %g", mean4(c.first), mean4(c.last));
    done(&o);
}

static void books(void **state)
{
    (void)state;
    struct rl_options o = options("killed", 3);
    struct curve c = curve_of(&o);

    assert_int_equal(c.n, 12);
    assert_true(c.sums && c.turns && c.repaired);
    done(&o);
}

static int mismatch_line(json_t *v, size_t line, void *ctx, struct err *e)
{
    double *worst = ctx;

    (void)line, (void)e;
    assert_true(json_f64(v, "logprob_mismatch_tokens", -1) >= 0);
    assert_true(json_f64(v, "logprob_mismatch_mean", -1) <= json_f64(v, "logprob_mismatch_worst", -2));
    *worst = fmax(*worst, json_f64(v, "logprob_mismatch_worst", NAN));
    // the first optimiser step starts from the very policy that is compared with: nothing is off policy
    assert_true(json_f64(v, "off_policy_mirror", 1) == 0);
    return 0;
}

/* Strict: one optimiser step a batch sees ratios of exactly 1, whatever the sampler's own log-probs were. */
static void strict(void **state)
{
    (void)state;
    struct rl_options o = options("strict", 1);
    char *m = path_join(o.out, "metrics.jsonl");
    struct err e = ERR_INIT;
    double worst = 0;

    o.steps = 3;
    o.minibatches = 1;
    o.strict = true;
    tiny_must(rl_run(&o, &e), &e);
    tiny_must(jsonl_each(m, mismatch_line, &worst, &e), &e);
    assert_true(worst < 1e-4);
    free(m);
    done(&o);
}

/* Top-p below 1: training's softmax runs over what the sampler kept, so its log-probs are the sampler's again. */
static void kept_sets(void **state)
{
    (void)state;
    struct rl_options o = options("kept", 1);
    char *m = path_join(o.out, "metrics.jsonl");
    struct err e = ERR_INIT;
    double worst = 0;

    o.steps = 3, o.minibatches = 1, o.strict = true, o.top_p = 0.7;
    tiny_must(rl_run(&o, &e), &e);
    tiny_must(jsonl_each(m, mismatch_line, &worst, &e), &e);
    assert_true(worst < 1e-4);
    o.top_p = 1.5;
    assert_int_equal(rl_run(&o, &e), -1);
    o.top_p = 0.7, o.engine = "openai";
    assert_int_equal(rl_run(&o, &e), -1);
    assert_non_null(strstr(e.msg, "rollout-engine own"));
    free(m);
    done(&o);
}

static void nonsense(void **state)
{
    (void)state;
    struct rl_options o = options("bad", 1);
    struct err e = ERR_INIT;

    o.group = 1;
    assert_int_equal(rl_run(&o, &e), -1);
    o.group = 4;
    o.temperature = 0;
    assert_int_equal(rl_run(&o, &e), -1);
    o.temperature = 1;
    o.turns = 99;
    assert_int_equal(rl_run(&o, &e), -1);
    o.turns = 1;
    o.max_prompt = 500;
    assert_int_equal(rl_run(&o, &e), -1);
    done(&o);
}

static int count_line(json_t *v, size_t line, void *ctx, struct err *e)
{
    ++*(int *)ctx;
    assert_string_equal(json_str(v, "kind", ""), "rft");
    assert_int_equal(json_array_size(json_object_get(v, "messages")), 2);
    return 0;
}

static int add_passed(json_t *v, size_t line, void *ctx, struct err *e)
{
    (void)line, (void)e;
    assert_true(strlen(json_str(v, "name", "")) > 0);
    assert_int_equal(json_i64(v, "scored", 0), 8);
    *(int *)ctx += (int)json_i64(v, "passed", -100);
    return 0;
}

/* Counts that somebody altered, and half a file, are no chunks: each is made again, as it was. */
static void check_damaged_chunks(const struct rft_options *o)
{
    char *path = path_join(o->out, "chunks/00000.json");
    struct err e = ERR_INIT;
    json_t *whole = json_read(path, &e), *v = json_deep_copy(whole), *again;

    json_object_set_new(json_array_get(json_object_get(v, "groups"), 0), "passed", json_integer(7));
    for (int cut = 0; cut < 2; cut++) {
        tiny_must(json_write(path, v, &e), &e);
        if (cut)
            assert_int_equal(truncate(path, 200), 0);
        tiny_must(rft_collect(o, &e), &e);
        again = json_read(path, &e);
        assert_true(json_equal(again, whole));
        json_decref(again);
    }
    json_decref(whole), json_decref(v);
    free(path);
}

/* RFT: what passed is what is kept, at most one per cluster; a second call changes nothing. */
static void rft(void **state)
{
    (void)state;
    char *learned = tiny_path("learn/model"), *out = tiny_path("rft"), *prompts = tiny_path("prompts.jsonl");
    char *kept = path_join(out, "rft.jsonl"), *stats = path_join(out, "rft_stats.json");
    char *groups = path_join(out, "groups.jsonl");
    struct rft_options o = {.model = learned, .data = prompts, .out = out, .samples = 8, .max_new = 12, .chunk = 4,
                            .max_keep = 3, .temperature = 1, .threshold = 0.85, .seed = 1};
    struct err e = ERR_INIT;
    int n = 0, again = 0, passed = 0;
    json_t *s;

    tiny_must(rft_collect(&o, &e), &e);
    tiny_must(jsonl_each(kept, count_line, &n, &e), &e);
    tiny_must(jsonl_each(groups, add_passed, &passed, &e), &e);
    s = json_read(stats, &e);
    assert_int_equal(json_f64(s, "samples", 0), 48);
    assert_int_equal(json_f64(s, "kept", 0), n);
    assert_int_equal(json_f64(s, "passed", 0), passed);
    assert_true(n > 0 && n <= 18 && n <= json_f64(s, "passed", 0));
    assert_true(json_f64(s, "effective_before", 0) >= 1);
    assert_true(json_f64(s, "prompts_kept", 0) == json_f64(s, "prompts_solved", -1));
    assert_true(json_f64(json_object_get(json_object_get(s, "families"), "toy"), "samples", 0) == 48);
    json_decref(s);
    tiny_must(rft_collect(&o, &e), &e);
    tiny_must(jsonl_each(kept, count_line, &again, &e), &e);
    assert_int_equal(n, again);
    check_damaged_chunks(&o);
    free(groups);
    free(learned);
    free(out);
    free(prompts);
    free(kept);
    free(stats);
}

static int chunk_prompts(const char *out, int least, int most)
{
    struct err e = ERR_INIT;
    char *path = path_join(out, "chunks/00000.json");
    json_t *chunk = json_read(path, &e), *list = json_object_get(chunk, "groups"), *g;
    size_t i;
    int other = 0;

    assert_int_equal(json_array_size(list), 6);
    json_array_foreach(list, i, g) {
        int passed = (int)json_i64(g, "passed", -1);
        bool kept = json_array_size(json_object_get(g, "kept")) > 0;

        assert_int_equal(kept, passed >= least && passed <= most);
        other += passed > 0 && !kept;
    }
    json_decref(chunk);
    free(path);
    return other;
}

/* Prompts that nearly all samples solve, or one of many, are left out. */
static void rft_keeps_between(void **state)
{
    (void)state;
    char *learned = tiny_path("learn/model"), *out = tiny_path("rft_between"), *prompts = tiny_path("prompts.jsonl");
    struct rft_options o = {.model = learned, .data = prompts, .out = out, .samples = 8, .max_new = 12, .chunk = 6,
                            .max_keep = 2, .temperature = 1, .threshold = 0.85, .seed = 1,
                            .keep_min = 3, .keep_max = 6};
    struct err e = ERR_INIT;

    tiny_must(rft_collect(&o, &e), &e);
    assert_true(chunk_prompts(out, 3, 6) > 0);
    o.keep_max = 2;
    assert_int_equal(rft_collect(&o, &e), -1);
    assert_non_null(strstr(e.msg, "keep-max"));
    free(learned), free(out), free(prompts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(killed_and_continued), cmocka_unit_test(books),
                                       cmocka_unit_test(killed_while_ahead), cmocka_unit_test(goes_on_with_more),
                                       cmocka_unit_test(learns_behind),
                                       cmocka_unit_test(learns), cmocka_unit_test(learns_with_all_switches),
                                       cmocka_unit_test(rft), cmocka_unit_test(rft_keeps_between),
                                       cmocka_unit_test(strict),
                                       cmocka_unit_test(kept_sets),
                                       cmocka_unit_test(nonsense)};
    int rc;

    log_set_level(LOG_ERROR);
    tiny_make();
    rc = cmocka_run_group_tests(tests, NULL, NULL);
    tiny_remove();
    return rc;
}

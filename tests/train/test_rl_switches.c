/* test_rl_switches.c - what RL's switches do to a run, read from its rollouts, metrics and weights: groups drawn for
 * one that is learned from, permuted rewards, the weight of failures, averaged weights, moments that go on, sleeping
 * prompts. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/rng.h"
#include "../lib/fake_letters.h"
#include "nn/safetensors.h"
#include "../lib/tiny.h"
#include "train/asker.h"
#include "train/rl.h"

#define GROUP 4
#define STEPS 4

static struct rl_options options(const char *out)
{
    return (struct rl_options){
        .model = tiny_path("init"), .data = tiny_path("prompts.jsonl"), .out = tiny_path(out), .stage = "rl",
        .steps = STEPS, .save_every = 1, .prompts = 2, .group = GROUP, .turns = 1, .max_new = 8, .max_prompt = 200,
        .micro_tokens = 256, .minibatches = 1, .epochs = 1, .temperature = 1,
        .schedule = {SCHED_CONSTANT, 1e-2, 0, 1, 0}, .grad_clip = 1, .negative_weight = 1, .advantage = ADV_GRPO,
        .advantage_eps = 1e-6, .policy = {.clip = PPO_CLIP_DEFAULT, .aggregate = AGG_TOKEN_MEAN, .kl = KL_NONE},
        .rollouts = true, .style = PROMPT_PLAIN, .seed = 3};
}

static void run(const struct rl_options *o)
{
    struct err e = ERR_INIT;

    tiny_must(rl_run(o, &e), &e);
}

static void done(struct rl_options *o)
{
    free((char *)o->model);
    free((char *)o->data);
    free((char *)o->out);
}

static int take(json_t *v, size_t line, void *ctx, struct err *e)
{
    (void)line, (void)e;
    json_array_append(ctx, v);
    return 0;
}

static json_t *lines_of(const char *path)
{
    json_t *list = json_array();
    struct err e = ERR_INIT;

    tiny_must(jsonl_each(path, take, list, &e), &e);
    return list;
}

/* The rollouts of a step: group g's sample k is line g * GROUP + k. */
static json_t *rollouts_of(const struct rl_options *o, int step)
{
    char *path = xasprintf("%s/rollouts/%08d.jsonl", o->out, step);
    json_t *list = lines_of(path);

    free(path);
    return list;
}

static double metric(const struct rl_options *o, int step, const char *name)
{
    char *path = path_join(o->out, "metrics.jsonl");
    json_t *list = lines_of(path);
    double v = json_f64(json_array_get(list, (size_t)step), name, -99);

    json_decref(list);
    free(path);
    return v;
}

static double score_at(const json_t *lines, int i)
{
    const json_t *turn = json_array_get(json_object_get(json_array_get(lines, (size_t)i), "turns"), 0);

    return json_f64(turn, "score", NAN);
}

static double field(const json_t *lines, int i, const char *name)
{
    return json_f64(json_array_get(lines, (size_t)i), name, NAN);
}

static bool differs(const json_t *lines, int group)
{
    for (int k = 1; k < GROUP; k++)
        if (score_at(lines, group * GROUP + k) != score_at(lines, group * GROUP))
            return true;
    return false;
}

/* Of six groups two are learned from, and none without a signal while one with it is left out. */
static void mixed_groups_come_first(void **state)
{
    (void)state;
    struct rl_options o = options("oversample");
    int late = 0;

    o.oversample = 3;
    run(&o);
    for (int step = 0; step < STEPS; step++) {
        json_t *lines = rollouts_of(&o, step);
        int kept = 0, kept_flat = 0, left_mixed = 0;

        assert_int_equal(json_array_size(lines), 6 * GROUP);
        for (int g = 0; g < 6; g++) {
            bool in = field(lines, g * GROUP, "minibatch") >= 0;
            kept += in;
            kept_flat += in && !differs(lines, g);
            left_mixed += !in && differs(lines, g);
            late += in && g >= 2;
        }
        assert_int_equal(kept, 2);
        assert_true(!kept_flat || !left_mixed);
        assert_true(metric(&o, step, "groups_left_out") == 4);
        assert_true(metric(&o, step, "sequences_learned") <= 2 * GROUP);
        json_decref(lines);
    }
    assert_true(late > 0);
    done(&o);
}

/* The same rewards, of other samples. */
static void rewards_are_permuted(void **state)
{
    (void)state;
    struct rl_options o = options("permuted");
    int moved = 0, mixed = 0;

    o.permute_rewards = true;
    run(&o);
    for (int step = 0; step < STEPS; step++) {
        json_t *lines = rollouts_of(&o, step);

        for (int g = 0; g < 2; g++) {
            double reward = 0, score = 0, squares = 0;
            for (int k = 0; k < GROUP; k++) {
                double r = field(lines, g * GROUP + k, "reward"), s = score_at(lines, g * GROUP + k);
                reward += r, score += s, squares += r * r - s * s;
                moved += r != s;
            }
            mixed += differs(lines, g);
            assert_true(fabs(reward - score) < 1e-9 && fabs(squares) < 1e-9);
        }
        json_decref(lines);
    }
    assert_true(mixed > 0 && moved > 0);
    done(&o);
}

static void failures_weigh_less(void **state)
{
    (void)state;
    struct rl_options o = options("weigh");
    int seen = 0;

    o.negative_weight = 0.5;
    run(&o);
    for (int step = 0; step < STEPS; step++) {
        json_t *lines = rollouts_of(&o, step);

        for (int g = 0; g < 2; g++) {
            double mean = 0, sq = 0;
            for (int k = 0; k < GROUP; k++)
                mean += score_at(lines, g * GROUP + k) / GROUP;
            for (int k = 0; k < GROUP; k++)
                sq += pow(score_at(lines, g * GROUP + k) - mean, 2) / (GROUP - 1);
            for (int k = 0; k < GROUP && sq > 1e-9; k++) {
                double d = (score_at(lines, g * GROUP + k) - mean) / (sqrt(sq) + 1e-6);
                assert_true(fabs(field(lines, g * GROUP + k, "advantage") - (d < 0 ? 0.5 * d : d)) < 1e-6);
                seen += d < 0;
            }
        }
        json_decref(lines);
    }
    assert_true(seen > 0);
    done(&o);
}

static struct model *load(const char *dir)
{
    struct err e = ERR_INIT;
    struct model *m = model_load(dir, &e);

    tiny_must(m ? 0 : -1, &e);
    return m;
}

/* Two steps: the last half is the second, whose weights are the checkpoint's. */
static void weights_are_averaged(void **state)
{
    (void)state;
    struct rl_options o = options("average");
    char *saved = path_join(o.out, "model"), *last = path_join(o.out, "checkpoint/00000002");
    struct model *start, *mean, *end;
    double moved = 0;

    o.steps = 2;
    o.average = 0.25;
    run(&o);
    start = load(o.model), mean = load(saved), end = load(last);
    for (size_t i = 0; i < start->n_params; i++) {
        assert_true(fabsf(mean->weights[i] - (0.25f * start->weights[i] + 0.75f * end->weights[i])) < 1e-6f);
        moved = fmax(moved, fabs(end->weights[i] - start->weights[i]));
    }
    assert_true(moved > 1e-3 && tiny_whole_model(saved));
    model_free(start), model_free(mean), model_free(end);
    free(saved), free(last);
    done(&o);
}

static int work(const void *o)
{
    struct err e = ERR_INIT;

    return rl_run(o, &e);
}

/* The sum, the sleepers and the retry gate go on from a checkpoint: killed or not, the run is the same. */
static void killed_and_continued(void **state)
{
    (void)state;
    struct rl_options a = options("cut"), b = options("straight");
    char *ma = path_join(a.out, "model"), *mb = path_join(b.out, "model");
    int kills = 0;

    a.steps = b.steps = 12;
    a.average = b.average = 0.5;
    a.oversample = b.oversample = 1.5;
    a.sleep = b.sleep = true;
    a.turns = b.turns = 2;
    a.bdr_size = b.bdr_size = 4, a.bdr_probability = b.bdr_probability = 0.5, a.bdr_min_pass = b.bdr_min_pass = 0.5;
    a.warmup_updates = b.warmup_updates = 8;
    for (unsigned i = 0; i < 9; i++) // the last ones in the second half, whose weights are summed
        kills += tiny_killed(work, &a, a.out, i % 3 * 1700);
    run(&a);
    run(&b);
    assert_true(kills > 0 && tiny_same_model(ma, mb));
    free(ma), free(mb);
    done(&a), done(&b);
}

static int64_t optimiser_step(const struct rl_options *o)
{
    char *path = xasprintf("%s/checkpoint/%08d/optim.safetensors", o->out, (int)o->steps);
    struct err e = ERR_INIT;
    struct safetensors *s = st_open(path, &e);
    int64_t step;

    tiny_must(s ? 0 : -1, &e);
    memcpy(&step, st_find(s, "step")->data, sizeof step);
    st_close(s);
    free(path);
    return step;
}

static double updates_of(const struct rl_options *o)
{
    double n = 0;

    for (int i = 0; i < o->steps; i++)
        n += metric(o, i, "updates");
    return n;
}

/* A second stage takes the first one's moments over; the rate rises by updates, not by steps. */
static void moments_go_on(void **state)
{
    (void)state;
    struct rl_options a = options("stage_one"), b = options("stage_two");
    struct err e = ERR_INIT;
    double rate = NAN;

    a.epochs = 2;
    a.warmup_updates = 1000;
    run(&a);
    assert_true(optimiser_step(&a) == (int64_t)updates_of(&a));
    for (int i = 0; i < STEPS; i++)
        if (metric(&a, i, "updates") > 0)
            rate = metric(&a, i, "lr");
    assert_true(updates_of(&a) >= 2 && fabs(rate - 1e-5 * updates_of(&a)) < 1e-12);
    free((char *)b.model);
    b.model = path_join(a.out, "model");
    b.moments = true;
    run(&b);
    assert_true(optimiser_step(&b) == (int64_t)(updates_of(&a) + updates_of(&b)));
    free((char *)b.model);
    b.model = tiny_path("init");
    free((char *)b.out);
    b.out = tiny_path("stage_none");
    assert_int_equal(rl_run(&b, &e), -1);
    assert_non_null(strstr(e.msg, "--moments"));
    done(&a), done(&b);
}

/* ---- the order of prompts ---- */

enum { N = 5 };

static void fill(struct prompt_set *p, struct prompt_item *items)
{
    static char names[N][2] = {"a", "b", "c", "d", "e"};

    for (int i = 0; i < N; i++)
        items[i] = (struct prompt_item){.id = names[i]};
    *p = (struct prompt_set){items, N};
}

/* How often each prompt comes in the next n draws. */
static void draw(struct asker *a, int n, int *seen)
{
    memset(seen, 0, N * sizeof *seen);
    for (int i = 0; i < n; i++)
        seen[asker_next(a) - a->prompts->items]++;
}

/* Sleepers are passed by until twice five prompts were asked, in a run that goes on as well. */
static void prompts_sleep_while_others_are_asked(void **state)
{
    (void)state;
    struct prompt_item items[N];
    struct prompt_set p;
    struct asker a, b;
    int seen[N], want[N];

    fill(&p, items);
    asker_init(&a, &p, 7, true);
    draw(&a, N, seen);
    for (int i = 0; i < N; i++)
        assert_int_equal(seen[i], 1);
    asker_note(&a, &items[0], 4, 4);
    asker_note(&a, &items[1], 0, 4);
    asker_note(&a, &items[2], 1, 4);
    asker_note(&a, &items[3], 0, 1); // says nothing
    assert_int_equal(asker_sleeping(&a), 2);
    asker_note(&a, &items[4], 0, 0); // the judge could not say
    assert_int_equal(asker_sleeping(&a), 3);
    draw(&a, 2, seen);
    json_t *saved = asker_save(&a);
    asker_init(&b, &p, 7, true);
    asker_load(&b, saved);
    assert_int_equal(asker_sleeping(&b), 3);
    draw(&a, 2 * N - 2, want);
    draw(&b, 2 * N - 2, seen);
    assert_memory_equal(seen, want, sizeof seen);
    assert_true(!seen[0] && !seen[1] && !seen[4]);
    assert_int_equal(asker_sleeping(&a), 0);
    draw(&a, N, seen);
    assert_true(seen[0] && seen[1] && seen[4]);
    json_decref(saved);
    asker_free(&a), asker_free(&b);
}

/* What rejection sampling saw counts from the first step on; names that no prompt has do not. */
static void groups_sampled_before_count(void **state)
{
    (void)state;
    static const char lines[] = "{\"name\":\"a\",\"passed\":8,\"scored\":8}\n"
                                "{\"name\":\"b\",\"passed\":0,\"scored\":8}\n"
                                "{\"name\":\"c\",\"passed\":3,\"scored\":8}\n"
                                "{\"name\":\"gone\",\"passed\":8,\"scored\":8}\n"
                                "{\"name\":\"d\",\"passed\":0,\"scored\":0}\n";
    char dir[] = "/tmp/askerXXXXXX", *path;
    struct prompt_item items[N];
    struct prompt_set p;
    struct asker a;
    struct err e = {0};
    int seen[N];

    assert_non_null(mkdtemp(dir));
    path = path_join(dir, "groups.jsonl");
    assert_int_equal(file_write(path, lines, strlen(lines), &e), 0);
    fill(&p, items);
    asker_init(&a, &p, 7, true);
    assert_int_equal(asker_note_file(&a, path, &e), 0);
    assert_int_equal(asker_sleeping(&a), 3);
    draw(&a, 2 * N, seen);
    assert_true(!seen[0] && !seen[1] && seen[2] && !seen[3] && seen[4]);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(asker_note_file(&a, path, &e), -1);
    asker_free(&a);
    free(path);
    assert_int_equal(dir_remove(dir, &e), 0);
}

/* The one that was asked longest ago comes first then. */
static void all_asleep_is_no_end(void **state)
{
    (void)state;
    struct prompt_item items[N];
    struct prompt_set p;
    struct asker a;
    int seen[N];

    fill(&p, items);
    asker_init(&a, &p, 7, true);
    for (int i = 0; i < N; i++) {
        draw(&a, 1, seen);
        for (int k = 0; k < N; k++)
            if (seen[k])
                asker_note(&a, &items[k], 4, 4);
    }
    draw(&a, N, seen);
    for (int i = 0; i < N; i++)
        assert_int_equal(seen[i], 1);
    asker_free(&a);
}

/* ---- 30 steps of 32 groups of 8, with pass rates that do not change ---- */

enum { MANY = 800, EASY = 490, IN_REACH = 160, STEP = 32, SAMPLES = 8 };

static double rate_of(int i)
{
    return i < EASY ? 0.996 : i < EASY + IN_REACH ? 0.05 + 0.9 * (i - EASY) / IN_REACH : 0.004;
}

static int group_of_eight(struct rng *r, int i)
{
    int passed = 0;

    for (int k = 0; k < SAMPLES; k++)
        passed += rng_f64(r) < rate_of(i);
    return passed;
}

/* Mixed groups of a step; their outcomes are known when all of its prompts are drawn. */
static int mixed_of_step(struct asker *a, struct rng *r)
{
    const struct prompt_item *asked[STEP];
    int mixed = 0, passed;

    for (int k = 0; k < STEP; k++)
        asked[k] = asker_next(a);
    for (int k = 0; k < STEP; k++) {
        for (int l = 0; l < k; l++)
            assert_ptr_not_equal(asked[k], asked[l]);
        passed = group_of_eight(r, (int)(asked[k] - a->prompts->items));
        mixed += passed > 0 && passed < SAMPLES;
        asker_note(a, asked[k], passed, SAMPLES);
    }
    return mixed;
}

/* Of 800 prompts 160 are in reach, and a sampling before the run saw which. They fill the steps to the end. */
static void prompts_in_reach_fill_the_steps(void **state)
{
    (void)state;
    static struct prompt_item items[MANY];
    struct prompt_set p = {items, MANY};
    struct asker a;
    struct rng r;
    int third[3] = {0};

    rng_seed(&r, 5, 1);
    asker_init(&a, &p, 7, true);
    for (int i = 0; i < MANY; i++)
        asker_note(&a, &items[i], group_of_eight(&r, i), SAMPLES);
    for (int step = 0; step < 30; step++)
        third[step / 10] += mixed_of_step(&a, &r);
    for (int i = 0; i < 3; i++)
        assert_in_range(third[i], STEP * 10 * 7 / 10, STEP * 10);
    asker_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(killed_and_continued), cmocka_unit_test(mixed_groups_come_first),
        cmocka_unit_test(rewards_are_permuted), cmocka_unit_test(failures_weigh_less),
        cmocka_unit_test(weights_are_averaged), cmocka_unit_test(moments_go_on),
        cmocka_unit_test(prompts_sleep_while_others_are_asked), cmocka_unit_test(all_asleep_is_no_end),
        cmocka_unit_test(groups_sampled_before_count), cmocka_unit_test(prompts_in_reach_fill_the_steps)};
    int rc;

    log_set_level(LOG_ERROR);
    tiny_make();
    fake_need = 1;
    rc = cmocka_run_group_tests(tests, NULL, NULL);
    tiny_remove();
    return rc;
}

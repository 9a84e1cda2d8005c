/* test_wiring.c - the live loops of sft, rft and rl, watched from outside. The judge is a stub behind the queue's
 * functions; what a step wrote down (rollouts, metrics, checkpoint) is recomputed here from the formulas. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <utf8proc.h>

#include "../lib/fake_verdict.h"
#include "base/hash.h"
#include "base/log.h"
#include "nn/chat.h"
#include "../lib/tiny.h"
#include "train/rft.h"
#include "train/rl.h"
#include "train/sft.h"

#define GROUP 4
#define STEPS 8

/* ---- a judge whose verdict is a function of the text: one of eight passes, some cannot be scored ---- */

static bool same_score;        /* every program fails with the same odd score */
static bool nothing_passes;
static char last_options[200]; /* as the judge got them */

/* Of the text as JSON holds it: a random model writes bytes that are no UTF-8. */
static uint64_t hash_of(const char *text)
{
    json_t *s = json_utf8(text, strlen(text));
    uint64_t h = hash64(json_string_value(s), strlen(json_string_value(s)), 5) >> 8;

    json_decref(s);
    return h;
}

static json_t *verdict_of(const char *text)
{
    uint64_t h = hash_of(text);
    char say[64];

    snprintf(say, sizeof say, "wrong: case %llx", (unsigned long long)(h & 0xffffff));
    if (same_score)
        return json_pack("{s:s,s:s,s:f,s:s}", "status", "failed", "category", "correctness_error", "reward", -0.3,
                         "feedback", say);
    if (h % 16 == 1)
        return json_pack("{s:s,s:s,s:n}", "status", "infra", "category", "infra", "reward");
    if (h % 16 == 2)
        return json_pack("{s:s,s:s,s:n}", "status", "unsupported", "category", "unsupported", "reward");
    if (h % 8 == 3 && !nothing_passes)
        return json_pack("{s:s,s:n,s:f}", "status", "passed", "category", "reward", 1 + 0.25 * (double)(h % 3));
    return json_pack("{s:s,s:s,s:f,s:s}", "status", "failed", "category", "correctness_error", "reward",
                     -1 + 0.1 * (double)(h % 7), "feedback", say);
}

static json_t *fake_judge(const struct verdict_request *item)
{
    char *text = json_text(item->options);

    snprintf(last_options, sizeof last_options, "%s", text);
    free(text);
    assert_int_equal(strncmp(item->task_code, "task ", 5), 0);
    assert_string_equal(item->task_code + 5, item->task_name + 1); // the task belongs to the prompt
    assert_true(item->is_response);
    return verdict_of(item->candidate);
}

/* ---- rl ---- */

static struct rl_options options(const char *out)
{
    return (struct rl_options){
        .model = tiny_path("init"), .data = tiny_path("prompts.jsonl"), .out = tiny_path(out), .stage = "rl",
        .steps = STEPS, .save_every = 100, .prompts = 4, .group = GROUP, .turns = 3, .max_new = 12, .max_prompt = 220,
        .micro_tokens = 256, .minibatches = 2, .epochs = 2, .temperature = 1,
        .schedule = {SCHED_LINEAR, 1e-2, 0, 0.5, 0}, .grad_clip = 1, .negative_weight = 1,
        .advantage = ADV_GRPO, .advantage_eps = 1e-6,
        .policy = {.clip = PPO_CLIP_DEFAULT, .aggregate = AGG_TOKEN_MEAN, .kl = KL_K3, .kl_coef = 0.01},
        .primeecho = true, .echo = PRIMEECHO_DEFAULT, .rollouts = true, .bdr_size = 4, .bdr_probability = 0.5,
        .style = PROMPT_PLAIN, .seed = 14};
}

static void done(struct rl_options *o)
{
    free((char *)o->model);
    free((char *)o->data);
    free((char *)o->out);
}

struct failure {
    char *id, *text, *feedback;
};

/* What a step must have done, recomputed from its rollouts. */
struct want {
    struct tokenizer *tok;
    struct failure fifo[64]; /* [head, tail): the retry buffer */
    int head, tail, cap;
    json_t *group[GROUP];
    int n;
    double infra, unsupported, failed, mixed, repairs, skipped;
    double sequences, tokens, parts[8], scored, first_pass, best_pass, reward, turns, passed_turn[4], best, first;
};

static char *decoded(const struct want *w, const json_t *ids)
{
    size_t n = json_array_size(ids);
    int32_t *v = xcalloc(n + 1, sizeof *v);
    struct buf b;
    char *text;

    for (size_t i = 0; i < n; i++)
        v[i] = (int32_t)json_integer_value(json_array_get(ids, i));
    buf_init(&b, 1 << 20);
    tokenizer_decode(w->tok, v, n, true, &b);
    json_t *s = json_utf8(b.p, strlen(b.p));
    text = xstrdup(json_string_value(s));
    json_decref(s);
    buf_free(&b);
    free(v);
    return text;
}

static const json_t *turn_at(const json_t *line, size_t k)
{
    return json_array_get(json_object_get(line, "turns"), k);
}

static bool is_scored(const json_t *line)
{
    size_t i;
    const json_t *t;

    json_array_foreach(json_object_get(line, "turns"), i, t)
        if (strcmp(json_str(t, "status", ""), "passed") && strcmp(json_str(t, "status", ""), "failed"))
            return false;
    return true;
}

static void check_turn(struct want *w, const json_t *line, size_t k)
{
    const json_t *t = turn_at(line, k), *logp = json_object_get(t, "logp");
    const char *text = json_str(t, "text", "?");
    json_t *v = verdict_of(text);
    char *by_tokens = decoded(w, json_object_get(t, "tokens"));

    assert_string_equal(by_tokens, text);
    assert_string_equal(json_str(t, "status", "?"), json_str(v, "status", ""));
    assert_string_equal(json_str(t, "feedback", "?"), json_str(v, "feedback", ""));
    if (json_is_number(json_object_get(v, "reward")))
        assert_true(fabs(json_f64(t, "score", NAN) - json_f64(v, "reward", NAN)) < 1e-9);
    assert_int_equal(json_array_size(logp), json_array_size(json_object_get(t, "tokens")));
    for (size_t i = 0; i < json_array_size(logp); i++)
        assert_true(json_number_value(json_array_get(logp, i)) <= 1e-3);
    json_decref(v);
    free(by_tokens);
    if (k == 0) {
        assert_int_equal(json_array_size(json_object_get(t, "added")), 0);
        return;
    }
    char *added = decoded(w, json_object_get(t, "added"));
    assert_non_null(strstr(added, json_str(turn_at(line, k - 1), "feedback", "?")));
    free(added);
}

/* A trajectory goes on after a failure, and after nothing else. */
static void check_turns(struct want *w, const json_t *line, int max_turns)
{
    size_t n = json_array_size(json_object_get(line, "turns"));
    int passed = 0;

    assert_true(n >= 1 && n <= (size_t)max_turns);
    for (size_t k = 0; k < n; k++) {
        const char *status = json_str(turn_at(line, k), "status", "");

        check_turn(w, line, k);
        if (k + 1 < n)
            assert_string_equal(status, "failed");
        if (!strcmp(status, "passed"))
            passed = (int)k + 1;
    }
    assert_int_equal(json_i64(line, "passed_turn", -1), passed);
    if (!strcmp(json_str(turn_at(line, n - 1), "status", ""), "failed") && n < (size_t)max_turns)
        assert_true(json_flag(line, "full", false));
}

static double best_score(const json_t *line)
{
    double best = -INFINITY;
    size_t i;
    const json_t *t;

    json_array_foreach(json_object_get(line, "turns"), i, t)
        best = fmax(best, json_f64(t, "score", NAN));
    return best;
}

/* PrimeEcho as the paper has it: 0.75 of the first score, 0.25 of the best, 0.15 or 0.08 for an early pass. */
static double reward_by_hand(const json_t *line)
{
    int64_t pass = json_i64(line, "passed_turn", 0);

    return 0.75 * json_f64(turn_at(line, 0), "score", NAN) + 0.25 * best_score(line) +
           (pass == 1 ? 0.15 : pass == 2 ? 0.08 : 0);
}

static void check_group_rewards(struct want *w, const double *r, const bool *in, int scored)
{
    double mean = 0, sq = 0;
    bool mixed = false;
    int part = -1;

    for (int k = 0; k < GROUP; k++)
        mean += in[k] ? r[k] / scored : 0;
    for (int k = 0; k < GROUP; k++)
        sq += in[k] ? (r[k] - mean) * (r[k] - mean) : 0;
    for (int k = 0; k < GROUP; k++) {
        const json_t *line = w->group[k];

        if (!in[k] || scored < 2) {
            assert_true(json_is_null(json_object_get(line, "reward")));
            assert_true(json_is_null(json_object_get(line, "advantage")));
            assert_true(json_is_null(json_object_get(line, "minibatch")));
            continue;
        }
        double adv = (r[k] - mean) / (sqrt(sq / (scored - 1)) + 1e-6);
        assert_true(fabs(json_f64(line, "reward", NAN) - r[k]) < 1e-7);
        assert_true(fabs(json_f64(line, "advantage", NAN) - adv) < 1e-5);
        assert_true(part < 0 || part == json_i64(line, "minibatch", -1));
        part = (int)json_i64(line, "minibatch", -1);
        assert_in_range(part, 0, 7);
        w->parts[part] = 1;
        w->sequences++;
        w->tokens += (double)json_array_size(json_object_get(turn_at(line, 0), "tokens"));
        mixed |= fabs(adv) > 1e-3;
    }
    w->mixed += mixed;
    w->skipped += scored < 2;
}

/* Does the prompt hold the text? A tokenizer composes what it reads (NFC), and a random model writes marks apart. */
static bool says(const char *prompt, const char *text)
{
    char *composed = (char *)utf8proc_NFC((const utf8proc_uint8_t *)text);
    bool yes = composed && strstr(prompt, composed);

    free(composed);
    return yes;
}

/* The prompt of a repair task holds the program that failed and what was said of it: the buffer's oldest. */
static void check_repair(struct want *w)
{
    const json_t *line = w->group[0];
    char *prompt = decoded(w, json_object_get(line, "prompt_tokens"));

    if (json_flag(line, "repair", false)) {
        assert_true(w->head < w->tail);
        const struct failure *f = &w->fifo[w->head++];
        assert_string_equal(json_str(line, "prompt_id", ""), f->id);
        assert_true(says(prompt, f->text));
        assert_true(*f->feedback);
        assert_non_null(strstr(prompt, f->feedback));
        w->repairs++;
    } else {
        assert_null(strstr(prompt, "wrong: case"));
    }
    free(prompt);
}

static void check_group(struct want *w)
{
    double r[GROUP] = {0};
    bool in[GROUP];
    int scored = 0;

    check_repair(w);
    for (int k = 0; k < GROUP; k++) {
        const json_t *line = w->group[k];

        check_turns(w, line, 3);
        in[k] = is_scored(line);
        scored += in[k];
        if (!in[k])
            continue;
        r[k] = reward_by_hand(line);
        w->reward += r[k];
        w->scored++;
        w->turns += (double)json_array_size(json_object_get(line, "turns"));
        w->first += json_f64(turn_at(line, 0), "score", NAN);
        w->best += best_score(line);
        w->first_pass += json_i64(line, "passed_turn", 0) == 1;
        w->best_pass += json_i64(line, "passed_turn", 0) > 0;
        w->passed_turn[json_i64(line, "passed_turn", 0)]++;
    }
    check_group_rewards(w, r, in, scored);
}

static int take_line(json_t *v, size_t line, void *ctx, struct err *e)
{
    struct want *w = ctx;
    size_t i;
    const json_t *t;
    bool infra = false, unsupported = false;

    assert_int_equal(json_i64(v, "sample", -1), w->n);
    assert_int_equal(json_object_get(v, "prompt_tokens") != NULL, w->n == 0);
    json_array_foreach(json_object_get(v, "turns"), i, t) {
        infra |= !strcmp(json_str(t, "status", ""), "infra");
        unsupported |= !strcmp(json_str(t, "status", ""), "unsupported");
    }
    w->infra += infra;
    w->unsupported += unsupported;
    w->group[w->n++] = json_incref(v);
    if (w->n < GROUP)
        return 0;
    check_group(w);
    w->n = 0;
    for (int k = 0; k < GROUP; k++)
        json_decref(w->group[k]);
    return 0;
}

/* After a step: a group in which two samples or more are scored, and none of them passed, leaves its first best first
 * response behind. */
static void push_failure(struct want *w, json_t *const *group)
{
    const json_t *best = NULL;
    int scored = 0;

    for (int k = 0; k < GROUP; k++) {
        const json_t *first = turn_at(group[k], 0);

        if (json_i64(group[k], "passed_turn", 0))
            return;
        if (!is_scored(group[k]))
            continue;
        scored++;
        if (*json_str(first, "text", "") && !json_flag(first, "cut", true) &&
            (!best || json_f64(first, "score", 0) > json_f64(best, "score", 0)))
            best = first;
    }
    if (scored < 2)
        return;
    w->failed++;
    if (!best)
        return;
    w->fifo[w->tail++] = (struct failure){xstrdup(json_str(group[0], "prompt_id", "")),
                                          xstrdup(json_str(best, "text", "")),
                                          xstrdup(json_str(best, "feedback", ""))};
    if (w->tail - w->head > w->cap)
        w->head++;
}

static int take_failures(json_t *v, size_t line, void *ctx, struct err *e)
{
    struct want *w = ctx;

    w->group[w->n++] = json_incref(v);
    if (w->n < GROUP)
        return 0;
    push_failure(w, w->group);
    w->n = 0;
    for (int k = 0; k < GROUP; k++)
        json_decref(w->group[k]);
    return 0;
}

static json_t *metrics_of(const struct rl_options *o, int64_t step);

static void near(const json_t *line, const char *name, double want)
{
    if (!(fabs(json_f64(line, name, NAN) - want) < 1e-6 * (1 + fabs(want))))
        fail_msg("step %lld: %s is %g, recomputed %g", (long long)json_i64(line, "step", 0), name,
                 json_f64(line, name, NAN), want);
}

static void check_metrics(const struct rl_options *o, const struct want *w, int64_t step)
{
    json_t *m = metrics_of(o, step + 1);
    double updates = 0;

    for (int i = 0; i < 8; i++)
        updates += w->parts[i];
    near(m, "updates", updates * o->epochs);
    near(m, "sequences_learned", w->sequences * o->epochs);
    near(m, "tokens_learned", w->tokens * o->epochs);
    near(m, "infra", w->infra);
    near(m, "unsupported", w->unsupported);
    near(m, "groups_failed", w->failed);
    near(m, "groups_mixed", w->mixed);
    near(m, "groups_skipped", w->skipped);
    near(m, "repair_groups", w->repairs);
    near(m, "reward", w->reward / w->scored);
    near(m, "score", w->first / w->scored);
    near(m, "best_score", w->best / w->scored);
    near(m, "pass_rate", w->first_pass / w->scored);
    near(m, "best_pass_rate", w->best_pass / w->scored);
    near(m, "turns_mean", w->turns / w->scored);
    near(m, "passed_turn_2", w->passed_turn[2] / w->scored);
    near(m, "passed_turn_3", w->passed_turn[3] / w->scored);
    near(m, "bdr_size", w->tail - w->head);
    near(m, "lr", 1e-2 * (0.5 + 0.5 * (1 - (double)step / (double)o->steps)));
    near(m, "repairs_dropped", 0);
    if (step > 0 && !(json_f64(m, "kl", 0) > 1e-6)) // the reference stays where the policy began
        fail_msg("step %lld: KL to the starting model is %g", (long long)step, json_f64(m, "kl", 0));
    json_decref(m);
}

struct pick {
    int64_t step;
    json_t *line;
};

static int pick_line(json_t *v, size_t line, void *ctx, struct err *e)
{
    struct pick *p = ctx;

    if (json_i64(v, "step", -1) == p->step) {
        json_decref(p->line);
        p->line = json_incref(v);
    }
    return 0;
}

static json_t *metrics_of(const struct rl_options *o, int64_t step)
{
    struct pick p = {.step = step};
    struct err e = ERR_INIT;
    char *path = path_join(o->out, "metrics.jsonl");

    tiny_must(jsonl_each(path, pick_line, &p, &e), &e);
    assert_non_null(p.line);
    free(path);
    return p.line;
}

static char *rollouts_path(const struct rl_options *o, int64_t step)
{
    return xasprintf("%s/rollouts/%08lld.jsonl", o->out, (long long)step);
}

static void check_buffer(const struct rl_options *o, const struct want *w)
{
    struct err e = ERR_INIT;
    char *path = xasprintf("%s/checkpoint/%08d/state.json", o->out, (int)o->steps);
    json_t *state = json_read(path, &e), *items = json_object_get(json_object_get(state, "bdr"), "items");

    assert_non_null(state);
    assert_int_equal(json_array_size(items), w->tail - w->head);
    for (int i = w->head; i < w->tail; i++) {
        const json_t *it = json_array_get(items, (size_t)(i - w->head));

        assert_string_equal(json_str(it, "prompt_id", ""), w->fifo[i].id);
        assert_string_equal(json_str(it, "response", ""), w->fifo[i].text);
        assert_string_equal(json_str(it, "feedback", ""), w->fifo[i].feedback);
    }
    json_decref(state);
    free(path);
}

static void forget(struct want *w)
{
    for (int i = 0; i < w->tail; i++) {
        free(w->fifo[i].id);
        free(w->fifo[i].text);
        free(w->fifo[i].feedback);
    }
    tokenizer_free(w->tok);
}

/* Everything that a step of several turns says of itself follows from its rollouts. Returns the sums over all steps. */
static struct want check_run(const struct rl_options *o)
{
    struct err e = ERR_INIT;
    struct want w = {.tok = tokenizer_load(o->model, &e), .cap = o->bdr_size}, sum = {0};

    for (int64_t step = 0; step < o->steps; step++) {
        char *path = rollouts_path(o, step);
        struct want fresh = {.tok = w.tok, .head = w.head, .tail = w.tail, .cap = w.cap};

        memcpy(fresh.fifo, w.fifo, sizeof w.fifo);
        w = fresh;
        tiny_must(jsonl_each(path, take_line, &w, &e), &e);
        assert_int_equal(w.n, 0);
        tiny_must(jsonl_each(path, take_failures, &w, &e), &e);
        check_metrics(o, &w, step);
        sum.infra += w.infra;
        sum.unsupported += w.unsupported;
        sum.failed += w.failed;
        sum.repairs += w.repairs;
        sum.mixed += w.mixed;
        sum.skipped += w.skipped;
        for (int k = 0; k < 4; k++)
            sum.passed_turn[k] += w.passed_turn[k];
        free(path);
    }
    check_buffer(o, &w);
    forget(&w);
    return sum;
}

static void a_run_of_several_turns(void **state)
{
    (void)state;
    struct rl_options o = options("several");
    struct err e = ERR_INIT;
    struct want sum;

    tiny_must(rl_run(&o, &e), &e);
    sum = check_run(&o);
    // The run had everything that it is meant to show.
    assert_true(sum.infra > 0 && sum.unsupported > 0 && sum.repairs > 0 && sum.mixed > 0);
    assert_true(sum.passed_turn[0] > 0 && sum.passed_turn[1] > 0 && sum.passed_turn[2] > 0 && sum.passed_turn[3] > 0);
    done(&o);
}

/* On one machine and thread count, with verdicts that are a function of the program: the same bytes. */
static void same_seed_same_run(void **state)
{
    (void)state;
    struct rl_options a = options("several"), b = options("again");
    struct err e = ERR_INIT;
    char *ma = path_join(a.out, "model"), *mb = path_join(b.out, "model");

    tiny_must(rl_run(&b, &e), &e);
    assert_true(tiny_same_model(ma, mb));
    for (int64_t step = 0; step < STEPS; step++) {
        char *pa = rollouts_path(&a, step), *pb = rollouts_path(&b, step);
        struct buf x, y;

        buf_init(&x, BUF_MAX_TEXT);
        buf_init(&y, BUF_MAX_TEXT);
        tiny_must(file_read(pa, &x, &e), &e);
        tiny_must(file_read(pb, &y, &e), &e);
        assert_true(x.n > 1000 && x.n == y.n && !memcmp(x.p, y.p, x.n));
        buf_free(&x);
        buf_free(&y);
        free(pa);
        free(pb);
    }
    b.seed++;
    free((char *)b.out);
    b.out = tiny_path("other_seed");
    free(mb);
    mb = path_join(b.out, "model");
    tiny_must(rl_run(&b, &e), &e);
    assert_false(tiny_same_model(ma, mb));
    free(ma);
    free(mb);
    done(&a);
    done(&b);
}

/* Nothing passes: the buffer overflows, its draws are fresh, and groups that verdicts left alone are skipped. */
static void a_run_without_a_pass(void **state)
{
    (void)state;
    struct rl_options o = options("nothing");
    struct err e = ERR_INIT;
    struct want sum;

    nothing_passes = true;
    o.bdr_size = 2;
    o.bdr_probability = 1;
    o.max_new = 36; // most responses end by themselves: a response that was cut is no repair's
    o.seed = 5;
    tiny_must(rl_run(&o, &e), &e);
    sum = check_run(&o);
    nothing_passes = false;
    assert_true(sum.failed > 4 && sum.repairs > 2);
    done(&o);
}

static void equal_rewards_teach_nothing(void **state)
{
    (void)state;
    struct rl_options o = options("equal");
    struct err e = ERR_INIT;
    char *before = tiny_path("init"), *after = path_join(o.out, "model");

    same_score = true;
    o.policy.kl = KL_NONE;
    o.weight_decay = 0.1; // a step of the optimiser would show
    o.bdr_size = 0;
    tiny_must(rl_run(&o, &e), &e);
    same_score = false;
    for (int64_t step = 1; step <= STEPS; step++) {
        json_t *m = metrics_of(&o, step);

        near(m, "groups_mixed", 0);
        near(m, "sequences_learned", 0);
        near(m, "updates", 0); // and what no update had is no number
        assert_true(isnan(json_f64(m, "grad_norm", 0)) && isnan(json_f64(m, "masked_share", 0)));
        json_decref(m);
    }
    assert_true(tiny_same_model(before, after));
    free(before);
    free(after);
    done(&o);
}

/* One turn: the reward is the first score alone. The judge gets its options. */
static void one_turn_and_options(void **state)
{
    (void)state;
    struct rl_options o = options("one");
    struct err e = ERR_INIT;
    json_t *flags = json_pack("{s:s,s:s,s:i}", "backend", "cuda", "protocol", "kernelbench", "trials", 3), *line;
    struct pick p = {.step = 0};
    char *path;

    o.turns = 1;
    o.steps = 1;
    o.epochs = o.minibatches = 1;
    o.temperature = 1.4;
    o.verdict = flags;
    tiny_must(rl_run(&o, &e), &e);
    line = metrics_of(&o, 1);
    assert_true(json_f64(line, "sequences_learned", 0) > 4);
    assert_true(json_f64(line, "off_policy_mirror", 1) < 1e-4); // sampled and learned at one temperature
    json_decref(line);
    assert_string_equal(last_options, "{\"backend\":\"cuda\",\"protocol\":\"kernelbench\",\"trials\":3}");
    path = rollouts_path(&o, 0);
    tiny_must(jsonl_each(path, pick_line, &p, &e), &e);
    line = p.line;
    if (is_scored(line) && !json_is_null(json_object_get(line, "reward")))
        assert_true(fabs(json_f64(line, "reward", NAN) - json_f64(turn_at(line, 0), "score", NAN)) < 1e-9);
    json_decref(line);
    json_decref(flags);
    free(path);
    done(&o);
}

/* One group, two minibatches: the group stays whole, so there is one optimiser step. */
static void one_group_is_one_step(void **state)
{
    (void)state;
    struct rl_options o = options("one_group");
    struct err e = ERR_INIT;

    o.prompts = o.epochs = 1;
    o.bdr_size = 0;
    tiny_must(rl_run(&o, &e), &e);
    for (int64_t step = 1; step <= STEPS; step++) {
        json_t *m = metrics_of(&o, step);

        near(m, "updates", json_f64(m, "groups_skipped", 0) > 0 ? 0 : 1);
        json_decref(m);
    }
    done(&o);
}

/* ---- what is too long never ends a run ---- */

static double sum_of(const struct rl_options *o, const char *name, int64_t steps)
{
    double sum = 0;

    for (int64_t s = 1; s <= steps; s++) {
        json_t *m = metrics_of(o, s);

        sum += json_f64(m, name, NAN);
        json_decref(m);
    }
    return sum;
}

/* Repair prompts do not fit: they leave the buffer, the run ends well, and so does a resumed one. */
static void repair_prompts_too_long(void **state)
{
    (void)state;
    struct rl_options o = options("repair_long");
    struct err e = ERR_INIT;

    nothing_passes = true;
    o.max_prompt = 40; // a prompt alone has less, a program and its feedback more
    o.steps = 3;
    tiny_must(rl_run(&o, &e), &e);
    o.steps = 6;
    tiny_must(rl_run(&o, &e), &e); // continues from the checkpoint, buffer and all
    nothing_passes = false;
    assert_true(sum_of(&o, "repairs_dropped", 6) > 0);
    assert_true(sum_of(&o, "repair_groups", 6) == 0);
    done(&o);
}

/* A model of few positions: dialogues end where the next answer has no room, in turn 2 and in turn 3. */
static void dialogues_too_long(void **state)
{
    (void)state;
    struct rl_options o = options("dialogue_long");
    char *data = tiny_path("data.jsonl"), *small = tiny_path("small");
    struct scratch_options so = {.data = data, .out = small, .range = 0.02, .vocab = 300, .hidden = 32,
                                 .intermediate = 64,
                                 .layers = 1, .heads = 2, .kv_heads = 1, .head_dim = 16, .positions = 160, .seed = 1};
    struct err e = ERR_INIT;

    tiny_must(scratch_make(&so, &e), &e);
    free((char *)o.model);
    o.model = small;
    nothing_passes = true;
    o.bdr_probability = 1; // repair prompts are longer: their turn 2 is the one that does not fit
    tiny_must(rl_run(&o, &e), &e);
    nothing_passes = false;
    assert_true(sum_of(&o, "dialogues_full", STEPS) > 0);
    free(data);
    done(&o);
}

static void prompts_too_long(void **state)
{
    (void)state;
    struct rl_options o = options("prompt_long");
    struct rft_options ro;
    struct err e = ERR_INIT;
    char *path = tiny_path("long.jsonl"), *out = tiny_path("rft_long"), *stats = path_join(out, "rft_stats.json");
    struct buf b;
    json_t *s;

    buf_init(&b, 1 << 16);
    for (int i = 0; i < 4; i++) {
        buf_addf(&b, "{\"prompt\":[{\"role\":\"user\",\"content\":\"make %d", i);
        for (int k = 0; k < (i ? 1 : 400); k++)
            buf_adds(&b, " zq");
        buf_addf(&b, "\"}],\"extra_info\":{\"name\":\"p%d\",\"task_code\":\"task %d\"}}\n", i, i);
    }
    tiny_must(file_write(path, b.p, b.n, &e), &e);
    free((char *)o.data);
    o.data = path;
    o.turns = 1;
    tiny_must(rl_run(&o, &e), &e);
    assert_true(sum_of(&o, "prompts_too_long", STEPS) > 0);
    ro = (struct rft_options){.model = o.model, .data = path, .out = out, .samples = 2, .max_new = 12, .chunk = 4,
                              .max_keep = 1, .temperature = 1, .threshold = 0.85, .seed = 1};
    tiny_must(rft_collect(&ro, &e), &e);
    s = json_read(stats, &e);
    assert_true(json_f64(s, "too_long", 0) == 2);
    assert_true(json_f64(s, "kept", 0) <= 3); // max-keep is 1

    json_decref(s);
    buf_free(&b);
    free(out);
    free(stats);
    done(&o);
}

/* ---- rft: only what passed is kept ---- */

static int check_kept(json_t *v, size_t line, void *ctx, struct err *e)
{
    json_t *m = json_object_get(v, "messages"), *verdict = verdict_of(json_str(json_array_get(m, 1), "content", ""));

    assert_string_equal(json_str(verdict, "status", ""), "passed");
    assert_string_equal(json_str(json_array_get(m, 1), "role", ""), "assistant");
    json_decref(verdict);
    ++*(int *)ctx;
    return 0;
}

static int count_passed(json_t *v, size_t line, void *ctx, struct err *e)
{
    int *n = ctx;
    const char *status = json_str(json_object_get(v, "verdict"), "status", "");

    n[0] += !strcmp(status, "passed");
    n[1] += !strcmp(status, "infra");
    n[2] += !strcmp(status, "unsupported");
    return 0;
}

static void rft_keeps_what_passed(void **state)
{
    (void)state;
    char *init = tiny_path("init"), *out = tiny_path("rft"), *prompts = tiny_path("prompts.jsonl");
    char *kept = path_join(out, "rft.jsonl"), *stats = path_join(out, "rft_stats.json");
    char *log = path_join(out, "verdicts.jsonl");
    struct rft_options o = {.model = init, .data = prompts, .out = out, .samples = 8, .max_new = 12, .chunk = 4,
                            .max_keep = 8, .temperature = 1, .threshold = 2, .seed = 1};
    struct err e = ERR_INIT;
    int n = 0, by_log[3] = {0};
    json_t *s;

    tiny_must(rft_collect(&o, &e), &e);
    tiny_must(jsonl_each(kept, check_kept, &n, &e), &e);
    tiny_must(jsonl_each(log, count_passed, by_log, &e), &e);
    s = json_read(stats, &e);
    assert_true(n > 2 && n < 40);
    assert_int_equal(json_f64(s, "passed", 0), by_log[0]);
    assert_int_equal(json_f64(s, "infra", 0), by_log[1]);
    assert_int_equal(json_f64(s, "unsupported", 0), by_log[2]);
    assert_int_equal(n, by_log[0]); // a threshold above 1: every program is a strategy of its own
    assert_true(fabs(json_f64(s, "acceptance", 0) - by_log[0] / (48.0 - by_log[1])) < 1e-9);
    json_decref(s);
    free(init);
    free(out);
    free(prompts);
    free(kept);
    free(stats);
    free(log);
}

/* ---- sft: the last response, all of it, nothing else ---- */

static const char dialogue[] = "{\"id\":\"d\",\"kind\":\"repair\",\"messages\":["
                               "{\"role\":\"user\",\"content\":\"make 1\"},"
                               "{\"role\":\"assistant\",\"content\":\"int f\"},"
                               "{\"role\":\"user\",\"content\":\"wrong\"},"
                               "{\"role\":\"assistant\",\"content\":\"int f(int a) { return a + 1; }\"}]}\n";

/* Mean of -log p over the ids that the last answer consists of, its end token included. */
static double loss_by_hand(const char *dir, int *ret_n)
{
    struct err e = ERR_INIT;
    struct tokenizer *tok = tokenizer_load(dir, &e);
    struct model *m = model_load(dir, &e);
    struct train_limits lim = {.max_tokens = 256};
    int32_t target[256], cu[2] = {0, 0};
    float logp[256];
    struct chat c;
    double nll = 0;
    size_t answer;
    int n = 0;

    assert_int_equal(chat_begin(&c, tok, CHAT_THINK_FREE, &e), 0);
    chat_message(&c, "user", "make 1", 6, &e);
    chat_message(&c, "assistant", "int f", 5, &e);
    chat_message(&c, "user", "wrong", 5, &e);
    chat_prompt(&c, &e);
    answer = c.ids.n;
    struct ivec ids = {0};
    static const char text[] = "int f(int a) { return a + 1; }";
    assert_int_equal(tokenizer_encode(tok, text, strlen(text), TOK_MARKUP, &ids, &e), 0);
    assert_int_equal(chat_response(&c, ids.v, ids.n, &e), 0);
    for (size_t t = 0; t < c.ids.n; t++) {
        bool in = t + 1 >= answer && t + 1 < answer + ids.n + 1; // and <|im_end|>

        target[t] = in ? c.ids.v[t + 1] : -1;
        n += in;
    }
    cu[1] = (int32_t)c.ids.n;
    assert_int_equal(model_train_begin(m, &lim, &e), 0);
    struct train_batch b = {.tokens = c.ids.v, .cu_seqlens = cu, .n_seq = 1, .targets = target, .temperature = 1};
    assert_int_equal(model_forward(m, &b, logp, NULL, &e), 0);
    for (size_t t = 0; t < c.ids.n; t++)
        nll -= target[t] >= 0 ? logp[t] : 0;
    *ret_n = n;
    ivec_free(&ids);
    chat_free(&c);
    model_free(m);
    tokenizer_free(tok);
    return nll / n;
}

static void sft_learns_the_last_response(void **state)
{
    (void)state;
    char *init = tiny_path("init"), *data = tiny_path("dialogue.jsonl"), *out = tiny_path("sft_dialogue");
    struct sft_options o = {.model = init, .data = data, .out = out, .stage = "sft", .steps = 2, .batch_tokens = 1,
                            .micro_tokens = 256, .max_length = 256, .schedule = {SCHED_CONSTANT, 1e-3, 0, 1, 0},
                            .grad_clip = 1, .val_every = 10, .save_every = 10, .val_max = 8, .seed = 5};
    struct rl_options as = {.out = out};
    struct err e = ERR_INIT;
    int n = 0;
    json_t *first, *second;

    tiny_must(file_write(data, dialogue, sizeof dialogue - 1, &e), &e);
    tiny_must(sft_run(&o, &e), &e);
    first = metrics_of(&as, 1);
    second = metrics_of(&as, 2);
    double want = loss_by_hand(init, &n);
    if (fabs(json_f64(first, "loss", NAN) - want) > 1e-5)
        fail_msg("loss %g, by hand %g", json_f64(first, "loss", NAN), want);
    assert_int_equal(json_f64(first, "loss_tokens", 0), n);
    assert_true(json_f64(second, "loss", NAN) < json_f64(first, "loss", NAN)); // and it is learned from
    json_decref(first);
    json_decref(second);
    free(init);
    free(data);
    free(out);
}

/* Changed tokens weigh more: the first step's loss is the same, what is learned is another thing; equal weights change
 * nothing. */
static void changed_tokens_weigh_more(void **state)
{
    (void)state;
    static const double weights[] = {0, 1, 8};
    char *init = tiny_path("init"), *data = tiny_path("dialogue.jsonl"), *model[3];
    double loss[3];
    struct err e = ERR_INIT;

    for (int i = 0; i < 3; i++) {
        char *out = xasprintf("%s/weight%d", tiny_dir, i);
        struct sft_options o = {.model = init, .data = data, .out = out, .stage = "sft", .steps = 1, .batch_tokens = 1,
                                .micro_tokens = 256, .max_length = 256, .schedule = {SCHED_CONSTANT, 1e-3, 0, 1, 0},
                                .val_every = 10, .save_every = 10, .val_max = 8, .seed = 5,
                                .changed_weight = weights[i]};
        struct rl_options as = {.out = out};

        tiny_must(sft_run(&o, &e), &e);
        json_t *m = metrics_of(&as, 1);
        loss[i] = json_f64(m, "loss", NAN);
        json_decref(m);
        model[i] = path_join(out, "model");
        free(out);
    }
    assert_true(loss[0] == loss[1] && loss[1] == loss[2]);
    assert_true(tiny_same_model(model[0], model[1]));
    assert_false(tiny_same_model(model[0], model[2]));
    for (int i = 0; i < 3; i++)
        free(model[i]);
    free(init);
    free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_of_several_turns), cmocka_unit_test(same_seed_same_run),
        cmocka_unit_test(a_run_without_a_pass),
        cmocka_unit_test(equal_rewards_teach_nothing), cmocka_unit_test(one_turn_and_options),
        cmocka_unit_test(one_group_is_one_step),
        cmocka_unit_test(repair_prompts_too_long), cmocka_unit_test(dialogues_too_long),
        cmocka_unit_test(prompts_too_long), cmocka_unit_test(rft_keeps_what_passed),
        cmocka_unit_test(sft_learns_the_last_response), cmocka_unit_test(changed_tokens_weigh_more)};
    int rc;

    log_set_level(LOG_ERROR);
    tiny_make();
    rc = cmocka_run_group_tests(tests, NULL, NULL);
    tiny_remove();
    return rc;
}

/* test_edits.c - answers of lines in rollouts: a tiny model learns one dialogue by heart, a program that is wrong and
 * the line that mends it. What is judged in turn 2, or in a repair task's turn 1, is the whole program; what is learned
 * is the whole line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../lib/fake_verdict.h"
#include "base/json.h"
#include "base/log.h"
#include "task/repair_text.h"
#include "task/prompt.h"
#include "train/data.h"
#include "../lib/tiny.h"
#include "train/harvest.h"
#include "train/rollout.h"
#include "train/rollout_log.h"
#include "train/sft.h"

#define BAD "```python\ns = \"\"\"\n__global__ bad\n\"\"\"\nclass ModelNew: 1\n```"
#define GOOD "```python\ns = \"\"\"\n__global__ good\n\"\"\"\nclass ModelNew: 1\n```"
#define EDIT "2 | __global__ good\n"

static char last[400];

static json_t *fake_judge(const struct verdict_request *item)
{
    snprintf(last, sizeof last, "%s", item->candidate);
    if (!strcmp(item->candidate, GOOD))
        return json_pack("{s:s,s:n,s:f}", "status", "passed", "category", "reward", 1.0);
    return json_pack("{s:s,s:s,s:f,s:s}", "status", "failed", "category", "correctness_error", "reward", -1.0,
                     "feedback", "bad");
}

static void add_record(struct buf *out, int i, bool repair)
{
    json_t *m = prompt_start("do"), *v;
    char *text;

    if (repair)
        prompt_turn(m, PROMPT_PLAIN, BAD, "bad", BAD);
    prompt_say(m, "assistant", repair ? EDIT : BAD);
    v = json_pack("{s:s, s:i, s:o}", "kind", repair ? "repair" : "generate", "id", i, "messages", m);
    text = json_text(v);
    buf_addf(out, "%s\n", text);
    free(text);
    json_decref(v);
}

static char *learned(void)
{
    char *data = tiny_path("edits.jsonl"), *init = tiny_path("edits_init"), *out = tiny_path("edits_run");
    struct scratch_options so = {.data = data, .out = init, .range = 0.02, .vocab = 330, .hidden = 64,
                                 .intermediate = 128, .layers = 2, .heads = 2, .kv_heads = 1, .head_dim = 32,
                                 .positions = 400, .seed = 1};
    struct sft_options o = {.model = init, .data = data, .out = out, .stage = "sft", .steps = 150, .batch_tokens = 400,
                            .micro_tokens = 512, .max_length = 300, .schedule = {SCHED_COSINE, 4e-3, 0.03, 0.1, 0},
                            .grad_clip = 1, .mix = "repair=0.5", .val_every = 150, .save_every = 150, .val_max = 1,
                            .seed = 5};
    struct err e = ERR_INIT;
    struct buf b;

    buf_init(&b, BUF_MAX_TEXT);
    for (int i = 0; i < 8; i++)
        add_record(&b, i, i % 2);
    tiny_must(file_write(data, b.p, b.n, &e), &e);
    tiny_must(scratch_make(&so, &e), &e);
    tiny_must(sft_run(&o, &e), &e);
    buf_free(&b);
    free(data), free(init);
    return out;
}

struct player {
    struct tokenizer *tok;
    struct model *m;
    struct verdicts *judge;
    struct rollout_engine *d;
};

static struct player open_player(const char *run)
{
    char *dir = path_join(run, "model"), *log = tiny_path("edits_verdicts.jsonl");
    struct verdicts_config jc = {.log = log};
    struct err e = ERR_INIT;
    struct player p = {.tok = tokenizer_load(dir, &e), .m = model_load(dir, &e)};

    tiny_must(p.tok && p.m ? 0 : -1, &e);
    tiny_must(model_use_tokenizer(p.m, p.tok, &e), &e);
    tiny_must(verdicts_open(&jc, &p.judge, &e), &e);
    p.d = rollout_engine_own(p.m);
    free(dir), free(log);
    return p;
}

static void close_player(struct player *p)
{
    rollout_engine_close(p->d);
    verdicts_close(p->judge);
    model_free(p->m);
    tokenizer_free(p->tok);
}

static void play(struct player *p, const json_t *messages, const char *before, int turns, struct rollout_group *g)
{
    struct rollout_options o = {.turns = turns, .max_new = 100, .positions = 400, .temperature = 0.05, .edits = true};
    struct err e = ERR_INIT;

    tiny_must(rollout_group_init(g, p->tok, messages, 1, &e), &e);
    g->task_code = "task", g->task_name = "t", g->seed = 3;
    g->before = before ? xstrdup(before) : NULL;
    tiny_must(rollout_run(p->d, p->tok, p->judge, &o, g, 1, &e), &e);
}

/* The log holds what an answer of lines stands for, and gives it back. */
static void check_log(struct player *p, const struct rollout_group *g)
{
    struct rollout_note n = {.prompt_id = "t", .minibatch = -1};
    struct rollout_group back = {0};
    struct err e = ERR_INIT;
    struct buf line;
    json_t *v;

    buf_init(&line, BUF_MAX_TEXT);
    rollout_log_line(&line, &n, &g->prompt, &g->r[0]);
    v = json_parse(line.p, line.n, "line", &e);
    tiny_must(rollout_group_ids(&back, p->tok, g->prompt.ids.v, g->prompt.ids.n, 1, &e), &e);
    tiny_must(rollout_log_take(v, p->tok, &back.r[0], &e), &e);
    assert_string_equal(rollout_program(&back.r[0].turn[1]), GOOD);
    assert_string_equal(back.r[0].turn[1].text, EDIT);
    rollout_group_free(&back);
    json_decref(v);
    buf_free(&line);
}

static int take(json_t *v, size_t line, void *ctx, struct err *e)
{
    (void)line, (void)e;
    json_array_append(ctx, v);
    return 0;
}

/* The model's own failure becomes the line that leads to the nearest answer. */
static void check_harvest(const char *run)
{
    char *model = path_join(run, "model"), *data = tiny_path("harvest.jsonl"), *out = tiny_path("harvest");
    char *own = path_join(out, "own.jsonl"), *text;
    struct harvest_options o = {.model = model, .data = data, .out = out, .samples = 1, .max_new = 100, .chunk = 1,
                                .temperature = 0.05, .seed = 3, .edits = true};
    json_t *lines = json_array(), *messages;
    struct err e = ERR_INIT;
    json_t *v = json_pack("{s:[{s:s,s:s},{s:s,s:s}], s:{s:s,s:s}, s:{s:s}}", "messages", "role", "user", "content",
                          "do", "role", "assistant", "content", "x", "task", "name", "t", "code", "task", "kernel",
                          "code", "s = \"\"\"\n__global__ good\n\"\"\"\nclass ModelNew: 1\n");

    tiny_must(jsonl_append(data, v, &e), &e);
    tiny_must(harvest_collect(&o, &e), &e);
    tiny_must(jsonl_each(own, take, lines, &e), &e);
    assert_int_equal(json_array_size(lines), 1);
    messages = json_object_get(json_array_get(lines, 0), "messages");
    assert_string_equal(json_str(json_array_get(messages, 3), "content", ""), EDIT);
    text = prompt_feedback(PROMPT_PLAIN, "bad", BAD);
    assert_string_equal(json_str(json_array_get(messages, 2), "content", ""), text);
    json_decref(lines), json_decref(v);
    free(text), free(model), free(data), free(out), free(own);
}

static void lines_are_judged_as_programs(void **state)
{
    (void)state;
    char *run = learned();
    struct player p = open_player(run);
    struct rollout_group g;
    json_t *m = prompt_start("do");

    play(&p, m, NULL, 2, &g);
    assert_int_equal(g.r[0].turns, 2);
    assert_string_equal(g.r[0].turn[0].text, BAD);
    assert_null(g.r[0].turn[0].written);
    assert_string_equal(g.r[0].turn[1].text, EDIT);
    assert_string_equal(last, GOOD);
    assert_int_equal(g.r[0].passed_turn, 2);
    check_log(&p, &g);
    rollout_group_free(&g);
    prompt_turn(m, PROMPT_PLAIN, BAD, "bad", BAD); // a repair task: its first answer is the lines
    play(&p, m, BAD, 1, &g);
    assert_string_equal(g.r[0].turn[0].text, EDIT);
    assert_int_equal(g.r[0].passed_turn, 1);
    assert_string_equal(rollout_program(&g.r[0].turn[0]), GOOD);
    rollout_group_free(&g);
    json_decref(m);
    close_player(&p);
    check_harvest(run);
    free(run);
}

/* A whole program is new where it differs; a line is, from its number to its end. */
static void lines_are_new_as_a_whole(void **state)
{
    (void)state;
    char *dir = tiny_path("init"), *data = tiny_path("new.jsonl");
    struct dataset d = {0};
    struct err e = ERR_INIT;
    struct tokenizer *tok = tokenizer_load(dir, &e);
    const char *answers[] = {EDIT, GOOD};
    struct buf b;

    buf_init(&b, BUF_MAX_TEXT);
    for (int i = 0; i < 2; i++) {
        json_t *m = prompt_start("do"), *v;

        prompt_turn(m, PROMPT_PLAIN, BAD, "bad", BAD);
        prompt_say(m, "assistant", answers[i]);
        v = json_pack("{s:s, s:i, s:o}", "kind", "repair", "id", i, "messages", m);
        char *text = json_text(v);
        buf_addf(&b, "%s\n", text);
        free(text), json_decref(v);
    }
    tiny_must(file_write(data, b.p, b.n, &e), &e);
    tiny_must(dataset_add(&d, data, &tok, 1, 1000, &e), &e);
    assert_int_equal(d.n, 2);
    for (int i = 0; i < 2; i++) {
        int n = d.ex[i].to - d.ex[i].from, new = 0;

        for (int k = 0; k < n; k++)
            new += d.ex[i].changed[k];
        assert_true(i == 0 ? new == n : new > 0 && new < n / 2);
    }
    dataset_free(&d), tokenizer_free(tok), buf_free(&b);
    free(dir), free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(lines_are_judged_as_programs),
                                       cmocka_unit_test(lines_are_new_as_a_whole)};
    int rc;

    log_set_level(LOG_ERROR);
    tiny_make();
    rc = cmocka_run_group_tests(tests, NULL, NULL);
    tiny_remove();
    return rc;
}

/* test_checkpoint.c - the folder of a run: a step is saved once, nothing starts from nothing because something is
 * missing, inputs that changed and a second process are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "base/json.h"
#include "base/log.h"
#include "../lib/tiny.h"
#include "train/checkpoint.h"
#include "train/sft.h"
#include "train/train_metrics.h"

static int sft(const char *out, int64_t steps, const json_t *claim, struct err *e)
{
    char *model = tiny_path("init"), *data = tiny_path("data.jsonl");
    struct sft_options o = {.model = model, .data = data, .out = out, .stage = "sft", .steps = steps,
                            .batch_tokens = 200,
                            .micro_tokens = 128, .max_length = 100, .schedule = {SCHED_CONSTANT, 3e-3, 0, 0.1, 0},
                            .grad_clip = 1, .val_every = 2, .save_every = 2, .val_max = 8, .seed = 5, .claim = claim};
    int rc = sft_run(&o, e);

    free(model), free(data);
    return rc;
}

static ino_t inode_of(const char *path)
{
    struct stat st;

    assert_int_equal(stat(path, &st), 0);
    return st.st_ino;
}

/* A run that ended and is started again finds its last step there: that checkpoint is never taken away. */
static void a_step_is_saved_once(void **state)
{
    struct err e = ERR_INIT;
    char *out = tiny_path("once"), *step = path_join(out, "checkpoint/00000002/state.json");

    (void)state;
    tiny_must(sft(out, 2, NULL, &e), &e);
    ino_t first = inode_of(step);
    tiny_must(sft(out, 2, NULL, &e), &e);
    assert_int_equal(inode_of(step), first);
    free(out), free(step);
}

static void a_pointer_to_nothing_is_an_error(void **state)
{
    struct err e = ERR_INIT;
    char *out = tiny_path("dangling"), *step = path_join(out, "checkpoint/00000002"), *found = NULL;

    (void)state;
    tiny_must(sft(out, 2, NULL, &e), &e);
    tiny_must(dir_remove(step, &e), &e);
    assert_int_equal(checkpoint_latest(out, &found, &e), -1);
    assert_int_equal(e.kind, ERR_INPUT);
    assert_non_null(strstr(e.msg, "latest"));
    assert_int_equal(sft(out, 2, NULL, &e), -1);
    free(out), free(step);
}

/* A stop between a checkpoint and its pointer, or a copy without it, leaves a whole checkpoint. */
static void a_checkpoint_without_its_pointer_is_gone_on_from(void **state)
{
    struct err e = ERR_INIT;
    char *out = tiny_path("unnamed"), *latest = path_join(out, "checkpoint/latest"), *found = NULL;
    char *step = path_join(out, "checkpoint/00000002/state.json");
    char *unfinished = path_join(out, "checkpoint/unfinished");

    (void)state;
    tiny_must(sft(out, 2, NULL, &e), &e);
    ino_t first = inode_of(step);
    assert_int_equal(remove(latest), 0);
    tiny_must(dir_make(unfinished, &e), &e); /* is none */
    tiny_must(checkpoint_latest(out, &found, &e), &e);
    assert_string_equal(path_name(found), "00000002");
    tiny_must(sft(out, 2, NULL, &e), &e);
    assert_int_equal(inode_of(step), first);
    assert_true(file_exists(latest));
    free(out), free(latest), free(found), free(step), free(unfinished);
}

/* What a stop leaves of a checkpoint that is being written is none. */
static void half_a_checkpoint_is_none(void **state)
{
    struct err e = ERR_INIT;
    char *out = tiny_path("half"), *latest = path_join(out, "checkpoint/latest"), *found = NULL;
    char *step = path_join(out, "checkpoint/00000002"), *half = path_join(out, "checkpoint/unfinished");

    (void)state;
    tiny_must(sft(out, 2, NULL, &e), &e);
    assert_int_equal(remove(latest) < 0 || rename(step, half) < 0, 0);
    tiny_must(checkpoint_latest(out, &found, &e), &e);
    assert_null(found);
    free(out), free(latest), free(step), free(half);
}

/* Starts the run of 'out' again after one file of its checkpoint was changed: refused, and the remedy is named. */
static void refuses_changed(const char *out, const json_t *claim, const char *name, const char *text, const char *want)
{
    char *path = path_join(out, name);
    struct err e = ERR_INIT;
    struct buf was;

    buf_init(&was, (size_t)1 << 30);
    tiny_must(file_read(path, &was, &e), &e);
    tiny_must(file_write(path, text, strlen(text), &e), &e);
    assert_int_equal(sft(out, 2, claim, &e), -1);
    assert_non_null(strstr(e.msg, want));
    assert_non_null(strstr(e.msg, "to start from the beginning"));
    tiny_must(file_write(path, was.p, was.n, &e), &e);
    buf_free(&was);
    free(path);
}

/* Files that are cut or altered, and a checkpoint of other options, are refused in words that say what to do. */
static void damaged_checkpoints_name_the_remedy(void **state)
{
    json_t *slow = json_pack("{s:s}", "lr", "slow"), *fast = json_pack("{s:s}", "lr", "fast");
    char *a = tiny_path("slow"), *b = tiny_path("fast"), *from, *to;
    struct err e = ERR_INIT;

    (void)state;
    tiny_must(sft(a, 2, slow, &e), &e);
    tiny_must(sft(b, 2, fast, &e), &e);
    refuses_changed(a, slow, "checkpoint/00000002/state.json", "", "is damaged");
    refuses_changed(a, slow, "checkpoint/00000002/state.json", "{\"step\": 1, \"seal\": \"x\"}",
                    "not what was written");
    refuses_changed(a, slow, "checkpoint/00000002/optim.safetensors", "cut", "is damaged");
    refuses_changed(a, slow, "checkpoint/00000002/model.safetensors", "cut", "is damaged");
    refuses_changed(a, slow, "options.json", "", "is damaged");
    tiny_must(sft(a, 2, slow, &e), &e);
    from = path_join(b, "checkpoint/00000002/state.json"), to = path_join(a, "checkpoint/00000002/state.json");
    tiny_must(file_copy(from, to, &e), &e);
    assert_int_equal(sft(a, 2, slow, &e), -1);
    assert_non_null(strstr(e.msg, "a checkpoint of another training"));
    json_decref(slow), json_decref(fast);
    free(a), free(b), free(from), free(to);
}

static void other_peoples_files_stay(void **state)
{
    struct err e = ERR_INIT;
    char *out = tiny_path("beside"), *root = path_join(out, "checkpoint"), *mine = path_join(root, "notes.txt");

    (void)state;
    tiny_must(dir_make(root, &e), &e);
    tiny_must(file_write(mine, "x", 1, &e), &e);
    tiny_must(sft(out, 2, NULL, &e), &e);
    assert_true(file_exists(mine));
    free(out), free(root), free(mine);
}

static json_t *claim_of(const char *data)
{
    return json_pack("{s:s,s:i}", "data", data, "steps", 2);
}

/* The same path with other bytes is another input. */
static void changed_inputs_are_refused(void **state)
{
    struct err e = ERR_INIT;
    char *out = tiny_path("changed"), *data = tiny_path("claimed.jsonl");
    json_t *claim = claim_of(data);

    (void)state;
    tiny_must(file_write(data, "a", 1, &e), &e);
    tiny_must(sft(out, 2, claim, &e), &e);
    tiny_must(sft(out, 2, claim, &e), &e);
    tiny_must(file_write(data, "b", 1, &e), &e);
    assert_int_equal(sft(out, 2, claim, &e), -1);
    assert_non_null(strstr(e.msg, "as 'data' has changed"));
    json_decref(claim);
    free(out), free(data);
}

static void a_second_process_waits_for_its_own_folder(void **state)
{
    struct err e = ERR_INIT;
    struct run_folder a = {0}, b = {0};
    char *out = tiny_path("two"), *data = tiny_path("data.jsonl");
    json_t *claim = claim_of(data);

    (void)state;
    tiny_must(run_open(out, claim, NULL, &a, &e), &e);
    tiny_must(run_open(out, claim, NULL, &b, &e), &e);
    assert_false(file_exists(out));
    tiny_must(run_claim(&a, &e), &e);
    assert_int_equal(run_claim(&b, &e), -1);
    assert_non_null(strstr(e.msg, "another"));
    run_close(&b);
    assert_int_equal(run_open(out, claim, NULL, &b, &e), -1);
    run_close(&a);
    tiny_must(run_open(out, claim, NULL, &b, &e), &e);
    run_close(&b);
    json_decref(claim);
    free(out), free(data);
}

/* A model folder that is there is whole: what a killed writer left has another name. */
static void a_model_is_whole_or_not_there(void **state)
{
    struct err e = ERR_INIT;
    char *out = tiny_path("whole"), *left = path_join(out, "model.unfinished/torn"), *model = path_join(out, "model"),
         *torn = path_join(model, "torn"), *tokenizer = path_join(model, "tokenizer.json");
    char *from = tiny_path("init");

    (void)state;
    tiny_must(dir_make(left, &e), &e);
    struct model *m = model_load(from, &e);
    assert_non_null(m);
    tiny_must(run_save_model(out, m, &e), &e);
    assert_true(file_exists(tokenizer));
    assert_false(file_exists(torn));
    model_free(m);
    free(out), free(left), free(model), free(torn), free(tokenizer), free(from);
}

/* Curves of long runs are large: one line that is drawn anew takes no other with it. */
static void a_large_curve_is_kept_whole(void **state)
{
    enum { LINES = 67, PAD = 1 << 20 }; // above the 64 MiB of a text
    char *run = tiny_path("curve"), *path = path_join(run, "metrics.jsonl"), *pad = xcalloc(PAD + 1, 1);
    struct train_metrics m;
    struct err e = ERR_INIT;
    struct stat before, after;
    FILE *f;

    (void)state;
    tiny_must(dir_make(run, &e), &e);
    memset(pad, 'x', PAD);
    assert_non_null(f = fopen(path, "w"));
    for (int i = 0; i < LINES; i++)
        fprintf(f, "{\"stage\":\"before\",\"step\":%d,\"pad\":\"%s\"}\n", i, pad);
    assert_int_equal(fflush(f), 0);
    assert_int_equal(stat(path, &before), 0);
    fprintf(f, "{\"stage\":\"sft\",\"step\":1}\n");
    assert_int_equal(fclose(f), 0);
    tiny_must(metrics_open(&m, run, NULL, "sft", 1, 0, &e), &e);
    assert_int_equal(stat(path, &after), 0);
    assert_int_equal(after.st_size, before.st_size);
    metrics_close(&m);
    remove(path);
    free(run), free(path), free(pad);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_is_saved_once),
        cmocka_unit_test(a_pointer_to_nothing_is_an_error),
        cmocka_unit_test(a_checkpoint_without_its_pointer_is_gone_on_from),
        cmocka_unit_test(half_a_checkpoint_is_none),
        cmocka_unit_test(damaged_checkpoints_name_the_remedy),
        cmocka_unit_test(other_peoples_files_stay),
        cmocka_unit_test(changed_inputs_are_refused),
        cmocka_unit_test(a_second_process_waits_for_its_own_folder),
        cmocka_unit_test(a_model_is_whole_or_not_there),
        cmocka_unit_test(a_large_curve_is_kept_whole),
    };
    int rc;

    log_set_level(LOG_ERROR);
    tiny_make();
    rc = cmocka_run_group_tests(tests, NULL, NULL);
    tiny_remove();
    return rc;
}

/* test_sft.c - the SFT stage as a whole: it learns, it continues bit for bit after kill -9, it refuses nonsense. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/json.h"
#include "base/log.h"
#include "nn/safetensors.h"
#include "../lib/tiny.h"
#include "train/sft.h"

static struct sft_options options(const char *out)
{
    return (struct sft_options){
        .model = tiny_path("init"), .data = tiny_path("data.jsonl"), .out = tiny_path(out), .stage = "sft",
        .steps = 30, .batch_tokens = 200, .micro_tokens = 128, .max_length = 100,
        .schedule = {SCHED_COSINE, 3e-3, 0.03, 0.1, 0}, .weight_decay = 0.01, .grad_clip = 1, .val_share = 0.1,
        .val_every = 10, .save_every = 3, .val_max = 8, .seed = 5};
}

static void done(struct sft_options *o)
{
    free((char *)o->model);
    free((char *)o->data);
    free((char *)o->out);
}

static int work(const void *o)
{
    struct err e = ERR_INIT;

    return sft_run(o, &e);
}

/* Several kills at different moments, at least one after a checkpoint; then the same bytes as an undisturbed run.
 * Children come first: a process that has used OpenMP threads must not fork and go on with them. */
static void killed_and_continued(void **state)
{
    (void)state;
    struct sft_options a = options("killed"), b = options("straight");
    struct err e = ERR_INIT;
    char *ma = path_join(a.out, "model"), *mb = path_join(b.out, "model");
    int kills = 0;

    a.steps = b.steps = 150;
    for (unsigned i = 0; i < 4; i++)
        kills += tiny_killed(work, &a, a.out, i * 1700);
    tiny_must(sft_run(&a, &e), &e);
    tiny_must(sft_run(&b, &e), &e);
    assert_true(tiny_same_model(ma, mb));
    assert_true(tiny_whole_model(ma));
    assert_true(kills > 0);
    free(ma);
    free(mb);
    done(&a);
    done(&b);
}

struct curve {
    double first, last;
    int lines, last_step;
};

static int read_loss(json_t *v, size_t line, void *ctx, struct err *e)
{
    struct curve *c = ctx;

    if (c->lines++ == 0)
        c->first = json_f64(v, "loss", NAN);
    c->last = json_f64(v, "loss", NAN);
    assert_int_equal(json_i64(v, "step", 0), c->last_step + 1); // every step once, in order
    c->last_step++;
    return 0;
}

static void learns(void **state)
{
    (void)state;
    struct sft_options o = options("killed");
    struct err e = ERR_INIT;
    struct curve c = {0};
    char *m = path_join(o.out, "metrics.jsonl");

    tiny_must(jsonl_each(m, read_loss, &c, &e), &e);
    assert_int_equal(c.lines, 150);
    assert_true(c.first > 4 && c.last < 0.8);
    free(m);
    done(&o);
}

static void other_options_refused(void **state)
{
    (void)state;
    struct sft_options o = options("claimed");
    struct err e = ERR_INIT;
    json_t *a = json_pack("{s:i,s:f}", "steps", 2, "lr", 0.001), *b = json_pack("{s:i,s:f}", "steps", 2, "lr", 0.002);

    o.steps = 2;
    o.claim = a;
    tiny_must(sft_run(&o, &e), &e);
    tiny_must(sft_run(&o, &e), &e); // done: nothing to do, no error
    o.claim = b;
    assert_int_equal(sft_run(&o, &e), -1);
    assert_non_null(strstr(e.msg, "'lr'"));
    json_decref(a);
    json_decref(b);
    done(&o);
}

static void nonsense(void **state)
{
    (void)state;
    struct sft_options o = options("bad");
    struct err e = ERR_INIT;
    char *bad = tiny_path("bad.jsonl");

    o.max_length = 4;
    assert_int_equal(sft_run(&o, &e), -1);
    o.max_length = 100;
    free((char *)o.data);
    o.data = tiny_path("absent.jsonl");
    assert_int_equal(sft_run(&o, &e), -1);
    assert_non_null(strstr(e.msg, "absent.jsonl"));
    static const char text[] = "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}\n";
    tiny_must(file_write(bad, text, sizeof text - 1, &e), &e);
    free((char *)o.data);
    o.data = bad;
    assert_int_equal(sft_run(&o, &e), -1);
    assert_non_null(strstr(e.msg, "line 1"));
    done(&o);
}

/* The second run's optimiser begins where the first one's ended. */
static void moments_go_on(void **state)
{
    (void)state;
    struct sft_options o = options("again");
    char *state_file = path_join(o.out, "checkpoint/00000002/optim.safetensors");
    struct err e = ERR_INIT;
    struct safetensors *s;
    int64_t step;

    o.steps = 2;
    o.moments = true;
    assert_int_equal(sft_run(&o, &e), -1); // its start was made, not trained
    assert_non_null(strstr(e.msg, "--moments"));
    free((char *)o.model);
    o.model = tiny_path("killed/model");
    tiny_must(sft_run(&o, &e), &e);
    s = st_open(state_file, &e);
    memcpy(&step, st_find(s, "step")->data, sizeof step);
    assert_int_equal(step, 150 + 2);
    st_close(s);
    free(state_file);
    done(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(killed_and_continued), cmocka_unit_test(learns),
                                       cmocka_unit_test(other_options_refused), cmocka_unit_test(moments_go_on),
                                       cmocka_unit_test(nonsense)};
    int rc;

    log_set_level(LOG_ERROR);
    tiny_make();
    rc = cmocka_run_group_tests(tests, NULL, NULL);
    tiny_remove();
    return rc;
}

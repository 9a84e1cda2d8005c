/* test_rollout_engine.c - rollouts from a server: 'musacoder serve --model' on the same folder draws what the sampler
 * draws, bit for bit, and a step of RL learns the same from either. A server that cannot load weights is named. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/log.h"
#include "../lib/fake_letters.h"
#include "../lib/tiny.h"
#include "answers/rollout_engine.h"
#include "train/rl.h"

static pid_t server;
static char *url;

/* Its second line ends in ":PORT, ..." */
static void start_server(void)
{
    const char *build = getenv("B");
    char *exe = path_join(build ? build : "build", "musacoder"), *init = tiny_path("init"), *q = tiny_path("q.db");
    int fd[2], lines = 0, at = 0;
    char text[4096] = "", *comma;

    assert_int_equal(pipe(fd), 0);
    if ((server = fork()) == 0) {
        dup2(fd[1], 2);
        close(fd[0]);
        execl(exe, exe, "serve", "--queue", q, "--port", "0", "--workers", "0", "--model", init, "--max-batch", "4",
              (char *)NULL);
        _exit(127);
    }
    close(fd[1]);
    while (lines < 2 && at < (int)sizeof text - 1 && read(fd[0], text + at, 1) == 1)
        lines += text[at++] == '\n';
    comma = strchr(strchr(text, '\n') + 1, ',');
    assert_non_null(comma);
    *comma = 0;
    url = xasprintf("http://127.0.0.1:%s/v1", strrchr(text, ':') + 1);
    free(exe), free(init), free(q);
}

static void stop_server(void)
{
    kill(server, SIGTERM);
    waitpid(server, NULL, 0);
    free(url);
}

static struct rollout_engine *open_engine(const char *name, struct model *m, struct err *e)
{
    struct rollout_engine_config c = {.engine = name, .learner = m, .url = url, .parallel = 3};
    struct rollout_engine *d = NULL;

    tiny_must(rollout_engine_open(&c, &d, e), e);
    return d;
}

static int heard; // on_sample

static void on_sample(void *ctx, const struct sample *s)
{
    heard += s->n > 0;
}

static void same_samples(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    char *init = tiny_path("init");
    struct model *m = model_load(init, &e);
    struct rollout_engine *a = open_engine("own", m, &e), *b = open_engine("openai", m, &e);
    int32_t prompt[3][8] = {{1, 2, 3}, {40, 41, 42, 43, 44, 45, 46, 47}, {9}};
    struct sample_request q[3] = {{.prompt = prompt[0], .n_prompt = 3, .n_samples = 2, .seed = 5},
                                  {.prompt = prompt[1], .n_prompt = 8, .n_samples = 3, .seed = UINT64_MAX - 7},
                                  {.prompt = prompt[2], .n_prompt = 1, .n_samples = 1, .seed = 1}};
    struct sampler_options o = {.temperature = 0.9f, .top_p = 1, .max_new = 20, .on_sample = on_sample};
    struct sample *x, *y;
    size_t n, k;

    tiny_must(rollout_engine_run(a, &o, q, 3, &x, &n, &e), &e);
    heard = 0;
    tiny_must(rollout_engine_run(b, &o, q, 3, &y, &k, &e), &e);
    assert_int_equal(n, 6);
    assert_int_equal(k, 6);
    assert_int_equal(heard, 6);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(x[i].n, y[i].n);
        assert_int_equal(x[i].finish, y[i].finish);
        assert_int_equal(x[i].request, y[i].request);
        assert_memory_equal(x[i].tokens, y[i].tokens, (size_t)x[i].n * sizeof(int32_t));
        assert_memory_equal(x[i].logp, y[i].logp, (size_t)x[i].n * sizeof(float));
    }
    samples_free(x, n), samples_free(y, k);
    rollout_engine_close(a), rollout_engine_close(b);
    model_free(m);
    free(init);
}

static struct rl_options options(const char *out, const char *engine)
{
    return (struct rl_options){
        .model = tiny_path("init"), .data = tiny_path("prompts.jsonl"), .out = tiny_path(out), .stage = "rl",
        .steps = 1,
        .save_every = 2, .prompts = 4, .group = 8, .turns = 2, .max_new = 12, .max_prompt = 200, .micro_tokens = 256,
        .minibatches = 2, .epochs = 1, .temperature = 1, .schedule = {SCHED_CONSTANT, 1e-2, 0, 1, 0}, .grad_clip = 1,
        .negative_weight = 1,
        .advantage = ADV_GRPO, .advantage_eps = 1e-6,
        .policy = {.clip = PPO_CLIP_DEFAULT, .aggregate = AGG_TOKEN_MEAN, .kl = KL_NONE, .mirrorpop = true,
                   .delta = 0.1},
        .primeecho = true, .echo = PRIMEECHO_DEFAULT, .rollouts = true, .style = PROMPT_PLAIN, .seed = 3,
        .engine = engine, .url = url, .parallel = 2};
}

static void same_step(void **state)
{
    (void)state;
    struct rl_options a = options("with-own", "own"), b = options("with-openai", "openai");
    struct err e = ERR_INIT;
    char *ma = path_join(a.out, "model"), *mb = path_join(b.out, "model");

    tiny_must(rl_run(&a, &e), &e);
    tiny_must(rl_run(&b, &e), &e);
    assert_true(tiny_same_model(ma, mb));
    b.steps = 2, b.sync = ROLLOUT_ENGINE_SYNC_DISK; // this server has no way to load weights
    assert_int_equal(rl_run(&b, &e), -1);
    assert_non_null(strstr(e.msg, "was told to load"));
    b.engine = "vllm";
    assert_int_equal(rl_run(&b, &e), -1);
    assert_non_null(strstr(e.msg, "neither own nor openai"));
    free(ma), free(mb);
    free((char *)a.model), free((char *)a.data), free((char *)a.out);
    free((char *)b.model), free((char *)b.data), free((char *)b.out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_samples), cmocka_unit_test(same_step)};
    int rc;

    log_set_level(LOG_ERROR);
    tiny_make();
    start_server();
    rc = cmocka_run_group_tests(tests, NULL, NULL);
    stop_server();
    tiny_remove();
    return rc;
}

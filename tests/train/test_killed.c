/* test_killed.c - kill -9 in every phase of a stage that leaves a trace, then the same command again: weights and
 * metrics are those of a run that nobody disturbed, bit for bit.
 *
 * What survives a kill is what was written, so phases are the calls that write: every write (cut in half: the rest
 * never comes), fsync, rename and unlink of a run, told apart by the name of their file. A first run lists them; then
 * each is killed in runs of its own, in the middle of the run and at its end. */
#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <cmocka.h>

#include "base/log.h"
#include "../lib/fake_letters.h"
#include "../lib/tiny.h"
#include "train/rl.h"
#include "train/sft.h"

#define MAX_PHASES 64
#define MAX_CALLS 4000

struct phase {
    char name[64];
    int calls;
};

/* Shared with the children. */
static struct shared {
    struct phase phase[MAX_PHASES];
    int n;
    int victim, at; // die in this call of this phase; victim -1: only list
} *shared;
static bool watching; // in a child

/* Digits are dropped, which are steps, and what makes a temporary name a new one. */
static void phase_name(const char *call, const char *path, char *ret, size_t n)
{
    const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    size_t k = (size_t)snprintf(ret, n, "%s ", call);

    for (; *base && strncmp(base, ".tmp.", 5) && k + 1 < n; base++)
        if (!isdigit((unsigned char)*base))
            ret[k++] = *base;
    ret[k] = 0;
}

/* True when this call is the one to die in. */
static bool now(const char *call, const char *path)
{
    char name[64];
    int i = 0;

    if (!watching || !strstr(path, tiny_dir))
        return false;
    phase_name(call, path, name, sizeof name);
    while (i < shared->n && strcmp(shared->phase[i].name, name))
        i++;
    if (i == MAX_PHASES)
        return false;
    if (i == shared->n) {
        snprintf(shared->phase[i].name, sizeof name, "%s", name);
        shared->phase[shared->n++].calls = 0;
    }
    return ++shared->phase[i].calls == shared->at && i == shared->victim;
}

static bool now_fd(const char *call, int fd)
{
    char link[64], path[4096];
    ssize_t n;

    if (!watching)
        return false;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    n = readlink(link, path, sizeof path - 1);
    path[n > 0 ? n : 0] = 0;
    return now(call, path);
}

/* In place of libc's: the linker prefers the program's own. */
ssize_t write(int fd, const void *p, size_t n)
{
    bool die = now_fd("write", fd);
    ssize_t k = syscall(SYS_write, fd, p, die ? n / 2 : n);

    if (die)
        raise(SIGKILL);
    return k;
}

int fsync(int fd)
{
    if (now_fd("fsync", fd))
        raise(SIGKILL);
    return 0; // a killed process loses nothing that was written; a power cut is another test
}

int rename(const char *from, const char *to)
{
    if (now("rename", to))
        raise(SIGKILL);
    return (int)syscall(SYS_renameat, AT_FDCWD, from, AT_FDCWD, to);
}

int renameat2(int a, const char *from, int b, const char *to, unsigned flags)
{
    if (now("rename", to))
        raise(SIGKILL);
    return (int)syscall(SYS_renameat2, a, from, b, to, flags);
}

int unlinkat(int fd, const char *path, int flags)
{
    if (now_fd("unlink in", fd))
        raise(SIGKILL);
    return (int)syscall(SYS_unlinkat, fd, path, flags);
}

int unlink(const char *path)
{
    if (now("unlink", path))
        raise(SIGKILL);
    return (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

struct stage {
    const char *name;
    int (*run)(const char *out, struct err *e);
};

static int run_sft(const char *out, struct err *e)
{
    char *model = tiny_path("init"), *data = tiny_path("data.jsonl");
    struct sft_options o = {.model = model, .data = data, .out = out, .stage = "sft", .steps = 5, .batch_tokens = 200,
                            .micro_tokens = 128, .max_length = 100, .schedule = {SCHED_COSINE, 3e-3, 0.03, 0.1, 0},
                            .weight_decay = 0.01, .grad_clip = 1, .val_share = 0.1, .val_every = 2, .save_every = 2,
                            .val_max = 8, .seed = 5};
    int rc = sft_run(&o, e);

    free(model), free(data);
    return rc;
}

static int run_rl(const char *out, struct err *e)
{
    char *model = tiny_path("init"), *data = tiny_path("prompts.jsonl");
    struct rl_options o = {
        .model = model, .data = data, .out = out, .stage = "rl", .steps = 5, .save_every = 2, .prompts = 2, .group = 4,
        .turns = 2, .max_new = 8, .max_prompt = 200, .micro_tokens = 256, .minibatches = 1, .epochs = 1,
        .temperature = 1,
        .schedule = {SCHED_CONSTANT, 1e-2, 0, 1, 0}, .grad_clip = 1, .negative_weight = 1,
        .advantage = ADV_GRPO, .advantage_eps = 1e-6,
        .policy = {.clip = PPO_CLIP_DEFAULT, .aggregate = AGG_TOKEN_MEAN, .kl = KL_NONE, .mirrorpop = true,
                   .delta = 0.1},
        .primeecho = true, .echo = PRIMEECHO_DEFAULT, .rollouts = true, .bdr_size = 8, .bdr_probability = 0.4,
        .style = PROMPT_PLAIN, .seed = 3};
    int rc = rl_run(&o, e);

    free(model), free(data);
    return rc;
}

static const struct stage stages[] = {{"sft", run_sft}, {"rl", run_rl}};

/* In a child, so that what it killed had its own threads and memory. Returns the signal it died of, or 0. */
static int in_child(const struct stage *s, const char *out, int victim, int at)
{
    struct err e = ERR_INIT;
    int status;
    pid_t pid;

    shared->victim = victim, shared->at = at;
    for (int i = 0; i < shared->n; i++)
        shared->phase[i].calls = 0;
    if ((pid = fork()) == 0) {
        watching = true;
        if (s->run(out, &e) == 0)
            _exit(0);
        watching = false;
        fprintf(stderr, "%s: %s\n", s->name, e.msg);
        _exit(1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static const char *const same_keys[] = {"loss", "reward", "grad_norm", "val_loss", "lr", NULL};

struct metrics_of {
    char text[MAX_CALLS];
    size_t n;
};

static int add_line(json_t *v, size_t line, void *ctx, struct err *e)
{
    struct metrics_of *m = ctx;

    m->n += (size_t)snprintf(m->text + m->n, sizeof m->text - m->n, "%lld", (long long)json_i64(v, "step", -1));
    for (int i = 0; same_keys[i]; i++)
        m->n += (size_t)snprintf(m->text + m->n, sizeof m->text - m->n, " %.17g",
                                 json_num_value(json_object_get(v, same_keys[i])));
    m->n += (size_t)snprintf(m->text + m->n, sizeof m->text - m->n, "\n");
    return 0;
}

static struct metrics_of metrics_of(const char *out)
{
    struct metrics_of m = {.n = 0};
    struct err e = ERR_INIT;
    char *path = path_join(out, "metrics.jsonl");

    tiny_must(jsonl_each(path, add_line, &m, &e), &e);
    free(path);
    return m;
}

static void check_call(const struct stage *s, const char *straight, int victim, int at)
{
    char *out = xasprintf("%s/%s-%d/run", tiny_dir, s->name, victim), *a = path_join(out, "model"),
         *b = path_join(straight, "model");

    if (in_child(s, out, victim, at) != SIGKILL)
        fail_msg("%s: was not killed in call %d of '%s'", s->name, at, shared->phase[victim].name);
    if (in_child(s, out, -1, 0) != 0 || !tiny_same_model(a, b))
        fail_msg("%s: killed in call %d of '%s', it continues to another model", s->name, at,
                 shared->phase[victim].name);
    struct metrics_of x = metrics_of(out), y = metrics_of(straight);
    if (strcmp(x.text, y.text))
        fail_msg("%s: killed in call %d of '%s', metrics are\n%s and not\n%s", s->name, at, shared->phase[victim].name,
                 x.text, y.text);
    dir_remove(out, NULL);
    free(out), free(a), free(b);
}

static void killed_anywhere(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof stages / sizeof *stages; i++) {
        const struct stage *s = &stages[i];
        char *straight = xasprintf("%s/%s-straight/run", tiny_dir, s->name);
        int calls[MAX_PHASES];

        shared->n = 0;
        assert_int_equal(in_child(s, straight, -1, 0), 0);
        int n = shared->n;
        assert_in_range(n, 20, MAX_PHASES - 1);
        for (int k = 0; k < n; k++)
            calls[k] = shared->phase[k].calls;
        for (int k = 0; k < n; k++)
            for (int at = (calls[k] + 1) / 2; at <= calls[k]; at += calls[k] > at ? calls[k] - at : 1)
                check_call(s, straight, k, at);
        print_message("%s: killed in %d phases:", s->name, n);
        for (int k = 0; k < n; k++)
            print_message(" %s x%d%s", shared->phase[k].name, calls[k], k + 1 < n ? "," : "\n");
        free(straight);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(killed_anywhere)};
    int rc;

    log_set_level(LOG_ERROR);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    tiny_make();
    rc = cmocka_run_group_tests(tests, NULL, NULL);
    tiny_remove();
    return rc;
}

/* cmd_eval.c - 'musacoder eval': verdicts for candidates of one task, or a worker of a verdict queue. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "cli/cli.h"
#include "cli/profile.h"
#include "cli/secret.h"
#include "eval/eval.h"
#include "eval/verdict/feedback.h"

#define CANDIDATE_MAX ((size_t)8 << 20)

static const struct opt rows[] = {
    {"eval", "task", OPT_STR, NULL, "the task: a KernelBench-format Python file"},
    {"eval", "backend", OPT_CHOICE, "sim", "sim|cuda|musa: where candidates run: the CPU emulator, an NVIDIA GPU, a "
                                           "Moore Threads "
     "card"},
    {"eval", "protocol", OPT_CHOICE, "strict", "strict|kernelbench: tolerance per task from an fp64 oracle on five "
                                               "input "
                                               "regimes, or the published algorithm"},
    {"eval", "trials", OPT_INT, "5", "draws per input regime (strict), trials (kernelbench)"},
    {"eval", "timeout", OPT_REAL, "30", "seconds one candidate may run; builds have a limit of their own"},
    {"eval", "build-timeout", OPT_REAL, "60", "seconds all builds of one candidate may take"},
    {"eval", "seed", OPT_INT, "0", "seed of inputs and parameters"},
    {"eval", "dialect", OPT_CHOICE, "any", "any|cuda|musa: what candidates must be written in"},
    PROFILE_ROW("eval"),
    SECRET_ROW("eval"),
    {"eval", "max-elements", OPT_INT, "0",
     "largest tensor of a task; 0 = 4194304 on sim (see 'musacoder shrink'), what fits on a GPU"},
    {"eval", "perf", OPT_BOOL, "true", "time what passed, where the backend has a clock (not sim); --no-perf leaves it "
                                       "out"},
    {"eval", "calls", OPT_INT, "0", "timed calls of each side; 0 = as many as 0.2 s hold, 30 to 60"},
    {"eval", "compile-baseline", OPT_BOOL, "true", "compare with torch.compile too; --no-compile-baseline saves its "
                                                   "compiling"},
    {"eval", "compile-mode", OPT_CHOICE, "default", "default|max-autotune: torch.compile's mode"},
    {"eval", "jobs", OPT_INT, "0", "candidates handed over at once; 0 = 3 for each CPU, on a GPU 6. The owner runs 1.5 "
                                   "for each CPU"},
    {"eval", "jail", OPT_CHOICE, "auto", "auto|none: refuse to run unjailed, or run candidates without a jail"},
    {"eval", "cache", OPT_BOOL, "true", "answer from the verdict cache where it has an answer; --no-cache judges "
                                        "afresh"},
    {"eval", "cache-limit", OPT_STR, "10GiB", "size of the cache folder (builds, expected values, verdicts); what was "
                                              "used "
                                              "longest ago goes first, but nothing of the last hour; 0 = no limit. The "
                                              "caller that starts the owner sets it"},
    {"eval", "capsule", OPT_STR, NULL, "write what one candidate was judged by, if it passes, for 'musacoder replay'"},
    {"eval", "json", OPT_BOOL, "false", "print one verdict record per candidate as JSON Lines, nothing else"},
    {"eval", "worker", OPT_BOOL, "false", "serve a verdict queue until its owner goes away"},
    {"eval", "queue", OPT_STR, NULL, "the queue file of --worker"},
    {"eval", "name", OPT_STR, NULL, "the name of a --worker"},
    {0},
};

struct eval_texts {
    struct eval_candidate *c;
    struct buf *text;
    int n;
};

static void eval_texts_free(struct eval_texts *t)
{
    for (int i = 0; i < t->n; i++)
        buf_free(&t->text[i]);
    free(t->c);
    free(t->text);
}

static int eval_read_stdin(struct buf *b, struct err *e)
{
    char chunk[65536];
    ssize_t n;

    while ((n = read(0, chunk, sizeof chunk)) > 0)
        buf_add(b, chunk, (size_t)n);
    if (n < 0)
        return err_sys(e, "cannot read standard input");
    return b->cut ? err_set(e, ERR_INPUT, "standard input is larger than %zu bytes", b->max) : 0;
}

static bool eval_is_python(const char *path)
{
    size_t n = strlen(path);

    return n > 3 && !strcmp(path + n - 3, ".py");
}

/* A .py file is a program, standard input is what it looks like, any other file is a response. */
static int eval_read_candidates(const struct opts *o, struct eval_texts *t, struct err *e)
{
    t->c = xcalloc((size_t)o->n_args, sizeof *t->c);
    t->text = xcalloc((size_t)o->n_args, sizeof *t->text);
    for (int i = 0; i < o->n_args; i++) {
        const char *path = o->args[i];
        bool in = !strcmp(path, "-");

        buf_init(&t->text[i], CANDIDATE_MAX);
        t->n = i + 1;
        if ((in ? eval_read_stdin(&t->text[i], e) : file_read(path, &t->text[i], e)) < 0)
            return -1;
        t->c[i] = (struct eval_candidate){.name = in ? "(standard input)" : path, .text = t->text[i].p,
                                          .n = t->text[i].n,
                                          .kind = in ? EXTRACT_AUTO : eval_is_python(path) ? EXTRACT_FILE
                                              : EXTRACT_RESPONSE};
    }
    return 0;
}

struct eval_tally {
    bool json;
    int n, passed, infra;
};

static void eval_print_stages(const json_t *v)
{
    const char *stage;
    json_t *ms;

    json_object_foreach(json_object_get(v, "stage_ms"), stage, ms)
        if (strcmp(stage, "reward") && strcmp(stage, "feedback") && json_num_value(ms) >= 0.05)
            printf("  %s %.0f ms", stage, json_num_value(ms));
    printf("%s\n", json_flag(v, "cached", false) ? "  (cached)" : "");
}

static void eval_print_indented(const char *text)
{
    while (*text) {
        size_t n = strcspn(text, "\n");

        printf("  | %.*s\n", (int)n, text);
        text += n + (text[n] == '\n');
    }
}

/* Foreign text of a verdict, without what steers terminals. */
static void eval_print_shown(const char *text, void (*print)(const char *text))
{
    struct buf b;

    buf_init(&b, BUF_MAX_TEXT);
    utf8_show(&b, text, strlen(text));
    print(b.p);
    buf_free(&b);
}

static void eval_print_plain(const char *text)
{
    fputs(text, stdout);
}

static void eval_print_human(const json_t *v)
{
    const char *status = json_str(v, "status", "?"), *category = json_str(v, "category", NULL);
    const json_t *reward = json_object_get(v, "reward");
    struct buf line;

    buf_init(&line, 400);
    feedback_line(v, &line);
    eval_print_shown(json_str(v, "candidate", "?"), eval_print_plain);
    printf(": %s%s%s%s", status, category ? ", " : "", category ? category : "",
           category ? " in " : "");
    printf("%s", category ? json_str(v, "stage", "") : "");
    if (json_is_number(reward))
        printf(", reward %g", json_number_value(reward));
    printf(" - %s\n", line.p);
    eval_print_stages(v);
    if (category)
        eval_print_shown(json_str(v, "feedback", ""), eval_print_indented);
    buf_free(&line);
}

static int eval_report(int i, const json_t *v, void *ctx, struct err *e)
{
    struct eval_tally *t = ctx;
    char *text;

    (void)i;
    t->n++;
    t->passed += !strcmp(json_str(v, "status", ""), "passed");
    t->infra += !strcmp(json_str(v, "status", ""), "infra");
    if (t->json) {
        text = json_text(v);
        puts(text);
        free(text);
    } else {
        eval_print_human(v);
    }
    if (fflush(stdout) != 0 || ferror(stdout))
        return err_sys(e, "cannot write to standard output");
    return stop_requested() ? err_set(e, ERR_STOP, "interrupted") : 0;
}

static int eval_judge_all(const struct opts *o, struct eval *ev, const struct task *task, const struct eval_texts *t,
                          const struct eval_options *eo, struct err *e)
{
    struct eval_tally tally = {.json = opts_bool(o, "json")};

    if (eval_many(ev, task, t->c, t->n, eo, eval_report, &tally, e) < 0)
        return -1;
    if (!tally.json && tally.n > 1)
        printf("%d of %d passed%s\n", tally.passed, tally.n, tally.infra ? ", some could not be judged" : "");
    return tally.infra ? EXIT_UNFIT : tally.passed == tally.n ? EXIT_OK : EXIT_FAILED;
}

static int eval_run_worker(const struct opts *o, const struct eval_config *c, struct err *e)
{
    struct eval_config ready = *c;
    struct eval *ev;
    int rc;

    if (!opts_has(o, "queue"))
        return err_set(e, ERR_INPUT, "--worker needs --queue FILE");
    ready.start = true;
    if (eval_open(&ready, &ev, e) < 0)
        return -1;
    rc = eval_worker(ev, &(struct eval_worker_config){.queue = opts_str(o, "queue"), .child = true,
                                                      .name = opts_has(o, "name") ? opts_str(o, "name") : "worker"}, e);
    eval_close(ev);
    return rc < 0 ? -1 : EXIT_OK;
}

static int eval_run_candidates(const struct opts *o, const struct eval_config *c, struct err *e)
{
    struct eval_options eo = {.backend = opts_str(o, "backend"), .protocol = opts_str(o, "protocol"),
                              .trials = (int)opts_int(o, "trials"), .timeout_s = opts_real(o, "timeout"),
                              .build_timeout_s = opts_real(o, "build-timeout"), .seed = opts_int(o, "seed"),
                              .max_elements = opts_int(o, "max-elements"), .perf = opts_bool(o, "perf"),
                              .calls = (int)opts_int(o, "calls"), .compile_baseline = opts_bool(o, "compile-baseline"),
                              .compile_mode = opts_str(o, "compile-mode"), .dialect = opts_str(o, "dialect"),
                              .capsule = opts_str(o, "capsule"), .fresh = c->no_cache};
    struct eval_texts t = {0};
    struct task task = {0};
    struct eval *ev = NULL;
    int rc = -1;

    if (eval_options_check(&eo, e) == 0 && eval_backend_check(eo.backend, e) == 0 &&
        task_read(opts_str(o, "task"), &task, e) == 0 && eval_read_candidates(o, &t, e) == 0 &&
        eval_open(c, &ev, e) == 0)
        rc = eval_judge_all(o, ev, &task, &t, &eo, e);
    if (rc >= 0 && eo.capsule && !file_exists(eo.capsule))
        log_warn("no capsule: the candidate did not pass");
    eval_close(ev);
    eval_texts_free(&t);
    task_free(&task);
    return rc;
}

/* Before the work, not after it: a path that cannot be written. An older capsule there stays until a new one passes. */
static int eval_check_capsule(const char *path, struct err *e)
{
    char *folder = path ? xstrdup(path) : NULL, *slash = folder ? strrchr(folder, '/') : NULL;
    int rc = 0;

    if (slash)
        slash[slash == folder] = '\0';
    if (path && (file_is_dir(path) || access(slash ? folder : ".", W_OK) < 0 || !file_is_dir(slash ? folder : ".")))
        rc = err_set(e, ERR_INPUT, "cannot write --capsule '%s'; name a file in a folder that is there", path);
    free(folder);
    return rc;
}

static int eval_run(const struct opts *o, struct err *e)
{
    struct eval_config c = {.jobs = (int)opts_int(o, "jobs"), .no_jail = !strcmp(opts_str(o, "jail"), "none"),
                            .no_cache = !opts_bool(o, "cache") || opts_has(o, "capsule"),
                            .backend = opts_str(o, "backend"), .daemon_client = true};

    if (size_parse("cache-limit", opts_str(o, "cache-limit"), &c.cache_limit, e) < 0)
        return -1;
    if (profile_use(o, opts_bool(o, "worker") ? NULL : opts_str(o, "backend"), e) < 0 || secret_use(o, e) < 0)
        return -1;
    if (opts_bool(o, "worker"))
        return eval_run_worker(o, &c, e);
    if (!opts_has(o, "task"))
        return err_set(e, ERR_INPUT, "no task; give one with --task TASK.py");
    if (o->n_args == 0)
        return err_set(e, ERR_INPUT, "no candidate; name files, or '-' for standard input");
    if (opts_has(o, "capsule") && o->n_args != 1)
        return err_set(e, ERR_INPUT, "'--capsule' is for one candidate");
    if (eval_check_capsule(opts_str(o, "capsule"), e) < 0)
        return -1;
    return eval_run_candidates(o, &c, e);
}

const struct command cmd_eval = {
    "eval", "is this kernel right and legal, and why not?", "--task TASK.py [options] CANDIDATE...",
    "Judges candidates (Python files that define ModelNew, or model responses with one in a code fence; '-' reads\n"
    "standard input) against a PyTorch task: extraction, compilation, correctness on fresh data, legality, reward.\n"
    "TASK.yaml beside TASK.py adds shapes, dtypes, layouts and tolerances for protocol strict (docs/sidecar.md).\n"
    "The process that owns the device judges; it is started when needed and leaves after a minute ('musacoder owner')"
    ".\n"
    "Exit code: 0 all passed, 1 some failed, 2 usage or broken task, 3 some could not be judged.\n\n",
    rows, eval_run, WORDS_ANY};

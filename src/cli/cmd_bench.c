/* cmd_bench.c - 'musacoder bench': options to bench/bench.h; the table to stdout, the report beside the result. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "bench/bench.h"
#include "bench/bench_compare.h"
#include "cli/cli.h"
#include "cli/profile.h"
#include "cli/secret.h"
#include "eval/build/judge_backend.h"
#include "eval/eval.h"
#include "lint/shrink.h"
#include "nn/model.h"
#include "report/report.h"
#include "verdicts/verdicts.h"

static const struct opt rows[] = {
    {"bench", "model", OPT_PATHS, NULL, "model folder, or a server: http://HOST:PORT/v1 (key: OPENAI_API_KEY)",
     INTO(struct bench_options, model)},
    {"bench", "model-name", OPT_STR, NULL, "which model of the server (default: its first)",
     INTO(struct bench_options, model_name)},
    {"bench", "parallel", OPT_INT, "32", "requests to a server at once", INTO(struct bench_options, parallel)},
    {"bench", "samples-dir", OPT_PATHS, NULL, "judge these instead: TASK/FILE or TASK_N.py (.txt, .md: responses), "
                                            "level_L_problem_P_sample_S_kernel.py, or a samples.jsonl",
     INTO(struct bench_options, samples_dir)},
    {"bench", "tasks", OPT_PATHS, NULL, "folder of KernelBench-format task files", INTO(struct bench_options, tasks)},
    {"bench", "suite", OPT_STR, NULL, "open: dynamic shapes, sparse tensors, chains (suites/); kernelbench:DIR: a "
                                      "KernelBench checkout, by level; "
                                     "musa-kernelbench:DIR: the same, answered in MUSA",
     INTO(struct bench_options, suite)},
    {"bench", "levels", OPT_STR, NULL, "of the suite: 1,3 (default: all)", INTO(struct bench_options, levels)},
    {"bench", "out", OPT_OUT_FOLDER, NULL, "run folder; a stopped benchmark continues from it",
     INTO(struct bench_options, out)},
    {"bench", "name", OPT_STR, NULL, "name in tables (default: the run folder's)", INTO(struct bench_options, name)},
    {"bench", "samples", OPT_STR, NULL, "how many of each task (default: 8; of a suite's folder: all), or a folder as "
                                        "--samples-dir"},
    {"bench", "turns", OPT_INT, "1", "responses at most; after a failure MooreEval's feedback is the next request",
     INTO(struct bench_options, turns)},
    {"bench", "feedback", OPT_CHOICE, "own", "own|shuffled|none: what a failed program is told; the last two are "
                                             "controls"},
    {"bench", "edits", OPT_BOOL, "false",
     "what failed is shown with numbered lines, and the answer may be the lines that change",
     INTO(struct bench_options, edits)},
    {"bench", "temperature", OPT_REAL, "0.7", "sampling temperature; 0: greedy",
     INTO(struct bench_options, temperature)},
    {"bench", "top-p", OPT_REAL, "0.95", "nucleus of the distribution that is sampled",
     INTO(struct bench_options, top_p)},
    {"bench", "max-new", OPT_INT, "1024", "longest response (tokens); 0: what the model's folder says"},
    {"bench", "max-context", OPT_INT, "0", "longest dialogue (tokens); 0: what the model has",
     INTO(struct bench_options, max_context)},
    {"bench", "max-batch", OPT_INT, "0", "rows decoded together; 0: the sampler's choice",
     INTO(struct bench_options, max_batch)},
    {"bench", "limit", OPT_INT, "0", "first so many tasks only (of a suite: of each level); 0: all",
     INTO(struct bench_options, limit)},
    {"bench", "seed", OPT_INT, "1", "seed of sampling", INTO(struct bench_options, seed)},
    {"bench", "style", OPT_CHOICE, "plain", "plain|full: wording of the request, as in training"},
    {"bench", "missing", OPT_CHOICE, "skip", "skip|fail: samples that a suite's folder lacks are left out, or count as "
                                             "failures"},
    {"bench", "shrink-to", OPT_INT, "0", "make the suite's tasks small first: no tensor has more elements ('musacoder "
                                         "shrink'); 0: as they are", INTO(struct bench_options, shrink_to)},
    {"bench", "precision", OPT_CHOICE, "own", "own|fp32|fp16|bf16: floating inputs and parameters of every task",
     INTO(struct bench_options, precision)},
    {"bench", "faster-than", OPT_REAL, "1.1", "Faster Rate counts speedups above this",
     INTO(struct bench_options, faster_than)},
    {"bench", "backend", OPT_CHOICE, NULL, BACKEND_WORDS ": where candidates run (default: the judge's)"},
    {"bench", "protocol", OPT_CHOICE, NULL,
     "strict|strict-torch|kernelbench: rules of the verdict (default: the judge's)"},
    {"bench", "trials", OPT_INT, NULL, "trials of each verdict (default: the judge's)"},
    {"bench", "timeout", OPT_REAL, NULL, "seconds a candidate may run (default: the judge's)"},
    {"bench", "dialect", OPT_CHOICE, NULL, "cuda|musa: what is asked for and judged (default: of the suite)"},
    PROFILE_ROW("bench"),
    SECRET_ROW("bench"),
    {"bench", "workers", OPT_INT, "1", "verifier processes", INTO(struct bench_options, workers)},
    {"bench", "queue", OPT_STR, NULL, "have the workers of this queue judge: FILE or postgres://USER@HOST/DATABASE",
     INTO(struct bench_options, queue)},
    {"bench", "jobs", OPT_INT, "0", "candidates judged at once by each (0: 1.5 for each CPU)",
     INTO(struct bench_options, jobs)},
    {"bench", "device", OPT_STR, "cpu", "cpu, cuda or cuda:N: where the model runs",
     INTO(struct bench_options, device)},
    {"bench", "dtype", OPT_CHOICE, "bf16", "bf16|fp32: type of activations and operands on a device",
     INTO(struct bench_options, dtype)},
    {"bench", "json", OPT_BOOL, "false", "print the result as JSON instead of the table"},
    {"bench", "html", OPT_OUT_FILE, NULL, "compare: also write a page to this file"},
    {0},
};

/* --samples is a number, or a folder where --samples-dir is not given. */
static int bench_take_samples(const struct opts *o, struct bench_options *b, struct err *e)
{
    const char *text = opts_str(o, "samples");
    char *end;
    long n;

    if (!text)
        return 0;
    n = strtol(text, &end, 10);
    if (*end || end == text) {
        if (b->samples_dir)
            return err_set(e, ERR_INPUT, "--samples '%s' is no number, and --samples-dir names the folder already",
                           text);
        b->samples_dir = text;
        return 0;
    }
    if (n < 1 || n > 1000)
        return err_set(e, ERR_INPUT, "%ld samples per task are not possible; 1 to 1000 are", n);
    b->samples = (int)n;
    return 0;
}

/* Of --dialect, else of the suite's name. */
static bool bench_dialect_is(const struct opts *o, const char *dialect)
{
    const char *suite = opts_str(o, "suite");

    if (opts_has(o, "dialect"))
        return !strcmp(opts_str(o, "dialect"), dialect);
    return suite && !strncmp(suite, dialect, strlen(dialect));
}

/* Fills b from the options. ERR_INPUT: one is missing, or two exclude each other. */
static int bench_options_of(const struct opts *o, struct bench_options *b, struct err *e)
{
    *b = (struct bench_options){.made_by = build_stamp, .musa = bench_dialect_is(o, "musa"),
                                .missing_fail = !strcmp(opts_str(o, "missing"), "fail")};
    if (opts_store(o, b, e) < 0)
        return -1;
    if (o->n_args)
        return err_set(e, ERR_INPUT, "unexpected argument '%s'; 'bench compare A B' compares two run folders",
                       o->args[0]);
    if (!b->tasks && !b->suite)
        return err_set(e, ERR_INPUT, "no tasks; say --tasks FOLDER, --suite open or --suite kernelbench:DIR");
    if (!b->out)
        return err_set(e, ERR_INPUT, "no run folder; say --out RUN");
    if (b->queue && (opts_has(o, "secret") || opts_has(o, "profile")))
        return err_set(e, ERR_INPUT, "--secret and --profile are matters of the workers of --queue; give them there");
    if (b->turns < 1 || opts_int(o, "max-new") < 0)
        return err_set(e, ERR_INPUT, "--turns and --max-new start at 1");
    if (!(b->faster_than > 0))
        return err_set(e, ERR_INPUT, "--faster-than %g is not possible; 1.1 means ten percent faster", b->faster_than);
    if (bench_take_samples(o, b, e) < 0 || bench_feedback_parse(opts_str(o, "feedback"), &b->feedback, e) < 0)
        return -1;
    return prompt_style_parse(opts_str(o, "style"), &b->style, e);
}

/* The judge's own way to make a task small; ctx: struct shrinker. */
static int bench_do_shrink(const struct task *t, int64_t max, json_t **ret, void *ctx, struct err *e)
{
    struct shrunk out = {0};
    int rc = shrinker_task(ctx, t, max, &out, e);

    if (rc == 0)
        *ret = json_pack("{s:o,s:I,s:I,s:O}", "source", json_utf8(out.source, strlen(out.source)), "before",
                         (json_int_t)out.before, "after", (json_int_t)out.after, "changes", out.changes);
    shrunk_free(&out);
    return rc;
}

/* Prints the table, or the result as JSON. */
static void bench_print_result(const struct bench_options *b, json_t *result, bool json)
{
    const json_t *list[] = {result};

    if (json) {
        json_print(result);
        return;
    }
    if (json_object_get(result, "levels")) {
        bench_level_table(stdout, result);
        bench_published(stdout, result);
    } else {
        bench_table(stdout, list, 1);
    }
    printf("\nreport: %s/report.html\n", b->out);
}

/* 'bench compare A B'; an exit code, or -1 with e. */
static int bench_do_compare(const struct opts *o, struct err *e)
{
    const char *html = opts_str(o, "html");
    json_t *v = NULL;
    int rc;

    if (o->n_args != 3)
        return err_set(e, ERR_INPUT, "compare needs two run folders: musacoder bench compare A B");
    rc = bench_compare(o->args[1], o->args[2], opts_real(o, "faster-than"), &v, e);
    if (rc == 0 && html)
        rc = report_compare_write(v, html, e);
    if (rc == 0 && opts_bool(o, "json"))
        json_print(v);
    else if (rc == 0)
        bench_compare_table(stdout, v);
    if (rc == 0 && html && !opts_bool(o, "json"))
        printf("\nreport: %s\n", html);
    json_decref(v);
    return rc < 0 ? -1 : EXIT_OK;
}

/* A table is complete where something was judged and no verdict is infra; tasks skipped by name are told in it. */
static bool bench_complete(const json_t *result)
{
    const json_t *levels = json_object_get(result, "levels");
    const json_t *all = levels ? json_array_get(levels, json_array_size(levels) - 1) : result;

    return json_i64(all, "infra", 0) == 0 && (!levels || json_i64(all, "samples", 0) > 0);
}

static int bench_command_check(const struct opts *o, struct err *e)
{
    struct bench_options b;

    return bench_options_of(o, &b, e) < 0 ? -1 : bench_check_source(&b, e);
}

/* The command; an exit code, or -1 with e. */
static int bench_do_run(const struct opts *o, struct err *e)
{
    struct shrinker *shrinker = NULL;
    struct bench_options b;
    json_t *result = NULL, *verdict = NULL;
    bool secret_given = opts_has(o, "secret");
    int rc;

    if (o->n_args && !strcmp(o->args[0], "compare"))
        return bench_do_compare(o, e);
    rc = bench_options_of(o, &b, e);
    if (rc == 0)
        rc = model_folder_max_new(b.model, opts_int(o, "max-new"), &b.max_new, e);
    if (rc == 0 && !b.queue)
        rc = eval_backend_check(opts_has(o, "backend") ? opts_str(o, "backend") : EVAL_OPTIONS_DEFAULT.backend, e);
    if (rc == 0)
        rc = profile_use(o, opts_str(o, "backend"), e);
    if (rc == 0)
        rc = secret_use(o, e);
    if (rc == 0) {
        b.profile = b.queue ? NULL : getenv("MUSACODER_PROFILE"); /* an option, or the user's own variable */
        b.secret = secret_given ? opts_str(o, "secret") : NULL; /* secret_use has made a fingerprint of it */
        b.verdict = verdict = verdicts_options_of(o);
        if (b.musa)
            json_object_set_new(verdict, "dialect", json_string("musa"));
        b.shrink = bench_do_shrink;
        if (b.shrink_to)
            rc = shrinker_open(false, &shrinker, e);
        b.shrink_ctx = shrinker;
    }
    if (rc == 0)
        rc = bench_run(&b, &result, e);
    if (rc == 0)
        rc = report_write(b.out, e);
    if (rc == 0)
        bench_print_result(&b, result, opts_bool(o, "json"));
    else if (e->kind == ERR_STOP)
        log_info("stopped; the same command continues in '%s'", b.out);
    shrinker_close(shrinker);
    if (rc == 0)
        rc = bench_complete(result) ? EXIT_OK : EXIT_UNFIT;
    json_decref(result);
    json_decref(verdict);
    return rc;
}

const struct command cmd_bench = {
    "bench", "Pass@k, Avg@k and Faster Rate of a model, or of samples, on tasks or KernelBench",
    "--model DIR --tasks FOLDER --out RUN\n"
    "       musacoder bench --suite kernelbench:DIR --samples FOLDER --out RUN [--shrink-to N]\n"
    "       musacoder bench compare RUN_A RUN_B [--html FILE]",
    "Samples programs for every task, has MooreEval judge them, and prints Pass@k (unbiased), Avg@k and the Faster "
    "Rate\n"
    "(the lower bound of the speedup is more than 1.1x; only where speed is measured). The numbers are of first turns; "
    "with\n"
    "--turns 2 or more, a failed program is sent back with the judge's feedback, and 'best' columns count any turn. A "
    "task's\n"
    "family is its name without _NUMBER. RUN gets samples.jsonl, verdicts.jsonl, bench.json and report.html.\n\n"
    "--suite kernelbench:DIR takes the tasks of DIR/KernelBench/level1..4 and reports by level, fast_p too, also as "
    "levels.csv\n"
    "and samples.csv. --suite open has tasks of dynamic shapes, sparse tensors and chains of kernels. It needs no "
    "model: --samples FOLDER judges files named as KernelBench names them, such as\n"
    "runs/NAME/level_1_problem_19_sample_0_kernel.py. A task whose reference cannot run here (level 4 without its "
    "models) is\n"
    "skipped by name, apart from the failures. On the emulator give --shrink-to 65536 or so: the suite's sizes are a "
    "GPU's.\n\n"
    "Exit code: 0 the table is complete, 2 usage, 3 the backend cannot be used, some verdict is infra,\n"
    "or nothing was judged.\n\n"
    "compare tests two finished run folders on their common tasks: McNemar's exact test on first samples, a bootstrap\n"
    "interval of the difference of Avg@k, and of speed the ratio with its interval and Wilcoxon's "
    "signed-rank test.\n\n",
    rows, bench_do_run, WORDS_ANY, bench_command_check};

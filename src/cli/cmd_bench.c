/* cmd_bench.c - 'musacoder bench': options to bench/bench.h; the table to stdout, the report beside the result. */
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "bench/bench.h"
#include "bench/report.h"
#include "cli/cli.h"

static const struct opt rows[] = {
    {"bench", "model", OPT_STR, NULL, "model folder (with tokenizer.json)"},
    {"bench", "samples-dir", OPT_STR, NULL, "judge these instead: TASK/FILE or TASK_N.py (.txt, .md: responses), or a samples.jsonl"},
    {"bench", "tasks", OPT_STR, NULL, "folder of KernelBench-format task files"},
    {"bench", "out", OPT_STR, NULL, "run folder; a stopped benchmark continues from it"},
    {"bench", "name", OPT_STR, NULL, "name in tables (default: the run folder's)"},
    {"bench", "samples", OPT_INT, "8", "samples of each task"},
    {"bench", "turns", OPT_INT, "1", "responses at most; after a failure MooreEval's feedback is the next request"},
    {"bench", "temperature", OPT_REAL, "0.7", "sampling temperature; 0: greedy"},
    {"bench", "top-p", OPT_REAL, "0.95", "nucleus of the distribution that is sampled"},
    {"bench", "max-new", OPT_INT, "1024", "longest response (tokens)"},
    {"bench", "max-context", OPT_INT, "0", "longest dialogue (tokens); 0: what the model has"},
    {"bench", "max-batch", OPT_INT, "0", "rows decoded together; 0: the sampler's choice"},
    {"bench", "limit", OPT_INT, "0", "first so many tasks only; 0: all"},
    {"bench", "seed", OPT_INT, "1", "seed of sampling"},
    {"bench", "style", OPT_CHOICE, "plain", "plain|full: wording of the request, as in training"},
    {"bench", "backend", OPT_CHOICE, NULL, "sim|cuda|musa: where candidates run (default: the judge's)"},
    {"bench", "protocol", OPT_CHOICE, NULL, "strict|kernelbench: rules of the verdict (default: the judge's)"},
    {"bench", "trials", OPT_INT, NULL, "trials of each verdict (default: the judge's)"},
    {"bench", "timeout", OPT_REAL, NULL, "seconds a candidate may run (default: the judge's)"},
    {"bench", "workers", OPT_INT, "1", "verifier processes"},
    {"bench", "jobs", OPT_INT, "0", "candidates judged at once by each (0: 1.5 for each CPU)"},
    {"bench", "json", OPT_BOOL, "false", "print bench.json instead of the table"},
    {0},
};

static json_t *verdict_options(const struct opts *o)
{
    json_t *v = json_object();

    if (opts_has(o, "backend"))
        json_object_set_new(v, "backend", json_string(opts_str(o, "backend")));
    if (opts_has(o, "protocol"))
        json_object_set_new(v, "protocol", json_string(opts_str(o, "protocol")));
    if (opts_has(o, "trials"))
        json_object_set_new(v, "trials", json_integer(opts_int(o, "trials")));
    if (opts_has(o, "timeout"))
        json_object_set_new(v, "timeout", json_real(opts_real(o, "timeout")));
    return v;
}

static int options_of(const struct opts *o, struct bench_options *b, struct err *e)
{
    *b = (struct bench_options){
        .name = opts_str(o, "name"), .model = opts_str(o, "model"), .samples_dir = opts_str(o, "samples-dir"),
        .tasks = opts_str(o, "tasks"), .out = opts_str(o, "out"), .samples = (int)opts_int(o, "samples"),
        .turns = (int)opts_int(o, "turns"), .limit = (int)opts_int(o, "limit"), .max_new = (int)opts_int(o, "max-new"),
        .max_context = (int)opts_int(o, "max-context"), .max_batch = (int)opts_int(o, "max-batch"),
        .temperature = opts_real(o, "temperature"), .top_p = opts_real(o, "top-p"), .seed = (uint64_t)opts_int(o, "seed"),
        .workers = (int)opts_int(o, "workers"), .jobs = (int)opts_int(o, "jobs")};
    if (o->n_args)
        return err_set(e, ERR_INPUT, "unexpected argument '%s'", o->args[0]);
    if (!b->tasks)
        return err_set(e, ERR_INPUT, "no tasks; say --tasks FOLDER");
    if (!b->out)
        return err_set(e, ERR_INPUT, "no run folder; say --out RUN");
    if (b->samples < 1 || b->turns < 1 || b->max_new < 1)
        return err_set(e, ERR_INPUT, "--samples, --turns and --max-new start at 1");
    return prompt_style_parse(opts_str(o, "style"), &b->style, e);
}

static void print_result(const struct bench_options *b, json_t *result, bool json)
{
    const json_t *list[] = {result};
    char *text;

    if (json) {
        text = json_text(result);
        puts(text);
        free(text);
        return;
    }
    bench_table(stdout, list, 1);
    printf("\nreport: %s/report.html\n", b->out);
}

static int run(const struct opts *o, struct err *e)
{
    struct bench_options b;
    json_t *result = NULL, *verdict = NULL;
    int rc = options_of(o, &b, e);

    if (rc == 0) {
        b.verdict = verdict = verdict_options(o);
        rc = bench_run(&b, &result, e);
    }
    if (rc == 0)
        rc = report_write(b.out, e);
    if (rc == 0)
        print_result(&b, result, opts_bool(o, "json"));
    else if (e->kind == ERR_STOP)
        log_info("stopped; the same command continues in '%s'", b.out);
    json_decref(result);
    json_decref(verdict);
    return rc < 0 ? -1 : EXIT_OK;
}

const struct command cmd_bench = {
    "bench", "Pass@8, Avg@8 and Faster Rate of a model on a folder of tasks",
    "--model DIR --tasks FOLDER --out RUN",
    "Samples programs for every task, has MooreEval judge them, and prints Pass@k (unbiased), Avg@k and the Faster Rate\n"
    "(more than 1.1x; only where speed is measured). The numbers are of first turns; with --turns 2 or more, a failed\n"
    "program is sent back with the judge's feedback, and 'best' columns count any turn. A task's family is its name\n"
    "without _NUMBER. RUN gets samples.jsonl, verdicts.jsonl, bench.json and report.html.\n\n",
    rows, run};

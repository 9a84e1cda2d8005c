/* cmd_synth.c - 'musacoder synth': tasks, verified kernels and repair dialogues. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/cli.h"
#include "cli/secret.h"
#include "eval/eval.h"
#include "synth/corpus.h"
#include "synth/op.h"
#include "synth/probe.h"
#include "synth/sched/sched.h"
#include "synth/stream.h"

static const struct opt rows[] = {
    {"synth", "out", OPT_STR, NULL, "folder to write; needed"},
    {"synth", "tasks", OPT_INT, "200", "training tasks with verified kernels"},
    {"synth", "heldout", OPT_INT, "40", "held-out tasks, one per operator graph, none of them on the training side"},
    {"synth", "prompts", OPT_INT, "100",
        "new training-side graphs without kernels, for RL; 0: RL asks for the training tasks"},
    {"synth", "seed", OPT_INT, "1", "same seed, same bytes"},
    {"synth", "families", OPT_STR, NULL, "comma-separated, in dealing order, repeats are weights; default: all"},
    {"synth", "per-task", OPT_INT, "2", "kernels per training task, each with another strategy"},
    {"synth", "repairs", OPT_REAL, "0.25", "repair dialogues per training task (bug injection with real verdicts)"},
    {"synth", "knowledge", OPT_INT, "400", "short questions: PyTorch statements to CUDA statements, from the registry"},
    {"synth", "ops", OPT_CHOICE, "core", "core|all: the operators used; core suits tiny models"},
    {"synth", "max-ops", OPT_INT, "4", "longest chain of elementwise operators, 2 to 8"},
    {"synth", "max-elements", OPT_INT, "4096", "largest tensor, in elements"},
    {"synth", "style", OPT_CHOICE, "plain", "plain|full: terse and canonical, or varied names, comments and schedules"},
    {"synth", "verify", OPT_BOOL, "true", "keep only what MooreEval passes; --no-verify is for development"},
    {"synth", "trials", OPT_INT, "2", "draws per input regime of a verification"},
    {"synth", "dialect", OPT_CHOICE, "cuda", "cuda|musa: the language of the programs, and of what is asked for"},
    {"synth", "backend", OPT_CHOICE, "sim", "sim|cuda: where programs are verified"},
    SECRET_ROW("synth"),
    {"synth", "jobs", OPT_INT, "0", "candidates verified at once; 0: 1.5 for each CPU"},
    {"synth", "values", OPT_STR, NULL,
        "also write inputs and fp64 results of every task here, to compare with PyTorch"},
    {"synth", "list", OPT_BOOL, "false", "print operators and schedules, one a line, and stop"},
    {"synth", "probe", OPT_STR, NULL,
        "operators or families, comma-separated, 'all', or 'graphs': write --tasks uses of each with a program "
     "for every schedule, and stop"},
    {"synth", "records", OPT_INT, "0",
        "write so many records of the row-based core in shards, in constant memory, and stop; "
     "resumes where it was interrupted"},
    {"synth", "shard-size", OPT_INT, "1000", "of --records: records in a shard"},
    {"synth", "part", OPT_STR, "0/1",
        "of --records: K/N makes the shards K, K + N, ..: N processes give the bytes that one gives"},
    {"synth", "verify-share", OPT_REAL, "0.01", "of --records: share of programs that the judge must pass; 0 to 1"},
    {"synth", "mutant-share", OPT_REAL, "0.5",
        "of --records: share of the verified programs that get a bug too; those that the judge "
     "convicts become repair and review records"},
    {"synth", "dtypes", OPT_STR, "float32", "of --probe and --records: float32, float16, bfloat16, int64"},
    {0},
};

static const char *family_name(const void *ctx, int i)
{
    (void)ctx;
    return (size_t)i < n_families ? families[i] : NULL;
}

static int parse_families(const char *list, struct plan_options *p, struct err *e)
{
    char *copy, *save = NULL;
    int rc = 0;

    if (!list)
        list = "unary,binary,broadcast,chain,chain,rowreduce,colreduce,fullreduce,softmax,norm,matmul,linear,transpose,"
               "scan";
    copy = xstrdup(list);
    for (char *w = strtok_r(copy, ", ", &save); w && !rc; w = strtok_r(NULL, ", ", &save)) {
        int f = family_index(w);
        const char *near = f < 0 ? nearest_word(w, family_name, NULL) : NULL;

        if (f < 0)
            rc = err_set(e, ERR_INPUT, "no operator family '%s'; did you mean '%s'?", w, near ? near : "chain");
        else if (p->n_deal == 64)
            rc = err_set(e, ERR_INPUT, "--families has more than 64 entries");
        else
            p->deal[p->n_deal++] = f;
    }
    free(copy);
    return !rc && !p->n_deal ? err_set(e, ERR_INPUT, "--families is empty; leave it out for all") : rc;
}

struct range {
    const char *name;
    int64_t lo, hi;
};

static int check_ranges(const struct opts *o, struct err *e)
{
    static const struct range ranges[] = {
        {"tasks", 1, 1000000}, {"heldout", 0, 100000}, {"prompts", 0, 1000000},        {"per-task", 1, PLAN_PROGRAMS},
        {"max-ops", 2, 8},     {"jobs", 0, 1024},      {"trials", 1, 1000},    {"knowledge", 0, 1000000},
            {"max-elements", 256, 1 << 20}, {"seed", 0, INT64_MAX},
    };

    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        int64_t v = opts_int(o, ranges[i].name);
        if (v < ranges[i].lo || v > ranges[i].hi)
            return err_set(e, ERR_INPUT, "--%s is %lld; use %lld to %lld", ranges[i].name, (long long)v,
                           (long long)ranges[i].lo, (long long)ranges[i].hi);
    }
    if (opts_real(o, "repairs") < 0 || opts_real(o, "repairs") > 4)
        return err_set(e, ERR_INPUT, "--repairs is %g; use 0 to 4 per task", opts_real(o, "repairs"));
    return opts_has(o, "out") ? 0 : err_set(e, ERR_INPUT, "no output folder; give --out DIR");
}

static int fill_options(const struct opts *o, struct corpus_options *c, struct err *e)
{
    *c = (struct corpus_options){
        .plan = {.seed = (uint64_t)opts_int(o, "seed"),
                 .tasks = (int)opts_int(o, "tasks"),
                 .heldout = (int)opts_int(o, "heldout"),
                 .prompts = (int)opts_int(o, "prompts"),
                 .per_task = (int)opts_int(o, "per-task"),
                 .gen = {.core_only = !strcmp(opts_str(o, "ops"), "core"),
                         .max_ops = (int)opts_int(o, "max-ops"),
                         .max_elements = (int)opts_int(o, "max-elements")}},
        .out = opts_str(o, "out"),
        .values = opts_str(o, "values"),
        .knowledge = (int)opts_int(o, "knowledge"),
        .repairs = opts_real(o, "repairs"),
        .verify = {.jobs = (int)opts_int(o, "jobs"), .trials = (int)opts_int(o, "trials"),
                   .backend = opts_str(o, "backend")},
        .judge = opts_bool(o, "verify") ? verify_all : NULL,
    };
    if (prompt_style_parse(opts_str(o, "style"), &c->plan.style, e) < 0)
        return -1;
    c->plan.musa = !strcmp(opts_str(o, "dialect"), "musa");
    c->plan.gen.nice_numbers = c->plan.style == PROMPT_PLAIN;
    return parse_families(opts_str(o, "families"), &c->plan, e);
}

static void list_rows(void)
{
    int n;
    const struct opdef *const *row = op_rows(&n);

    for (int i = 0; i < n; i++)
        printf("operator %s %s %s\n", row[i]->name, row[i]->family, row[i]->about ? row[i]->about : "");
    const struct sched *const *s = sched_rows(&n);
    for (int i = 0; i < n; i++)
        for (int c = 0; c < N_NEST_CLASSES; c++)
            if (s[i]->classes >> c & 1)
                printf("schedule %s of a %s: %s\n", s[i]->name, nest_class_names[c], s[i]->about);
}

static int parse_dtypes(const char *list, unsigned *ret, struct err *e)
{
    static const char *const names[] = {"float32", "float16", "bfloat16", "int64"};
    char *copy = xstrdup(list), *save = NULL;
    int rc = 0;

    *ret = 0;
    for (char *w = strtok_r(copy, ", ", &save); w && !rc; w = strtok_r(NULL, ", ", &save)) {
        unsigned before = *ret;
        for (int i = 0; i < N_DTYPES; i++)
            *ret |= !strcmp(w, names[i]) ? 1u << i : 0;
        if (*ret == before)
            rc = err_set(e, ERR_INPUT, "no dtype '%s'; use float32, float16, bfloat16 or int64", w);
    }
    free(copy);
    return rc;
}

static int run_probe(const struct opts *o, struct err *e)
{
    const char *ops = opts_str(o, "probe");
    struct probe_options p = {.out = opts_str(o, "out"), .values = opts_str(o, "values"), .ops = strcmp(ops, "all") ?
        ops : NULL,
                              .tasks = (int)opts_int(o, "tasks"), .max_numel = (int)opts_int(o, "max-elements"),
                              .seed = (unsigned long long)opts_int(o, "seed")};
    struct probe_stats n;

    if (!p.out && !p.values)
        return err_set(e, ERR_INPUT, "--probe writes tasks and programs; give --out DIR");
    if (parse_dtypes(opts_str(o, "dtypes"), &p.dtypes, e) < 0 || probe_write(&p, &n, e) < 0)
        return -1;
    printf("%d operators, %d tasks, %d programs, %d disagreements between reference and loop nest\n", n.ops, n.tasks,
        n.programs,
           n.wrong);
    return n.wrong ? EXIT_FAILED : EXIT_OK;
}

static int run_stream(const struct opts *o, struct err *e)
{
    struct stream_options s = {.out = opts_str(o, "out"), .records = (long)opts_int(o, "records"),
                               .shard_size = (int)opts_int(o, "shard-size"), .seed = (uint64_t)opts_int(o, "seed"),
                               .max_numel = (int)opts_int(o, "max-elements"), .max_ops = (int)opts_int(o, "max-ops"),
                               .verify = opts_real(o, "verify-share"), .mutants = opts_real(o, "mutant-share"),
                                   .jobs = (int)opts_int(o, "jobs"),
                               .trials = (int)opts_int(o, "trials"), .backend = opts_str(o, "backend")};
    struct stream_stats n;

    if (sscanf(opts_str(o, "part"), "%d/%d", &s.process, &s.processes) != 2 || s.processes < 1 || s.process < 0 ||
        s.process >= s.processes)
        return err_set(e, ERR_INPUT, "--part is '%s'; use K/N with K from 0 to N - 1, such as 0/4", opts_str(o,
            "part"));
    if (s.shard_size < 1 || s.shard_size > 100000 || s.verify < 0 || s.verify > 1 || s.max_ops < 1 || s.max_ops > 10)
        return err_set(e, ERR_INPUT, "--shard-size is 1 to 100000, --verify-share 0 to 1, --max-ops 1 to 10");
    if (!s.out)
        return err_set(e, ERR_INPUT, "no output folder; give --out DIR");
    if (prompt_style_parse(opts_str(o, "style"), &s.style, e) < 0 || parse_dtypes(opts_str(o, "dtypes"), &s.dtypes,
        e) < 0 ||
        (s.verify > 0 && (eval_backend_check(s.backend, e) < 0 || secret_use(o, e) < 0)) || stream_make(&s, &n, e) < 0)
        return -1;
    printf("%s: %ld records in %ld shards (%ld were there), %ld draws refused, %ld programs verified, %ld failed\n",
        s.out,
           n.records, n.shards, n.kept_before, n.refused, n.verified, n.failed);
    return EXIT_OK;
}

static int synth_run(const struct opts *o, struct err *e)
{
    struct corpus_options c;
    struct corpus_stats n;

    if (opts_bool(o, "list"))
        return list_rows(), EXIT_OK;
    if (opts_has(o, "probe"))
        return run_probe(o, e);
    if (opts_int(o, "records") < 0)
        return err_set(e, ERR_INPUT, "--records is how many records to write; %lld is not possible",
                       (long long)opts_int(o, "records"));
    if (opts_int(o, "records") > 0)
        return run_stream(o, e);
    if (check_ranges(o, e) < 0 || fill_options(o, &c, e) < 0 ||
        (c.judge && eval_backend_check(c.verify.backend, e) < 0) || secret_use(o, e) < 0 || corpus_make(&c, &n, e) < 0)
        return -1;
    printf("%s: %d training records (%d repairs, %d knowledge), %d held-out tasks, %d prompts, %d rejected\n", c.out,
        n.train,
           n.repairs, n.knowledge, n.heldout, n.prompts, n.rejected);
    return EXIT_OK;
}

const struct command cmd_synth = {
    "synth",
    "make tasks with verified kernels, and repair dialogues",
    "--out DIR [--tasks N] [--heldout M] [--seed S] [options]",
    "Draws operator graphs, writes each as a PyTorch task and as native CUDA programs with different strategies, and\n"
    "keeps what MooreEval passes. Writes train.jsonl, heldout.jsonl, prompts.jsonl, rejected.jsonl, stats.json and\n"
    "tasks/. Held-out tasks share no operator graph with the training side, whatever the seed.\n",
    rows,
    synth_run,
};

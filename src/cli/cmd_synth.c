/* cmd_synth.c - 'musacoder synth': tasks, verified kernels and repair dialogues. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "cli/cli.h"
#include "cli/secret.h"
#include "eval/build/judge_backend.h"
#include "eval/eval.h"
#include "synth/corpus.h"
#include "synth/diagnose.h"
#include "synth/op.h"
#include "synth/probe.h"
#include "synth/sched/sched.h"
#include "synth/stream.h"
#include "synth/wording.h"

static const struct opt rows[] = {
    {"synth", "out", OPT_OUT_FOLDER, NULL, "folder to write; needed"},
    {"synth", "tasks", OPT_INT, "200", "1 to 1000000: training tasks; of --probe: uses of each operator"},
    {"synth", "per-task", OPT_INT, "2", "1 to 12: programs per training task, each with another strategy"},
    {"synth", "heldout", OPT_INT, "20",
        "0 to 10000: held-out tasks in each of five splits: same distribution, attributes, style, learned and "
        "unseen operators"},
    {"synth", "prompts", OPT_INT, "100",
        "0 to 1000000: tasks that no record answers, for RL"},
    {"synth", "known-share", OPT_REAL, "0.5",
        "0 to 1: share of --prompts with an operator that training has questions of alone"},
    {"synth", "known", OPT_BOOL, "true",
        "35 operators stay without programs (src/synth/heldout.h), for questions and prompts; --no-known: none do"},
    {"synth", "harvest", OPT_INT, "0",
        "0 to 1000000: tasks with several answers each, on which 'sft' collects a model's own failures"},
    {"synth", "answers", OPT_INT, "4", "1 to 12: programs for each prompt (oracle.jsonl) and each harvest task"},
    {"synth", "edits", OPT_BOOL, "false",
     "repairs show numbered lines and answer with those that change, where few do"},
    {"synth", "repairs", OPT_REAL, "0.25",
        "0 to 4: repair dialogues per training task, on tasks of their own: a bug, the judge's words, the "
        "mended program; of the public surface none unless this is given"},
    {"synth", "knowledge", OPT_INT, "400",
        "0 to 1000000: short questions: PyTorch statements to CUDA statements, from the registry"},
    {"synth", "ops", OPT_STR, "all",
        "operators or families that may occur, comma-separated; 'synth --list' names them"},
    {"synth", "family-weights", OPT_PATHS, NULL,
        "JSON of family and weight, as 'synth diagnose' writes it: families are drawn so many times as often"},
    {"synth", "max-ops", OPT_INT, "4", "1 to 10: operators of a graph"},
    {"synth", "max-elements", OPT_INT, "4096", "64 to 1048576: largest tensor, in elements"},
    {"synth", "max-program", OPT_INT, "0", "0 to 1048576: longest program, in bytes; 0: no limit"},
    {"synth", "style", OPT_CHOICE, "plain", "plain|full: terse and canonical, or varied names, comments and sizes"},
    {"synth", "wordings", OPT_INT, "8",
        "1 to 8: ways to write requests, questions, names and layouts; 1: the plain one"},
    {"synth", "formulas", OPT_BOOL, "false",
        "say above the first kernel what each operator computes: // hardswish(x) = x * min(max(x + 3, 0), 6) / 6"},
    {"synth", "surface", OPT_CHOICE, "graph",
        "graph|public: operator graphs, or modules as people write them with plain generic kernels (no bugs, no "
        "style "
        "split)"},
    {"synth", "dtypes", OPT_STR, "float32", "float32, float16, bfloat16, int64; comma-separated"},
    {"synth", "seed", OPT_INT, "1", "from 0: same seed, same bytes"},
    {"synth", "verify", OPT_BOOL, "true", "keep only what MooreEval passes; --no-verify is for development"},
    {"synth", "verify-share", OPT_REAL, "0.01",
        "0 to 1: share of the programs that the judge must pass; held-out tasks and bugs are always judged"},
    {"synth", "trials", OPT_INT, "2", "1 to 1000: trials per input distribution of a verification"},
    {"synth", "dialect", OPT_CHOICE, "cuda", "cuda|musa: the language of the programs, and of what is asked for"},
    {"synth", "backend", OPT_CHOICE, "sim", BACKEND_WORDS ": where programs are verified"},
    SECRET_ROW("synth"),
    {"synth", "jobs", OPT_INT, "0", "0 to 1024: candidates verified at once; 0: 1.5 for each CPU"},
    {"synth", "list", OPT_BOOL, "false", "print operators and schedules, one a line, and stop"},
    {"synth", "probe", OPT_STR, NULL,
        "operators or families, 'all', or 'graphs': write --tasks uses of each with a program for every "
        "schedule, and "
        "stop"},
    {"synth", "values", OPT_OUT_FILE, NULL, "of --probe: write inputs and fp64 results here, to compare with PyTorch"},
    {"synth", "records", OPT_INT, "0",
        "from 0: write so many records in shards, in constant memory, and stop; resumes where it was interrupted"},
    {"synth", "shard-size", OPT_INT, "1000", "1 to 100000: of --records: records in a shard"},
    {"synth", "part", OPT_STR, "0/1",
        "of --records: K/N makes the shards K, K + N, ..: N processes give the bytes that one gives"},
    {"synth", "mutant-share", OPT_REAL, "0.5",
        "0 to 1: of --records: share of the verified programs that get a bug too; those that the judge convicts "
        "become repair "
        "and review records"},
    {0},
};

_Static_assert(PROBLEM_SOLUTIONS == 12 && WORDINGS == 8, "the rows say these limits");

static int synth_needs_out(const struct opts *o, struct err *e)
{
    return opts_has(o, "out") ? 0 : err_set(e, ERR_INPUT, "no output folder; give --out DIR");
}

static int synth_parse_dtypes(const char *list, unsigned *ret, struct err *e);

/* *ret stays NULL where no weights are given. */
static int synth_read_weights(const struct opts *o, const json_t **ret, struct err *e)
{
    if (opts_has(o, "family-weights"))
        *ret = diagnose_weights_read(opts_str(o, "family-weights"), e);
    return opts_has(o, "family-weights") && !*ret ? -1 : 0;
}

/* Fills c from the options; synth_free_options frees it on failure too. */
static int synth_fill_options(const struct opts *o, struct corpus_options *c, struct err *e)
{
    *c = (struct corpus_options){
        .problem = {.seed = (uint64_t)opts_int(o, "seed"), .max_ops = (int)opts_int(o, "max-ops"),
                    .max_numel = (int)opts_int(o, "max-elements"), .max_program = (int)opts_int(o, "max-program")},
        .tasks = (int)opts_int(o, "tasks"),
        .per_task = (int)opts_int(o, "per-task"),
        .heldout = (int)opts_int(o, "heldout"),
        .prompts = (int)opts_int(o, "prompts"),
        .harvest = (int)opts_int(o, "harvest"),
        .answers = (int)opts_int(o, "answers"),
        .out = opts_str(o, "out"),
        .knowledge = (int)opts_int(o, "knowledge"),
        .repairs = opts_real(o, "repairs"),
        .verify_share = opts_real(o, "verify-share"),
        .verify = {.jobs = (int)opts_int(o, "jobs"), .trials = (int)opts_int(o, "trials"),
                   .backend = opts_str(o, "backend")},
        .judge = opts_bool(o, "verify") ? verify_all : NULL,
    };
    c->problem.public = !strcmp(opts_str(o, "surface"), "public");
    if (c->problem.public && !opts_has(o, "repairs"))
        c->repairs = 0;
    c->problem.all_taught = !opts_bool(o, "known");
    c->problem.known_share = opts_real(o, "known-share");
    c->problem.prompt_format.wordings = (int)opts_int(o, "wordings"),
        c->problem.prompt_format.formulas = opts_bool(o, "formulas");
    c->problem.prompt_format.edits = opts_bool(o, "edits");
    c->problem.prompt_format.musa = !strcmp(opts_str(o, "dialect"), "musa");
    if (prompt_style_parse(opts_str(o, "style"), &c->problem.prompt_format.style, e) < 0 ||
        synth_parse_dtypes(opts_str(o, "dtypes"), &c->problem.dtypes, e) < 0 ||
        synth_read_weights(o, &c->problem.weights, e) < 0)
        return -1;
    c->problem.ops = op_select(opts_str(o, "ops"), e);
    return c->problem.ops ? 0 : -1;
}

/* Prints a line for each operator and each schedule. */
static void synth_list_rows(void)
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

/* *ret has a bit for each dtype of the list. ERR_INPUT names an unknown one. */
static int synth_parse_dtypes(const char *list, unsigned *ret, struct err *e)
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

/* 'synth --probe'; an exit code, or -1 with e. */
static int synth_run_probe(const struct opts *o, struct err *e)
{
    const char *ops = opts_str(o, "probe");
    struct probe_options p = {.out = opts_str(o, "out"), .values = opts_str(o, "values"), .ops = strcmp(ops, "all") ?
        ops : NULL,
                              .tasks = (int)opts_int(o, "tasks"), .max_numel = (int)opts_int(o, "max-elements"),
                              .seed = (unsigned long long)opts_int(o, "seed")};
    struct probe_stats n;

    if (!p.out && !p.values)
        return err_set(e, ERR_INPUT, "--probe writes tasks and programs; give --out DIR");
    if (synth_parse_dtypes(opts_str(o, "dtypes"), &p.dtypes, e) < 0 || probe_write(&p, &n, e) < 0)
        return -1;
    printf("%d operator%s, %d task%s, %d program%s, %d disagreement%s between reference and loop nest\n", n.ops,
           buf_plural(n.ops), n.tasks, buf_plural(n.tasks), n.programs, buf_plural(n.programs), n.wrong,
           buf_plural(n.wrong));
    return n.wrong ? EXIT_FAILED : EXIT_OK;
}

/* 'synth --records'; an exit code, or -1 with e. */
static int synth_run_stream(const struct opts *o, struct err *e)
{
    struct stream_options s = {.out = opts_str(o, "out"), .records = (long)opts_int(o, "records"),
                               .shard_size = (int)opts_int(o, "shard-size"), .seed = (uint64_t)opts_int(o, "seed"),
                               .max_numel = (int)opts_int(o, "max-elements"), .max_ops = (int)opts_int(o, "max-ops"),
                               .verify = opts_bool(o, "verify") ? opts_real(o, "verify-share") : 0,
                               .mutants = opts_real(o, "mutant-share"), .jobs = (int)opts_int(o, "jobs"),
                               .trials = (int)opts_int(o, "trials"), .backend = opts_str(o, "backend")};
    struct stream_stats n;
    int rc = 0;

    s.wordings = (int)opts_int(o, "wordings"), s.formulas = opts_bool(o, "formulas");
    s.musa = !strcmp(opts_str(o, "dialect"), "musa"), s.max_program = (int)opts_int(o, "max-program");
    s.ops_text = opts_str(o, "ops"), s.public = !strcmp(opts_str(o, "surface"), "public");
    if (sscanf(opts_str(o, "part"), "%d/%d", &s.process, &s.processes) != 2 || s.processes < 1 || s.process < 0 ||
        s.process >= s.processes)
        return err_set(e, ERR_INPUT, "--part is '%s'; use K/N with K from 0 to N - 1, such as 0/4", opts_str(o,
            "part"));
    if (prompt_style_parse(opts_str(o, "style"), &s.style, e) < 0 ||
        synth_parse_dtypes(opts_str(o, "dtypes"), &s.dtypes, e) < 0 || !(s.ops = op_select(s.ops_text, e)))
        return -1;
    if (synth_read_weights(o, &s.weights, e) < 0)
        rc = -1;
    if (!rc && s.verify > 0 && (eval_backend_check(s.backend, e) < 0 || secret_use(o, e) < 0))
        rc = -1;
    rc = rc ? rc : stream_make(&s, &n, e);
    free((void *)(uintptr_t)s.ops);
    json_decref((json_t *)(uintptr_t)s.weights);
    if (rc)
        return -1;
    printf("%s: %ld record%s in %ld shard%s (%ld %s there), %ld draw%s refused, %ld program%s verified, "
           "%ld failed\n",
           s.out, n.records, buf_plural(n.records), n.shards, buf_plural(n.shards), n.kept_before,
           n.kept_before == 1 ? "was" : "were", n.refused, buf_plural(n.refused),
           n.verified, buf_plural(n.verified), n.failed);
    return EXIT_OK;
}

static void synth_free_options(struct corpus_options *c)
{
    free((void *)(uintptr_t)c->problem.ops);
    json_decref((json_t *)(uintptr_t)c->problem.weights);
}

/* 'synth --tasks'; an exit code, or -1 with e. */
static int synth_run_corpus(const struct opts *o, struct err *e)
{
    struct corpus_options c;
    struct corpus_stats n;
    int rc = synth_fill_options(o, &c, e);

    if (!rc && c.judge && (eval_backend_check(c.verify.backend, e) < 0 || secret_use(o, e) < 0))
        rc = -1;
    if (!rc)
        rc = corpus_make(&c, &n, e);
    synth_free_options(&c);
    if (rc)
        return -1;
    printf("%s: %d training records (%d repairs, %d knowledge), %d held-out tasks, %d prompts, %d harvest tasks, "
           "%d rejected\n", c.out, n.train, n.repairs, n.knowledge, n.heldout, n.prompts, n.harvest, n.rejected);
    return EXIT_OK;
}

/* What 'run' asks before its first stage: 0, or -1 for options that the command would refuse. */
static int synth_command_check(const struct opts *o, struct err *e)
{
    struct corpus_options c = {.tasks = 0};
    int rc = synth_needs_out(o, e) < 0 || synth_fill_options(o, &c, e) < 0 ? -1 : 0;

    synth_free_options(&c);
    return rc;
}

/* The command; an exit code, or -1 with e. */
static int synth_run(const struct opts *o, struct err *e)
{
    if (o->n_args)
        return err_set(e, ERR_INPUT, "unexpected '%s'; there are 'synth mine', 'synth teach', 'synth profile', and "
                                     "'synth' "
                       "with options alone", o->args[0]);
    if (opts_bool(o, "list"))
        return synth_list_rows(), EXIT_OK;
    if (opts_has(o, "probe"))
        return synth_run_probe(o, e);
    if (synth_needs_out(o, e) < 0)
        return -1;
    return opts_int(o, "records") > 0 ? synth_run_stream(o, e) : synth_run_corpus(o, e);
}

const struct command cmd_synth = {
    "synth",
    "make tasks with verified kernels, and repair dialogues",
    "--out DIR [--tasks N] [--heldout M] [--seed S] [options]",
    "Draws operator graphs, writes each as a PyTorch task and as native CUDA programs with different "
    "strategies, and\n"
    "has MooreEval judge a share of them, every bug that is put in, and every held-out task. Writes train.jsonl,\n"
    "prompts.jsonl, oracle.jsonl, harvest.jsonl, heldout.jsonl, rejected.jsonl, stats.json and tasks/. Held-out "
    "tasks\n"
    "come in five splits that no training task enters, whatever the seed (src/synth/heldout.h).\n"
    "With --records N it writes shards of any number of records instead; with --probe, uses of single operators.\n"
    "'synth mine' makes tasks of a source tree's modules, 'synth teach' records of a teacher's answers, 'synth "
    "profile'\n"
    "records of ncu's figures; each explains itself with -h.\n"
    "Exit code: 0 done, 1 --probe found a disagreement, 2 usage, 3 --out cannot be written or the judge is unfit.\n",
    rows,
    synth_run,
    WORDS_ANY,
    synth_command_check,
};

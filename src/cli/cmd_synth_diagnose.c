/* cmd_synth_diagnose.c - 'musacoder synth diagnose': where a model is weak, by what its tasks compute, and weights that
 * follow from it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/folder.h"
#include "base/json.h"
#include "base/listing.h"
#include "base/mem.h"
#include "bench/bench.h"
#include "cli/cli.h"
#include "cli/secret.h"
#include "eval/build/judge_backend.h"
#include "eval/eval.h"
#include "synth/diagnose.h"
#include "verdicts/verdicts.h"

static const struct opt rows[] = {
    {"diagnose", "tasks", OPT_PATHS, NULL, "folder of task files"},
    {"diagnose", "prompts", OPT_PATHS, NULL,
        "prompts.jsonl of 'synth': its tasks, where --tasks names none; OUT/prompts.jsonl has weak families first"},
    {"diagnose", "out", OPT_OUT_FOLDER, NULL, "folder to write; needed. A stopped run continues there"},
    {"diagnose", "model", OPT_PATHS, NULL, "model folder, or a server: it answers the tasks that are picked",
     INTO(struct bench_options, model)},
    {"diagnose", "bench", OPT_PATHS, NULL, "run folder of 'bench' on these tasks, instead of --model"},
    {"diagnose", "balanced", OPT_INT, "64", "tasks that the model is asked, families in turn; 0: all"},
    {"diagnose", "samples", OPT_INT, "2", "answers to each",
     INTO(struct bench_options, samples)},
    {"diagnose", "keep", OPT_INT, "0", "prompts that are written; 0: half of --prompts (with --tasks: all of them)"},
    {"diagnose", "temperature", OPT_REAL, "0.7", "sampling temperature; 0: greedy",
     INTO(struct bench_options, temperature)},
    {"diagnose", "top-p", OPT_REAL, "0.95", "nucleus of the distribution that is sampled",
     INTO(struct bench_options, top_p)},
    {"diagnose", "max-new", OPT_INT, "1024", "longest answer (tokens)",
     INTO(struct bench_options, max_new)},
    {"diagnose", "style", OPT_CHOICE, "plain", "plain|full: wording of the request, as in training"},
    {"diagnose", "seed", OPT_INT, "1", "seed of sampling, and of the prompts' order",
     INTO(struct bench_options, seed)},
    {"diagnose", "timeout", OPT_REAL, NULL, "seconds a candidate may run (default: the judge's); a reference has 60"},
    {"diagnose", "trials", OPT_INT, NULL, "trials of each verdict (default: the judge's)"},
    {"diagnose", "backend", OPT_CHOICE, NULL, BACKEND_WORDS ": where candidates run (default: the judge's)"},
    {"diagnose", "dialect", OPT_CHOICE, "cuda", "cuda|musa: what is asked for and judged"},
    SECRET_ROW("diagnose"),
    {"diagnose", "workers", OPT_INT, "1", "verifier processes",
     INTO(struct bench_options, workers)},
    {"diagnose", "jobs", OPT_INT, "0", "candidates judged at once by each (0: 1.5 for each CPU)",
     INTO(struct bench_options, jobs)},
    {"diagnose", "device", OPT_STR, "cpu", "cpu, cuda or cuda:N: where the model runs",
     INTO(struct bench_options, device)},
    {"diagnose", "dtype", OPT_CHOICE, "bf16", "bf16|fp32: type of activations and operands on a device",
     INTO(struct bench_options, dtype)},
    {"diagnose", "jail", OPT_CHOICE, "auto", "auto|none: refuse to run references unjailed, or run them so"},
    {0},
};

/* OUT/prompts.jsonl would take the place of what it is made from. */
static bool synth_diagnose_is_own_source(const struct opts *o)
{
    char *mine = path_join(opts_str(o, "out"), "prompts.jsonl");
    bool same = opts_has(o, "prompts") && file_is_same(mine, opts_str(o, "prompts"));

    free(mine);
    return same;
}

/* ERR_INPUT for options that cannot be. */
static int synth_diagnose_check(const struct opts *o, struct err *e)
{
    enum prompt_style style;

    if (!opts_has(o, "out"))
        return err_set(e, ERR_INPUT, "no output folder; give --out DIR");
    if (synth_diagnose_is_own_source(o))
        return err_set(e, ERR_INPUT, "'%s' would be written over; name another --out", opts_str(o, "prompts"));
    if (!opts_has(o, "tasks") && !opts_has(o, "prompts"))
        return err_set(e, ERR_INPUT, "no tasks; give --tasks FOLDER or --prompts FILE");
    if (opts_has(o, "model") && opts_has(o, "bench"))
        return err_set(e, ERR_INPUT, "--model is asked, --bench was asked: give one of them");
    if (opts_int(o, "balanced") < 0 || opts_int(o, "keep") < 0 || opts_int(o, "samples") < 1 ||
        opts_int(o, "max-new") < 1)
        return err_set(e, ERR_INPUT, "--balanced and --keep start at 0, --samples and --max-new at 1");
    return prompt_style_parse(opts_str(o, "style"), &style, e);
}

/* A callback of dir_each: a task that a user put there would be asked, too. */
static int synth_diagnose_put_aside(void *listing, const char *path, const char *name, struct err *e)
{
    return path_ends(path, ".py") ? listing_put_aside(listing, name, e) : 0;
}

/* The tasks that the model is asked, as files. */
static int synth_diagnose_write_picked(const json_t *tasks, const json_t *found, int n, const char *folder,
                                       struct err *e)
{
    json_t *picked = diagnose_balanced(found, n ? n : (int)json_object_size(found)), *name;
    struct listing *l = NULL;
    int rc = folder_claim(folder, "this diagnosis", e) < 0 ? -1 : listing_begin(folder, NULL, &l, e);
    size_t i;

    json_array_foreach(picked, i, name) {
        const char *code = json_str(tasks, json_string_value(name), "");
        char *file = xasprintf("%s.py", json_string_value(name));
        if (!rc)
            rc = listing_write(l, file, code, strlen(code), e);
        free(file);
    }
    if (!rc)
        rc = dir_each(folder, synth_diagnose_put_aside, l, e) < 0 ? -1 : listing_end(l, false, NULL, e);
    listing_free(l);
    json_decref(picked);
    return rc;
}

/* Benchmarks the model on the folder's tasks into 'out'. */
static int synth_diagnose_run_bench(const struct opts *o, const char *folder, const char *out, struct err *e)
{
    struct bench_options b = {.turns = 1, .musa = !strcmp(opts_str(o, "dialect"), "musa")};
    json_t *verdict = NULL, *result = NULL;
    int rc = opts_store(o, &b, e) < 0 ? -1 : prompt_style_parse(opts_str(o, "style"), &b.style, e);

    b.tasks = folder, b.out = out;
    if (!rc)
        rc = eval_backend_check(opts_has(o, "backend") ? opts_str(o, "backend") : EVAL_OPTIONS_DEFAULT.backend, e);
    if (!rc)
        rc = secret_use(o, e);
    if (!rc) {
        b.verdict = verdict = verdicts_options_of(o);
        rc = bench_run(&b, &result, e);
    }
    json_decref(verdict), json_decref(result);
    return rc;
}

/* Prints families with their counts and rates. */
static void synth_diagnose_print_tables(const json_t *found, const json_t *broken, const json_t *rates)
{
    const char *name, *family;
    json_t *count = json_object(), *v;

    json_object_foreach((json_t *)(uintptr_t)found, name, v) {
        family = json_string_value(v);
        json_count(count, family, 1);
    }
    printf("%zu references, %zu that do not run\n", json_object_size(found), json_object_size(broken));
    json_object_foreach(count, family, v) {
        const json_t *r = json_object_get(rates, family), *speed = json_object_get(r, "speedup");
        printf("  %-14s %6" PRId64, family, (int64_t)json_integer_value(v));
        if (r)
            printf("  %5" PRId64 " samples  compile %5.1f %%  correct %5.1f %%  weight %.2f",
                   (int64_t)json_i64(r, "samples", 0), 100 * json_f64(r, "compile_rate", 0),
                   100 * json_f64(r, "correct", 0), json_f64(r, "weight", 1));
        if (json_is_real(speed))
            printf("  speedup %.2f", json_real_value(speed));
        putchar('\n');
    }
    json_decref(count);
}

/* Writes v as a result of that name; takes v. */
static int synth_diagnose_write_json(struct listing *l, const char *name, json_t *v, struct err *e)
{
    int rc = listing_write_json(l, name, v, e);

    json_decref(v);
    return rc;
}

/* The prompts in another order, and fewer. */
static int synth_diagnose_write_prompts(const struct opts *o, const json_t *found, const json_t *rates, int keep,
                                        struct listing *l, struct err *e)
{
    char *path = path_join(opts_str(o, "out"), "prompts.jsonl");
    int rc = diagnose_prompts(opts_str(o, "prompts"), found, rates, (uint64_t)opts_int(o, "seed"), keep, path, e);

    free(path);
    return rc == 0 ? listing_add(l, "prompts.jsonl", e) : -1;
}

/* diagnosis.json, family-weights.json, prompts.jsonl */
static int synth_diagnose_write_all(const struct opts *o, json_t *found, json_t *broken, json_t *rates, struct err *e)
{
    struct listing *l;
    json_t *all = json_pack("{s:O, s:O, s:O*}", "families", found, "broken", broken, "rates", rates);
    int keep = (int)opts_int(o, "keep"); /* an order alone is nothing: those who ask shuffle */
    int rc = listing_begin(opts_str(o, "out"), NULL, &l, e);

    if (!rc)
        rc = synth_diagnose_write_json(l, "diagnosis.json", all, e);
    else
        json_decref(all);
    if (!rc && rates)
        rc = synth_diagnose_write_json(l, "family-weights.json", diagnose_weights(rates), e);
    if (!keep && !opts_has(o, "tasks"))
        keep = (int)(json_object_size(found) + json_object_size(broken) + 1) / 2;
    if (!rc && rates && opts_has(o, "prompts"))
        rc = synth_diagnose_write_prompts(o, found, rates, keep, l, e);
    if (!rc)
        rc = listing_end(l, false, NULL, e);
    listing_free(l);
    return rc;
}

/* The rates of --bench, or of a benchmark of --model under OUT; none without both. */
static int synth_diagnose_find_rates(const struct opts *o, const json_t *tasks, const json_t *found, json_t **ret,
                                     struct err *e)
{
    const char *out = opts_str(o, "out");
    char *folder = path_join(out, "tasks"), *own = path_join(out, "bench");
    const char *run = opts_has(o, "bench") ? opts_str(o, "bench") : own;
    int rc = 0;

    if (opts_has(o, "model") &&
        (synth_diagnose_write_picked(tasks, found, (int)opts_int(o, "balanced"), folder, e) < 0 ||
                                 synth_diagnose_run_bench(o, folder, own, e) < 0))
        rc = -1;
    if (!rc && (opts_has(o, "model") || opts_has(o, "bench"))) {
        json_t *marks = diagnose_marks(tasks, opts_str(o, "tasks"));

        *ret = diagnose_rates(found, marks, run, e);
        json_decref(marks);
        rc = *ret ? 0 : -1;
    }
    free(folder), free(own);
    return rc;
}

/* Traces the tasks, gets rates and writes what a next corpus needs. */
static int synth_diagnose_in_folder(const struct opts *o, struct err *e)
{
    json_t *tasks = diagnose_tasks(opts_has(o, "tasks") ? opts_str(o, "tasks") : opts_str(o, "prompts"), e);
    json_t *found = NULL, *broken = NULL, *rates = NULL;
    int rc = tasks ? 0 : -1;

    if (!rc) {
        found = diagnose_trace(tasks, opts_str(o, "out"), 60, !strcmp(opts_str(o, "jail"), "none"), &broken, e);
        rc = found ? synth_diagnose_find_rates(o, tasks, found, &rates, e) : -1;
    }
    if (!rc)
        rc = synth_diagnose_write_all(o, found, broken, rates, e);
    if (!rc) {
        synth_diagnose_print_tables(found, broken, rates);
        if (rates)
            printf("next: musacoder synth --family-weights %s/family-weights.json --out DIR\n", opts_str(o, "out"));
    }
    json_decref(tasks), json_decref(found), json_decref(broken), json_decref(rates);
    return rc ? -1 : EXIT_OK;
}

/* The command, with its folder locked; an exit code, or -1 with e. */
static int synth_diagnose_run(const struct opts *o, struct err *e)
{
    int lock, rc;

    if (synth_diagnose_check(o, e) < 0 || folder_take(opts_str(o, "out"), "this diagnosis",
                                                      "musacoder synth diagnose", &lock, e) < 0)
        return -1;
    rc = synth_diagnose_in_folder(o, e);
    close(lock);
    return rc;
}

const struct command cmd_synth_diagnose = {
    "synth diagnose", "families of operators in which a model is weak, and weights for them",
    "--tasks DIR | --prompts FILE --out OUT [--model DIR | --bench RUN]",
    "Runs each reference once, in the jail, and files the aten operators that it calls under families (convolution,\n"
    "matmul, reduction, ..): a task is of the rarest family that it calls. Then the model answers as many tasks of\n"
    "each family as there are (--balanced N in all), or verdicts of a run of 'bench' are read: compile rate,\n"
    "correctness and speed by family. A family's weight is its share of failures over the mean, within 1/4 to 4.\n"
    "OUT/diagnosis.json has families and rates, OUT/family-weights.json the weights for 'synth --family-weights', and\n"
    "with --prompts OUT/prompts.jsonl the prompts in an order in which weak families come first. In a recipe the\n"
    "stage 'diagnose' does so, and stages behind it ask these prompts.\n"
    "Exit code: 0 done, 2 usage, 3 no Python or no jail.\n\n",
    rows, synth_diagnose_run, 0, synth_diagnose_check};

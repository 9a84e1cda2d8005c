/* cmd_eval.c - 'musacoder eval': verdicts for candidates of one task, or a worker of a verdict queue. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/json.h"
#include "base/listing.h"
#include "base/log.h"
#include "base/mem.h"
#include "cli/cli.h"
#include "cli/profile.h"
#include "cli/reward_rows.h"
#include "cli/secret.h"
#include "cli/verdict_print.h"
#include "eval/build/judge_backend.h"
#include "eval/eval.h"
#include "eval/verdict/record.h"
#include "task/bundle.h"

#define CANDIDATE_MAX ((size_t)8 << 20)

static const struct opt rows[] = {
    {"eval", "task", OPT_STR, NULL, "the task: a KernelBench-format Python file"},
    {"eval", "backend", OPT_CHOICE, "sim", BACKEND_WORDS ": where candidates run: the CPU emulator, an NVIDIA GPU, a "
                                           "Moore Threads "
     "card",
     INTO(struct eval_options, backend)},
    {"eval", "protocol", OPT_CHOICE, "strict",
     "strict|strict-torch|kernelbench: tolerance per task from an fp64 oracle on eight kinds of draws; the "
     "same, and torch's operators may stay; or the published algorithm",
     INTO(struct eval_options, protocol)},
    {"eval", "allow", OPT_CHOICE, "own", "own|torch: who may do a program's arithmetic. torch: protocol strict becomes "
                                         "strict-torch, whose records never count as strict's"},
    {"eval", "trials", OPT_INT, "5", "trials per input distribution (strict), trials (kernelbench)",
     INTO(struct eval_options, trials)},
    {"eval", "timeout", OPT_REAL, "30", "seconds one candidate may run; builds have a limit of their own",
     INTO(struct eval_options, timeout_s)},
    {"eval", "build-timeout", OPT_REAL, "60", "seconds all builds of one candidate may take",
     INTO(struct eval_options, build_timeout_s)},
    {"eval", "seed", OPT_INT, "0", "seed of inputs and parameters",
     INTO(struct eval_options, seed)},
    {"eval", "dialect", OPT_CHOICE, "any", "any|cuda|musa: what candidates must be written in",
     INTO(struct eval_options, dialect)},
    REWARD_ROWS("eval"),
    PROFILE_ROW("eval"),
    SECRET_ROW("eval"),
    {"eval", "max-elements", OPT_INT, "0",
     "largest tensor of a task; 0 = 4194304 on sim (see 'musacoder shrink'), what fits on a GPU",
     INTO(struct eval_options, max_elements)},
    {"eval", "perf", OPT_BOOL, "true", "time what passed, where the backend has a clock (not sim); --no-perf leaves it "
                                       "out",
     INTO(struct eval_options, perf)},
    {"eval", "calls", OPT_INT, "0", "timed calls of each side; 0 = as many as 0.2 s hold, 30 to 60",
     INTO(struct eval_options, calls)},
    {"eval", "compile-baseline", OPT_BOOL, "true", "compare with torch.compile too; --no-compile-baseline saves its "
                                                   "compiling",
     INTO(struct eval_options, compile_baseline)},
    {"eval", "compile-mode", OPT_CHOICE, "default", "default|max-autotune: torch.compile's mode",
     INTO(struct eval_options, compile_mode)},
    {"eval", "jobs", OPT_INT, "0", "candidates handed over at once; 0 = 3 for each CPU, on a GPU 6. The owner runs 1.5 "
                                   "for each CPU"},
    {"eval", "jail", OPT_CHOICE, "auto", "auto|none: refuse to run unjailed, or run candidates without a jail"},
    {"eval", "cache", OPT_BOOL, "true", "answer from the verdict cache where it has an answer; --no-cache judges "
                                        "afresh"},
    {"eval", "cache-limit", OPT_STR, "10GiB", "size of the cache folder (builds, expected values, verdicts); what was "
                                              "used "
                                              "longest ago goes first, but nothing of the last hour; 0 = no limit. The "
                                              "caller that starts the owner sets it"},
    {"eval", "capsule", OPT_OUT_FILE, NULL,
     "write what one candidate was judged by, if it passes, for 'musacoder replay'",
     INTO(struct eval_options, capsule)},
    {"eval", "repro", OPT_OUT_FOLDER, NULL,
     "write the trial that one candidate fails on into this folder: inputs, weights, "
                                     "expected and got, and a script that needs PyTorch alone",
     INTO(struct eval_options, repro)},
    {"eval", "format", OPT_CHOICE, "text", "text|json|github|sarif: words, one record a line, annotations of a GitHub "
                                           "workflow, a SARIF 2.1.0 document"},
    {"eval", "json", OPT_BOOL, "false", "as --format json: one verdict record a line, nothing else"},
    {"eval", "out", OPT_OUT_FILE, NULL, "write the verdicts to this file and nothing to standard output"},
    {"eval", "quiet", OPT_BOOL, "false", "text: one line for what did not pass, nothing for what did"},
    {"eval", "verbose", OPT_BOOL, "false", "text: the judge's words for what passed too, and where the time went"},
    {"eval", "explain", OPT_BOOL, "false", "text: what a verdict's code means, the facts that it rests on, and how to "
                                           "contest it"},
    {"eval", "color", OPT_CHOICE, "auto", "auto|always|never: colours of text; auto: on a terminal, unless NO_COLOR "
                                          "is set"},
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

/* Appends standard input to b. ERR_INPUT: it is larger than b may grow. */
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

/* A .py file is a program, standard input is what it looks like; a folder, an archive or a CUDA source is an answer of
 * several files; any other file is a response. */
static int eval_read_candidates(const struct opts *o, const struct task *task, struct eval_texts *t, struct err *e)
{
    t->c = xcalloc((size_t)o->n_args, sizeof *t->c);
    t->text = xcalloc((size_t)o->n_args, sizeof *t->text);
    for (int i = 0; i < o->n_args; i++) {
        const char *path = o->args[i];
        bool in = !strcmp(path, "-"), many = !in && bundle_is_one(path);

        buf_init(&t->text[i], CANDIDATE_MAX);
        t->n = i + 1;
        if ((in ? eval_read_stdin(&t->text[i], e) : many ? bundle_read(path, task->code, &t->text[i], e)
             : file_read(path, &t->text[i], e)) < 0)
            return -1;
        t->c[i] = (struct eval_candidate){.name = in ? "(standard input)" : path, .text = t->text[i].p,
                                          .n = t->text[i].n,
                                          .kind = in ? EXTRACT_AUTO : many || path_ends(path, ".py") ? EXTRACT_FILE
                                              : EXTRACT_RESPONSE};
    }
    return 0;
}

struct eval_reporting {
    struct verdict_report r;
    const struct opts *o;
    const struct eval_texts *t;
    const char *draw; /* the folder that the judge writes a failed trial into; NULL: nobody asks */
};

/* The task that a verdict is about: of many workloads the one that failed. */
static int eval_put_task(struct listing *l, const char *path, const json_t *v, struct err *e)
{
    struct task all, one;
    int rc, i;

    if (task_read(path, &all, e) < 0)
        return -1;
    i = task_workload_find(&all, json_str(json_object_get(v, "workload"), "name", NULL));
    if ((rc = task_workload(&all, i, &one, e)) == 0) {
        rc = listing_write(l, "task.py", one.code, one.n, e);
        task_free(&one);
    }
    task_free(&all);
    return rc;
}

/* Copies one of our files into the folder of --repro. */
static int eval_put_shared(struct listing *l, const char *shared, const char *name, struct err *e)
{
    char *path = path_share(shared);
    int rc = listing_write_copy(l, name, path, e);

    free(path);
    return rc;
}

/* Moves what the judge has written (eval/stage/repro.h) into the folder of --repro. */
static int eval_put_draw(void *listing, const char *path, const char *name, struct err *e)
{
    return strcmp(name, "lock") ? listing_write_copy(listing, name, path, e) : 0;
}

/* The draw, and beside it the task, the program, the verdict, the script. */
static int eval_put_repro(const struct eval_reporting *r, struct listing *l, const json_t *v, struct err *e)
{
    const json_t *x = json_object_get(v, "extraction");
    char *record = json_text(v);
    int rc = dir_each(r->draw, eval_put_draw, l, e) < 0 || eval_put_task(l, opts_str(r->o, "task"), v, e) < 0 ||
             eval_put_shared(l, "setup/repro.py", "repro.py", e) < 0 ||
             eval_put_shared(l, "runner/sizes.py", "sizes.py", e) < 0 ||
             listing_write(l, "verdict.json", record, strlen(record), e) < 0 ||
             listing_write(l, "candidate.py", r->t->text[0].p + json_i64(x, "offset", 0),
                           (size_t)json_i64(x, "bytes", 0), e) < 0 ? -1 : 0;

    free(record);
    return rc;
}

/* What an earlier call left in the folder of --repro goes, and nothing else that lies there. */
static int eval_finish_repro(const struct eval_reporting *r, const json_t *v, struct err *e)
{
    const char *folder = opts_str(r->o, "repro");
    char *draw = path_join(r->draw, "draw.json"), *python = path_python(NULL);
    bool failed = file_exists(draw);
    struct listing *l = NULL;
    int rc = listing_begin(folder, NULL, &l, e);

    if (rc == 0 && failed)
        rc = eval_put_repro(r, l, v, e);
    if (rc == 0)
        rc = listing_end(l, false, NULL, e);
    if (rc == 0 && failed)
        fprintf(stderr, "repro: %s %s/repro.py\n", python ? python : "python3", folder);
    else if (rc == 0)
        log_warn("--repro: nothing is written, as no trial failed; the verdict says why");
    listing_free(l);
    free(draw), free(python);
    return rc;
}

/* A callback of eval_many: prints a verdict. */
static int eval_report(int i, const json_t *v, void *ctx, struct err *e)
{
    struct eval_reporting *r = ctx;

    (void)i;
    if (verdict_report_add(&r->r, v, e) < 0 || (r->draw && eval_finish_repro(r, v, e) < 0))
        return -1;
    return stop_requested() ? err_set(e, ERR_STOP, "interrupted") : 0;
}

static bool eval_speaks_json(const struct opts *o)
{
    return opts_bool(o, "json") || !strcmp(opts_str(o, "format"), "json");
}

/* Whoever reads records gets one for each candidate, also where nothing can be judged, beside the error. */
static void eval_report_refusal(const struct opts *o, const struct eval_options *eo, struct verdict_report *r,
                                const struct err *why)
{
    char *name = path_stem(opts_str(o, "task"));

    for (int i = r->n; i < o->n_args; i++) {
        json_t *rec = record_refusal(name, eo->backend, eo->protocol, why->msg);
        json_object_set_new(rec, "at_fault", json_string("request"));
        json_object_set_new(rec, "candidate", json_utf8(o->args[i], strlen(o->args[i])));
        verdict_report_add(r, rec, NULL);
        json_decref(rec);
    }
    verdict_report_end(r, NULL);
}

/* Opens the report with the format, colour, file and detail that the options ask for. */
static void eval_report_open(const struct opts *o, struct verdict_report *r)
{
    verdict_report_open(r, eval_speaks_json(o) ? "json" : opts_str(o, "format"), opts_str(o, "color"),
                        opts_str(o, "out"));
    r->explain = opts_bool(o, "explain");
    if (opts_bool(o, "quiet"))
        r->detail = VERDICT_QUIET;
    else if (opts_bool(o, "verbose"))
        r->detail = VERDICT_VERBOSE;
}

/* The first verdict of a cache takes long: it is said before anything is started. */
static bool eval_announce_first(const char *backend)
{
    char *folder = path_cache("build"), **names = NULL;
    size_t n = 0;

    if (!strcmp(backend, "sim") && (dir_list(folder, &names, &n, NULL) < 0 || n == 0))
        log_info("first run: headers are precompiled and PyTorch is imported, up to a minute; 'musacoder warm' does it "
                 "beforehand");
    names_free(names, n);
    free(folder);
    return true;
}

/* Judges all candidates and reports each; the exit code tells what came. */
static int eval_judge_all(struct eval_reporting *reporting, struct eval *ev, const struct task *task,
                          const struct eval_options *eo, struct err *e)
{
    struct verdict_report *r = &reporting->r;

    if (eval_many(ev, task, reporting->t->c, reporting->t->n, eo, eval_report, reporting, e) < 0 ||
        verdict_report_end(r, e) < 0)
        return -1;
    return r->infra ? EXIT_UNFIT : r->passed == r->n ? EXIT_OK : EXIT_FAILED;
}

/* 'eval --worker': serves a queue as a trainer's child. */
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

/* Which file stands at the path; 0: none. A capsule that is written is another file than the one before it. */
static ino_t eval_file_at(const char *path)
{
    struct stat st;

    return path && stat(path, &st) == 0 ? st.st_ino : 0;
}

/* Where the judge shall write a failed trial: beside nobody's files, and only a whole one is moved to --repro. */
static int eval_open_repro(const char *folder, char **ret_draw, int *ret_lock, struct err *e)
{
    if (!folder)
        return 0;
    *ret_draw = folder_claim(folder, "this reproduction", e) < 0 ? NULL : folder_temp("musacoder-repro", ret_lock, e);
    return *ret_draw ? 0 : -1;
}

static void eval_close_repro(char *draw, int lock)
{
    if (draw)
        dir_remove(draw, NULL), close(lock);
    free(draw);
}

/* Reads task and candidates and judges them; an exit code, or -1 with e. */
static int eval_run_candidates(const struct opts *o, const struct eval_config *c, struct err *e)
{
    struct eval_options eo = {.reward = reward_params_of(o), .fresh = c->no_cache};
    struct eval_texts t = {0};
    struct eval_reporting reporting = {.o = o, .t = &t};
    struct task task = {0};
    struct eval *ev = NULL;
    char *draw = NULL;
    ino_t before;
    int rc = -1, lock = -1;

    if (opts_store(o, &eo, e) < 0 || eval_open_repro(eo.repro, &draw, &lock, e) < 0)
        return -1;
    eval_report_open(o, &reporting.r);
    reporting.draw = eo.repro = draw;
    before = eval_file_at(eo.capsule);
    if (!strcmp(opts_str(o, "allow"), "torch") && !strcmp(eo.protocol, "strict"))
        eo.protocol = "strict-torch";
    if (eval_options_check(&eo, e) == 0 && task_read(opts_str(o, "task"), &task, e) == 0 &&
        eval_read_candidates(o, &task, &t, e) == 0 && eval_announce_first(eo.backend) &&
        eval_backend_check(eo.backend, e) == 0 && eval_open(c, &ev, e) == 0)
        rc = eval_judge_all(&reporting, ev, &task, &eo, e);
    if (rc < 0 && e->kind == ERR_INPUT && eval_speaks_json(o))
        eval_report_refusal(o, &eo, &reporting.r, e);
    if (rc >= 0 && eo.capsule && eval_file_at(eo.capsule) == before)
        log_warn("no capsule: the candidate did not pass%s", before ? "; the file there is an earlier one's" : "");
    eval_close(ev);
    verdict_report_free(&reporting.r);
    eval_texts_free(&t);
    task_free(&task);
    eval_close_repro(draw, lock);
    return rc;
}

/* The command; an exit code, or -1 with e. */
static int eval_run(const struct opts *o, struct err *e)
{
    struct eval_config c = {.jobs = (int)opts_int(o, "jobs"), .no_jail = !strcmp(opts_str(o, "jail"), "none"),
                            .no_cache = !opts_bool(o, "cache") || opts_has(o, "capsule") || opts_has(o, "repro"),
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
    if ((opts_has(o, "capsule") || opts_has(o, "repro")) && o->n_args != 1)
        return err_set(e, ERR_INPUT, "'--%s' is for one candidate", opts_has(o, "repro") ? "repro" : "capsule");
    return eval_run_candidates(o, &c, e);
}

/* The task's sidecar, and the headers beside a source. */
static void eval_list_reads(const struct opts *o, struct opt_reads *ret)
{
    char **names;
    size_t n;

    if (opts_has(o, "task"))
        opt_reads_add(ret, task_sidecar_path(opts_str(o, "task")));
    for (int i = 0; i < o->n_args; i++) {
        bundle_headers(o->args[i], &names, &n);
        for (size_t k = 0; k < n; k++)
            opt_reads_add(ret, names[k]);
        free(names);
    }
}

const struct command cmd_eval = {
    "eval", "is this kernel right and legal, and why not?", "--task TASK.py [options] CANDIDATE...",
    "Judges candidates (Python files that define ModelNew or custom_kernel, or model responses with one in a code\n"
    "fence; '-' reads standard input; a folder, a .zip or .tar archive or a .cu file is an answer of several files,\n"
    "see docs/formats.md) against a PyTorch task: extraction, compilation, correctness on fresh data, legality,\n"
    "reward.\n"
    "TASK.yaml beside TASK.py adds shapes, dtypes, layouts and tolerances for protocol strict (docs/sidecar.md).\n"
    "The process that owns the device judges; it is started when needed and leaves after a minute ('musacoder owner')"
    ".\n"
    "Exit code: 0 all passed, 1 some failed or unsupported, 2 usage or broken task, 3 the machine judged not all.\n\n",
    rows, eval_run, WORDS_ANY, NULL, eval_list_reads};

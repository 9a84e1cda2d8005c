/* bench.h - Pass@k, Avg@k and Faster Rate of a model, or of programs that somebody else sampled, on a task suite.
 *
 * A run folder holds samples.jsonl (every response, as soon as it is there), verdicts.jsonl (one verdict record each),
 * bench.json (the result) and report.html. Responses depend on the seed, the task and the sample's number only, so a
 * stopped run continues to the same result. First-turn numbers are the headline; with turns > 1 a failed sample gets
 * MooreEval's feedback and another try, and best-turn numbers stand beside. infra verdicts are counted, never scored.
 *
 * On a suite with levels (KernelBench) a task that cannot be judged is a named skip, and the run folder also gets
 * samples.csv and levels.csv. */
#ifndef MC_BENCH_BENCH_H
#define MC_BENCH_BENCH_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "task/prompt.h"
#include "task/task.h"

/* Makes a task smaller: *ret is new, {"source","before","after","changes"}. ERR_INPUT: this task cannot be made
 * smaller; it becomes a named skip. Called by several threads at once. */
typedef int bench_shrink(const struct task *t, int64_t max_elements, json_t **ret, void *ctx, struct err *e);

/* What a failed sample is told before its next turn. The last two are controls: whoever reads its feedback loses by
 * them. */
enum bench_feedback { BENCH_FEEDBACK_OWN, BENCH_FEEDBACK_SHUFFLED /* another failure's */, BENCH_FEEDBACK_NONE };
int bench_feedback_parse(const char *name, enum bench_feedback *ret, struct err *e); /* "own" "shuffled" "none" */

struct bench_options {
    const char *made_by;     /* the program that judges, for bench.json: version and commit; NULL: not told */
    const char *name;        /* for titles: "sft"; NULL: the last part of out */
    const char *model;       /* model folder, or a server (remote/openai.h); NULL with samples_dir */
    const char *model_name;  /* of a server that has several; NULL: its first */
    int parallel;            /* requests to a server at once; 0: 32 */
    const char *samples_dir; /* responses made elsewhere: a folder with TASK/FILE or TASK_N.py, or a samples.jsonl */
    const char *tasks;       /* folder of task files; NULL with suite */
    const char *suite;       /* "kernelbench:DIR" (suite.h): results by level; NULL: tasks */
    bool musa;               /* MUSA programs are asked for; verdict says so too */
    const char *levels;      /* of the suite: "1,3"; NULL: all */
    const char *out;         /* run folder, made when missing; continued when it holds the same benchmark */
    int samples;             /* per task; 0: 8, or with a suite as many as the folder of samples has */
    int turns;               /* 0: 1 */
    enum bench_feedback feedback;
    bool edits;              /* feedback shows the kernel's numbered lines; answers may be lines (task/repair_text.h) */
    int limit;               /* first so many tasks (of each level); 0: all */
    int max_new;             /* tokens per response; 0: 1024 */
    int max_context;         /* a dialogue longer than this ends; 0: the model's positions */
    int max_batch;           /* rows decoded together; 0: the sampler's */
    double temperature, top_p; /* as given: 0 is greedy; top_p 0 means 1 */
    uint64_t seed;
    enum prompt_style style;
    double faster_than;      /* Faster Rate counts speedups above this; 0: FASTER_MIN */
    bool missing_fail;       /* samples that the folder lacks count as failures; else they are left out */
    const char *precision;   /* of every task: "fp32" "fp16" "bf16" (suite.h); NULL or "own": as written */
    int64_t shrink_to;       /* largest tensor of a task; 0: tasks as they are */
    bench_shrink *shrink;    /* needed with shrink_to; called only for tasks that have samples to judge */
    void *shrink_ctx;
    const json_t *verdict;   /* eval's flags (verdicts/verdict_service.h); NULL: defaults */
    const char *profile;     /* the device that the judge emulates; NULL: its own */
    const char *secret;      /* the judge's, as a fingerprint; NULL: this machine's */
    int workers, jobs;       /* verdict_config */
    const char *queue;       /* verdict_config: others judge; NULL: workers of our own */
    const char *device, *dtype; /* of model_to_device; NULL: the host */
    char *const *worker_argv; /* for tests: verdict_config's; NULL */
};

/* ERR_INPUT where not exactly one source of answers, and one of tasks, is given. */
int bench_check_source(const struct bench_options *o, struct err *e);

/* Runs or continues. *ret: a new object, also written to out/bench.json:
 * {"schema":"musacoder.bench/1","made_by","machine" (base/machine.h),"name","model","suite","suite_sha256","backend",
 * "tasks","samples","k","turns",
 * "temperature","top_p","seed","pass_at_1","pass_at_8","avg_at_8","score","faster_eager","faster_compile" (null when
 * speed was not measured), "best_pass_at_8","best_avg_at_8","turns_to_success":[first, second, ..],"recovery" (share
 * of the samples that failed in turn 1 and passed later; null without a failure or a second
 * turn),"cut_share","whole_pass_rate" (of the samples that are not cut off before their program is closed, the share
 * that passed),"infra","categories":{"passed":n,..},"families":{"chain":{"tasks","pass_at_8","avg_at_8"},..},
 * "faster_than","per_task":[{"task","family","n","passed","whole","whole_passed","best_passed","pass_at_8"},..],
 * "seconds"} k is min(8, samples), averages are of all samples; the keys keep their names. On a suite also "levels",
 * "missing", "skipped" and "strays": see levels.h. ERR_STOP after Ctrl-C: call again to go on. */
int bench_run(const struct bench_options *o, json_t **ret, struct err *e);

/* The result as text tables; several results (stages) side by side in one. */
void bench_table(FILE *out, const json_t *const *results, int n);
void bench_level_table(FILE *out, const json_t *result); /* of a suite */
/* What the paper reports on this suite, marked as published, with this result as the last row; nothing for others. */
void bench_published(FILE *out, const json_t *result);

#endif

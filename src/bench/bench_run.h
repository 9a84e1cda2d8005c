/* bench_run.h - the state of one benchmark, shared by bench*.c: tasks x samples x turns, and the run folder that
 * mirrors it. */
#ifndef MC_BENCH_BENCH_RUN_H
#define MC_BENCH_BENCH_RUN_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "bench/bench.h"
#include "bench/foreign.h"
#include "bench/suite.h"
#include "nn/chat.h"
#include "base/listing.h"

#define BENCH_MAX_TURNS 8
#define BENCH_MAX_SAMPLES 1000

struct attempt {
    char *text;       /* NULL: not sampled yet */
    char *written;    /* of bench_program; NULL: text itself, or not asked for yet */
    bool is_response; /* false: a Python file */
    bool cut;         /* hit the length limit */
    char *file;       /* where a foreign sample came from, or NULL */
    int32_t *ids;     /* as sampled; NULL for foreign samples */
    int n_ids;
    json_t *verdict;  /* NULL: not judged yet */
};

struct bench_slot { /* one sample of one task, with its later turns */
    struct attempt turn[BENCH_MAX_TURNS];
};

struct bench_run {
    struct bench_options o; /* defaults filled in */
    struct suite suite;
    struct bench_slot *slots; /* (tasks, samples) */
    int *n_samples;         /* of each task: o.samples, or fewer with samples_dir */
    struct foreign foreign; /* what samples_dir holds */
    char *samples_path, *verdicts_path;
    double start;
    int lock;
};

struct attempt *bench_attempt(const struct bench_run *b, int task, int sample, int turn);
bool verdict_passed(const json_t *verdict);
bool verdict_infra(const json_t *verdict);
/* The trajectory goes on behind this turn: judged, not passed, not infra. */
bool bench_goes_on(const struct bench_run *b, int task, int sample, int turn);

/* The response that is judged: an answer of edits stands for the whole program (task/repair_text.h). Borrowed. */
const char *bench_program(const struct bench_run *b, int task, int sample, int turn);

/* shown.c: the feedback that turn + 1 of this sample reads; borrowed from the verdicts. */
const char *bench_feedback_shown(const struct bench_run *b, int task, int sample, int turn);

/* bench_store.c: the run folder. */
int bench_store_open(struct bench_run *b, struct err *e); /* makes or continues it; fills the attempts that are there */
void bench_store_close(struct bench_run *b);
int bench_store_sample(struct bench_run *b, int task, int sample, int turn, struct err *e);
int bench_store_verdict(struct bench_run *b, int task, int sample, int turn, struct err *e);
int bench_take_foreign(struct bench_run *b, struct err *e); /* fills turn 0 from b->foreign */

/* prepare.c: makes tasks small where that is asked for, and gives the samples of tasks that cannot be judged their
 * verdict. */
int bench_prepare(struct bench_run *b, struct err *e);

/* bench_sum.c */
json_t *bench_summary(const struct bench_run *b, double seconds); /* new */

/* bench_csv.c: samples.csv (a row per sample, missing ones too) and levels.csv (a row per level, and one of all). */
int bench_write_csv(const struct bench_run *b, struct listing *l, const json_t *result, struct err *e);

#endif

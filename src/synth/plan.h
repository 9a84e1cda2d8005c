/* plan.h - decides what a corpus consists of, before anything is compiled: tasks, their split, and for each task the
 * programs to write. A pure function of the options, so the order in which verdicts come back cannot matter.
 *
 *   train    tasks with programs; prompts: further tasks without programs, for RL; heldout: one task per graph
 * A graph goes to one side by its hash alone (graph_held_out). */
#ifndef MC_SYNTH_PLAN_H
#define MC_SYNTH_PLAN_H

#include "base/err.h"
#include "base/mem.h"
#include "synth/emit.h"
#include "synth/gen.h"
#include "task/prompt.h"

#define PLAN_PROGRAMS 8

enum plan_side { PLAN_TRAIN, PLAN_HELDOUT, PLAN_PROMPT };

struct plan_program {
    const struct tmpl *t;
    struct schedule s;
    char *plain;      /* the Python file in the plain style: what bugs are injected into */
    struct rng dress; /* state that dresses it in the full style */
    char *code;       /* the Python file as published */
};

struct plan_task {
    struct graph g;
    uint64_t hash;
    enum plan_side side;
    char *name; /* chain_0017; held out: chain_h0003; prompt only: chain_p0003 */
    char *code;
    struct plan_program program[PLAN_PROGRAMS];
    int n_programs;
};

struct plan_options {
    uint64_t seed;
    int tasks, heldout, prompts, per_task;
    int deal[64]; /* families in the order in which tasks are dealt; repeats are weights */
    int n_deal;
    struct gen_options gen;
    enum prompt_style style; /* full also draws schedules, names and comments */
    bool musa;               /* programs and requests are MUSA's: drawn as CUDA, translated as they are written */
};

struct plan {
    struct plan_task *task; /* train, then held out, then prompts */
    int n;
    int drawn, refused_split, refused_twice, refused_trivial; /* draws that were not kept, by reason */
    json_t *rejected; /* owned array: {"graph","family","reason"} of the trivial ones */
};

/* Strings live in the arena. Fails if a family has no held-out graph to offer, or the wanted number of different tasks
 * cannot be drawn. */
/* The program's text in the plan's style: plain itself, or a dressed copy. */
char *plan_dress(const struct plan_options *o, const struct plan_task *t, const struct plan_program *q,
                 const char *plain, struct arena *a);
int plan_make(const struct plan_options *o, struct arena *a, struct plan *ret, struct err *e);

#endif

/* problem.h - one task of a corpus: a graph drawn for a side, its text, and programs of really different strategies. */
#ifndef MC_SYNTH_PROBLEM_H
#define MC_SYNTH_PROBLEM_H

#include "synth/dag_draw.h"
#include "synth/heldout.h"
#include "synth/training_record.h"

/* Why a task is in a corpus. Only SIDE_HELD breaks heldout.h's rules, each split one of them. */
enum side {
    SIDE_TRAIN,   /* answered in training */
    SIDE_PARENT,  /* its programs are broken for repair records, and answered nowhere else */
    SIDE_HARVEST, /* a model's own failures are collected on it */
    SIDE_PROMPT,  /* reinforcement learning asks for it: a share of them has a known operator */
    SIDE_HELD,
    N_SIDES
};
extern const char *const side_names[N_SIDES];

struct problem_options {
    uint64_t seed;
    int max_ops, max_numel;
    int max_program; /* bytes of a program at most; 0: no limit */
    unsigned dtypes;
    struct prompt_format prompt_format;
    const uint8_t *ops; /* one byte for each row of op_rows(): what may occur; NULL: all */
    bool all_taught;    /* known operators are taught too */
    double known_share; /* of SIDE_PROMPT: how many have a known operator, 0 to 1 */
    bool public;        /* tasks as people write them (surface/surface.h) instead of graphs; no style split */
    const json_t *weights; /* of families (dag_draw.h), of all sides; NULL: all 1 */
};

struct solution {
    char *code, *strategy, *mutant; /* mutant: NULL, or the program with the bug 'bug' */
    const char *bug, *why;          /* its kind's name; what is wrong then, a clause */
    enum fusion level;
    int kernels;
    bool verify;
    const json_t *verdict, *mutant_verdict; /* NULL: not known */
};

#define PROBLEM_SOLUTIONS 12

struct problem {
    enum side side;
    enum heldout split; /* of SIDE_HELD */
    char name[40];      /* "task_0017"; held out: "unseen_0003" */
    enum op_class class; /* the least taught of its operators */
    char *code;
    uint64_t hash, shape_hash;
    json_t *view;       /* record_task */
    int n_nodes;
    struct solution s[PROBLEM_SOLUTIONS];
    int n;
};

/* Graphs known so far: what a new problem must not, or must, be one of. */
struct graph_set;
struct graph_set *graph_set_new(void);
void graph_set_free(struct graph_set *s);
bool graph_set_add(struct graph_set *s, uint64_t key); /* false if it was there */
bool graph_set_has(const struct graph_set *s, uint64_t key);

struct problem_source {
    const struct problem_options *o;
    struct dag_table *table[N_OP_CLASSES]; /* taught operators; and known ones; taught and unseen ones */
    int classes[N_OP_CLASSES];             /* operators of each class that may occur */
    struct graph_set *texts, *trained;     /* every problem's graph with its sizes; graphs of SIDE_TRAIN */
    struct graph_set *prompted, *learned;  /* graphs of SIDE_PROMPT; of the split 'learned' */
    struct graph_set *held;                /* graphs of SIDE_HELD */
    struct graph_set *asked;               /* texts of knowledge_record's questions */
    int trained_nodes[DAG_NODES + 1];      /* SIDE_TRAIN's problems by number of operators */
    struct prompt_ops {                    /* operators of each prompt that has a known one */
        const struct opdef *op[DAG_NODES];
        int n;
    } *known_prompts;
    int n_known_prompts;
    json_t *refused;                /* reason -> how often */
};
void problem_source_init(struct problem_source *s, const struct problem_options *o);
void problem_source_free(struct problem_source *s);

/* How many tasks of a split there are where n are asked for: none where --ops leaves none to draw. */
int problem_held(const struct problem_source *s, enum heldout split, int n);
/* Draws problem number index of its side with 'want' solutions of different strategies (fewer where there are fewer, at
 * least one); mutants: puts a bug into the first. ERR_INPUT with advice if the options leave none to draw. The strings
 * are the problem's: problem_free. */
int problem_draw(struct problem_source *s, enum side side, enum heldout split, int index, int want, bool mutants,
                 struct problem *ret, struct err *e);
void problem_free(struct problem *p);

#endif

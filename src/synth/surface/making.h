/* making.h - a task in the making: the reference module and the program beside it, layer by layer. */
#ifndef MC_SYNTH_SURFACE_MAKING_H
#define MC_SYNTH_SURFACE_MAKING_H

#include "base/buf.h"
#include "base/mem.h"
#include "base/rng.h"
#include "synth/surface/kind.h"

#define MAKING_ARGS 24
#define MAKING_CONSTANTS 40
#define MAKING_INPUTS 4
#define MAKING_FUNCTIONS 16
#define MAKING_KINDS 12
#define MAKING_ENV 48

/* An argument of the constructor. def: its default, NULL if it has none. */
struct making_arg {
    const char *name, *type, *value, *def, *doc;
};

struct making_input {
    const char *name, *maker; /* "torch.rand(%s)" */
    const char *dim[5];       /* constants' names or numbers */
    int rank;
    const char *what; /* for docstrings */
};

/* How this task is written. */
struct making_style {
    bool annotate, class_doc, class_args, init_doc, forward_doc, constants, literal_dims, shape_tuple, comments,
        newer_super, constants_first, empty_init, long_functional, long_nn, named_steps;
    int maker;
};

struct making {
    struct arena a;
    struct rng *r;
    struct making_style style;
    struct making_arg arg[MAKING_ARGS];
    int n_args;
    struct {
        const char *name, *value;
    } constant[MAKING_CONSTANTS];
    int n_constants;
    struct making_input input[MAKING_INPUTS];
    int n_inputs;
    int rank, d[5];       /* of the current value; rank -1: none yet */
    const char *channels; /* how its second axis is called: an argument's name or a number */
    struct {
        const char *name, *text;
    } function[MAKING_FUNCTIONS]; /* kernel and host, by kernel's name */
    int n_functions;
    struct buf init, forward, answer;       /* lines of __init__, of forward, and of the program's forward */
    const char *before, *expression, *call; /* of a single layer */
    const struct kind *kind[MAKING_KINDS];
    int n_kinds, n_modules;
    bool chain;
    const struct kind *now; /* the layer that is being added */
    const char *saved;      /* a value that was put aside, and its shape */
    int saved_rank, saved_d[5];
    struct {
        const char *key, *value;
    } env[MAKING_ENV];
    int n_env;
    /* the map that consecutive maps become */
    struct {
        struct buf code, params, hosts, args, call;
        const char *name, *x;
        int n;
    } map;
};

const char *making_format(struct making *m, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int making_draw(struct making *m, int lo, int hi); /* uniform, both ends included */
bool making_chance(struct making *m, double p);
const char *making_pick(struct making *m, const char *choices, char between);
void making_set(struct making *m, const char *key, const char *value);
const char *making_expand(struct making *m, const char *text); /* holes filled from the environment */
/* A module-level constant of this value: its name, which may get a number; or the value itself where the task's
 * style or chance says so. */
const char *making_constant(struct making *m, const char *name, const char *value);
/* A constructor's argument: its name. def may be NULL. */
const char *making_arg(struct making *m, const char *name, const char *type, const char *value, const char *def,
                       const char *doc);
/* Adds a function unless it is there; returns the kernel's name, with a number where another text has it. Holes $k
 * and $f are filled with that. */
const char *making_function(struct making *m, const char *name, const char *text);

#endif

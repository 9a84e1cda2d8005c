/* layer_parts.h - what the files layer_*.c share: inputs, spellings, attributes, and the lines that a layer says.
 */
#ifndef MC_SYNTH_SURFACE_LAYER_PARTS_H
#define MC_SYNTH_SURFACE_LAYER_PARTS_H

#include "synth/surface/surface_layer.h"

struct spelled {
    const char *init, *call; /* init NULL: no module */
    const char *module;      /* its name */
};

/* Where an attribute stands: what __init__ says, and what forward sees. */
struct layer_bound {
    const char *init, *seen;
};

/* ---- sizes and names ---- */
/* 2 to hi, in a third of the draws a power of two. */
int layer_draw_size(struct making *m, int hi);
/* The number as text, in the task's arena; all texts below are there too. */
const char *layer_number(struct making *m, int v);
/* The i-th of words that blanks part. */
const char *layer_word(struct making *m, const char *words, int i);
/* A size as the task writes it: a constant of this name, or the number. */
const char *layer_size_name(struct making *m, const char *name, int v);
/* "torch.rand(%s)": how inputs are drawn. */
const char *layer_draw_maker(struct making *m);
/* ---- inputs ---- */
/* An input without a shape yet. */
struct making_input *layer_add_input(struct making *m, const char *name, const char *maker, const char *what);
/* The current value becomes an input of these sizes; words: names of its axes. */
struct making_input *layer_make_input(struct making *m, const char *words, int rank, const int d[],
                                      const char *maker);
/* The same with names and sizes drawn. */
void layer_draw_input(struct making *m, int rank);
/* Mostly 2, 1 to 5. */
int layer_draw_rank(struct making *m);
/* Another input of the shape of input 'of'. */
struct making_input *layer_copy_input(struct making *m, int of, const char *name, const char *maker,
                                      const char *what);
/* A row of names for the axes of this rank. */
const char *layer_draw_names(struct making *m, int rank);
/* ---- spellings and attributes ---- */
/* The attribute that a module becomes, mostly 'base': a name that __init__ has not assigned yet. */
const char *layer_name_module(struct making *m, const char *base);
/* One of the kind's spellings; of a module its name is drawn and set as $m. */
struct spelled layer_draw_spelling(struct making *m, const struct kind *k);
/* A line of __init__. */
void layer_add_init(struct making *m, const char *text);
/* Decides whether an attribute is an argument of the constructor or a number, and adds what __init__ needs. */
struct layer_bound layer_bind(struct making *m, const struct spelled *s, const char *name, const char *type,
                              const char *value, const char *def, const char *doc);
/* Has the spelling the hole $name? */
bool layer_mentions(struct making *m, const struct spelled *s, const char *name);
/* ---- lines ---- */
/* "norm = x.norm(); x / norm": statements of the reference, then the value. */
void layer_say_reference(struct making *m, const char *text);
/* The program's line for the same. */
void layer_say_call(struct making *m, const char *call);
/* ---- channels ---- */
/* An input of shape (batch, channels, axes...). */
void layer_draw_image(struct making *m, int axes, int channels);
/* A divisor of channels, at most 8. */
int layer_draw_groups(struct making *m, int channels);

/* A function for each form; false if the current shape does not suit. */
bool layer_add_map(struct making *m, const struct kind *k);
bool layer_add_param(struct making *m, const struct kind *k);
bool layer_add_residual(struct making *m, const struct kind *k);
bool layer_add_reduce(struct making *m, const struct kind *k);
bool layer_add_row(struct making *m, const struct kind *k);
bool layer_add_spatial(struct making *m, const struct kind *k);
bool layer_add_loss(struct making *m, const struct kind *k);
bool layer_add_rowloss(struct making *m, const struct kind *k);
bool layer_add_norm(struct making *m, const struct kind *k);
bool layer_add_conv(struct making *m, const struct kind *k);
bool layer_add_pool(struct making *m, const struct kind *k);
bool layer_add_linear(struct making *m, const struct kind *k);
bool layer_add_matmul(struct making *m, const struct kind *k);

#endif

/* program.h - a graph as a KernelBench-format task, and its kernels as a program that defines ModelNew. */
#ifndef MC_SYNTH_PROGRAM_H
#define MC_SYNTH_PROGRAM_H

#include "synth/emit.h"
#include "synth/fuse.h"

struct program_style {
    struct ast_style c;
    enum size_style sizes;
    bool terse;     /* shortest names of kernels and sizes, no tuned numbers: a small model has less to choose */
    bool docstring; /* of the task's class: what each operator does */
    bool reuse;     /* "x = torch.relu(x)" where nothing else reads x */
};

/* The task's file. */
void program_task(const struct dag *g, const struct program_style *s, struct buf *out);
/* The CUDA source as a tree, in the arena; NULL with a message if a template does not parse. */
struct afun *program_cuda(const struct dag *g, const struct kernels *k, const struct program_style *s,
    struct arena *a, struct err *e);
/* The Python file around it. */
void program_file(const struct dag *g, const struct kernels *k, const struct afun *cuda, const struct program_style *s,
                  struct buf *out);

#endif

/* emit.h - writes a graph as a KernelBench-format task, and a graph with a template and a schedule as a program that
 * defines ModelNew. Both are complete Python files in the plain style; style.h dresses them. */
#ifndef MC_SYNTH_EMIT_H
#define MC_SYNTH_EMIT_H

#include "base/buf.h"
#include "synth/graph.h"
#include "synth/tmpl.h"

struct schedule {
    int block, grid; /* $B, and $G of grid-stride loops */
};

void emit_task(const struct graph *g, struct buf *out);

/* The graph's statements, one line each: torch as in a task's forward, CUDA as in a kernel. No anchor. */
void emit_statements(const struct graph *g, const char *const index[3], struct buf *torch, struct buf *cuda);

/* cuda: the CUDA source alone (kernels and the host function f); program: the Python file around it. */
void emit_cuda(const struct graph *g, const struct tmpl *t, const struct schedule *s, struct buf *cuda);
void emit_program(const struct graph *g, const char *strategy, const char *cuda, struct buf *program);

#endif

/* knowledge.h - short questions whose answers are facts of the registry: how a run of PyTorch statements is written in
 * CUDA. They hold no kernel, so no verdict; what makes them true is that only operators are asked about that occur in a
 * program of the same corpus that the judge passed, and that a test runs every registry row against PyTorch.
 * They cost nothing to make and teach translation line by line, which whole programs teach slowly. */
#ifndef MC_SYNTH_KNOWLEDGE_H
#define MC_SYNTH_KNOWLEDGE_H

#include "synth/plan.h"

/* The record (kind "knowledge") number index, or NULL if nothing could be asked. known: op is usable, by index in
 * ops[].
 * A graph of the held-out side is never asked about. */
json_t *knowledge_record(const struct plan_options *o, const bool *known, int index);

#endif

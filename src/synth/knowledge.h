/* knowledge.h - short questions whose answers are facts of the registry: how a run of PyTorch statements is written in
 * CUDA. They hold no kernel, so no verdict; a test runs every row against PyTorch. They cost nothing to make, and teach
 * translation line by line, which whole programs teach slowly. */
#ifndef MC_SYNTH_KNOWLEDGE_H
#define MC_SYNTH_KNOWLEDGE_H

#include "synth/problem.h"

/* The record (kind "knowledge") number index, of elementwise operators that the source's training side may have, or
 * NULL if there is none to ask about. Nothing of a held-out split is asked. */
json_t *knowledge_record(const struct problem_source *s, int index);

#endif

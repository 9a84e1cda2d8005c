/* knowledge.h - short questions whose answers are facts of the registry: how a run of PyTorch statements is written in
 * CUDA, as what one thread does for one output. They hold no kernel, so no verdict; a test runs every row against
 * PyTorch. They cost nothing to make, teach translation line by line, which whole programs teach slowly, and are all
 * that training has of known operators (heldout.h). */
#ifndef MC_SYNTH_KNOWLEDGE_H
#define MC_SYNTH_KNOWLEDGE_H

#include "synth/problem.h"

/* The record (kind "knowledge") number index, of taught and known operators that one kernel computes, or NULL if
 * there is none to ask about. No held-out graph, size or constant and no unseen operator is asked. */
json_t *knowledge_record(const struct problem_source *s, int index);

/* The record (new) of a question and its answer. Takes task over. hash: 16 hexadecimal digits; evidence: where the
 * answer is from. */
json_t *knowledge_json(const struct problem_source *s, int index, const char *hash, json_t *task, const char *evidence,
                       const struct buf *ask, const struct buf *answer);

#endif

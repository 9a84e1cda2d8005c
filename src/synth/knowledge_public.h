/* knowledge_public.h - knowledge.h's questions for tasks as people write them: a module, and the statements of its
 * kernel that are the module's own, in the notation of surface/surface.h's programs. A model that knows statements in
 * one notation does not find them in another: asked in knowledge.h's, SmolLM2 wrote 5 % of the programs of known
 * operators right. No answer holds a whole kernel, a host function or a class. */
#ifndef MC_SYNTH_KNOWLEDGE_PUBLIC_H
#define MC_SYNTH_KNOWLEDGE_PUBLIC_H

#include "synth/problem.h"

/* The record (kind "knowledge") number index, of a layer that is taught or known, half of them known; NULL after 200
 * draws without a new question. */
json_t *knowledge_public_record(const struct problem_source *s, int index);

#endif

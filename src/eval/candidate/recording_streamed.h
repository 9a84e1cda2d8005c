/* recording_streamed.h - a recording on inputs that nobody copies, and whose outputs are compared in tiles
 * (streamed.h): what recording.c does otherwise where j->held.ref->streamed. Inside src/eval only. */
#ifndef MC_EVAL_CANDIDATE_RECORDING_STREAMED_H
#define MC_EVAL_CANDIDATE_RECORDING_STREAMED_H

#include "eval/candidate/recording.h"
#include "eval/candidate/recording_place.h"
#include "eval/reference/streamed.h"

/* Bytes that the client of a streamed task may hold: a program that wants more is out of memory by its own fault, as
 * the judge's inputs, the reference and the baseline have their room besides (exec/memory_plan.h). *ret 0: the task is
 * not streamed, or the device is not shared. ERR_INPUT: no program for it fits onto the device. */
int recording_streamed_memory(const struct job *j, uint64_t *ret, struct err *e);
/* The area of inputs and a tile become memory of the recording. -1: infra. */
int recording_streamed_open(struct job *j, struct err *e);
/* The draw's inputs lie in the area, and the log says so. */
int recording_streamed_bind(struct job *j, const struct ref_draw *d, struct err *e);
/* What a call left, without values: a result, or an error where an output lies astray. */
int recording_streamed_fetch(struct job *j, const json_t *output, struct frame *ret, struct err *e);
/* Output 'leaf' (of the tensors, from 0), as node says where it lies, against what is expected: streamed_compare. */
int recording_streamed_compare(struct job *j, size_t leaf, const json_t *node, const struct tensor *expected,
                               const struct tolerance *tol, struct comparison *ret, struct err *e);

/* Elements [from, from + n) of a tensor of the recording, in C order, come to byte 'at' of the judge's tile. */
int recording_streamed_part(struct job *j, const struct recording_place *p, int64_t from, int64_t n, uint64_t at,
                            struct err *e);

#endif

/* repro.h - the draw that a candidate failed on, as files: what 'eval --repro DIR' asks for. Inside src/eval only.
 *
 * DIR gets draw.json (trees of values: check/tensor.h) and inputs.bin, init.bin, state.bin, expected.bin, got.bin,
 * which it names by offset; setup/repro.py, beside them, reads both and needs PyTorch alone. */
#ifndef MC_EVAL_REPRO_H
#define MC_EVAL_REPRO_H

#include "eval/stage/stage.h"

/* Writes the draw into opt->repro, the first time that it is called for a job; does nothing where nobody asks. got:
 * what the candidate left, or NULL where it did not come to that. A streamed task has no values to write: draw.json
 * says so. A file that cannot be written is a warning. */
void repro_write(struct job *j, const struct ref_draw *d, const struct frame *got);

#endif

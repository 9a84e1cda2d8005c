/* sidecar.h - what may stand beside a task: NAME.yaml next to NAME.py adds shapes, dtypes, layouts and tolerances.
 *
 *     tolerance: {abs: 1e-3, rel: 1e-3}    # replaces the derived one, for floating outputs; a missing half is 0
 *     regimes: [normal, task]              # of normal uniform signed large structured, and task: get_inputs as it is
 *     effects: [inputs, buffers]           # what forward leaves in them counts like an output
 *     variants:                            # run besides the task as written, in this order; up to 32
 *       - name: odd                        # letters, digits, '_' '-' '.'; at most 40, unique
 *         sizes: {batch_size: 3, "shape[1]": 17}   # integers of module-level assignments of the task file
 *         dtype: float16                   # float16|bfloat16|float32|float64: floating inputs and parameters
 *         layout: transposed               # every input that can; or a list, one per input (null: as it is);
 *                                          # or {0: transposed, 2: strided}
 *         tolerance: {abs: 0.01}           # for this variant; else the one above, else derived
 *         regimes: [uniform]               # likewise
 *     workloads:                           # like variants, up to 256; each is judged and timed as a task of its own,
 *       - name: long                       # and the verdict is theirs together (docs/sidecar.md)
 *         sizes: {sequence: 4096}
 *     format: gpu-mode                     # where the task came from (task/formats); the record says it
 *
 * Layouts: contiguous; transposed (the last two dimensions swapped in memory); strided (every second element of a row);
 * channels_last (of 4 or 5 dimensions). Protocol strict runs everything; kernelbench ignores the file and says so.
 * Whether the names in 'sizes' exist and the inputs can have the layouts is the reference side's business. */
#ifndef MC_TASK_SIDECAR_H
#define MC_TASK_SIDECAR_H

#include <jansson.h>

#include "base/err.h"

#define SIDECAR_VARIANTS_MAX 32
#define SIDECAR_WORKLOADS_MAX 256

/* Checks raw and returns it with every key present: {"tolerance","regimes","effects","variants":[{"name","sizes",
 * "dtype","layout","tolerance","regimes"}],"workloads":likewise}; absent things are null (workloads and format are
 * left out), layout is null, a word or a list. New reference, or NULL: ERR_INPUT that begins with 'what' (a path),
 * names the key and, for an unknown one, the nearest known. */
json_t *sidecar_check(const json_t *raw, const char *what, struct err *e);

#endif

/* dialect.h - programs written for MUSA, judged where another device plays that part: the emulator, or an NVIDIA
 * GPU.
 *
 * Python's half is told "cuda" wherever it says "musa" (device names, torch.musa, .musa()): edits keep every
 * line where it is. Sources of kernels stay MUSA: they compile behind litetorch/musa.h, which gives CUDA's names
 * MUSA's spelling. What MUSA's compiler would not take is an error with its line: names of CUDA, assembly, more
 * memory than the profile has. */
#ifndef MC_EVAL_DIALECT_H
#define MC_EVAL_DIALECT_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "base/buf.h"
#include "base/err.h"
#include "device/data_sheet.h"

/* $MUSACODER_PROFILE (set by --profile), or NULL. An unknown name is NULL too: the command has refused it. */
const struct data_sheet *dialect_profile(void);

/* Does the program build for MUSA? It imports torch_musa, or names musa_sources. */
bool dialect_is_musa(const char *program, size_t n);

/* The program as Python here runs it; new text with as many lines, NULL if it cannot be read as Python. */
char *dialect_program(const char *program, size_t n);

/* The flags of a build request's kernels, with those that its dialect implies: new list, NULL where that is
 * none. MUSA's half types have their operators; the precompiled prefix has not, so only who uses them pays for
 * that. */
json_t *dialect_flags(const json_t *request, const json_t *flags);

/* Appends what stands in front of a MUSA source: errors by line, the generation, litetorch/musa.h. name as in
 * #line. */
void dialect_preface(const char *source, size_t n, const char *name, struct buf *out);

#endif

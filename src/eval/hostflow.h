/* hostflow.h - does the host hand the device anything that it can only know by computing on the input? Pure.
 *
 * A watched call of forward leaves a list of records, one text for everything that went from host to device, in order:
 *
 *     "launch\trelu(float const*, float*, int)\tgrid:12=3.1.1\ta0:8=7f0012340000\ta1:8=#0+0\ta2:4=250"
 *
 * kind, name, then fields 'label:bytes=word.word...': the field's bytes as 64-bit words in hexadecimal (of long
 * contents: hashes of as many equal parts). "#K+N": byte N of what the call allocated as its K-th block, so that two
 * calls compare. Kinds: launch (configuration and arguments), copy and set (pointers, contents that came from the
 * host), aten (scalars and host tensors of torch's operators), wrote (bytes that the host itself changed in memory that
 * kernels can read).
 *
 * Of an honest program all of that follows from shapes, weights and constants: two calls whose inputs differ in their
 * values alone leave the same records. What differs was computed on the host from the values, or is noise. The measure
 * is novelty: how many bytes one needs to write down the records of a call for somebody who has those of other calls.
 *   - A run of records that also stands elsewhere costs 8 bytes wherever it begins out of turn (loops of data-dependent
 *     length, a branch): "phrases" as in Lempel-Ziv coding.
 *   - A word costs its bytes, unless it continues a counter or alternation (three calls: a, a', then a, a' or 2a'-a),
 *     or the same word of the same kernel became the same other word before (a scale that many launches share).
 * A few numbers are nobody's arithmetic: 64 bytes, or a thousandth of the output, as for copies (stage_legality.c). */
#ifndef MC_EVAL_HOSTFLOW_H
#define MC_EVAL_HOSTFLOW_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#define HOSTFLOW_FEW 64 /* bytes */

struct hostflow {
    int64_t novel;    /* bytes */
    int64_t records;  /* of the call */
    char where[256];  /* the first thing that was new: "argument 2 of kernel put_kernel(float*, int, float)" */
};

/* Novelty of the call 'now'. again: the call before it; before: the one before that, or NULL. Lists of records; what
 * is no
 * text in them costs 8 bytes. Never fails. */
void hostflow_novelty(const json_t *before, const json_t *again, const json_t *now, struct hostflow *ret);

/* Is that more than few? read: bytes that the host read of the device in the call; inputs, outputs: bytes of the call's
 * tensors. Says why in text. */
bool hostflow_convicts(const struct hostflow *f, int64_t read, int64_t inputs, int64_t outputs, char *text, size_t n);

#endif

/* legality.h - which ATen operators a candidate may dispatch, and when. Pure.
 *
 * forward: the published allowlist (SPEC section 4: the paper's Appendix J and its newer spellings) plus our versioned
 * list of further plumbing: allocation, views, copies, queries. Everything else is arithmetic done by torch: cheating.
 * init (import and __init__): all is free except contraction, convolution, reduction, softmax, scan, FFT and the layers
 * made of them: results that could be precomputed there. "prims::add" is "aten::add" here: construction is judged by
 * what is computed, not by who decomposes it. What a graph records, and what runs in the harness's pauses, is judged
 * as forward, whenever it ran. Operators of other namespaces: those of torch's own parts and of known packages are
 * not allowed; a name that a program registered itself is, because what it calls appears in the trace too.
 * Traces are {"aten::relu": 3, "captured::aten::relu": 3, ...} (prefixes: trace.cc); overload suffixes (".Tensor")
 * are ignored. */
#ifndef MC_LEGALITY_H
#define MC_LEGALITY_H

#include <jansson.h>
#include <stdbool.h>

#define LEGALITY_PUBLISHED "appendix-j/1"
#define LEGALITY_PLUMBING "plumbing/2"
#define LEGALITY_INIT "init/2"
#define LEGALITY_FOREIGN "foreign/1"

bool legality_forward_ok(const char *op);
bool legality_init_ok(const char *op);

/* Appends {"rule","phase","op","count","line","text"} for every operator that is not allowed. source: the candidate's
 * code, searched for a line that may have caused it ("line" is null if none fits). violations: an array. */
void legality_judge(const json_t *trace, const char *phase, const char *source, json_t *violations);

/* The first line of Python that mentions the operator (relu, relu_, F.relu, x.relu()), -1 if none. */
int legality_find_line(const char *source, const char *op, char *ret_text, size_t n_text);

#endif

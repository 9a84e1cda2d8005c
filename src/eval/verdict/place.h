/* place.h - where it happened: what a candidate's process wrote about its own end to its output. Only for the
 * feedback: the candidate can write there too, and misleads nobody but itself. Pure functions. */
#ifndef MC_EVAL_PLACE_H
#define MC_EVAL_PLACE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* The line of the candidate's program ("candidate.py") in the last traceback that Python's faulthandler wrote, when the
 * process crashed or its time was almost up (runner/front_role.py); 0 if there is none. */
int64_t place_python(const char *output);

/* What the program's print wrote into that output, where runner/front_role.py marks it: its first 'most' bytes. */
void place_printed(const char *output, size_t most, struct buf *out);

/* The first line of Python that mentions an operator ("aten::relu": relu, relu_, F.relu, x.relu()), of forward if
 * it does; -1 if none. */
int place_operator(const char *source, const char *op, char *ret_text, size_t n_text);

/* Line 'line' of a text, without its indentation; false if there is none. */
bool place_line(const char *text, int64_t line, char *ret, size_t n);

/* The name of forward's i-th argument behind self ("def forward(self, x, weight: Tensor)"); false: it has none. */
bool place_argument(const char *source, int i, char *ret, size_t n);

/* A kernel's parameter, as its source declares it. */
struct place_parameter {
    char name[80];
    int index;         /* of all parameters, from 0 */
    const char *dtype; /* as the judge calls it; NULL: another type */
    int bytes;         /* of an element; 0: not known */
};
/* The pointer'th (from 1) of a kernel's parameters that are pointers; false: the source declares no such kernel, or not
 * so many pointers. */
bool place_pointer(const char *source, const char *kernel, int pointer, int pointers, struct place_parameter *ret);

/* A finding's message with the tensor that memory ({"tensor","role","shape","dtype","at"}) names, in place of
 * 'device memory' (N bytes): "read of 4 bytes right behind the end of 'weight' (parameter, 96 x 64 float32), element
 * 6144". */
void memory_words(const char *message, const json_t *memory, struct buf *out);

#endif

/* place.h - where it happened: what a candidate's process wrote about its own end to its output. Only for the feedback: the
 * candidate can write there too, and misleads nobody but itself. Pure functions. */
#ifndef MC_EVAL_PLACE_H
#define MC_EVAL_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The line of the candidate's program ("candidate.py") in the last traceback that Python's faulthandler wrote, when the
 * process crashed or its time was almost up (runner/candidate.py); 0 if there is none. *ret_waiting (may be NULL): it had
 * left the program, and waited for the device. */
int64_t place_python(const char *output, bool *ret_waiting);

/* " (softmax(float const*, int))": the kernels of the last call that was waited for, as the process noted them; "" if it did
 * not. */
void place_kernels(const char *output, char *ret, size_t n);

struct place_assert {
    char file[64], what[200], kernel[200]; /* "cuda_source", "n < 0", "relu_kernel(float const*, int)" */
    int64_t line;
};
/* The first failed assert() of a kernel, as CUDA's runtime prints it. */
bool place_assert(const char *output, struct place_assert *ret);

/* The list of findings that the simulated device wrote as JSON when the process crashed (litetorch/runtime/device.cc);
 * NULL if there is none. n: its bytes. */
const char *place_findings(const char *output, size_t *ret_n);

/* Line 'line' of a text, without its indentation; false if there is none. */
bool place_line(const char *text, int64_t line, char *ret, size_t n);

#endif

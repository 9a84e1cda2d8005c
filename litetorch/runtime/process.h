/* process.h - what a candidate's process offers besides its device: the table for its libraries, findings, the
 * dispatch trace. Used from Python through ctypes (runner/native). api.cc and trace.cc are linked into libsimtorch.so
 * (with device.cc, the simulated device) and into libcudatorch.so (with cuda.cc, the real one). */
#ifndef LT_PROCESS_H
#define LT_PROCESS_H

#include <stdbool.h>
#include <stddef.h>

#include "../include/litetorch/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

const struct lt_api *lt_process_api(void); /* for lt_module_open of a candidate's .so */
const char *lt_torch_version(void);        /* of the PyTorch whose headers this was built against */
char *lt_findings(void);                   /* JSON list of our own findings, then forgotten; free with lt_free */
char *lt_library_calls(void);              /* JSON object {name: count}; free with lt_free */
void lt_free(char *p);
void lt_add_finding(const char *kind, const char *name, const char *message);
/* Byte at (from its start) of a tensor of n bytes was overwritten: at < 0 or at >= n. */
void lt_red_zone_finding(size_t n, long at, const char *kernel);

void lt_trace_open(void);     /* once, in the child */
void lt_trace_start(void);    /* for good */
char *lt_trace_counts(void);  /* JSON object {operator: count} since the start; free with lt_free */
int lt_trace_pause(int on);   /* this thread: counted as "paused::"; returns the former value; no effect where
                                 process_may_pause says no */

/* lookups.cc: watches lookups by name from Python, for good; the files in harness_folder are the harness's.
 * lt_foreign: a call of foreign code begins (1) or has ended (0). */
void lt_lookups_watch(const char *harness_folder);
void lt_foreign(int on);

/* Calls f(self, args, ret, message, max), a lt_function.invoke. -1: its host code crashed. */
int lt_invoke(void *f, void *self, const void *args, void *ret, char *message, size_t max);

/* Answered by the device. */
bool process_has_device(const void *p); /* does p point into device memory? */
bool process_is_inside(void);           /* does an operator run on behalf of the device, not of the candidate? */
bool process_may_pause(void);           /* do the judge's own copies go through the dispatcher, to be counted apart? */
void *process_stream(void);             /* torch's current stream; NULL on the simulated device */
bool process_capturing(void *stream);   /* into a graph: then nothing may be waited for */

#ifdef __cplusplus
}
#endif
#endif

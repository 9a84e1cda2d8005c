/* process.h - what a candidate's process offers besides its device: the table for its libraries, findings, the
 * dispatch trace. Used from Python through ctypes (runner/native). api.cc and trace.cc are linked into libfronttorch.so
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
int lt_trace_alive(void);     /* is what this thread does recorded? */
int lt_trace_pause(int on);   /* this thread: counted as "paused::"; returns the former value; no effect where
                                 process_may_pause says no */

/* lookups.cc: watches lookups by name from Python, for good; the files in harness_folder are the harness's.
 * lt_foreign: a call of foreign code begins (1) or has ended (0). */
void lt_lookups_watch(const char *harness_folder);
void lt_foreign(int on);

/* watch.cc: a watched call of forward (abi.h: struct lt_watch). mode: LT_WATCH_*. Begin before forward on the thread
 * that calls it; end after it and before the device is waited for: {"records":[text],"read":bytes,"streams":other
 * streams seen, "unjoined":kernel or null}. */
void lt_watch_begin(int mode);
char *lt_watch_end(void); /* free with lt_free */
const struct lt_watch *lt_watch_table(void);
/* Memory that both sides see: host and device may be the same address. name NULL: device memory, named by its address.
 * fill: what new memory holds. Known until lt_watch_forget(host). */
void lt_watch_region(void *host, const void *device, size_t n, const char *name, unsigned char fill);
void lt_watch_forget(const void *host);

/* Calls f(self, args, ret, message, max), a lt_function.invoke. -1: its host code crashed. */
int lt_invoke(void *f, void *self, const void *args, void *ret, char *message, size_t max);

/* Answered by the device. */
bool process_has_device(const void *p); /* does p point into device memory? */
bool process_is_inside(void);           /* does an operator run on behalf of the device, not of the candidate? */
bool process_may_pause(void);           /* do the judge's own copies go through the dispatcher, to be counted apart? */
int process_take(const void *p, size_t n, const char *call); /* lt_api.take */
void *process_stream(void);             /* torch's current stream; NULL on the simulated device */
bool process_host_range(const void *p, void **ret_start, size_t *ret_n); /* is p host memory that kernels can read? */
bool process_capturing(void *stream);   /* into a graph: then nothing may be waited for */
int process_sync(void);                 /* waits for the device; 0, or -1 */
int process_param_size(const void *function, size_t i, size_t *ret); /* abi.h: lt_watch.param_size */
/* Streams: holds back what comes after until open_gate() or 100 ms; marks a place (slot in [0, PROCESS_MARKS));
 * waits for
 * it; has it been reached? */
#define PROCESS_MARKS 64
void process_hold(void *stream);
void process_open_gate(bool open);
void process_mark(int slot, void *stream);
void process_wait(int slot);
bool process_reached(int slot);

#ifdef __cplusplus
}
#endif
#endif

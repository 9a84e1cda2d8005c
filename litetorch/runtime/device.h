/* device.h - C interface of the simulated device's library (libsimtorch.so), used from Python through ctypes. */
#ifndef LT_DEVICE_H
#define LT_DEVICE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

int sim_device_preload(void);       /* once, in the parent: registers kernels, makes no tensor */
int sim_device_open(size_t bytes);  /* once, in the child: maps the arena */
void sim_trace_start(void);
char *sim_trace_stop(void);         /* JSON object {operator: count}; free with sim_free */
int sim_trace_pause(int on);        /* this thread; returns the former value */
void sim_free(char *p);
int sim_inside(int delta);
size_t sim_arena_in_use(void);
void sim_arena_scribble(void *device); /* tests: overwrites one byte */
const char *sim_torch_version(void); /* of the PyTorch whose headers this was built against */
const struct lt_api *sim_api(void);  /* for lt_module_open of a candidate's .so */
char *sim_findings(void);            /* JSON list of our own findings, then forgotten; free with sim_free */
char *sim_library_calls(void);       /* JSON object {name: count}; free with sim_free */
void sim_red_zone_finding(size_t n, long at, const char *kernel);
/* Links arena and emulator: registration of blocks, opening around launches, cudaMalloc, red zones. 0, or -1 if
 * libsimt.so is not loaded. */
int sim_bind_simt(void);

#ifdef __cplusplus
}
#endif
#endif

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

#ifdef __cplusplus
}
#endif
#endif

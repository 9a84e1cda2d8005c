/* device.h - C interface of the simulated device's library (libsimtorch.so), used from Python through ctypes;
 * what it shares with the real device is in process.h. */
#ifndef LT_DEVICE_H
#define LT_DEVICE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

int sim_device_preload(void);       /* once, in the parent: registers kernels, makes no tensor */
int sim_device_open(size_t bytes);  /* once, in the child: maps the arena */
/* The judge's copies, around the dispatcher; tensors are TensorImpl pointers (a Python tensor's _cdata). */
void *sim_upload(void *host);       /* owned handle of a copy on cuda:0, layout kept; NULL if it cannot be made */
long sim_download(void *tensor, char *out, size_t n); /* elements in C order; bytes written, or -1 */
int sim_refill(void *device, void *host); /* new contents in place; 0, or -1 if the layouts differ */
size_t sim_arena_in_use(void);
void sim_arena_scribble(void *device); /* tests: overwrites one byte */
/* Links arena and emulator: registration of blocks, opening around launches, cudaMalloc, red zones. 0, or -1 if
 * libsimt.so is not loaded. */
int sim_bind_simt(void);
/* A candidate's library (a handle of dlopen), before its functions run: its variables are looked at in watched
 * calls. */
void sim_watch_library(void *handle);

#ifdef __cplusplus
}
#endif
#endif

/* front.h - what a process without a device asks its executor for: the calls behind every proxy of a runtime.
 *
 * Addresses of device memory are mapped nowhere in this process. Functions return CUDA's error numbers and remember
 * the last one of their thread, as the runtime does; front_last_error gives it. Streams and events are the executor's
 * numbers in a pointer's clothes: NULL and 1 are the legacy stream, 2 the thread's own. Nothing here is trusted by
 * the judge: what it says of this process can convict it, never acquit it. */
#ifndef LITETORCH_FRONT_H
#define LITETORCH_FRONT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct client;
struct wire_attr;
struct wire_tensor_map;

/* Once, in the child, before anything else here. 0, or -1 with errno. The descriptors may be closed afterwards. */
int front_attach(int area_fd, int bell_fd);
struct client *front_client(void); /* NULL before that */
bool front_has(const void *p);     /* does p point into device memory? */

/* The library at this path, not yet loaded, launches kernels of the image with this hash. 0, or -1: too many. */
int front_library(const char *path, const char *sha256_hex);
/* In such a library this address, a kernel's stub (bytes 0) or a variable's twin, is called so on the device. What is
 * not registered is looked up in the library's symbols. -1: not of such a library, or too many. */
int front_register(const void *address, size_t bytes, const char *name);

/* ---- notes: what this process says about itself, for the judge to read ---- */
/* kind: "operator" (refused), "launch_error", "host_access". Counted by kind and name. */
void front_note(const char *kind, const char *name, const char *message);
/* Who knows at which line of the candidate's program this thread is, 0: at none; asked for each operator. */
void front_where(int (*line)(void));
/* What no executor has: the numbers of exec/wire.h's enum wire_lack. */
enum front_lacks {
    FRONT_LACK_OTHER, FRONT_LACK_MANAGED, FRONT_LACK_CAPTURES, FRONT_LACK_LAUNCH, FRONT_LACK_GRAPHS,
    FRONT_LACK_HOST_FUNCTION, FRONT_LACK_HOST_MEMORY, FRONT_LACK_TEXTURES, FRONT_LACK_PEERS, FRONT_LACK_IMAGES,
    FRONT_LACK_CLUSTERS, FRONT_LACK_DRIVER, FRONT_LACK_TENSOR_MAPS, FRONT_LACK_LANGUAGE,
    FRONT_LACK_TORCH, FRONT_LACK_AUTOGRAD, FRONT_LACK_COUNT
};
int front_lack(int lack); /* the program asked for it. Returns 801, not supported, and remembers that */
char *front_notes(void); /* JSON list of {"kind","name","message","forward","count"}, then forgotten; free() it */
void front_forward(int on); /* from here on, until off, a call of forward runs */
int front_in_forward(void); /* or something is recorded into a graph */

/* ---- errors ---- */
int front_fail(int code);       /* remembers code, unless it is 0, and returns it */
int front_last_error(int keep); /* sticky error of the device, else the last one; forgotten unless keep */
const char *front_error_name(int code);
const char *front_error_text(int code);

/* ---- what the device is ---- */
int front_attribute(int cuda_device_attribute, int *ret); /* numbers of enum cudaDeviceAttr */
const char *front_device_name(void);
size_t front_device_memory(void); /* bytes */

/* ---- memory ---- */
enum front_memory { FRONT_POOL, FRONT_RAW, FRONT_ASYNC }; /* wire_alloc_kind */
int front_malloc(void **p, size_t bytes, enum front_memory kind, void *stream);
int front_free(void *p, enum front_memory kind, void *stream);
int front_malloc_host(void **p, size_t bytes); /* pinned: this process's own */
int front_free_host(void *p);
bool front_pinned(const void *p);
/* Directions follow from the addresses: device memory, and symbols of libraries, against everything else. */
int front_copy(void *to, const void *from, size_t bytes, void *stream);
int front_copy_2d(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                  void *stream);
int front_set(void *p, const void *value, unsigned width, size_t count, void *stream);
/* The device's address of a __device__ or __constant__ variable, named by its host twin's address. */
int front_symbol(const void *twin, void **ret, size_t *ret_bytes);
int front_mem_info(size_t *ret_free, size_t *ret_total);

/* ---- launches ---- */
struct front_launch {
    const char *shown, *file; /* static texts: what findings call the kernel, and where it is launched */
    int line;
    const void *fn;    /* the kernel's address in this process; NULL on sim where the thunk knows it */
    const void *thunk; /* sim: runs one thread; NULL elsewhere */
    unsigned grid[3], block[3];
    size_t shared;
    void *stream;
    const void *args; /* one block */
    size_t n_args;
    void *const *params; /* not sim: a pointer to each argument, in place of the block */
    const struct wire_attr *attr; /* attrs of them (exec/wire.h); NULL: none */
    unsigned attrs;
    bool cooperative; /* sim: as the attribute of that name */
};
int front_launch(const struct front_launch *l);
int front_function_attribute(const void *fn, int attribute, int value);
struct front_function { /* bytes; registers of a thread */
    size_t static_shared, max_dynamic, local, constant;
    int max_threads, registers, binary, ptx, params;
};
int front_function_info(const void *fn, struct front_function *ret); /* not sim */
/* cuTensorMapEncodeTiled: 128 bytes that a kernel takes as an argument. */
int front_tensor_map(const struct wire_tensor_map *m, void *ret);
int front_occupancy(const void *fn, int threads, size_t shared, int *ret_blocks);

/* ---- order ---- */
void *front_stream(void); /* torch's current one, of this thread */
void front_set_stream(void *stream);
int front_stream_create(unsigned flags, int priority, void **ret);
int front_stream_destroy(void *stream);
int front_stream_sync(void *stream);
int front_stream_query(void *stream);
int front_stream_wait(void *stream, void *event);
int front_event_create(unsigned flags, void **ret);
int front_event_destroy(void *event);
int front_event_record(void *event, void *stream);
int front_event_sync(void *event);
int front_event_query(void *event);
int front_event_elapsed(void *from, void *to, float *ret_ms);
int front_sync(void);

#ifdef __cplusplus
}
#endif
#endif

/* abi.h - the C seam between a candidate's shared object and the process that loads it.
 *
 * The .so knows no Python and no libtorch. It exports lt_module_open(), which takes the table of functions that reach
 * tensors and gives back the table of functions that the candidate defined. A tensor is an opaque counted handle. */
#ifndef LITETORCH_ABI_H
#define LITETORCH_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LT_ABI 3

enum lt_tag {
    LT_NONE,
    LT_BOOL,   /* i */
    LT_INT,    /* i */
    LT_DOUBLE, /* d */
    LT_TENSOR, /* p: handle. Arguments are borrowed, results are owned by the receiver. NULL: undefined tensor */
    LT_STRING, /* p, n: bytes; a result is freed with free() */
    LT_LIST,   /* p: struct lt_value[n]; a result is freed with free() */
    LT_TUPLE   /* as LT_LIST */
};

struct lt_value {
    int32_t tag;
    int32_t spare;
    union {
        int64_t i;
        double d;
        void *p;
    } u;
    int64_t n;
};

struct lt_info {
    void *data; /* first element, device address; NULL if empty */
    int64_t numel, offset;
    const int64_t *sizes, *strides; /* live as long as the tensor keeps its shape */
    int32_t dim, dtype;             /* dtype: c10::ScalarType's number */
    int32_t cuda, index;            /* cuda: 1 on the device, 0 on the host */
    int32_t itemsize, contiguous;
    int32_t requires_grad, contiguous_nhwc;
};

/* While a call of forward is watched, everything that the host hands the device is written down (eval/hostflow.h
 * says in
 * what form, and what for). Served by the process (litetorch/runtime/watch.cc), called by whoever stands in the way:
 * the
 * wrappers of litetorch/device.cc on a GPU, the emulator's hooks on sim, the trace of torch's operators on both. */
#define LT_WATCH_RECORD 1
#define LT_WATCH_GATE 2 /* launches on other streams than the call's are held back, to see who waits for them */

struct lt_watch {
    int32_t mode; /* 0: nothing is watched, and nothing but memory and host_memory need be called */
    int32_t spare;
    /* Around anything that the device does. They nest; the outermost pair compares what the host wrote to memory that
     * kernels can read. launch_*: the same for a kernel on a stream (a cudaStream_t). */
    void (*enter)(void);
    void (*leave)(void);
    void (*launch_enter)(void *stream, const char *kernel);
    void (*launch_leave)(void *stream);
    /* A record: begin, fields, end; on one thread. words: small values, pointers in them are recognised; content:
     * bytes. */
    void (*begin)(const char *kind, const char *name);
    void (*words)(const char *label, const void *bytes, size_t n);
    void (*content)(const char *label, const void *host, size_t n);
    void (*end)(void);
    void (*read)(size_t bytes); /* went from the device to the host */
    /* Always: device memory was allocated (n > 0) or given back (n == 0); the same for host memory that kernels can
     * read. */
    void (*memory)(const void *p, size_t n);
    void (*host_memory)(const void *p, size_t n);
    /* Bytes of argument i of a kernel of the driver's interface (a CUfunction); -1: there is none. */
    int (*param_size)(const void *function, size_t i, size_t *ret);
};

struct lt_api {
    int32_t version;
    void (*retain)(void *t);
    void (*release)(void *t);
    int (*info)(void *t, struct lt_info *ret);
    /* Calls aten::NAME[.OVERLOAD]; args are positional, the schema's defaults fill the rest. Returns the number of
     * results, or -1 with error() saying why. */
    int (*op)(const char *name, const char *overload, const struct lt_value *args, int n_args, struct lt_value *rets,
              int max_rets);
    void *(*from_blob)(void *data, const int64_t *sizes, const int64_t *strides, int dim, int dtype, int cuda,
                       void (*deleter)(void *arg, void *data), void *arg);
    const char *(*error)(void);
    /* What the candidate did and may not: kind "library_call". Counted, and kept for the judge. */
    void (*finding)(const char *kind, const char *name, const char *file, int line);
    /* torch's current stream on the device (a cudaStream_t), for kernels to be launched on. May be NULL: stream 0. */
    void *(*stream)(void);
    const struct lt_watch *watch; /* never NULL */
    /* Memory that a library takes by itself, on the device or pinned: the process says how much is enough. call: may n
     * bytes be taken by this call? 0: yes, and they count. call NULL: p is what came of it (NULL: nothing did, n bytes
     * count no more); n 0: p goes back. May be NULL: no limit. */
    int (*take)(const void *p, size_t n, const char *call);
};

/* What an exception becomes in Python. */
enum lt_error { LT_OK, LT_RUNTIME_ERROR, LT_VALUE_ERROR, LT_INDEX_ERROR, LT_TYPE_ERROR, LT_OVERFLOW_ERROR,
                LT_MEMORY_ERROR, LT_NOT_IMPLEMENTED };

struct lt_param {
    const char *name;
    const char *type; /* T tensor, i int, d float, b bool, s str, S number, y dtype, v device; ?x optional, [x list,
                         (xyz tuple */
    int has_default;
    struct lt_value value;
};

struct lt_function {
    const char *name, *doc, *returns; /* returns: a type as above, "" for none */
    int32_t n_params, spare;
    const struct lt_param *params;
    void *self;
    /* args has n_params entries of the right kinds. Returns an lt_error; message is filled unless LT_OK. */
    int (*invoke)(void *self, const struct lt_value *args, struct lt_value *ret, char *message, size_t max_message);
};

struct lt_module {
    int32_t version, n_functions;
    const struct lt_function *functions;
    const char *doc;
};

/* Exported by every candidate's .so. NULL if the versions differ. */
const struct lt_module *lt_module_open(const struct lt_api *api);

/* What a library built for a real GPU does with it, live. Its calls of cudaLaunchKernel and the like pass through
 * wrappers that are linked into it (litetorch/device.cc): they count, and launch nothing while 'ablate' is set. */
#define LT_DEVICE_ABI 2

/* lt_device.ablate, set by the process: launches do nothing and say cudaSuccess. What a graph was given meanwhile is
 * not in it, but what was recorded before is: graphs are launched all the same. */
#define LT_ABLATE_ALL 1
#define LT_ABLATE_RECORDED 2 /* only launches that are recorded into a graph */

struct lt_kernel {
    const char *symbol; /* mangled */
    const char *name;   /* readable: "relu(float const*, float*, int)" */
    uint64_t launches;
};

struct lt_device {
    int32_t version;
    int32_t ablate;          /* 0 or LT_ABLATE_... */
    uint64_t launches;       /* kernels, graphs excluded; counted while ablated too */
    uint64_t graph_launches; /* cudaGraphLaunch */
    uint64_t side_launches;  /* of both, on another stream than lt_api.stream() gives */
    uint64_t captured;       /* kernels recorded into graphs: of 'launches', and nodes that were added one by one */
    int32_t n_kernels, spare;
    const struct lt_kernel *kernels; /* known after loading; the library's own, never moved */
    uint64_t to_host, to_device; /* copies by the runtime's calls between host and device, of more than 64 bytes */
};

/* Exported by libraries built for a GPU, absent on sim. The counters are the library's: evidence against it, not for. */
struct lt_device *lt_module_device(void);

#ifdef __cplusplus
}
#endif
#endif

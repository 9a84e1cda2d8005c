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

#define LT_ABI 5

enum lt_tag {
    LT_NONE,
    LT_BOOL,   /* i */
    LT_INT,    /* i */
    LT_DOUBLE, /* d */
    LT_TENSOR, /* p: handle. Arguments are borrowed, results are owned by the receiver. NULL: undefined tensor */
    LT_STRING, /* p, n: bytes; a result is freed with free() */
    LT_LIST,   /* p: struct lt_value[n]; a result is freed with free() */
    LT_TUPLE,  /* as LT_LIST */
    LT_ABSENT, /* an argument that was not given */
    LT_OTHER   /* one of a kind that has no tag */
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
    /* As op, of the overload that takes these arguments: torch's arithmetic, in C++. -2: it may not be done here and
     * now; the caller reports it. LT_ABSENT is the schema's default. */
    int (*operate)(const char *name, const struct lt_value *args, int n_args, struct lt_value *rets, int max_rets);
    /* torch's current stream on the device (a cudaStream_t), for kernels to be launched on. May be NULL: stream 0. */
    void *(*stream)(void);
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

#ifdef __cplusplus
}
#endif
#endif

/* plumb_kernels.h - the GPU's plumbing: names and argument blocks that host and plumb.cu share. Each kernel takes one
 * struct by value and walks its elements with a grid-stride loop. */
#ifndef MC_EXEC_PLUMB_KERNELS_H
#define MC_EXEC_PLUMB_KERNELS_H

#include "exec/wire.h"

#define PLUMB_THREADS 256u
#define PLUMB_KERNELS(X) X(set) X(fill) X(strided) X(arange) X(random) X(equal) X(spin)

struct plumb_strided_args {
    struct wire_strided m;
    uint64_t *changed; /* counts elements whose value a cast changed */
};
struct plumb_equal_args {
    struct wire_equal m;
    uint64_t *differ; /* counts elements that are not close */
};
struct plumb_spin_args {
    uint64_t ns; /* of one thread */
};

#endif

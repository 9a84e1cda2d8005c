/* data_movement_kernels.h - the GPU's plumbing: names and argument blocks that host and data_movement.cu share. Each
 * kernel takes one struct by value and walks its elements with a grid-stride loop. */
#ifndef MC_EXEC_DATA_MOVEMENT_KERNELS_H
#define MC_EXEC_DATA_MOVEMENT_KERNELS_H

#include "exec/wire.h"

#define MOVEMENT_THREADS 256u
#define MOVEMENT_KERNELS(X) X(set) X(fill) X(strided) X(arange) X(random) X(equal) X(spin)

struct movement_strided_args {
    struct wire_strided m;
    uint64_t *changed; /* counts elements whose value a cast changed */
};
struct movement_equal_args {
    struct wire_equal m;
    uint64_t *differ; /* counts elements that are not close */
};
struct movement_spin_args {
    uint64_t ns; /* of one thread */
};

#endif

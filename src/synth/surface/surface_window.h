/* surface_window.h - the CUDA text of convolutions and poolings over one to three axes: one thread an output
 * element. */
#ifndef MC_SYNTH_SURFACE_WINDOW_H
#define MC_SYNTH_SURFACE_WINDOW_H

#include <stdbool.h>

#include "base/buf.h"

/* What a host's "size" of axis i returns, of a convolution and of a transposed one. */
#define WINDOW_CONV_SIZE "(x.size(2 + i) + 2 * padding[i] - dilation[i] * (w.size(2 + i) - 1) - 1) / stride[i] + 1"
#define WINDOW_TRANSPOSED_SIZE                                                                                         \
    "(x.size(2 + i) - 1) * stride[i] - 2 * padding[i] + dilation[i] * (w.size(2 + i) - 1) + extra[i] + 1"

/* Appends kernel and host function; both are called after name. The code is not indented. */
void window_conv(struct buf *out, const char *name, int axes, bool transposed);
/* tuples: the host takes vectors, not numbers. */
void window_pool(struct buf *out, const char *name, int axes, bool max, bool tuples);

#endif

/* window.h - attributes that convolutions and poolings share: nd, then kernel, stride, padding, dilation for each
 * spatial dimension. in[0] is (N, C, spatial..). */
#ifndef MC_SYNTH_WINDOW_H
#define MC_SYNTH_WINDOW_H

#include "synth/op.h"

enum { W_ND = 0, W_K = 1, W_S = 4, W_P = 7, W_D = 10, W_GROUPS = 13, W_BIAS = 14, W_OPAD = 15 };

extern const char *const window_out[3], *const window_tap[3]; /* names of dimensions for the last nd: "oh", "kh" */
/* The names' first index for nd spatial dimensions: 1-D uses w only. */
static inline int window_first(int nd)
{
    return 3 - nd;
}
/* $k $s $p $d: a number, or a tuple where dimensions differ. */
bool window_key(const struct op_call *c, const char *key, struct buf *out);
/* Kernel, stride, padding and dilation that fit the input; half: padding is at most half of the kernel. */
void window_draw(struct rng *r, struct op_call *c, int max_kernel, bool half, bool dilate);
int window_out_size(const struct op_call *c, int i); /* of the i-th spatial dimension, without ceil_mode; may be < 1 */

#endif

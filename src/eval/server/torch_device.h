/* torch_device.h - the device inside PyTorch (litetorch/front) for the PyTorch that the runner uses.
 *
 * 'make' compiles it for the PyTorch that it finds. An installed program meets any PyTorch: then this compiles it once
 * for that version, into the data folder (torch/VERSION/lib/libfronttorch.so), which takes about half a minute. */
#ifndef MC_EVAL_TORCH_DEVICE_H
#define MC_EVAL_TORCH_DEVICE_H

#include "base/err.h"

/* *ret: the path of a library of the data folder (the caller frees it), or NULL where the build's own serves.
 * Waits while another process compiles. Errors are ERR_ENV: no Python, no compiler, a compiler that fails. */
int torch_device_prepare(char **ret, struct err *e);

#endif

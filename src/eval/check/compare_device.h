/* compare_device.h - compare_tensors() where the tensors are: on the judge's device (device/device.h, "cuda" or
 * "host"). */
#ifndef MC_COMPARE_DEVICE_H
#define MC_COMPARE_DEVICE_H

#include "device/device.h"
#include "eval/check/compare.h"

/* Fills *ret exactly as compare_tensors() does, for views in memory of d; got may have any strides. One pass over got
 * and oracle; where something is wrong, further passes find out how it lies (one bit per element of device memory). -1:
 * the device failed, *ret is untouched. If only the diagnosis failed (memory), pattern is "". */
int device_compare(struct device *d, const struct device_view *eager, const struct device_view *oracle,
                   const struct device_view *got, const struct tolerance *tol, struct comparison *ret, struct err *e);

#endif
